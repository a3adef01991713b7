"""Sums use partial aggregates that have the columns, and are the same with or without them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from chargeback.model.dated import DatedValue, Period
from chargeback.model.days import instants
from chargeback.reports.flow import flow
from chargeback.store.facts.partial_files import PARTIALS
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.clusters import CLUSTER_ID
from chargeback.store.queries.costs import COST_COLUMNS, CostQuery, costs
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.keys import KeyLookups, keys_of
from chargeback.store.queries.lookups import NO_CATEGORIES
from chargeback.store.queries.partials import ROW_COUNT, make_partials
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import ColumnFilter, Selection, TagFilter, equal
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, new_facts, write_shares
from tests.support.laws import examples
from tests.support.readers import Ask

MONDAY = date(2026, 3, 23)
DAYS = days_from(MONDAY, 12)
TAGS = TagIndex.undated({"sa-1": {"team": "payer"}}, {"lkc-1": {"team": "operator"}})
CLUSTERS: Mapping[str, str] = {"lkc-1": "lkc-1", "lcc-1": "lkc-1"}
BY = (*COST_COLUMNS, "tag:team")

SHARES = st.lists(
    st.builds(
        Share,
        day=st.sampled_from(DAYS),
        identity=st.sampled_from(["sa-1", "sa-2", "UNALLOCATED"]),
        amount=st.decimals(min_value=-(10**20), max_value=10**20, places=12).map(lambda d: f"{d:f}"),
        resource=st.sampled_from(["lkc-1", "lcc-1", "lkc-2"]),
        product=st.sampled_from(["KAFKA_NUM_CKUS", "SUPPORT"]),
        cost_type=st.sampled_from(["usage", "shared"]),
        hour=st.sampled_from([0, 0, 7, 23]),
        detail=st.sampled_from(["USAGE_RATIO_ALLOCATION", "NO_OWNER_LOCATED"]),
        environment=st.sampled_from(["env-1", None]),
        line=st.uuids().map(str),
    ),
    min_size=1,
    max_size=30,
)
COLUMNS: tuple[tuple[ColumnFilter, ...], ...] = (
    (),
    equal(identity_id="sa-1"),
    equal(product_type="SUPPORT"),
    equal(cluster_id="lkc-1"),
    (ColumnFilter(CLUSTER_ID, frozenset([""]), excludes=True),),
    (*equal(product_type="SUPPORT"), *equal(identity_id="UNALLOCATED")),
)
QUERIES = st.builds(
    lambda columns, tags, zone, by, series, unit: CostQuery(
        Selection(instants(DAYS[6], DAYS[11], zone), columns, tags),
        instants(DAYS[0], DAYS[5], zone),
        tuple(by),
        by[series % len(by)],
        2,
        unit,
        zone,
    ),
    st.sampled_from(COLUMNS),
    st.sampled_from([(), (), (TagFilter("team", frozenset(["operator", "UNTAGGED"])),)]),
    st.sampled_from([ZoneInfo("UTC"), ZoneInfo("America/Denver")]),
    st.lists(st.sampled_from(BY), min_size=2, max_size=4, unique=True),
    st.integers(0, 3),
    st.sampled_from(["day", "week", "month"]),
)


def _reader(cursor: Cursor, facts: FactTables) -> TenantReader:
    return TenantReader(cursor, facts, TAGS, clusters=lambda: CLUSTERS)


def _answers(cursor: Cursor, facts: FactTables, query: CostQuery) -> Any:
    reader = _reader(cursor, facts)
    found = flow(reader, query.selection, query.previous, query.by, [2] * len(query.by))
    return costs(reader, query), found


@seed(9)
@settings(deadline=None, max_examples=examples(12), database=None)
@given(shares=SHARES, queries=st.lists(QUERIES, min_size=2, max_size=5))
def test_partials_and_rows_answer_the_same(
    ask: Ask, tmp_path_factory: pytest.TempPathFactory, shares: list[Share], queries: list[CostQuery]
) -> None:
    """Costs and flows of random bills are equal to the last digit, for any columns, filters and time zone."""
    facts = new_facts(tmp_path_factory.mktemp("law") / "facts")
    write_shares(facts, shares)
    (facts.root / PARTIALS).write_text("no folder")
    of_rows = ask(lambda cursor: [_answers(cursor, facts, query) for query in queries])
    (facts.root / PARTIALS).unlink()
    assert ask(lambda cursor: [_answers(cursor, facts, query) for query in queries]) == of_rows


def test_no_row_is_read_where_partials_answer(ask: Ask, facts: FactTables) -> None:
    """Costs by identity, product, cluster and tag, with issues and the previous period, read no rows."""
    write_shares(facts, [Share(day, name, "1.25") for day in DAYS for name in ("sa-1", "UNALLOCATED")])
    ask(lambda cursor: make_partials(cursor, facts.partials, CHARGEBACKS, facts.snapshot(CHARGEBACKS_TABLE).files))
    by = ("identity_id", "product_type", CLUSTER_ID, "tag:team")
    zone = ZoneInfo("UTC")
    query = CostQuery(Selection(instants(DAYS[6], DAYS[11])), instants(DAYS[0], DAYS[5]), by, by[0], 5, "day", zone)
    expected = ask(lambda cursor: costs(_reader(cursor, facts), query))
    for folder in facts.root.joinpath(CHARGEBACKS_TABLE).glob("date=*"):
        shutil.rmtree(folder)
    assert ask(lambda cursor: costs(_reader(cursor, facts), query)) == expected
    assert expected.totals.amount == 15


def test_what_is_summed_together(ask: Ask, facts: FactTables) -> None:
    """Columns of one set of partial aggregates are summed together, and a tag alone; a filter may need another set, or
    the rows."""
    by = ("product_type", "identity_id", "resource_id", "tag:team")
    window = instants(DAYS[0], DAYS[1])
    for columns, groups in (
        ((), [[0, 2], [1], [3]]),
        (equal(identity_id="sa-1"), [[0], [1], [2, 3]]),
        (equal(product_type="SUPPORT"), [[0, 2], [1, 3]]),
    ):

        def _together(cursor: Cursor, columns: tuple[ColumnFilter, ...] = columns) -> list[list[int]]:
            question = Sums(CHARGEBACKS, Selection(window, columns), keys_of(CHARGEBACKS, by), periods=(window,))
            places: dict[int, list[int]] = {}
            for place, (sums, _) in enumerate(_reader(cursor, facts).sums_of_each(question)):
                places.setdefault(id(sums), []).append(place)
            return list(places.values())

        assert ask(_together) == groups


def test_rows_are_summed_by_dimension_once(ask: Ask, facts: FactTables) -> None:
    """Rows are summed by dimension once for any number of tables."""
    write_shares(facts, [Share(DAYS[0], "sa-1", "1"), Share(DAYS[0], "sa-2", "2")])
    (facts.root / PARTIALS).write_text("no folder")
    window = instants(DAYS[0], DAYS[0])

    def _sums(cursor: Cursor) -> list[Any]:
        reader = _reader(cursor, facts)
        question = Sums(CHARGEBACKS, Selection(window), (), ("total", ROW_COUNT), periods=(window,))
        first = reader.sums(replace(question, by=keys_of(CHARGEBACKS, ("identity_id",))))
        shutil.rmtree(facts.root / CHARGEBACKS_TABLE / f"date={DAYS[0]}")
        second = reader.sums(replace(question, by=keys_of(CHARGEBACKS, ("product_type", "identity_id"))))
        return [sums.rows("SELECT sum(total), sum(row_count) FROM sums") for sums in (first, second)]

    assert ask(_sums) == [[(3, 2)], [(3, 2)]]


def test_sums_by_dimension_of_two_periods_are_those_of_one(ask: Ask, facts: FactTables) -> None:
    """A question about some of the periods of an earlier one adds up the same sums, of these periods alone."""
    write_shares(facts, [Share(DAYS[0], "sa-1", "1"), Share(DAYS[1], "sa-1", "2")])
    (facts.root / PARTIALS).write_text("no folder")
    windows = tuple(instants(day, day) for day in DAYS[:2])

    def _sums(cursor: Cursor) -> list[Any]:
        by = keys_of(CHARGEBACKS, ("identity_id",))
        question = Sums(CHARGEBACKS, Selection(windows[0]), by, periods=windows)
        reader = _reader(cursor, facts)
        both = reader.sums(question)
        shutil.rmtree(facts.root / CHARGEBACKS_TABLE)
        first = reader.sums(replace(question, periods=windows[:1]))
        return [sums.rows("SELECT period, total FROM sums ORDER BY period") for sums in (both, first)]

    assert ask(_sums) == [[(0, 1), (1, 2)], [(0, 1)]]


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("identity_id", {"identity_id"}),
        (CLUSTER_ID, {"resource_id"}),
        ("tag:team", {"identity_id", "resource_id"}),
        ("tag:dated", {"identity_id", "date"}),
        ("tag:unknown", set()),
    ],
)
def test_keys_say_what_they_read(ask: Ask, name: str, reads: set[str]) -> None:
    """A key reads its columns; a tag those of its holders, and if it is dated also the day."""
    of_identities = {
        "sa-1": {"dated": (DatedValue("a", Period(DAYS[1], None)),)},
        "sa-2": {"team": (DatedValue("a"),)},
    }
    tags = TagIndex(of_identities, {"lkc-1": {"team": (DatedValue("b"),)}})
    (key,) = keys_of(CHARGEBACKS, (name,))

    def _reads(cursor: Cursor) -> frozenset[str]:
        lookups = KeyLookups(cursor, CHARGEBACKS, tags, lambda: CLUSTERS, NO_CATEGORIES, None)
        return key.on(lookups).reads

    assert ask(_reads) == reads


def test_questions_of_one_cursor_do_not_meet(ask: Ask, facts: FactTables) -> None:
    """Two queries of a cursor are independent if both are read after both were made."""
    write_shares(facts, [Share(DAYS[0], "sa-1", "1"), Share(DAYS[1], "sa-2", "2", resource="lkc-2")])
    windows = [instants(day, day) for day in DAYS[:2]]

    def _both(cursor: Cursor) -> list[Any]:
        reader = _reader(cursor, facts)
        keys = keys_of(CHARGEBACKS, ("tag:team",))
        of_periods = [reader.sums(Sums(CHARGEBACKS, Selection(each), keys, periods=(each,))) for each in windows]
        of_days = [reader.sums(Sums(CHARGEBACKS, Selection(each), keys)).newest(10) for each in windows]
        return [sums.rows("SELECT d0, total FROM sums") for sums in (*of_periods, *of_days)]

    expected = [[("payer", 1)], [("UNTAGGED", 2)]]
    assert ask(_both) == expected * 2
