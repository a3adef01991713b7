"""Findings that every ecosystem with constructed costs reports."""

from __future__ import annotations

from datetime import timedelta
from threading import Event

from chargeback.ecosystems.constructed.check import attempt, range_warning, series_of
from chargeback.ecosystems.settings import MetricsSettings
from chargeback.errors import SourceUnavailable
from chargeback.sources.prometheus import PrometheusClient
from tests.sources.loopback import Answer, Loopback, each

HOUR = timedelta(hours=1)
TWO = (
    '{"status":"success","data":{"resultType":"vector","result":'
    '[{"metric":{"a":"1"},"value":[1,"1"]},{"metric":{"a":"2"},"value":[1,"1"]}]}}'
)
NONE = '{"status":"success","data":{"resultType":"vector","result":[]}}'


def test_a_finding_says_what_was_seen() -> None:
    """What works is ok with its answer; what fails is not, with the reason."""

    def fails() -> str:
        raise SourceUnavailable("connection refused", source="metrics")

    assert (attempt("x", lambda: "3 series").ok, attempt("x", lambda: "3 series").detail) == (True, "3 series")
    assert (attempt("x", fails).ok, attempt("x", fails).detail) == (False, "connection refused (source metrics)")


def test_a_query_without_series_is_a_finding() -> None:
    """Series are counted, and none is a failure."""
    with (
        Loopback(each(Answer(TWO), Answer(NONE))) as server,
        PrometheusClient(MetricsSettings(url=server.url), stop=Event()) as client,
    ):
        first, second = (attempt("x", lambda: series_of(client, "x")) for _ in range(2))
    assert (first.ok, first.detail) == (True, "2 series now")
    assert (second.ok, second.detail) == (False, "the query gives no series now (source metrics)")


def test_a_range_that_differs_from_the_step_is_warned_of() -> None:
    """A summed query with a range of five minutes at steps of an hour leaves eleven twelfths out."""
    warning = range_warning("PG_NETWORK", "sum(increase(sent[5m]))", HOUR)
    assert warning is not None
    assert not warning.ok
    assert "[5m] differs from metrics_step_seconds (3600)" in warning.detail
    assert range_warning("PG_NETWORK", "sum(increase(sent[{step}]))", HOUR) is None
