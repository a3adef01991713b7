"""Sums are exact and complete, and agree with lists and exports in every time zone."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.errors import SumTooLarge
from chargeback.model.days import instants
from chargeback.model.money import render
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries import aggregate as module
from chargeback.store.queries.aggregate import Aggregate, Grouping
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection, TagFilter, equal
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, line, new_facts, write_lines, write_shares
from tests.support.laws import examples
from tests.support.readers import Read

DAY = date(2026, 1, 1)
UTC = ZoneInfo("UTC")
JANUARY = Selection(instants(DAY, date(2026, 1, 31)))
NOTHING = Aggregate([], {"total_amount": "0.00", "usage_amount": "0.00", "shared_amount": "0.00", "total_rows": 0})


def _sums(read: Read, *by: str, unit: str = "day", selection: Selection = JANUARY, **more: Any) -> Aggregate:
    grouping = Grouping(by, unit, more.get("zone", UTC))
    answer: Aggregate = read(lambda reader: reader.aggregate(CHARGEBACKS, selection, grouping), more.get("tags"))
    return answer


def test_a_sum_that_cannot_be_shown_is_a_clear_error(read: Read, facts: FactTables) -> None:
    """Amounts whose sum is too large raise an error; smaller sums are exact."""
    half = "50000000000000000000000000"
    write_shares(facts, [Share(DAY, "sa-1", "49999999999999999999999999.999999999999"), Share(DAY, "sa-2", half)])
    sums = _sums(read, "product_type")
    assert sums.totals["total_amount"] == "99999999999999999999999999.999999999999"
    write_shares(facts, [Share(DAY, "sa-1", half), Share(DAY, "sa-2", half)])
    for by in ("identity_id", "product_type"):
        with pytest.raises(SumTooLarge, match="at least one amount must be wrong"):
            _sums(read, by)


def test_usage_and_shared_add_up(read: Read, facts: FactTables) -> None:
    """Every bucket splits its total by cost type, exactly."""
    write_shares(
        facts,
        [Share(DAY, "sa-1", "738891.690899999999"), Share(DAY, "sa-1", "0.000000000001", cost_type="shared")],
    )
    sums = _sums(read, "identity_id")
    assert sums.buckets == [
        {
            "dimensions": {"identity_id": "sa-1"},
            "time_bucket": "2026-01-01",
            "total_amount": "738891.6909",
            "usage_amount": "738891.690899999999",
            "shared_amount": "0.000000000001",
            "row_count": 2,
        }
    ]
    assert (sums.totals["total_amount"], sums.totals["total_rows"], sums.truncated) == ("738891.6909", 2, False)


def test_nothing_to_sum(read: Read, facts: FactTables) -> None:
    """Without files or matching rows, there are no buckets, and totals are zero."""
    assert _sums(read, "identity_id") == NOTHING
    write_shares(facts, [Share(DAY, "sa-1", "1")])
    assert _sums(read, "identity_id", selection=replace(JANUARY, columns=equal(identity_id="nobody"))) == NOTHING


def test_groups_by_resolved_tags(read: Read, facts: FactTables) -> None:
    """The identity's tag takes precedence over the resource's; rows without the tag are UNTAGGED."""
    write_shares(
        facts,
        [
            Share(DAY, "sa-1", "1", resource="lkc-1"),
            Share(DAY, "sa-2", "2", resource="lkc-1"),
            Share(DAY, "sa-2", "4", resource="lkc-2"),
        ],
    )
    tags = TagIndex.undated({"sa-1": {"team": "payer"}}, {"lkc-1": {"team": "operator"}})
    sums = _sums(read, "tag:team", tags=tags)
    amounts = {bucket["dimensions"]["tag:team"]: bucket["total_amount"] for bucket in sums.buckets}
    assert amounts == {"payer": "1.00", "operator": "2.00", "UNTAGGED": "4.00"}
    selection = replace(JANUARY, tags=(TagFilter("team", frozenset(["operator", "UNTAGGED"])),))
    assert _sums(read, "tag:team", "tag:nope", tags=tags, selection=selection).totals["total_amount"] == "6.00"


def test_a_missing_environment_is_null_and_comes_first(read: Read, facts: FactTables) -> None:
    """Buckets are ordered by time, then dimensions."""
    write_shares(facts, [Share(DAY, "a", "1"), Share(DAY, "b", "1", environment=None)])
    sums = _sums(read, "environment_id")
    assert [bucket["dimensions"]["environment_id"] for bucket in sums.buckets] == [None, "env-1"]


def test_past_the_limit_the_oldest_buckets_are_left_out_whole(
    read: Read, facts: FactTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest units of time stay complete, and the totals cover everything."""
    monkeypatch.setattr(module, "MAX_BUCKETS", 7)
    write_shares(facts, [Share(day, f"sa-{n}", "1") for day in days_from(DAY, 4) for n in range(3)])
    sums = _sums(read, "identity_id")
    assert [bucket["time_bucket"] for bucket in sums.buckets] == ["2026-01-03"] * 3 + ["2026-01-04"] * 3
    assert (sums.totals["total_amount"], sums.totals["total_rows"], sums.truncated) == ("12.00", 12, True)


def test_of_one_unit_of_time_that_is_too_large_the_largest_stay(
    read: Read, facts: FactTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The groups with the largest absolute amounts stay, ordered by dimensions."""
    monkeypatch.setattr(module, "MAX_BUCKETS", 2)
    amounts = {"a": "1", "b": "-5", "c": "2", "d": "3"}
    write_shares(facts, [Share(DAY, name, amount) for name, amount in amounts.items()])
    sums = _sums(read, "identity_id")
    assert [bucket["dimensions"]["identity_id"] for bucket in sums.buckets] == ["b", "d"]
    assert (sums.totals["total_amount"], sums.truncated) == ("1.00", True)


def test_hours_of_the_day_the_clock_is_put_back(read: Read, facts: FactTables) -> None:
    """A day of 25 hours has 25 buckets with the complete sum."""
    days = days_from(date(2026, 10, 24), 3)
    write_shares(facts, [Share(day, "sa-1", "1", hour=hour) for day in days for hour in range(24)])
    berlin = ZoneInfo("Europe/Berlin")
    selection = Selection(instants(date(2026, 10, 25), date(2026, 10, 25), berlin))
    sums = _sums(read, "identity_id", unit="hour", zone=berlin, selection=selection)
    labels = [bucket["time_bucket"] for bucket in sums.buckets]
    assert len(labels) == len(set(labels)) == 25
    assert labels[2:4] == ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"]
    assert sums.totals["total_amount"] == "25.00"


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/Denver", "Asia/Kathmandu", "Pacific/Kiritimati"])
SHARES = st.lists(
    st.builds(
        Share,
        day=st.sampled_from(days_from(date(2026, 3, 27), 4)),
        identity=st.sampled_from(["sa-1", "sa-2", "UNALLOCATED", "=cmd()"]),
        amount=st.decimals(min_value=-(10**6), max_value=10**6, places=12).filter(bool).map(lambda d: f"{d:f}"),
        resource=st.sampled_from(["lkc-1", 'a,"b"']),
        cost_type=st.sampled_from(["usage", "shared"]),
        hour=st.integers(0, 23),
        line=st.uuids().map(str),
    ),
    max_size=30,
)


@settings(max_examples=examples(25))
@given(shares=SHARES, zone=ZONES, unit=st.sampled_from(["hour", "day", "week", "month"]))
def test_list_aggregate_export_and_bill_agree(
    read: Read, tmp_path_factory: pytest.TempPathFactory, shares: list[Share], zone: str, unit: str
) -> None:
    """In any zone, the pages, the buckets, the totals, the CSV and the billing lines have the same sum."""
    facts = new_facts(tmp_path_factory.mktemp("law") / "facts")
    write_shares(facts, shares) if shares else None
    write_lines(facts, [line(share.day, share.amount, hour=share.hour, description=share.line) for share in shares])
    window = instants(date(2026, 3, 28), date(2026, 3, 29), ZoneInfo(zone))
    expected = sum(
        (Decimal(share.amount) for share in shares if window.start <= share.row()["timestamp"] < window.end), Decimal(0)
    )

    def _everything(reader: TenantReader) -> dict[str, list[str]]:
        grouping = Grouping(("identity_id", "cost_type"), unit, ZoneInfo(zone))
        selection = Selection(window)
        sums = reader.aggregate(CHARGEBACKS, selection, grouping)
        text = b"".join(reader.export(CHARGEBACKS, selection, ["amount"])).decode()
        found: dict[str, list[str]] = defaultdict(list)
        for page in range(5):
            rows, _ = reader.list_rows(CHARGEBACKS, selection, Page(page * 7, 7))
            lines, _ = reader.list_rows(BILLING_LINES, selection, Page(page * 7, 7))
            found["list"] += [row["amount"] for row in rows]
            found["bill"] += [one["total_cost"] for one in lines]
        found["buckets"] = [bucket["total_amount"] for bucket in sums.buckets]
        found["parts"] = [bucket[name] for bucket in sums.buckets for name in ("usage_amount", "shared_amount")]
        found["total"] = [sums.totals["total_amount"]]
        found["csv"] = [row["amount"] for row in csv.DictReader(io.StringIO(text))]
        return found

    found = read(_everything, tables=facts)
    sums = {name: render(sum(map(Decimal, texts), Decimal(0))) for name, texts in found.items()}
    assert sums == dict.fromkeys(sums, render(expected))
