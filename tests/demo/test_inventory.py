"""Lifetimes."""

from __future__ import annotations

from datetime import UTC, date, datetime

from chargeback.demo.inventory import ComputePool, ProviderObject


def test_a_thing_exists_on_the_days_it_lived() -> None:
    """An object exists on its first and last day, and is not listed from its last day on."""
    thing = ProviderObject(
        id="a", name="a", created=datetime(2026, 1, 2, 23, tzinfo=UTC), deleted=datetime(2026, 1, 4, 1, tzinfo=UTC)
    )
    days = [date(2026, 1, day) for day in range(1, 6)]
    assert [thing.existed_on(day) for day in days] == [False, True, True, True, False]
    assert [thing.listed_on(day) for day in days] == [False, True, True, False, False]


def test_a_pool_lies_in_a_region() -> None:
    """The id of a region consists of cloud and name."""
    created = datetime(2026, 1, 1, tzinfo=UTC)
    pool = ComputePool(id="p", name="p", created=created, environment="e", cloud="AWS", region="us-east-1", max_cfu=5)
    assert pool.region_id == "aws.us-east-1"
