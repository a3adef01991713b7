"""Sums over a window are exact, even if the query is split."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Event

import pytest

from chargeback.errors import SourceTooLarge
from chargeback.model.days import InstantRange
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from chargeback.sources.windows import GroupTotals, WindowSums
from tests.sources.loopback import Answer, Asked, Loopback
from tests.support.prometheus import RealPrometheus

DAY = datetime(2026, 11, 10, tzinfo=UTC)
WHOLE = InstantRange(DAY, DAY + timedelta(days=1))
MINUTES = 1440


def openmetrics() -> Iterator[str]:
    """Yield minute values of two topics in three days (each day's first and last minute differ from their neighbours),
    and a series that is not a number for one minute."""
    start = int(DAY.timestamp()) - 86_400
    yield "# TYPE bytes gauge\n"
    for topic, factor in (("a", 1), ("b", 1000)):
        for minute in range(3 * MINUTES):
            value = factor * (1 + minute // MINUTES * 1_000_000 + minute % 7)
            yield f'bytes{{topic="{topic}"}} {value} {start + 60 * minute}\n'
    for minute in range(MINUTES):
        yield f'bytes{{topic="odd"}} {"NaN" if minute == 700 else 1} {start + 86_400 + 60 * minute}\n'
    yield "# EOF\n"


def expected(day: int = 1) -> dict[tuple[str, ...], Decimal]:
    """Return the totals of the topics on the n-th day."""
    minutes = range(day * MINUTES, (day + 1) * MINUTES)
    total = sum(1 + day * 1_000_000 + minute % 7 for minute in minutes)
    return {("a",): Decimal(total), ("b",): Decimal(1000 * total)}


def template(window: str) -> str:
    """Return the query for the sum per topic."""
    return f"sum by (topic) (sum_over_time(bytes[{window}]))"


def measure(server: RealPrometheus, window: InstantRange = WHOLE) -> GroupTotals:
    """Return the sums of a window."""
    with PrometheusClient(MetricsSettings(url=server.url), stop=Event()) as client:
        return WindowSums(client).sums("bytes", template, ("topic",), window)


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealPrometheus]:
    """A server without limits."""
    with RealPrometheus(openmetrics()) as server:
        yield server


@pytest.mark.parametrize("day", [0, 1, 2])
def test_a_day_has_exactly_its_own_minutes(prometheus: RealPrometheus, day: int) -> None:
    """The sample at 00:00 belongs to its day; the sample at the next 00:00 does not."""
    start = DAY + timedelta(days=day - 1)
    found = measure(prometheus, InstantRange(start, start + timedelta(days=1)))
    assert {group: value for group, value in found.values.items() if group != ("odd",)} == expected(day)


def test_a_value_that_is_no_number_is_dropped_and_counted(prometheus: RealPrometheus) -> None:
    """A series with a NaN within the window is dropped and counted."""
    found = measure(prometheus)
    assert ("odd",) not in found.values
    assert found.dropped == 1


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize("limit", [2000, 300, 20])
def test_a_refused_window_is_cut_and_adds_up_to_the_same(limit: int) -> None:
    """With any limit of samples, the sums and the number of dropped values are the same."""
    with RealPrometheus(openmetrics(), arguments=(f"--query.max-samples={limit}",)) as server:
        found = measure(server)
    assert found.values == expected()
    assert found.dropped == 1


@pytest.mark.usefixtures("process")
def test_a_server_that_refuses_a_minute_is_an_error() -> None:
    """If even the smallest window is too large, the query fails instead of being repeated endlessly."""
    with RealPrometheus(openmetrics(), arguments=("--query.max-samples=1",)) as server, pytest.raises(SourceTooLarge):
        measure(server)


def test_the_next_day_begins_with_what_went_well() -> None:
    """A window length that was rejected once is not tried again for the same kind of query."""
    asked: list[str] = []

    def script(request: Asked) -> Answer:
        seconds = int(request.form["query"].rpartition("[")[2].partition("s")[0])
        asked.append("refused" if seconds > 6 * 3600 else "answered")
        if seconds > 6 * 3600:
            return Answer('{"status":"error","errorType":"timeout","error":"query timed out"}', status=503)
        return Answer('{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.1"]}]}}')

    with (
        Loopback(script) as server,
        PrometheusClient(MetricsSettings(url=server.url), stop=Event()) as client,
    ):
        sums = WindowSums(client)
        first = sums.sums("bytes", template, (), WHOLE)
        second = sums.sums("bytes", template, (), InstantRange(WHOLE.end, WHOLE.end + timedelta(days=1)))
    assert asked == ["refused", "refused", *["answered"] * 8]
    assert first.values == second.values == {(): Decimal("0.4")}
