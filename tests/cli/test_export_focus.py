"""``chargeback export --format focus``."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path
from threading import Event

import pyarrow.parquet as pq
import pytest

from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.focus_files import FocusFilesSettings
from chargeback.ecosystems.focus_files import ecosystem as focus
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, FactTables, read_day
from tests.cli.conftest import Demo, Run
from tests.support.facts import known_facts


def test_a_folder_of_the_whole_bill(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """Each month is a file, all together sum to the bill, and the metadata lie beside them."""
    folder = tmp_path / "focus"
    words = ["export", "--config", str(calculated.file), "--tenant", "acme", "--format", "focus", "--to", str(folder)]
    said = chargeback(*words, "--version", "1.4", "--split", "topics")
    assert said.returncode == 0, said.stderr
    snapshot = known_facts(calculated.file.parent / "acme.facts").snapshot(BILLING_TABLE)
    months = sorted({f"{day:%Y-%m}" for day in snapshot.days})
    files = sorted((folder / "data" / "acme-topics").iterdir())
    assert [file.name for file in files] == [f"{month}.parquet" for month in months]
    written = [cost for file in files for cost in pq.read_table(file).column("BilledCost").to_pylist()]
    billed = [cost for file in snapshot.files for cost in pq.read_table(file.path).column("total_cost").to_pylist()]
    assert sum(written) == sum(billed) != Decimal(0)
    assert said.stdout.splitlines()[0].startswith(f"{files[0]}: {snapshot.days[0]} to ")
    (schema,) = (folder / "metadata" / "schemas").iterdir()
    named = [each["ColumnName"] for each in json.loads(schema.read_text())["ColumnDefinition"]]
    assert named == pq.read_schema(files[0]).names
    nothing = chargeback(*words, "--from", str(snapshot.days[-1] + ONE_DAY))
    assert (nothing.returncode, nothing.stderr) == (1, "error: tenant acme: there is no bill of these days\n")


@pytest.mark.parametrize("version", ["1.2", "1.4"])
def test_what_is_exported_can_be_read_as_a_bill(
    chargeback: Run, calculated: Demo, tmp_path: Path, version: str
) -> None:
    """The ecosystem ``focus`` reads the same bill from the files: each day and product type to the last digit."""
    folder = tmp_path / "focus"
    words = ["export", "--config", str(calculated.file), "--tenant", "acme", "--format", "focus", "--to", str(folder)]
    assert chargeback(*words, "--version", version, "--split", "none").returncode == 0
    facts = known_facts(calculated.file.parent / "acme.facts")
    billed: dict[tuple[date, str], Decimal] = defaultdict(Decimal)
    for day in facts.snapshot(BILLING_TABLE).days:
        for line in read_day(facts, BILLING_TABLE, day).to_pylist():
            billed[day, line["product_type"]] += line["total_cost"]
    settings = FocusFilesSettings.model_validate(
        {
            "cluster_id": "acme",
            "identity_source": {"source": "static", "static_identities": [{"identity_id": "a"}]},
            "bill": {"files": str(folder / "data"), "cost": "billed", "settle_seconds": 0},
        }
    )
    context = TenantContext("acme", "acme", "USD", max(day for day, _ in billed), Event(), str(tmp_path))
    read: dict[tuple[date, str], Decimal] = defaultdict(Decimal)
    with focus.open(context, settings) as gatherer:
        for gathered in gatherer.billing(DayRange.spanning(day for day, _ in billed)):
            for each in gathered.lines:
                read[each.day, each.product_type] += each.total_cost
    # Credits have no SKU in FOCUS, so that their service is the product type.
    renamed = {"PROMO_CREDIT": "Confluent Promotional Credit"}
    assert read == {(day, renamed.get(name, name)): cost for (day, name), cost in billed.items()}


def test_what_is_exported_by_identities_can_be_charged_as_it_is(
    chargeback: Run, calculated: Demo, tmp_path: Path
) -> None:
    """With the payers of the files as owners, every identity pays the same for each product type of each day."""
    folder = tmp_path / "focus"
    words = ["export", "--config", str(calculated.file), "--tenant", "acme", "--format", "focus", "--to", str(folder)]
    assert chargeback(*words, "--version", "1.4", "--split", "identities").returncode == 0
    expected = paid(known_facts(calculated.file.parent / "acme.facts"))
    settings = {
        "cluster_id": "acme",
        "identity_source": {"source": "static", "static_identities": [{"identity_id": "nobody"}]},
        "allocation_policies": {"*": {"portions": [{"share": "1", "try": ["owner", "unallocated"]}]}},
        "bill": {
            "files": str(folder / "data"),
            "cost": "billed",
            "settle_seconds": 0,
            "identity": {"from": "AllocatedResourceId"},
            "product_type": {"from": "SkuMeter"},
        },
    }
    tenant = {
        "ecosystem": "focus",
        "tenant_id": "again",
        "lookback_days": 30,
        "storage": {"connection_string": "sqlite:///again.db"},
        "plugin_settings": settings,
    }
    (tmp_path / "again.yaml").write_text(json.dumps({"tenants": {"again": tenant}}))
    said = chargeback("run", "--config", str(tmp_path / "again.yaml"))
    assert said.returncode == 0, said.stderr
    found = paid(known_facts(tmp_path / "again.facts"))
    assert {key: cost for key, cost in found.items() if key[2] != "Credit"} == {
        key: cost for key, cost in expected.items() if key[2] != "PROMO_CREDIT"
    }
    assert sum(found.values()) == sum(expected.values())


def paid(facts: FactTables) -> dict[tuple[date, str, str], Decimal]:
    """What each identity pays, by day and product type."""
    found: dict[tuple[date, str, str], Decimal] = defaultdict(Decimal)
    for day in facts.snapshot(CHARGEBACKS_TABLE).days:
        for row in read_day(facts, CHARGEBACKS_TABLE, day).to_pylist():
            found[day, row["identity_id"], row["product_type"]] += row["amount"]
    return dict(found)


def test_options_that_do_not_fit(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """2, and the message names the option."""
    words = ["export", "--config", str(calculated.file), "--tenant", "acme", "--to", str(tmp_path / "out")]
    for more, named in (
        (["--split", "topics"], "--version / --split"),
        (["--format", "focus", "--rows", "topics"], "--rows"),
        (["--format", "focus", "--version", "1.3"], "--version"),
        (["--format", "focus", "--to", str(calculated.file)], "--to"),
    ):
        said = chargeback(*words, *more)
        assert said.returncode == 2
        assert named in said.stderr
