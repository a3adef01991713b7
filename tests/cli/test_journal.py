"""``chargeback journal``."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

from tests.cli.conftest import PERIOD, Demo, Run


def words_for(demo: Demo, file: Path, *more: str) -> list[str]:
    """Return the arguments for the month of the last calculated day."""
    return ["journal", "--config", str(demo.file), "-t", "acme", "--period", PERIOD, "--to", str(file), *more]


def test_the_month_is_booked(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """CSV and JSON have the same lines; debits equal credits, and the output compares with the bill."""
    files = [tmp_path / "journal.csv", tmp_path / "journal.json"]
    for file in files:
        said = chargeback(*words_for(calculated, file, "--by", "tag:team", "--format", file.suffix[1:]))
        assert said.returncode == 0, said.stdout + said.stderr
        assert "Against the provider's bill" in said.stdout
    rows = list(csv.DictReader(files[0].read_text(encoding="utf-8").splitlines()))
    assert rows
    found = json.loads(files[1].read_text(encoding="utf-8"))
    assert [(row["account"], row["debit"], row["credit"]) for row in rows] == [
        (line["account"], line["debit"], line["credit"]) for line in found["lines"]
    ]
    assert sum(Decimal(row["debit"]) for row in rows) == Decimal(found["credit"])
    assert found["debit"] == found["credit"]


def test_mistakes(chargeback: Run, demo: Demo, tmp_path: Path) -> None:
    """The exit code is 2, and the message names the option; nothing is written."""
    file = tmp_path / "journal.csv"
    for wrong, told in (
        (("--by", "identity_id", "--category", "stage"), "--category / --by"),
        (("--format", "xml"), "should be one of csv, json"),
        (("--format", "csv", "--template", "sap"), "--format / --template"),
        (("--template", "sap"), "should be one of journal.templates: none"),
    ):
        said = chargeback(*words_for(demo, file, *wrong))
        assert (said.returncode, told in said.stderr) == (2, True), said.stderr
    assert not file.exists()
