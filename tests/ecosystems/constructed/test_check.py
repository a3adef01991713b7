"""Findings that every ecosystem with constructed costs reports."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from threading import Event

import pytest

from chargeback.ecosystems.constructed.plugin import range_warning, series_of
from chargeback.ecosystems.findings import attempt
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.openmetrics import Scrapes
from tests.support.prometheus import RealPrometheus

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealPrometheus]:
    """Two series that are scraped until now, and one that was until three hours ago."""
    seen = Scrapes(TODAY - timedelta(days=1), TODAY)
    now = (NOW - seen.start) // timedelta(minutes=1)
    for name in "ab":
        seen.gauge("there", {"a": name}, lambda minute: 1 if minute <= now else None)
    seen.gauge("gone", {}, lambda minute: 1 if minute <= now - 180 else None)
    with RealPrometheus(seen.text()) as server:
        yield server


def test_a_query_without_series_is_a_finding(prometheus: RealPrometheus) -> None:
    """Series are counted; none now is a warning where there were some within the last day, else a failure."""
    with PrometheusClient(MetricsSettings(url=prometheus.url), stop=Event()) as client:
        asked = [
            partial(series_of, client, query, FixedClock()) for query in ("there", "sum(gone) # bytes", "sum(never)")
        ]
        now, gone, never = (attempt("x", question) for question in asked)
    assert (now.ok, now.warning, now.detail) == (True, False, "2 series now")
    assert (gone.ok, gone.warning) == (True, True)
    assert "no series now, but 1 within the last day" in gone.detail
    assert (never.ok, never.warning) == (False, False)
    assert "neither now nor within the last day" in never.detail


def test_a_range_that_differs_from_the_step_is_warned_of() -> None:
    """A summed query with a range of five minutes at steps of an hour leaves eleven twelfths out."""
    warning = range_warning("PG_NETWORK", "sum(increase(sent[5m]))", HOUR)
    assert warning is not None
    assert (warning.ok, warning.warning) == (True, True)
    assert "[5m] differs from metrics_step_seconds (3600)" in warning.detail
    assert range_warning("PG_NETWORK", "sum(increase(sent[{step}]))", HOUR) is None
