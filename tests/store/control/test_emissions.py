"""The emissions of each date, and the inventory of past days."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.days import ONE_DAY, start_of_day, utc_now
from chargeback.model.inventory import Identity, Resource, alive_during
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.emissions import (
    Emission,
    EmissionState,
    count_alive,
    existing_on,
    read_emissions,
    save_emission,
)
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES

DAY = date(2026, 1, 31)


def test_an_emission_is_kept_per_emitter_and_date(database: ControlDatabase) -> None:
    """Writing an emission again replaces it, and no other; it has the time of the change."""
    failed = Emission("finance", DAY, EmissionState.FAILED, "v1", 1, "disk full")
    other = Emission("grafana", DAY, EmissionState.SKIPPED, "v1", 0, "older than lookback_days")
    with database.write() as connection:
        for emission in (failed, other, replace(failed, state=EmissionState.EMITTED, attempts=2, error=None)):
            save_emission(connection, emission)
    with database.read() as connection:
        (found,) = read_emissions(connection, "finance").values()
        assert (found.state, found.version, found.attempts, found.error) == ("emitted", "v1", 2, None)
        assert found.changed_at is not None
        assert utc_now() - found.changed_at < timedelta(hours=1)
        assert read_emissions(connection, "grafana")[DAY].error == "older than lookback_days"
        assert read_emissions(connection, "nobody") == {}


def test_the_inventory_of_days(database: ControlDatabase) -> None:
    """An entity counts on every day of its lifetime, by type; without a creation time it always existed."""
    days = [DAY, DAY + ONE_DAY, DAY + 3 * ONE_DAY]
    noon = timedelta(hours=12)
    with database.write() as connection:
        ensure_known(
            connection,
            utc_now(),
            billed=[
                Resource("a", "cluster", deleted_at=start_of_day(days[1]) + noon),
                Resource("b", "cluster", created_at=start_of_day(days[1]) + noon),
                Resource("c", "topic", created_at=start_of_day(days[2]) - noon, deleted_at=start_of_day(days[2])),
            ],
            charged=[Identity("u", "user")],
        )
    with database.read() as connection:
        found = existing_on(connection, RESOURCES, days)
        assert [found[day].get("cluster") for day in days] == [1, 2, 1]
        assert sum(found[day].get("topic", 0) for day in days) == 0
        assert existing_on(connection, IDENTITIES, days)[DAY] == {"system": 1, "user": 1}
        assert existing_on(connection, RESOURCES, []) == {}
        some = existing_on(connection, RESOURCES, days, {"b", "c", "gone"})
        assert [some[day].get("cluster") for day in days] == [0, 1, 1]


_MOMENTS = st.none() | st.integers(-30, 150).map(lambda hours: start_of_day(DAY) + timedelta(hours=hours))


@given(st.lists(st.tuples(_MOMENTS, _MOMENTS)), st.sets(st.integers(0, 5)))
def test_the_counts_agree_with_the_definition(
    lives: list[tuple[datetime | None, datetime | None]], offsets: set[int]
) -> None:
    """For any lifetimes and days, one pass counts the entities of each day."""
    days = [DAY + timedelta(days=offset) for offset in sorted(offsets)]
    found = count_alive([("x", created, deleted, 2) for created, deleted in lives], days)
    for day in days:
        start = start_of_day(day)
        alive = [alive_during(created, deleted, start, start + ONE_DAY) for created, deleted in lives]
        assert found[day].get("x", 0) == 2 * sum(alive)
