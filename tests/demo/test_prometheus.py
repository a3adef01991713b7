"""The query endpoint against a real Prometheus that holds the same samples."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from chargeback.demo.metrics import METRICS
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.prometheus import (
    Evaluator,
    Number,
    OverTime,
    Selector,
    VectorAggregate,
    check_resolution,
    duration_ms,
    parse,
    parse_step,
    parse_time,
)
from chargeback.demo.server import DemoServer, ServerOptions
from chargeback.errors import SourceRejected
from tests.support.prometheus import RealPrometheus

FIRST, SECOND = date(2026, 11, 12), date(2026, 11, 13)
PRINCIPALS = "sum by (kafka_id, principal_id) (sum_over_time(confluent_kafka_server_request_bytes[{range}]))"
TOLERANCE = Decimal("1e-12")


@pytest.fixture(scope="module")
def addresses(organisation: Organisation, process: None) -> Iterator[tuple[str, str]]:
    """The URLs of a real Prometheus and of the demo's endpoint, with the same two days of samples."""
    with RealPrometheus(organisation.openmetrics([FIRST, SECOND])) as real, DemoServer(organisation) as demo:
        yield real.url, demo.prometheus_url


def _answer(url: str, path: str, parameters: dict[str, str]) -> dict[tuple[tuple[str, str], ...], list[Any]]:
    response = httpx.post(f"{url}/api/v1/{path}", data=parameters, timeout=60)
    assert response.status_code == 200, response.text
    data = response.json()["data"]
    return {
        tuple(sorted(item["metric"].items())): item["values"] if "values" in item else [item["value"]]
        for item in data["result"]
    }


def _equal(addresses: tuple[str, str], path: str, parameters: dict[str, str]) -> int:
    """Check that series, times and numbers are equal (to floating-point precision); return the number of series."""
    real, demo = (_answer(url, path, parameters) for url in addresses)
    assert sorted(real) == sorted(demo)
    for labels, points in real.items():
        assert [point[0] for point in points] == [point[0] for point in demo[labels]]
        for (_, expected), (_, got) in zip(points, demo[labels], strict=True):
            assert abs(Decimal(expected) - Decimal(got)) <= TOLERANCE * abs(Decimal(expected)), labels
    return len(real)


def _end(day: date) -> Decimal:
    """Return the Unix time in seconds of one millisecond before the end of a day."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    return Decimal(int(midnight.timestamp())) - Decimal("0.001")


@pytest.mark.parametrize(
    "query",
    [
        PRINCIPALS.format(range="1d"),
        PRINCIPALS.format(range="1h"),
        "sum by (kafka_id, topic) (sum_over_time(confluent_kafka_server_received_bytes[1d]))",
        'sum(sum_over_time(confluent_kafka_server_sent_bytes{topic!="",topic!~"_.*"}[6h])) by (kafka_id)',
        "avg by (kafka_id, topic) (avg_over_time(confluent_kafka_server_retained_bytes[1d]))",
        "last_over_time(confluent_kafka_server_retained_bytes[90m])",
        "confluent_kafka_server_retained_bytes",
        "count by (kafka_id) (count_over_time(confluent_kafka_server_request_bytes[1d]))",
        "group by (kafka_id, topic) (last_over_time(confluent_kafka_server_retained_bytes[1d]))",
        "max by (type) (max_over_time(confluent_kafka_server_response_bytes[30m]))",
        "min(min_over_time(confluent_kafka_server_response_bytes[30m]))",
        "sum by (compute_pool_id, flink_statement_name)"
        " (sum_over_time(confluent_flink_statement_utilization_cfu_minutes_consumed[1d]))",
    ],
)
def test_instant_queries_equal_a_real_prometheus(addresses: tuple[str, str], query: str) -> None:
    """The service's queries at the end of a day give the same series and numbers as a real Prometheus."""
    assert _equal(addresses, "query", {"query": query, "time": str(_end(FIRST))}) > 0


@pytest.mark.parametrize(("length", "step"), [("1d", "1d"), ("1h", "3600"), ("5m", "5m")])
def test_range_queries_equal_a_real_prometheus(addresses: tuple[str, str], length: str, step: str) -> None:
    """Queries of consecutive windows, each evaluated at its end, give the same results as a real Prometheus."""
    hour = Decimal(3600)
    start = _end(FIRST) - (23 * hour if length == "1h" else 0)
    parameters = {"query": PRINCIPALS.format(range=length), "start": str(start), "end": str(_end(SECOND)), "step": step}
    assert _equal(addresses, "query_range", parameters) > 0


def test_windows_of_a_day_add_up_to_the_truth(addresses: tuple[str, str], organisation: Organisation) -> None:
    """A real Prometheus, queried at the end of the day minus a millisecond, gives exactly the known totals."""
    metric = "confluent_kafka_server_request_bytes"
    query = f"sum_over_time({metric}[1d])"
    found = _answer(addresses[0], "query", {"query": query, "time": str(_end(FIRST))})
    expected = {tuple(sorted(labels.items())): value for labels, value in organisation.usage(metric, FIRST)}
    assert {labels: int(points[0][1]) for labels, points in found.items()} == expected


def test_matchers_equal_a_real_prometheus(addresses: tuple[str, str], organisation: Organisation) -> None:
    """Equality, alternatives and their negations select the same series."""
    first, second = (cluster.id for cluster in organisation.inventory.clusters[:2])
    metric = "sum by (kafka_id, type) (sum_over_time(confluent_kafka_server_request_bytes{%s}[1d]))"
    for matchers in (
        f'kafka_id="{first}"',
        f'kafka_id=~"{first}|{second}",type="Fetch"',
        f'kafka_id!="{first}",principal_id!=""',
        'kafka_id!~"lkc-.*"',
        'colour=""',
        "",
    ):
        _equal(addresses, "query", {"query": metric % matchers, "time": str(_end(FIRST))})


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("query", {"query": "sum by ("}),
        ("query", {"query": "up", "time": "yesterday"}),
        ("query_range", {"query": "up", "start": "0", "end": "11001", "step": "1"}),
        ("query_range", {"query": "up", "start": "10", "end": "5", "step": "1"}),
        ("query_range", {"query": "up", "start": "0", "end": "5", "step": "0"}),
    ],
)
def test_bad_requests_fail_like_a_real_prometheus(
    addresses: tuple[str, str], path: str, parameters: dict[str, str]
) -> None:
    """Requests that a real Prometheus rejects are rejected with the same status and kind of error."""
    answers = [httpx.get(f"{url}/api/v1/{path}", params=parameters) for url in addresses]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert [answer.json()["errorType"] for answer in answers] == ["bad_data", "bad_data"]
    assert [answer.json()["status"] for answer in answers] == ["error", "error"]


@pytest.mark.parametrize("points", ["11000", "11001"])
def test_eleven_thousand_points_are_the_limit(addresses: tuple[str, str], points: str) -> None:
    """11,000 steps are allowed, and one more is rejected, as by a real Prometheus."""
    parameters = {"query": "nothing", "start": "0", "end": points, "step": "1"}
    statuses = [httpx.get(f"{url}/api/v1/query_range", params=parameters).status_code for url in addresses]
    assert statuses == ([200, 200] if points == "11000" else [400, 400])


def test_an_unknown_metric_is_an_empty_answer(addresses: tuple[str, str]) -> None:
    """An unknown metric has no series; this is not an error."""
    assert _equal(addresses, "query", {"query": "sum by (a) (sum_over_time(nothing[1d]))"}) == 0


def test_scalars_and_other_endpoints_answer(addresses: tuple[str, str]) -> None:
    """Readiness, build information, labels and a bare number have the shapes of a real Prometheus."""
    for path in ("/-/ready", "/api/v1/status/buildinfo", "/api/v1/labels", "/api/v1/query?query=1&time=5"):
        real, demo = (httpx.get(url + path) for url in addresses)
        assert (real.status_code, demo.status_code) == (200, 200)
        if path.startswith("/api"):
            assert type(real.json()["data"]) is type(demo.json()["data"])
    assert demo.json() == real.json()


def test_a_range_is_open_to_the_left(organisation: Organisation) -> None:
    """As in Prometheus 3, a sample exactly at the beginning of a window does not belong to it."""
    midnight = int(datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC).timestamp()) * 1000
    query = "count_over_time(confluent_kafka_server_retained_bytes[1h])"
    data = Evaluator(organisation).instant(query, midnight + 3_600_000)
    assert {item["value"][1] for item in data["result"]} == {"60"}


@pytest.mark.usefixtures("process")
def test_too_many_samples_are_refused_like_a_real_prometheus(organisation: Organisation) -> None:
    """Above the same sample limit both return 422, so that a client can request less; below it both succeed."""
    options = ServerOptions(prometheus_max_samples=2000)
    samples = organisation.openmetrics([FIRST, SECOND], ["confluent_kafka_server_request_bytes"])
    limited = RealPrometheus(samples, arguments=("--query.max-samples=2000",))
    with limited as real, DemoServer(organisation, options=options) as demo:
        for length, expected in (("1d", 200), ("2d", 422)):
            parameters = {"query": PRINCIPALS.format(range=length), "time": str(_end(SECOND))}
            for url in (real.url, demo.prometheus_url):
                answer = httpx.get(f"{url}/api/v1/query", params=parameters)
                assert answer.status_code == expected
                assert answer.json().get("errorType") == (None if expected == 200 else "execution")


def test_credentials_are_asked_for_when_configured(organisation: Organisation) -> None:
    """If basic or bearer credentials are configured, a request without them returns 401."""
    with DemoServer(organisation, options=ServerOptions(prometheus_basic=("a", "b"))) as server:
        url = f"{server.prometheus_url}/api/v1/query?query=1"
        assert [httpx.get(url).status_code, httpx.get(url, auth=("a", "b")).status_code] == [401, 200]
    with DemoServer(organisation, options=ServerOptions(prometheus_bearer="t")) as server:
        url = f"{server.prometheus_url}/api/v1/query?query=1"
        headers = {"authorization": "Bearer t"}
        assert [httpx.get(url).status_code, httpx.get(url, headers=headers).status_code] == [401, 200]


@pytest.mark.usefixtures("process")
def test_a_real_prometheus_can_ask_for_credentials() -> None:
    """The real server of the tests returns 401 without credentials, and 200 with its user and password."""
    spec = DemoSpec(today=date(2026, 11, 20), size="small", days=12)
    lines = Organisation.generate(spec).openmetrics([FIRST], ["confluent_kafka_server_retained_bytes"])
    with RealPrometheus("".join(lines), basic_auth=True) as real:
        url = f"{real.url}/api/v1/query?query=1"
        assert [httpx.get(url).status_code, httpx.get(url, auth=real.auth).status_code] == [401, 200]


def test_old_days_are_forgotten(organisation: Organisation) -> None:
    """With a retention, series of older days do not exist."""
    oldest = SECOND
    evaluator = Evaluator(organisation, oldest)
    for day, expected in ((FIRST, False), (SECOND, True)):
        data = evaluator.instant("sum(sum_over_time(confluent_kafka_server_request_bytes[1d]))", int(_end(day) * 1000))
        assert bool(data["result"]) is expected


def test_every_metric_is_absent_on_the_day_without_metrics(organisation: Organisation) -> None:
    """On the day when nothing was scraped, no metric has a series."""
    at = int(_end(organisation.spec.day_without_metrics) * 1000)
    for metric in METRICS:
        assert Evaluator(organisation).instant(f"count(count_over_time({metric}[1d]))", at)["result"] == []


def test_times_and_steps_are_read_like_prometheus() -> None:
    """Unix seconds with decimals, RFC 3339 and durations are accepted; the error for others names the parameter."""
    assert parse_time("time", "1.5") == 1500
    assert parse_time("time", "1970-01-01T00:00:02.250Z") == 2250
    assert (parse_step("1h"), parse_step("90"), parse_step("0.5")) == (3_600_000, 90_000, 500)
    check_resolution(0, 11_000_000, 1000)
    with pytest.raises(SourceRejected, match='"time"'):
        parse_time("time", "NaN")
    with pytest.raises(SourceRejected, match='"step"'):
        parse_step("soon")


def test_metrics_of_a_day_can_come_late(organisation: Organisation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries of that day alone are marked as incomplete; after some time they are complete."""
    today = organisation.spec.today
    midnights = [datetime.combine(today - timedelta(days=number), time(), UTC).timestamp() for number in (5, 6)]
    options = ServerOptions(late_day=today - timedelta(days=6))
    with DemoServer(organisation, options=options) as server:

        def answers() -> list[bool]:
            """Return whether a query up to each midnight is complete."""
            url = server.prometheus_url + "/api/v1/query"
            found = [httpx.get(url, params={"query": "up", "time": each}).json() for each in midnights]
            return ["warnings" not in each for each in found]

        assert answers() == [False, True]
        monkeypatch.setattr("chargeback.demo.app._LATE_SECONDS", 0)
        assert answers() == [True, True]


def test_the_services_query_is_understood() -> None:
    """Aggregation, range function and matchers are parsed, with "by" before or after the expression."""
    before = parse('sum by (a, b) (sum_over_time(m{x="1", y=~"p|q", z!=""}[1d12h]))')
    behind = parse('sum(sum_over_time(m{x="1",y=~"p|q",z!="",}[36h])) by (a,b)')
    for query in (before, behind):
        assert isinstance(query, VectorAggregate)
        assert (query.operation, query.by) == ("sum", ("a", "b"))
        assert isinstance(query.inner, OverTime)
        assert query.inner.range_ms == 36 * 3_600_000
        matchers = query.inner.selector.matchers
        assert [(one.label, one.sign, one.text) for one in matchers] == [
            ("x", "=", "1"), ("y", "=~", "p|q"), ("z", "!=", ""),
        ]  # fmt: skip


def test_regular_expressions_match_the_whole_value() -> None:
    """Alternatives are anchored at both ends; quotes and backslashes may be escaped."""
    query = parse(r'm{a=~"x|y.*",b!~"z",c="q\"\\"}')
    assert isinstance(query, Selector)
    first, second, third = query.matchers
    assert [first.matches(text) for text in ("x", "xx", "yes")] == [True, False, True]
    assert [second.matches(text) for text in ("z", "zz")] == [False, True]
    assert third.matches('q"\\')


def test_numbers_are_queries() -> None:
    """A bare number is a scalar."""
    assert parse("1.5") == Number(parse("1.5").value)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("rate(m[5m])", '"rate"'),
        ("sum without (a) (m)", '"without"'),
        ("m / 2", '"/ 2"'),
        ("m offset 1d", '"offset"'),
        ("sum by (a) (m", "end of input"),
        ("sum_over_time(m)", r'"\)"'),
        ("sum_over_time(m[5])", '"5"'),
        ('m{a=~"("}', "no regular expression"),
        ("m{a=1}", '"a=1"'),
        ("", "end of input"),
        ("(m)", r'"\("'),
    ],
)
def test_anything_else_is_refused_by_name(query: str, named: str) -> None:
    """The 400 for an unsupported query names the unsupported part."""
    with pytest.raises(SourceRejected, match=named) as caught:
        parse(query)
    assert caught.value.status == 400


def test_durations_are_milliseconds() -> None:
    """Durations are parsed to milliseconds; units may be combined."""
    assert [duration_ms(text) for text in ("5m", "1h30m", "2d", "250ms", "5", "m")] == [
        300_000, 5_400_000, 172_800_000, 250, 0, 0,
    ]  # fmt: skip
