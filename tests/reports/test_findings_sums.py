"""Unused resources are found by bytes, on measured days only."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.access.scope import RowScope
from chargeback.model.topics import TOPIC_ATTRIBUTIONS
from chargeback.model.usage import MEMBERS, USAGE
from chargeback.reports.findings import (
    IDLE_IDENTITY,
    IDLE_RESOURCE,
    KINDS,
    TOPIC_NEVER_READ,
    TOPIC_NEVER_WRITTEN,
    TOPIC_WITHOUT_TRAFFIC,
    Unused,
    unused,
)
from chargeback.store.facts.tables import (
    MEMBERS_TABLE,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
    FactTables,
)
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, replace_day, write_shares
from tests.support.laws import examples
from tests.support.readers import Read

FIRST = date(2026, 1, 1)
DAYS = days_from(FIRST, 10)

Measurement = tuple[str, str, str, str]


def write_topics(facts: FactTables, day: date, topics: Iterable[str], cluster: str = "lkc-1") -> None:
    """Attribute 3.00 a day to each topic: 1.00 by its stored bytes, 2.00 evenly."""
    rows = [
        {
            "date": day,
            "timestamp": datetime(day.year, day.month, day.day, tzinfo=UTC),
            "line_id": f"{product}-{cluster}",
            "dimension_id": 1,
            "ecosystem": "test_cloud",
            "tenant_id": "acme",
            "env_id": "env-1",
            "cluster_resource_id": cluster,
            "topic_name": topic,
            "product_category": "KAFKA",
            "product_type": product,
            "attribution_method": method,
            "amount": Decimal(amount),
            "topic_usage": None,
            "total_usage": None,
        }
        for product, method, amount in (("BASE", "even_split", "2"), ("STORAGE", "retained_bytes_ratio", "1"))
        for topic in sorted(topics)
    ]
    replace_day(facts, TOPICS_TABLE, day, pa.Table.from_pylist(rows, schema=TOPIC_ATTRIBUTIONS))


def measure(facts: FactTables, table: str, day: date, rows: Iterable[Measurement]) -> None:
    """Store measurements (measure, resource, subject, value) of a day."""
    kept = [
        {"date": day, "measure": name, "resource_id": resource, "subject": subject, "value": Decimal(value)}
        for name, resource, subject, value in rows
    ]
    replace_day(facts, table, day, pa.Table.from_pylist(kept, schema=USAGE))


def bytes_of(day_in: dict[str, int], day_out: dict[str, int]) -> list[Measurement]:
    """Return the bytes written to and read from topics; ``orders`` is always measured."""
    return [
        *(("topic_bytes_in", "lkc-1", topic, str(value)) for topic, value in ({"orders": 5} | day_in).items()),
        *(("topic_bytes_out", "lkc-1", topic, str(value)) for topic, value in ({"orders": 5} | day_out).items()),
    ]


def found(read: Read, kinds: Iterable[str] = KINDS, min_days: int = 3) -> dict[tuple[str, str], Unused]:
    """Return the findings, by kind and name."""
    each: list[Unused] = read(lambda reader: unused(reader, set(kinds), min_days))
    return {(one.kind, one.name or one.place): one for one in each}


def test_topics(read: Read, facts: FactTables) -> None:
    """Each kind follows from the bytes; a topic in use has no finding, one without traffic only that one."""
    topics = ["orders", "silent", "unread", "unwritten"]
    for day in DAYS:
        write_topics(facts, day, topics)
        measure(facts, TOPIC_USAGE_TABLE, day, bytes_of({"unread": 7, "silent": 0}, {"unwritten": 3}))
    items = found(read)
    assert items.keys() == {
        (TOPIC_WITHOUT_TRAFFIC, "silent"),
        (TOPIC_NEVER_READ, "unread"),
        (TOPIC_NEVER_WRITTEN, "unwritten"),
    }
    one = items[TOPIC_NEVER_READ, "unread"]
    assert (one.since, one.last_active, one.measured_days, one.unmeasured_days) == (FIRST, None, 10, 0)
    assert [one.used_in, one.used_out, one.monthly_cost, one.avoidable] == [70, 0, 30, 10]


@given(
    active=st.sets(st.integers(0, 9)),
    measured=st.sets(st.integers(0, 9)),
    min_days=st.integers(1, 10),
)
@settings(max_examples=examples(15))
def test_only_measured_days_count(
    read: Read, facts: FactTables, active: set[int], measured: set[int], min_days: int
) -> None:
    """A topic is without traffic if enough measured days since its last use have none."""
    for number, day in enumerate(DAYS):
        write_topics(facts, day, ["orders", "silent"])
        used = {"silent": 1} if number in active else {}
        measure(facts, TOPIC_USAGE_TABLE, day, bytes_of(used, {}) if number in measured else [])
    last = max(active & measured, default=-1)
    silent = [number for number in sorted(measured) if number > last]
    item = found(read, [TOPIC_WITHOUT_TRAFFIC], min_days).get((TOPIC_WITHOUT_TRAFFIC, "silent"))
    assert (item is not None) == (len(silent) >= min_days)
    if item is not None:
        assert (item.since, item.measured_days) == (DAYS[silent[0]], len(silent))
        assert item.unmeasured_days == 9 - last - len(silent)
        assert item.last_active == (DAYS[last] if last >= 0 else None)


def test_a_scope_without_topics(engine: QueryEngine, facts: FactTables) -> None:
    """Topics have no identities: with the scope of one identity there are no topics, and only its own charges of
    resources."""
    for day in DAYS:
        write_topics(facts, day, ["orders", "silent"])
        measure(facts, TOPIC_USAGE_TABLE, day, bytes_of({}, {}))
        write_shares(facts, [Share(day, "sa-1", "2", resource="lkc-a"), Share(day, "sa-2", "3", resource="lkc-b")])
        measure(facts, USAGE_TABLE, day, [("bytes_in", name, "sa-1", "0") for name in ("lkc-a", "lkc-b")])
    scope = RowScope((("identity_id", frozenset(["sa-1"])),))
    with engine.cursor(CancellationToken()) as cursor:
        items = unused(TenantReader(cursor, facts, TagIndex(), scope=scope), KINDS, 3)
    assert [(each.kind, each.place, each.monthly_cost) for each in items] == [(IDLE_RESOURCE, "lkc-a", Decimal(20))]


def test_half_a_measurement_is_none(read: Read, facts: FactTables) -> None:
    """If only written bytes are measured, it is unknown whether a topic is read."""
    for day in DAYS:
        write_topics(facts, day, ["orders", "silent"])
        measure(facts, TOPIC_USAGE_TABLE, day, [("topic_bytes_in", "lkc-1", "orders", "5")])
    assert found(read) == {}


def test_a_topic_that_is_gone(read: Read, facts: FactTables) -> None:
    """Resources that are no longer charged, and topics younger than the requested days, have no findings."""
    for number, day in enumerate(DAYS):
        write_topics(facts, day, ["orders", *(["gone"] if number < 8 else []), *(["new"] if number > 7 else [])])
        measure(facts, TOPIC_USAGE_TABLE, day, bytes_of({}, {}))
    assert found(read) == {}


def test_resources(read: Read, facts: FactTables) -> None:
    """A cluster whose measures are zero is idle and its whole cost avoidable; one without measurements is not."""
    for day in DAYS:
        write_shares(
            facts, [Share(day, "sa-1", "2", resource=name) for name in ("lkc-busy", "lkc-idle", "lkc-unmeasured")]
        )
        measure(
            facts,
            USAGE_TABLE,
            day,
            [("bytes_in", "lkc-busy", "sa-1", "3"), ("bytes_in", "lkc-idle", "sa-1", "0")],
        )
    items = found(read, [IDLE_RESOURCE])
    assert items.keys() == {(IDLE_RESOURCE, "lkc-idle")}
    one = items[IDLE_RESOURCE, "lkc-idle"]
    assert [one.monthly_cost, one.avoidable, one.measured_days] == [20, 20, 10]


@pytest.mark.parametrize("table_has_members", [True, False])
def test_identities(read: Read, facts: FactTables, table_has_members: bool) -> None:
    """An identity is idle if it belongs to a measured resource, shares its cost and used nothing; one charged by usage
    is not idle."""
    names = ("sa-busy", "sa-idle", "sa-owner")
    for day in DAYS:
        shares = [Share(day, name, "1", cost_type="shared") for name in (*names, "UNALLOCATED")]
        write_shares(facts, [*shares, Share(day, "sa-owner", "4", resource="lcc-1", line="line-2")])
        measure(facts, USAGE_TABLE, day, [("bytes_in", "lkc-1", "sa-busy", "3"), ("bytes_in", "lkc-1", "sa-idle", "0")])
        rows = [
            {"date": day, "resource_id": "lkc-1", "identity_id": name, "relation": "active"} for name in sorted(names)
        ]
        if table_has_members:
            replace_day(facts, MEMBERS_TABLE, day, pa.Table.from_pylist(rows, schema=MEMBERS))
    items = found(read, [IDLE_IDENTITY])
    assert items.keys() == ({(IDLE_IDENTITY, "sa-idle")} if table_has_members else set())
    if table_has_members:
        one = items[IDLE_IDENTITY, "sa-idle"]
        assert [one.monthly_cost, one.avoidable, one.last_active] == [10, 0, None]


def test_use_outside_a_scope_is_not_seen(read: Read, facts: FactTables) -> None:
    """An identity that uses only resources outside the scope is idle within it, and active for a caller who sees
    everything."""
    for day in DAYS:
        shares = [Share(day, name, "1", cost_type="shared") for name in ("sa-busy", "sa-idle")]
        write_shares(facts, [*shares, Share(day, "sa-busy", "1", resource="lkc-2", line="line-2")])
        used = [("bytes_in", "lkc-1", "sa-busy", "3"), ("bytes_in", "lkc-2", "sa-idle", "2")]
        measure(facts, USAGE_TABLE, day, used)
        members = [
            {"date": day, "resource_id": "lkc-1", "identity_id": name, "relation": "active"}
            for name in ("sa-busy", "sa-idle")
        ]
        replace_day(facts, MEMBERS_TABLE, day, pa.Table.from_pylist(members, schema=MEMBERS))

    def _idle(scope: RowScope | None) -> list[str]:
        def _query(reader: TenantReader) -> list[Unused]:
            return unused(TenantReader(reader.cursor, facts, TagIndex(), scope=scope), {IDLE_IDENTITY}, 3)

        return [each.name for each in read(_query)]

    assert _idle(None) == []
    assert _idle(RowScope.of({"identity_id": ["sa-idle"]})) == ["sa-idle"]
    assert _idle(RowScope.of({"resource_id": ["lkc-1"]})) == ["sa-idle"]
