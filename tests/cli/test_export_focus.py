"""``chargeback export --format focus``."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq

from chargeback.model.days import ONE_DAY
from chargeback.store.facts.tables import BILLING_TABLE, FactTables
from tests.cli.conftest import Demo, Run


def test_a_folder_of_the_whole_bill(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """Each month is a file, all together sum to the bill, and the metadata lie beside them."""
    folder = tmp_path / "focus"
    words = ["export", "--config", str(calculated.file), "--tenant", "acme", "--format", "focus", "--to", str(folder)]
    said = chargeback(*words, "--version", "1.4", "--split", "topics")
    assert said.returncode == 0, said.stderr
    snapshot = FactTables(calculated.file.parent / "acme.facts").snapshot(BILLING_TABLE)
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
