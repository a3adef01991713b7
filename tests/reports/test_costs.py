"""Units of time of a period, and topic filters made from cost filters."""

from __future__ import annotations

from datetime import date
from zoneinfo import ZoneInfo

import pytest

from chargeback.model.days import instants
from chargeback.reports.costs import CostRequest, buckets_of
from chargeback.reports.periods import CalendarPeriod
from chargeback.reports.topic_costs import of_topics
from chargeback.store.queries.selection import CategoryFilter, ColumnFilter, Selection, TagFilter

WINDOW = instants(date(2026, 1, 30), date(2026, 2, 2), ZoneInfo("Asia/Tokyo"))
PERIOD = CalendarPeriod(date(2026, 1, 30), date(2026, 2, 2))


@pytest.mark.parametrize(
    ("unit", "labels"),
    [
        ("day", ("2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02")),
        ("week", ("2026-01-26", "2026-02-02")),
        ("month", ("2026-01-01", "2026-02-01")),
    ],
)
def test_units_of_time(unit: str, labels: tuple[str, ...]) -> None:
    """Every unit that the period overlaps is listed once."""
    assert buckets_of(PERIOD, unit) == labels


def test_filters_of_topics() -> None:
    """Filters that topics have are renamed; the others are listed once as ignored."""
    one = frozenset(["x"])
    columns = (
        ColumnFilter("resource_id", one),
        ColumnFilter("environment_id", one, excludes=True),
        ColumnFilter("identity_id", one),
        ColumnFilter("identity_id", one, excludes=True),
    )
    categories = (CategoryFilter("team", one),)
    asked = Selection(WINDOW, columns, (TagFilter("team", one),), categories=categories)
    selection, ignored = of_topics(asked)
    assert (selection.window, selection.tags, selection.categories) == (WINDOW, (), categories)
    assert selection.columns == (ColumnFilter("cluster_resource_id", one), ColumnFilter("env_id", one, excludes=True))
    assert ignored == ["identity_id", "tag:team"]


def test_windows_follow_the_zone() -> None:
    """A day begins at midnight in the time zone; without a compared period, there is no compared window."""
    selection = Selection(WINDOW)
    request = CostRequest(PERIOD, None, selection, ZoneInfo("Asia/Tokyo"), "day", ("identity_id",), "identity_id", 7)
    assert str(request.window.start) == "2026-01-29 15:00:00+00:00"
    assert request.compared_window is None
