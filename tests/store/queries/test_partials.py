"""Results from partial aggregates equal those of the rows exactly; otherwise partials are not used."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.errors import SumTooLarge
from chargeback.model.days import instants
from chargeback.store.facts.partial_files import PARTIALS
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, SCHEMAS, TOPICS_TABLE, FactTables
from chargeback.store.queries import aggregate as aggregates
from chargeback.store.queries import partials as module
from chargeback.store.queries.aggregate import Aggregate, Grouping, aggregate
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, Cursor, QueryEngine
from chargeback.store.queries.partials import (
    SumSource,
    kind_of,
    lacks_partials,
    make_partials,
    partial_kinds,
    with_first,
)
from chargeback.store.queries.plan import Reads
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import Selection, TagFilter, equal
from chargeback.store.queries.tag_index import TagIndex
from tests.support.damage import DAMAGES, file_of, flip_a_bit
from tests.support.facts import Share, days_from, new_facts, replace_day, write_shares
from tests.support.laws import examples, one_first
from tests.support.readers import Ask, Read

MONDAY = date(2026, 3, 23)
UTC = ZoneInfo("UTC")
DAYS = days_from(MONDAY, 12)
EVERYTHING = Selection(instants(DAYS[0], DAYS[-1]))
TAGS = TagIndex.undated({"sa-1": {"team": "payer"}}, {"lkc-1": {"team": "operator"}})


def _make(ask: Ask, facts: FactTables) -> None:
    ask(lambda cursor: make_partials(cursor, facts.partials, CHARGEBACKS, facts.snapshot(CHARGEBACKS_TABLE).files))


def _uses_partials(read: Read, facts: FactTables, *names: str, selection: Selection = EVERYTHING) -> bool:
    def _ask(reader: TenantReader) -> bool:
        keys = Reads(frozenset(names))
        return reader.plan.sources(Sums(CHARGEBACKS, selection), keys)[0].are_partial

    answer: bool = read(_ask, TAGS, facts)
    return answer


def _both(facts: FactTables, selection: Selection, grouping: Grouping, cursor: Cursor) -> tuple[Aggregate, Aggregate]:
    """Return the sums of the rows, and those of the reader."""
    reader = TenantReader(cursor, facts, TAGS)
    return _of_rows(reader, selection, grouping), reader.aggregate(CHARGEBACKS, selection, grouping)


def _files(facts: FactTables) -> list[Path]:
    return sorted((facts.root / PARTIALS).rglob("*.parquet"))


def _sums(read: Read, facts: FactTables, *by: str) -> Aggregate:
    answer: Aggregate = read(
        lambda reader: reader.aggregate(CHARGEBACKS, EVERYTHING, Grouping(by, "day", UTC)), TAGS, facts
    )
    return answer


SHARES = st.lists(
    st.builds(
        Share,
        day=st.sampled_from(DAYS),
        identity=st.sampled_from(["sa-1", "sa-2", "UNALLOCATED"]),
        amount=st.decimals(min_value=-(10**20), max_value=10**20, places=12).filter(bool).map(lambda d: f"{d:f}"),
        resource=st.sampled_from(["lkc-1", "lkc-2"]),
        product=st.sampled_from(["KAFKA_NUM_CKUS", "SUPPORT"]),
        cost_type=st.sampled_from(["usage", "shared"]),
        hour=st.sampled_from([0, 0, 7, 23]),
        environment=st.sampled_from(["env-1", None]),
        line=st.uuids().map(str),
    ),
    min_size=1,
    max_size=30,
)
SELECTIONS = st.builds(
    lambda first, count, zone, columns, tags: Selection(
        instants(first, first + timedelta(days=count), ZoneInfo(zone)), columns, tags
    ),
    st.sampled_from(DAYS),
    st.integers(0, 11),
    st.sampled_from(["UTC", "UTC", "America/Denver"]),
    st.sampled_from([(), (), equal(identity_id="sa-1"), equal(product_type="SUPPORT"), equal(resource_id="lkc-1")]),
    st.sampled_from([(), (), (TagFilter("team", frozenset(["operator", "UNTAGGED"])),)]),
)
GROUPINGS = st.builds(
    Grouping,
    st.lists(st.sampled_from([*CHARGEBACKS.groups, "tag:team"]), min_size=1, max_size=3, unique=True).map(tuple),
    st.sampled_from(["hour", "day", "day", "week", "month"]),
    st.sampled_from([ZoneInfo("UTC"), ZoneInfo("UTC"), ZoneInfo("Asia/Kathmandu")]),
)


@settings(max_examples=examples(15))
@given(
    writes=st.lists(SHARES, min_size=1, max_size=3),
    made_after=st.integers(0, 2),
    questions=st.lists(st.tuples(SELECTIONS, GROUPINGS, st.sampled_from([3, 10_000])), min_size=3, max_size=6),
)
def test_partials_and_rows_answer_the_same(
    ask: Ask,
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[list[Share]],
    made_after: int,
    questions: list[tuple[Selection, Grouping, int]],
) -> None:
    """For random bills, with days replaced before and after partials are made, all results are equal to the byte."""
    facts = new_facts(tmp_path_factory.mktemp("law") / "facts")
    for number, shares in enumerate(writes):
        write_shares(facts, shares)
        if number == made_after:
            _make(ask, facts)
        for selection, grouping, limit in questions:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(aggregates, "MAX_BUCKETS", limit)
                of_rows, of_partials = ask(partial(_both, facts, selection, grouping))
            assert of_partials == of_rows


@pytest.mark.extensive
def test_past_the_limit_the_newest_units_are_those_of_the_rows(ask: Ask, facts: FactTables) -> None:
    """Results equal those of the rows, although only needed days are grouped, also where months end within a day."""
    days = days_from(date(2026, 1, 26), 67)
    hours = (0, 23)
    write_shares(facts, [Share(day, f"sa-{who}", "1", hour=hour) for day in days for who in range(3) for hour in hours])
    _make(ask, facts)
    lasts = (date(2026, 3, 31), date(2026, 4, 1), date(2026, 4, 2))
    for last, unit, zone in product(lasts, ("day", "week", "month"), ("UTC", "America/Denver", "Asia/Tokyo")):
        grouping = Grouping(("identity_id",), unit, ZoneInfo(zone))
        selection = Selection(instants(days[0], last, grouping.zone))
        for limit in (2, 4, 7, 30):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(aggregates, "MAX_BUCKETS", limit)
                of_rows, of_partials = ask(partial(_both, facts, selection, grouping))
            assert of_partials == of_rows, (last, unit, zone, limit)


@pytest.mark.parametrize(
    ("names", "selection", "expected"),
    [
        (("identity_id",), EVERYTHING, True),
        (("resource_id", "product_type"), EVERYTHING, True),
        (("identity_id", "environment_id"), EVERYTHING, True),
        (("identity_id",), replace(EVERYTHING, columns=equal(resource_id="lkc-1")), True),
        (("resource_id",), replace(EVERYTHING, tags=(TagFilter("team"),)), True),
        (("date", "timestamp"), EVERYTHING, True),
        (("identity_id", "product_type"), EVERYTHING, False),
        (("identity_id",), replace(EVERYTHING, columns=equal(cost_type="usage")), False),
        (("amount",), EVERYTHING, False),
        (("line_id",), EVERYTHING, False),
    ],
)
def test_partials_answer_only_by_their_columns(
    read: Read, facts: FactTables, ask: Ask, names: tuple[str, ...], selection: Selection, expected: bool
) -> None:
    """A query that uses any other column, in groups or filters, reads the rows."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    _make(ask, facts)
    assert _uses_partials(read, facts, *names, selection=selection) is expected


def test_they_are_made_once_and_for_replaced_days_only(read: Read, facts: FactTables, ask: Ask) -> None:
    """There is a file for each set of columns and week. Only replaced days are summed again; data files of other days
    are not read."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    _make(ask, facts)
    first = _files(facts)
    assert len(first) == 2 * len(CHARGEBACKS.partials)
    for day in DAYS[2:]:
        flip_a_bit(Path(file_of(facts, CHARGEBACKS_TABLE, day).path))
    _make(ask, facts)
    assert _files(facts) == first
    write_shares(facts, [Share(DAYS[1], "sa-1", "2")])
    files = facts.snapshot(CHARGEBACKS_TABLE).files[:7]
    assert lacks_partials(facts.partials, CHARGEBACKS, files)
    _make(ask, facts)
    assert not lacks_partials(facts.partials, CHARGEBACKS, files)
    assert len(_files(facts)) == len(first)
    assert len(set(_files(facts)) & set(first)) == len(CHARGEBACKS.partials)
    assert _sums(read, facts, "identity_id").totals["total_amount"] == "13.00"


def test_a_query_makes_what_is_missing(read: Read, facts: FactTables) -> None:
    """A first query makes the partials that it needs, and the next one uses them."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    expected = _sums(read, facts, "identity_id")
    assert {path.parent.name for path in _files(facts)} == {kind_of(CHARGEBACKS, ("identity_id",))}
    assert _uses_partials(read, facts, "identity_id")
    assert _sums(read, facts, "identity_id") == expected


def test_a_query_reads_the_rows_rather_than_sum_very_many(
    read: Read, facts: FactTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If many rows lack partials, a query reads the rows and makes only those of the newest weeks."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 6)
    assert not _uses_partials(read, facts, "identity_id")
    assert [path.name[:10] for path in _files(facts)] == [str(MONDAY + timedelta(days=7))]


def test_large_days_are_summed_one_by_one(ask: Ask, facts: FactTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a week are summed together, or one by one if they have many rows: the same bytes."""
    write_shares(facts, [Share(day, f"sa-{n}", "1.5") for day in DAYS for n in range(3)])
    _make(ask, facts)
    together = {path.parent.name + path.name[:10]: path.read_bytes() for path in _files(facts)}
    shutil.rmtree(facts.root / PARTIALS)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 1)
    _make(ask, facts)
    assert {path.parent.name + path.name[:10]: path.read_bytes() for path in _files(facts)} == together


def test_where_nothing_can_be_written_the_rows_are_read(read: Read, facts: FactTables) -> None:
    """Without write access, the results are the same."""
    write_shares(facts, [Share(day, "sa-1", "1.5") for day in DAYS])
    (facts.root / PARTIALS).write_text("no folder")
    assert not _uses_partials(read, facts, "identity_id")
    assert _sums(read, facts, "identity_id").totals["total_amount"] == "18.00"
    assert [path.name for path in facts.root.iterdir() if path.name.startswith(".")] == [PARTIALS]


@pytest.mark.parametrize("damage", one_first(DAMAGES.values()), ids=DAMAGES.keys())
def test_damaged_partials_are_made_again(
    read: Read, facts: FactTables, ask: Ask, damage: tuple[Callable[[Path], None], bool]
) -> None:
    """Damaged partials are never used; the result is the same, and new ones replace them."""
    write_shares(facts, [Share(day, f"sa-{n}", "1") for day in DAYS for n in range(3)])
    _make(ask, facts)
    expected, paths = _sums(read, facts, "identity_id"), _files(facts)
    for path in paths:
        damage[0](path)
    assert _sums(read, facts, "identity_id") == expected
    _make(ask, facts)
    assert _files(facts) == paths


def test_sums_are_never_made_of_damaged_rows(read: Read, facts: FactTables, ask: Ask) -> None:
    """Partials of damaged rows would remain after the repair of the file, which has the same digest again."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    flip_a_bit(Path(file_of(facts, CHARGEBACKS_TABLE, DAYS[0]).path))
    _make(ask, facts)
    assert {path.name[:10] for path in _files(facts)} == {str(MONDAY + timedelta(days=7))}
    assert not _uses_partials(read, facts, "identity_id")


def test_partials_that_vanish_under_a_query_do_no_harm(read: Read, facts: FactTables, ask: Ask) -> None:
    """If the folder is deleted at any time, the query runs again over the rows."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    _make(ask, facts)
    tried: list[bool] = []

    def _sum(reader: TenantReader, source: SumSource) -> int:
        tried.append(source.are_partial)
        for path in _files(facts):
            path.unlink()
        sql = f"SELECT {source.sums['row_count']} FROM {source.relation} WHERE {source.condition.sql}"
        return int(reader.cursor.rows(sql, source.condition.parameters)[0][0])

    question = Sums(CHARGEBACKS, EVERYTHING)
    count = read(lambda reader: with_first(reader.plan.sources(question, Reads()), lambda source: _sum(reader, source)))
    assert (count, tried) == (len(DAYS), [True, False])


def test_a_day_that_became_empty_is_no_longer_summed(read: Read, facts: FactTables, ask: Ask) -> None:
    """An empty day is not summed, even if it was the first of a week that has partials."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    _make(ask, facts)
    empty = file_of(facts, CHARGEBACKS_TABLE, DAYS[7])
    replace_day(facts, CHARGEBACKS_TABLE, DAYS[7], SCHEMAS[CHARGEBACKS_TABLE].empty_table())
    assert empty not in facts.snapshot(CHARGEBACKS_TABLE).files
    assert _sums(read, facts, "identity_id").totals["total_rows"] == len(DAYS) - 1


def test_sums_that_are_too_large_are_left_to_the_query(read: Read, facts: FactTables, ask: Ask) -> None:
    """The query then raises an error with the reason."""
    half = "50000000000000000000000000"
    write_shares(facts, [Share(MONDAY, "sa-1", half, line=line) for line in ("a", "b")])
    _make(ask, facts)
    assert _files(facts) == []
    with pytest.raises(SumTooLarge, match="at least one amount must be wrong"):
        _sums(read, facts, "identity_id")


def test_without_partials_the_rows_are_added_up(read: Read, facts: FactTables, ask: Ask) -> None:
    """Partials can be disabled for comparison."""
    write_shares(facts, [Share(MONDAY, "sa-1", "1")])
    _make(ask, facts)

    def _relation(reader: TenantReader) -> str:
        reader.plan.partials = None
        question, reads = Sums(CHARGEBACKS, EVERYTHING), Reads(frozenset(["identity_id"]))
        (source,) = reader.plan.sources(question, reads)
        return source.relation

    assert read(_relation) == SOURCE


def test_every_kind_has_a_name_of_its_own() -> None:
    """The kinds of each table have different names, and a changed definition is another kind."""
    kinds = partial_kinds()
    assert len(kinds[CHARGEBACKS_TABLE]) == len(CHARGEBACKS.partials)
    assert kinds[TOPICS_TABLE]
    assert kind_of(CHARGEBACKS, ("identity_id",)) in kinds[CHARGEBACKS_TABLE]
    assert (
        kind_of(replace(CHARGEBACKS, measures=CHARGEBACKS.measures[:1]), ("identity_id",))
        not in kinds[CHARGEBACKS_TABLE]
    )


def test_many_writers_at_once_do_no_harm(engine: QueryEngine, facts: FactTables) -> None:
    """While processes make the same partials and days are replaced, every result equals that of the rows at the
    time."""
    write_shares(facts, [Share(day, "sa-1", "1") for day in DAYS])
    done = threading.Event()

    def _ask() -> int:
        answers = 0
        while not done.is_set() or not answers:
            with engine.cursor(CancellationToken()) as cursor:
                reader = TenantReader(cursor, facts, TAGS)
                grouping = Grouping(("identity_id",), "day", UTC)
                assert reader.aggregate(CHARGEBACKS, EVERYTHING, grouping) == _of_rows(reader, EVERYTHING, grouping)
            answers += 1
        return answers

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(_ask) for _ in range(3)]
        try:
            for number in range(8):
                write_shares(facts, [Share(DAYS[number], "sa-2", str(number + 2))])
        finally:
            done.set()
        assert all(each.result() for each in asking)
    assert {path.suffix for path in (facts.root / PARTIALS).rglob("*-*.*")} == {".parquet"}


def _of_rows(reader: TenantReader, selection: Selection, grouping: Grouping) -> Aggregate:
    """Return the same aggregate without partial aggregates."""
    plan = replace(reader.plan, partials=None)
    return aggregate(plan.sums, CHARGEBACKS, selection, grouping)
