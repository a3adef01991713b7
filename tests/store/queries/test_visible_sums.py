"""Sums of the visible rows of a scope, made once for each file, until the scope's data changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from chargeback.access.scope import RowScope
from chargeback.categories.parsing import parse_category
from chargeback.errors import StorageError
from chargeback.model.days import InstantRange, instants, start_of_day
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.lookups import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection, equal
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.visible_sums import VisibleSums, VisibleSumsCache
from tests.support.categories import SomeNames
from tests.support.facts import Share, days_from, write_shares
from tests.support.readers import Ask

DAYS = days_from(date(2026, 3, 23), 4)
EVERYTHING = Selection(instants(DAYS[0], DAYS[-1]))
COLUMNS = ("identity_id",)
SCOPE = RowScope.of({"identity_id": ["sa-1"]})


def _files(*days: date) -> list[DayFile]:
    return [DayFile(day, f"/{day}.parquet", rows=1) for day in days]


class Maker:
    """Sums files to one row for each day, and records the files of each call."""

    def __init__(self) -> None:
        self.asked: list[list[date | None]] = []

    def __call__(self, files: Sequence[DayFile]) -> pa.Table:
        """Return a row for each file."""
        self.asked.append([file.day for file in files])
        days = sorted(file.day for file in files if file.day is not None)
        return pa.table({"date": pa.array(days, pa.date32()), "total": pa.array(range(len(days)), pa.int64())})


def test_each_file_is_summed_once() -> None:
    """A query of the same days, or some of them, sums nothing; one of more days sums only the new ones."""
    sums, make = VisibleSums(None, most_bytes=1_000), Maker()
    for asked in (DAYS[1:3], DAYS[1:2], DAYS, DAYS):
        found = sums.of(CHARGEBACKS, COLUMNS, _files(*asked), make)
        assert found is not None
        assert found["date"].to_pylist() == list(asked)
    assert make.asked == [DAYS[1:3], [DAYS[0], DAYS[3]]]


def test_days_between_the_files_are_left_out() -> None:
    """Sums of days between the requested files are dropped."""
    sums = VisibleSums(None, most_bytes=1_000)
    found = sums.of(CHARGEBACKS, COLUMNS, _files(DAYS[0], DAYS[2]), lambda _: Maker()(_files(*DAYS)))
    assert found is not None
    assert found["date"].to_pylist() == [DAYS[0], DAYS[2]]


def test_what_is_too_large_is_not_kept() -> None:
    """Large sums by one set of columns do not displace others; the next query reads the rows directly."""
    sums, make = VisibleSums(None, most_bytes=30), Maker()
    assert sums.of(CHARGEBACKS, COLUMNS, _files(*DAYS), make) is not None
    assert sums.of(CHARGEBACKS, COLUMNS, _files(*DAYS), make) is None
    assert len(make.asked) == 1
    assert sums.of(CHARGEBACKS, ("product_type",), _files(DAYS[0]), make) is not None
    assert sums.of(CHARGEBACKS, (), [], make) is None
    assert sums.size == 12


def test_the_scopes_that_were_asked_for_last_stay() -> None:
    """The size of all sums together is limited."""
    cache = VisibleSumsCache(most_bytes=100)
    kept = {name: cache.get(name, 1) for name in "abcde"}
    for each in kept.values():
        each.of(CHARGEBACKS, COLUMNS, _files(*DAYS[:2]), Maker())
    assert [each.size for each in kept.values()] == [24] * 5
    assert cache.get("e", 1) is kept["e"]
    assert cache.get("b", 1) is kept["b"]
    assert cache.get("a", 1) is not kept["a"]


def test_what_decides_a_scope_makes_other_sums() -> None:
    """Sums of other tags, another inventory or other rules are not used."""
    cache = VisibleSumsCache(most_bytes=100)
    before = cache.get("acme", (1, 1, 1))
    assert cache.get("acme", (1, 1, 1)) is before
    assert cache.get("acme", (2, 1, 1)) is not before


def test_all_sets_together_are_limited() -> None:
    """Sums of replaced files give way to those of their days' new files, and old sets to a new one."""
    sums, make = VisibleSums(None, most_bytes=50), Maker()
    assert sums.of(CHARGEBACKS, COLUMNS, _files(*DAYS[:3]), make) is not None
    again = [DayFile(day, f"/{day}-again.parquet", rows=1) for day in DAYS]
    assert sums.of(CHARGEBACKS, COLUMNS, again, make) is not None
    assert (sums.size, len(make.asked)) == (48, 2)
    assert sums.of(CHARGEBACKS, ("product_type",), _files(DAYS[0]), make) is not None
    assert sums.size == 12
    assert sums.of(CHARGEBACKS, COLUMNS, again, make) is not None
    assert (sums.size, len(make.asked)) == (48, 4)


def _by(
    facts: FactTables,
    sums: VisibleSums,
    ask: Ask,
    column: str,
    selection: Selection = EVERYTHING,
    categories: CategoryLookup | None = None,
) -> Aggregate:
    def _ask(cursor: Cursor) -> Aggregate:
        known = TenantReader(cursor, facts, TagIndex(), categories=categories, scope=SCOPE)
        reader = known.keeping(lambda make: make(), sums)
        return reader.aggregate(CHARGEBACKS, selection, Grouping((column,), "day", ZoneInfo("UTC")))

    answer: Aggregate = ask(_ask)
    return answer


def test_the_next_question_opens_no_file(facts: FactTables, ask: Ask) -> None:
    """Later queries need no file, also with other filters and parts of days; restated days are summed again."""
    write_shares(
        facts, [Share(day, who, "1.5", hour=hour) for day in DAYS for who in ("sa-1", "sa-2") for hour in (0, 7)]
    )
    sums = VisibleSums(None, most_bytes=10**6)
    first = _by(facts, sums, ask, "identity_id")
    assert first.totals["total_amount"] == "12.00"
    for file in facts.snapshot(CHARGEBACKS_TABLE).files:
        Path(file.path).rename(f"{file.path}.away")
    assert _by(facts, sums, ask, "identity_id") == first
    with pytest.raises(StorageError):
        _by(facts, sums, ask, "product_type")
    morning = InstantRange(start_of_day(DAYS[1]), start_of_day(DAYS[1]) + timedelta(hours=7))
    assert _by(facts, sums, ask, "identity_id", Selection(morning)).totals["total_amount"] == "1.50"
    assert _by(facts, sums, ask, "identity_id", replace(EVERYTHING, columns=equal(identity_id="sa-2"))).buckets == []
    write_shares(facts, [Share(DAYS[0], "sa-1", "100")])
    assert _by(facts, sums, ask, "identity_id").totals["total_amount"] == "109.00"


def test_the_next_question_by_a_category_opens_no_file(facts: FactTables, ask: Ask) -> None:
    """Sums by a category are kept of the visible rows; a further filter reads the rows."""
    write_shares(facts, [Share(day, who, "1.5", resource=who) for day in DAYS for who in ("sa-1", "sa-2")])
    team = parse_category("team", {"rules": [{"match": {"identity": "sa-1"}, "assign": "one"}], "default": "others"})
    assignments = Assignments(team, CHARGEBACKS, TagIndex(), SomeNames({}))
    lookup = CategoryLookup(CategoryIndex({"team": StoredCategory(team, 1)}), lambda dataset, key: assignments)
    sums = VisibleSums(None, most_bytes=10**6)
    first = _by(facts, sums, ask, "category:team", categories=lookup)
    assert (len(first.buckets), first.totals["total_amount"]) == (len(DAYS), "6.00")
    for file in facts.snapshot(CHARGEBACKS_TABLE).files:
        Path(file.path).rename(f"{file.path}.away")
    assert _by(facts, sums, ask, "category:team", categories=lookup) == first
    with pytest.raises(StorageError):
        _by(facts, sums, ask, "category:team", replace(EVERYTHING, columns=equal(product_type="X")), lookup)


def test_the_next_question_by_a_tag_opens_no_file(facts: FactTables, ask: Ask) -> None:
    """Sums by a tag are kept of all rows, as long as the tags are the same; a further filter reads the rows."""
    write_shares(facts, [Share(day, who, "1.5", resource=who) for day in DAYS for who in ("sa-1", "sa-2", "sa-3")])
    tags = TagIndex.undated({"sa-1": {"team": "one"}}, {"sa-2": {"team": "two"}})

    def _by_team(index: TagIndex, selection: Selection = EVERYTHING) -> Aggregate:
        def _ask(cursor: Cursor) -> Aggregate:
            reader = TenantReader(cursor, facts, index)
            return reader.aggregate(CHARGEBACKS, selection, Grouping(("tag:team",), "day", ZoneInfo("UTC")))

        answer: Aggregate = ask(_ask)
        return answer

    first = _by_team(tags)
    assert [each["dimensions"]["tag:team"] for each in first.buckets[:3]] == ["UNTAGGED", "one", "two"]
    for file in facts.snapshot(CHARGEBACKS_TABLE).files:
        Path(file.path).rename(f"{file.path}.away")
    assert _by_team(tags) == first
    morning = Selection(InstantRange(start_of_day(DAYS[1]), start_of_day(DAYS[1]) + timedelta(hours=7)))
    assert _by_team(tags, morning).totals["total_amount"] == "4.50"
    others = _by_team(TagIndex.undated({"sa-1": {"team": "other"}}, {"sa-2": {"team": "other"}}))
    assert {each["dimensions"]["tag:team"] for each in others.buckets} == {"UNTAGGED", "other"}
    with pytest.raises(StorageError):
        _by_team(tags, replace(EVERYTHING, columns=equal(product_type="X")))
