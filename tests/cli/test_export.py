"""``chargeback export``."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Event

import pyarrow.parquet as pq
import pytest

from chargeback.cli.export import period_of
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.focus_files import FocusFilesSettings
from chargeback.ecosystems.focus_files import ecosystem as focus
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE, FactTables, read_day
from tests.cli.conftest import Demo, Run
from tests.support.facts import known_facts


def amounts(file: Path) -> list[Decimal]:
    """Return the amounts of a file."""
    if file.suffix == ".parquet":
        return [Decimal(each) for each in pq.read_table(file).column("amount").to_pylist()]
    with file.open(newline="", encoding="utf-8") as lines:
        rows = csv.DictReader(lines) if file.suffix == ".csv" else map(json.loads, lines)
        return [Decimal(row["amount"]) for row in rows]


def total(facts: FactTables, table: str, column: str) -> Decimal:
    """Return the sum of the rows of a table."""
    files = facts.snapshot(table).files
    return sum((sum(pq.read_table(file.path).column(column).to_pylist()) for file in files), Decimal(0))


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_all_rows(chargeback: Run, calculated: Demo, form: str) -> None:
    """In every format, a file of all days sums to the bill; the output has the number of rows and the days."""
    file = calculated.file.with_name(f"all.{form}")
    said = chargeback(
        "export", "--config", str(calculated.file), "--tenant", "acme", "--format", form, "--to", str(file)
    )
    assert said.returncode == 0, said.stderr
    facts = known_facts(calculated.file.parent / "acme.facts")
    days = facts.snapshot(CHARGEBACKS_TABLE).days
    found = amounts(file)
    assert sum(found) == total(facts, BILLING_TABLE, "total_cost")
    assert said.stdout == f"{file}: {len(found):,} rows, {days[0]} to {days[-1]}\n"
    assert said.stderr == ""
    assert not list(file.parent.glob(".chargeback-*"))


def test_a_folder_has_a_file_for_each_month(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """Topics are written month by month; with a month or days, only those are written."""
    facts = known_facts(calculated.file.parent / "acme.facts")
    days = facts.snapshot(TOPICS_TABLE).days
    months = sorted({f"{day:%Y-%m}" for day in days})
    words = ["export", "--config", str(calculated.file), "--tenant", "acme", "--rows", "topics"]
    folder = tmp_path / "files"
    folder.mkdir()
    assert chargeback(*words, "--to", str(folder)).returncode == 0
    assert sorted(file.name for file in folder.iterdir()) == [f"acme_topics_{month}.csv" for month in months]
    written = [amount for file in folder.iterdir() for amount in amounts(file)]
    assert sum(written) == total(facts, TOPICS_TABLE, "amount")
    one = tmp_path / "one.csv"
    said = chargeback(*words, "--month", months[-1], "--to", str(one))
    assert one.read_bytes() == (folder / f"acme_topics_{months[-1]}.csv").read_bytes(), said.stderr
    said = chargeback(*words, "--from", str(days[1]), "--through", str(days[2]), "--to", str(one))
    assert said.stdout.endswith(f"{days[1]} to {days[2]}\n")


def test_columns_and_an_earlier_instant(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """The file has the named columns in this order; before the first calculation there are no rows."""
    words = ["export", "--config", str(calculated.file), "--tenant", "acme"]
    file = tmp_path / "some.csv"
    said = chargeback(*words, "--to", str(file), "--columns", "amount,identity_id", "--as-of", "2999-01-01")
    assert said.returncode == 0, said.stderr
    assert file.read_text(encoding="utf-8").startswith("amount,identity_id\n")
    assert sum(amounts(file)) == total(known_facts(calculated.file.parent / "acme.facts"), BILLING_TABLE, "total_cost")
    said = chargeback(*words, "--to", str(tmp_path / "none.csv"), "--as-of", "2001-01-01")
    assert (said.returncode, "there are no chargebacks on these days" in said.stderr) == (1, True), said.stderr
    for wrong, told in (
        (("--columns", "amount,nothing"), "not nothing"),
        (("--columns", "amount,amount"), "twice"),
        (("--columns", "amount,category_share"), "needs exactly one category:KEY"),
        (("--columns", "amount", "--format", "focus"), "are not for --format focus"),
    ):
        said = chargeback(*words, "--to", str(tmp_path / "none.csv"), *wrong)
        assert (said.returncode, told in said.stderr) == (2, True), said.stderr


def test_what_cannot_be_exported(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """The exit code is 1 if there are no rows or the file cannot be written, and 2 for a usage error; no file is
    changed."""
    file = tmp_path / "rows.csv"
    file.write_text("before", encoding="utf-8")
    words = ["export", "--config", str(calculated.file), "--to", str(file)]
    days = known_facts(calculated.file.parent / "acme.facts").snapshot(CHARGEBACKS_TABLE).days
    said = chargeback(*words, "--tenant", "acme", "--from", str(days[-1] + ONE_DAY))
    assert (said.returncode, said.stderr) == (
        1,
        "error: tenant acme: there are no chargebacks on these days\n",
    )
    nowhere = [*words[:-1], str(file / "rows.csv"), "--tenant", "acme"]
    assert (chargeback(*nowhere).returncode, "cannot be written" in chargeback(*nowhere).stderr) == (1, True)
    for wrong in (
        ["--tenant", "nobody"],
        ["--tenant", "acme", "--format", "xlsx"],
        ["--tenant", "acme", "--month", "2026-13"],
        ["--tenant", "acme", "--month", "2026-01", "--from", "2026-01-01"],
        ["--tenant", "acme", "--from", "2026-01-02", "--through", "2026-01-01"],
    ):
        assert chargeback(*words, *wrong).returncode == 2
    assert file.read_text(encoding="utf-8") == "before"


def test_nothing_is_gathered(chargeback: Run, demo: Demo) -> None:
    """For a tenant without data, the output says so and nothing is created."""
    said = chargeback("export", "--config", str(demo.file), "--tenant", "acme", "--to", "rows.csv")
    assert (said.returncode, said.stderr) == (1, "error: tenant acme: no data has been gathered yet\n")
    assert not (demo.file.parent / "acme.db").exists()


def test_the_last_month_there_can_be() -> None:
    """The last month of the calendar has all its days."""
    assert period_of(datetime(9999, 12, 1, tzinfo=UTC), None, None) == (date(9999, 12, 1), date(9999, 12, 31))
    assert period_of(datetime(2028, 2, 1, tzinfo=UTC), None, None) == (date(2028, 2, 1), date(2028, 2, 29))


def test_a_folder_of_the_whole_bill(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """Each month is a file, all files sum to the bill, and the metadata is in the same folder."""
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
    """The ecosystem ``focus`` reads the same bill from the files, exactly by day and product type."""
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
    # Credits have no SKU in FOCUS; their service becomes the product type.
    renamed = {"PROMO_CREDIT": "Confluent Promotional Credit"}
    assert read == {(day, renamed.get(name, name)): cost for (day, name), cost in billed.items()}


def test_what_is_exported_by_identities_can_be_charged_as_it_is(
    chargeback: Run, calculated: Demo, tmp_path: Path
) -> None:
    """If the payers in the files are used as owners, every identity pays the same for each product type and day."""
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
    """Return what each identity pays, by day and product type."""
    found: dict[tuple[date, str, str], Decimal] = defaultdict(Decimal)
    for day in facts.snapshot(CHARGEBACKS_TABLE).days:
        for row in read_day(facts, CHARGEBACKS_TABLE, day).to_pylist():
            found[day, row["identity_id"], row["product_type"]] += row["amount"]
    return dict(found)


def test_options_that_do_not_fit(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """The exit code is 2, and the message names the option."""
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
