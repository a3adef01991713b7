"""Partial aggregates are found only for the data files that they sum, and are deleted if damaged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.model.days import week_of
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.partial_files import PARTIALS, PartialFiles, by_week, sources_of
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from tests.support.damage import DAMAGES
from tests.support.facts import Share, days_from, new_facts, write_shares

MONDAY = date(2026, 1, 5)
ROWS = pa.table({"date": pa.array([MONDAY], pa.date32()), "total": [1]})
KIND = "kind-1"


@pytest.fixture
def facts(tmp_path: Path) -> FactTables:
    """Return tables with three days in two weeks."""
    facts = new_facts(tmp_path / "facts")
    write_shares(facts, [Share(day, "sa-1", "1") for day in days_from(MONDAY + timedelta(days=5), 3)])
    return facts


def _sources(facts: FactTables, week: date = MONDAY) -> dict[date, str]:
    files = facts.snapshot(CHARGEBACKS_TABLE).files
    return sources_of([file for file in files if file.day is not None and week_of(file.day).start == week]) or {}


def _keep(facts: FactTables, kind: str = KIND, rows: pa.Table = ROWS) -> Path:
    kept = facts.partials.write(CHARGEBACKS_TABLE, kind, MONDAY, rows, _sources(facts))
    assert kept is not None
    return Path(kept.path)


def _found(partials: PartialFiles, kind: str = KIND) -> list[str]:
    return [file.path for file in partials.by_week(CHARGEBACKS_TABLE, kind, [MONDAY]).get(MONDAY, [])]


def test_what_is_kept_is_found_with_what_it_sums(facts: FactTables) -> None:
    """A partial is found by week and kind, with the digests of its data files and its number of rows."""
    path = _keep(facts)
    (found,) = facts.partials.by_week(CHARGEBACKS_TABLE, KIND, [MONDAY])[MONDAY]
    assert (found.path, found.sources, found.rows) == (str(path), _sources(facts), 1)
    assert facts.partials.by_week(CHARGEBACKS_TABLE, KIND, [MONDAY + timedelta(days=7)]) == {}
    assert _found(facts.partials, "kind-2") == []


def test_a_new_one_replaces_that_of_its_week(facts: FactTables) -> None:
    """Each kind and week has one file, whichever process wrote the former one."""
    _keep(facts)
    path = _keep(facts, rows=pa.concat_tables([ROWS, ROWS]))
    assert _found(facts.partials) == [str(path)]
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_one_is_missing_and_gone(facts: FactTables, damage: tuple[Callable[[Path], None], bool]) -> None:
    """The digest in the name shows any damage, even after the file was found intact."""
    path = _keep(facts)
    assert _found(facts.partials) == [str(path)]
    damage[0](path)
    assert _found(facts.partials) == []
    assert not path.exists()


def test_what_cannot_be_written_is_not_kept_and_not_tried_again(tmp_path: Path) -> None:
    """If a partial cannot be written, this is tried once, and is no error."""
    (tmp_path / PARTIALS).write_text("no folder")
    partials = PartialFiles(tmp_path)
    assert partials.write(CHARGEBACKS_TABLE, KIND, MONDAY, ROWS, {MONDAY: "0" * 32}) is None
    assert not partials.is_writable
    (tmp_path / PARTIALS).unlink()
    assert partials.write(CHARGEBACKS_TABLE, KIND, MONDAY, ROWS, {MONDAY: "0" * 32}) is None
    assert PartialFiles(tmp_path).write(CHARGEBACKS_TABLE, KIND, MONDAY, ROWS, {MONDAY: "0" * 32}) is not None


def test_they_go_with_their_data_files(facts: FactTables) -> None:
    """Partials of a replaced day stay as long as its file; unknown kinds are deleted, new unfinished files stay."""
    path, other = _keep(facts), _keep(facts, "kind-2")
    unfinished = path.with_name("0.parquet#1")
    unfinished.write_bytes(b"half")
    kinds = {CHARGEBACKS_TABLE: {KIND}}
    kept = {CHARGEBACKS_TABLE: {file.path for file in facts.snapshot(CHARGEBACKS_TABLE).files}}
    assert facts.partials.clean(kinds, kept) == 1
    assert (path.exists(), other.parent.exists(), unfinished.exists()) == (True, False, True)
    write_shares(facts, [Share(MONDAY + timedelta(days=5), "sa-1", "2")])
    assert facts.partials.clean(kinds, kept) == 0
    kept = {CHARGEBACKS_TABLE: {file.path for file in facts.snapshot(CHARGEBACKS_TABLE).files}}
    assert facts.partials.clean(kinds, kept) == 1
    assert not path.exists()


def test_files_of_days_lie_in_weeks(facts: FactTables) -> None:
    """Weeks begin on Monday; files without rows are left out."""
    files = facts.snapshot(CHARGEBACKS_TABLE).files
    assert by_week(files) == {MONDAY: list(files[:2]), MONDAY + timedelta(days=7): [files[2]]}
    assert by_week([DayFile(MONDAY, "empty", 0)]) == {}


def test_only_files_with_digests_have_sums(facts: FactTables) -> None:
    """Partials need one file a day with a digest in its name; they cannot be matched with other files."""
    files = facts.snapshot(CHARGEBACKS_TABLE).files
    assert sources_of(files) == _sources(facts) | _sources(facts, MONDAY + timedelta(days=7))
    assert sources_of([*files, files[0]]) is None
    assert sources_of([DayFile(MONDAY, "part-0.parquet", 1)]) is None
