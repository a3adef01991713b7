"""Explanations for callers with a scope: their own rows, and the sum of all others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.access.scope import RowScope
from chargeback.allocation.explain import OTHERS, Participant, UsageSplit
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import from_units
from chargeback.recompute.explain import ExplainKey, Explanation
from chargeback.recompute.explain_topic import TopicKey
from chargeback.recompute.stored_day import AmountInRevision, LineNotFound
from chargeback.reports.explain.charges import ExplainedEvidence, explained_charge, listed_participants
from chargeback.reports.explain.visible import VisiblePart, VisibleShares, as_seen, visible_topics, with_others
from chargeback.reports.wording import DisplayNames
from chargeback.store.control.cost_categories import CategoryWrite, write_category
from chargeback.store.control.day_revisions import Revision
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from tests.allocation.days import evidence
from tests.reports.explain.test_charges import explanation
from tests.support.facts import Share, tenant_store, write_shares
from tests.support.topics import TopicShare, write_topic_shares

DAY = date(2026, 11, 4)
REVISION = Revision("chargebacks", DAY, 1, datetime(2026, 11, 5, tzinfo=UTC), "first")


def _usage_split(*values: int | None) -> UsageSplit:
    whole = sum(1 if value is None else value for value in values)
    participants = tuple(
        Participant(f"sa-{place}", None if value is None else from_units(value), value or 1, whole)
        for place, value in enumerate(values)
    )
    return UsageSplit("bytes_in", None, participants, len(values), metrics_available=True)


def test_others_are_one() -> None:
    """Other identities are one entry, last, with the sums of their values and ratios; the total is unchanged."""
    usage_split = _usage_split(5, 3, 2)
    found = with_others(usage_split, {"sa-1", "sa-9"})
    assert found.participants[0] == usage_split.participants[1]
    assert found.participants[1] == Participant(OTHERS, from_units(7), 7, 10)
    assert with_others(usage_split, {"sa-0", "sa-1", "sa-2"}) is usage_split
    (mine, others) = with_others(_usage_split(None, None, None), {"sa-2"}).participants
    assert mine.value is others.value is None
    assert mine.ratio + others.ratio == 1


def test_every_page_has_the_others_and_who_was_asked_for() -> None:
    """Every page includes the others and the requested identity; the others count as one."""
    usage_split = with_others(_usage_split(5, 3, 2, 1), {"sa-0", "sa-1"})
    assert [each.identity_id for each in listed_participants(usage_split, "sa-1", Page(0, 1))] == ["sa-0", "sa-1", ""]
    assert [each.identity_id for each in listed_participants(usage_split, "sa-1", Page(2, 1))] == ["", "sa-1"]
    shown = ExplainedEvidence.of(usage_split, "sa-1", Page(0, 20), {})
    assert shown.contenders_total == 3
    others = {"identity_id": None, "name": None, "value": "0.000000000003", "ratio": "0.272727"}
    assert shown.contenders[2].model_dump(mode="json") == others


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Yield a stack that is closed at the end of a test."""
    with ExitStack() as stack:
        yield stack


def test_only_visible_rows_are_explained(tmp_path: Path, stack: ExitStack) -> None:
    """Hidden rows, rows that do not exist, and portions without a visible row have no explanation."""
    store = stack.enter_context(tenant_store(tmp_path))
    write_shares(
        store.facts,
        [
            Share(DAY, "sa-1", "1", portion=1),
            Share(DAY, "sa-2", "2", portion=1),
            Share(DAY, "sa-3", "2", portion=1),
            Share(DAY, "sa-2", "3", portion=2),
        ],
    )
    write_topic_shares(store.facts, [TopicShare(DAY, "orders", "1"), TopicShare(DAY, "pay", "1", cluster="lkc-2")])
    engine = stack.enter_context(QueryEngine())

    def _open(scope: RowScope) -> TenantReader:
        return stack.enter_context(open_reader(engine, store, CancellationToken(), LookupCaches(), scope=scope))

    reader = _open(RowScope.of({"identity_id": ["sa-1", "sa-2"]}))
    found = explanation(evidence("lkc-1 BASE 6", "", "lkc-1 active sa-1"), "sa-2", 1)
    found = replace(found, key=ExplainKey(DAY, "line-1", "sa-2", 1))
    assert VisibleShares(reader, found.key).of(found) == {"sa-1", "sa-2"}
    second = replace(found, key=replace(found.key, portion=2))
    assert VisibleShares(reader, second.key).of(second) == {"sa-2"}
    for key in (
        ExplainKey(DAY, "line-1", "sa-3"),
        ExplainKey(DAY, "line-1", "sa-1", 2),
        ExplainKey(DAY, "line-2", "sa-1"),
        ExplainKey(date(2026, 11, 5), "line-1", "sa-1"),
    ):
        with pytest.raises(LineNotFound, match="You see no row of"):
            VisibleShares(reader, key)
    asked = VisibleShares(reader, ExplainKey(DAY, "line-1", "sa-1"))
    with pytest.raises(LineNotFound):
        asked.of(replace(found, key=ExplainKey(DAY, "line-1", "sa-1", 2)))
    with pytest.raises(LineNotFound):
        visible_topics(reader, TopicKey(DAY, "line-1", "orders"))
    of_cluster = _open(RowScope.of({"cluster_id": ["lkc-1"]}))
    assert visible_topics(of_cluster, TopicKey(DAY, "line-1", "orders")) == {"orders"}
    with pytest.raises(LineNotFound):
        visible_topics(of_cluster, TopicKey(DAY, "line-1", "pay"))


def test_sums_of_hidden_values_are_exact() -> None:
    """Sums of hidden values are exact, regardless of their number of digits."""
    split = _usage_split(10**37, 1, 1)
    assert with_others(split, {"sa-2"}).participants[1].value == Decimal("10000000000000000000000000.000000000001")


@pytest.mark.parametrize(
    ("bill", "members", "sentence"),
    [
        ("lkc-1 BASE 9", "lkc-1 active sa-1 sa-2 sa-3", "sa-1 was one of several identities active on lkc-1"),
        ("lkc-1 BASE 9", "lkc-1 active sa-1", "sa-1 was the only identity active on lkc-1"),
    ],
)
def test_others_are_neither_counted_nor_ranked(
    tmp_path: Path, stack: ExitStack, bill: str, members: str, sentence: str
) -> None:
    """Other identities are one sum: the response has no counts of identities, rows or spare units."""
    store = stack.enter_context(tenant_store(tmp_path))
    write_shares(store.facts, [Share(DAY, "sa-1", "3", portion=1)])
    engine = stack.enter_context(QueryEngine())
    scope = RowScope.of({"identity_id": ["sa-1"]})
    reader = stack.enter_context(open_reader(engine, store, CancellationToken(), LookupCaches(), scope=scope))
    found, _ = as_seen(reader, CHARGEBACKS, explanation(evidence(bill, "", members), "sa-1", 1), {"sa-1"})
    shown = explained_charge(found, DisplayNames({}, {}), "USD").model_dump(mode="json")
    assert shown["siblings"]["rows"] is None
    assert shown["evidence"]["members"] is None
    assert {each["candidates"] for each in shown["methods"]} == {None}
    assert {shown["arithmetic"][name] for name in ("spare_units", "remainder_rank")} == {None}
    assert shown["evidence"]["contenders_total"] == len(shown["evidence"]["contenders"]) <= 2
    assert sentence in shown["sentence"]


def test_a_split_row_has_the_part_that_lists_have(tmp_path: Path, stack: ExitStack) -> None:
    """The row and its revisions have the visible part, as in lists; a scope that covers the row shows all of it."""
    store = stack.enter_context(tenant_store(tmp_path))
    write_shares(store.facts, [Share(DAY, "sa-1", "0.000000000005", portion=1)])
    document = json.dumps({"rules": [{"match": {"identity": "sa-1"}, "split": {"orders": "50", "pay": "50"}}]})
    with store.control.write() as connection:
        write_category(connection, CategoryWrite("team", document), expected=None)
    engine = stack.enter_context(QueryEngine())

    def _seen(scope: RowScope) -> tuple[str, Explanation, VisiblePart | None]:
        reader = stack.enter_context(open_reader(engine, store, CancellationToken(), LookupCaches(), scope=scope))
        whole = reader.unscoped().list_rows(CHARGEBACKS, Selection.of_days(DayRange(DAY, DAY + ONE_DAY)), Page(0, 1))
        listed = reader.list_rows(CHARGEBACKS, Selection.of_days(DayRange(DAY, DAY + ONE_DAY)), Page(0, 1))
        ((item,), _), ((mine,), _) = whole, listed
        row = {**item, **item["metadata"], "date": DAY, "amount": Decimal(item["amount"])}
        found = explanation(evidence("lkc-1 BASE 6", "", "lkc-1 active sa-1"), "sa-1", 1)
        past = [AmountInRevision(REVISION, "line-1", amount) for amount in (from_units(3), None)]
        return mine["amount"], *as_seen(reader, CHARGEBACKS, replace(found, row=row, revisions=past), {"sa-1"})

    for value, units, past in (("orders", 3, 2), ("pay", 2, 1)):
        listed, found, part = _seen(RowScope.of({"category:team": [value]}))
        assert part == VisiblePart(amount=from_units(units), others=from_units(5 - units))
        assert found.row is not None
        assert found.row["amount"] == Decimal(listed) == from_units(units)
        assert [each.amount for each in found.revisions] == [from_units(past), None]
    for whole in ({"identity_id": ["sa-1"]}, {"category:team": ["pay", "orders"]}):
        _, found, part = _seen(RowScope.of(whole))
        assert part is None
        assert found.row is not None
        assert found.row["amount"] == from_units(5)
