"""``chargeback statements``."""

from __future__ import annotations

import csv
import json
import re
from decimal import Decimal
from pathlib import Path
from zipfile import ZipFile

import pytest

from chargeback.cli.statements import print_tie_out
from chargeback.reports.statements.content import StatedAmount, StatementTieOut
from tests.cli.conftest import PERIOD, Demo, Run


def words_for(demo: Demo, folder: Path, *more: str) -> list[str]:
    """Return the arguments for the month of the last calculated day."""
    given = ["--config", str(demo.file), "--tenant", "acme", "--period", PERIOD, "--to", str(folder)]
    return ["statements", *given, *more]


def test_one_file_with_all(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """A ZIP file has the same files as a folder."""
    for to in ("all.zip", "folder"):
        said = chargeback(*words_for(calculated, tmp_path / to, "--by", "tag:team", "--format", "json,csv"))
        assert (said.returncode, f"see {tmp_path / to}" in said.stdout) == (0, True), said.stdout + said.stderr
    with ZipFile(tmp_path / "all.zip") as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found == {file.name: file.read_bytes() for file in (tmp_path / "folder").iterdir()}
    said = chargeback(*words_for(calculated, tmp_path / "folder" / "index.csv", "--by", "tag:team"))
    assert (said.returncode, "should be a folder, or a file that ends with .zip" in said.stderr) == (2, True)


@pytest.mark.extensive
def test_files_and_an_index(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """Each statement has a file in each format, listed in an index; they sum to the bill, and repeated files are the
    same."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        said = chargeback(*words_for(calculated, folder, "--by", "tag:team", "--format", "csv,html,json,pdf"))
        assert said.returncode == 0, said.stdout + said.stderr
        assert "Against the provider's bill" in said.stdout
    one, two = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in folders)
    assert one == two
    index = list(csv.DictReader(one["index.csv"].decode().splitlines()))
    numbers = {row["number"] for row in index}
    assert {f"{number}.{form}" for number in numbers for form in ("csv", "html", "json", "pdf")} == (
        one.keys() - {"index.csv", "index.html"}
    )
    page = one["index.html"].decode()
    for row in index:
        assert f'href="{row["number"]}.pdf"' in page
        assert one[f"{row['number']}.pdf"].startswith(b"%PDF-")
        statement = json.loads(one[f"{row['number']}.json"])
        assert (statement["amount"], statement["rounded"]) == (row["amount"], row["rounded"])
    tie = json.loads(one[f"{index[0]['number']}.json"])["tie_out"]
    assert Decimal(tie["statements"]["rounded"]) == sum(Decimal(row["rounded"]) for row in index)
    assert tie["difference"] == "0.00"


def test_mistakes(chargeback: Run, demo: Demo, tmp_path: Path) -> None:
    """The exit code is 2 for a wrong option, which is named, and 1 without data; nothing is written."""
    folder = tmp_path / "none"
    for wrong, told in (
        ((), "--category / --by"),
        (("--by", "identity_id", "--category", "stage"), "--category / --by"),
        (("--by", "product_type"), "should be identity_id or tag:KEY"),
        (("--by", "identity_id", "--format", "html,docx"), "not docx"),
        (("--by", "identity_id", "--period", "2026-13"), "should be a month such as 2026-10"),
    ):
        said = chargeback(*words_for(demo, folder, *wrong))
        assert (said.returncode, told in said.stderr) == (2, True), said.stderr
    said = chargeback(*words_for(demo, folder, "--by", "identity_id"))
    assert (said.returncode, said.stderr) == (1, "error: tenant acme: no data has been gathered yet\n")
    assert not folder.exists()


def test_what_lies_between_statements_and_bill_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Corrections and adjustments are printed on their own lines, so that the lines add up; amounts of zero are left
    out."""
    none, some, all_together = (
        StatedAmount(amount=Decimal(amount), rounded=Decimal(amount)) for amount in ("0", "1.25", "14.50")
    )
    tie = StatementTieOut(
        state="equal",
        difference=Decimal(0),
        statements=all_together,
        billed=StatedAmount(amount=Decimal("13.25"), rounded=Decimal("13.25")),
        outdated=none,
        pending=none,
        corrections=some,
        adjustments=none,
    )
    print_tie_out(tie, "USD")
    printed = capsys.readouterr().out
    assert re.search(r"corrections of earlier months .*1\.25", printed)
    assert "adjustments" not in printed
