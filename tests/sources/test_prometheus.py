"""Queries of a real Prometheus, and scripted responses that it never sends."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest
from pydantic import SecretStr

from chargeback.errors import SourceDataError, SourcePartial, SourceRejected, SourceTooLarge, SourceUnavailable
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from chargeback.sources.requests import Limits
from tests.sources.loopback import Answer, Loopback, each
from tests.support.prometheus import PASSWORD, USER, RealPrometheus

DAY = datetime(2026, 11, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
QUICK = Limits(attempts=2, deadline_seconds=10, first_backoff_seconds=0.01, longest_backoff_seconds=0.02)


def openmetrics() -> Iterator[str]:
    """Yield two series of an hour, and one with values that are not finite numbers."""
    start = int(DAY.timestamp())
    yield "# TYPE load gauge\n"
    for name in ("a", "b"):
        for minute in range(60):
            yield f'load{{topic="{name}"}} {minute + 0.1} {start + 60 * minute}\n'
    yield "# TYPE odd gauge\n"
    for name, value in (("nan", "NaN"), ("inf", "+Inf")):
        yield f'odd{{topic="{name}"}} {value} {start}\n'
    yield "# EOF\n"


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealPrometheus]:
    """A server with a password and a low limit of samples."""
    arguments = ("--query.max-samples=500",)
    with RealPrometheus(openmetrics(), basic_auth=True, arguments=arguments) as server:
        yield server


def basic(url: str, password: str = PASSWORD) -> MetricsSettings:
    """Return settings with the user of the test server."""
    return MetricsSettings(url=url, auth_type="basic", username=USER, password=SecretStr(password))


@pytest.fixture
def client(prometheus: RealPrometheus) -> Iterator[PrometheusClient]:
    """A client of that server."""
    with PrometheusClient(basic(prometheus.url), stop=Event(), limits=QUICK) as opened:
        yield opened


def scripted(*answers: Answer) -> Loopback:
    """Serve these responses."""
    return Loopback(each(*answers))


def plain(server: Loopback) -> PrometheusClient:
    """Return a client without credentials."""
    return PrometheusClient(MetricsSettings(url=server.url), stop=Event(), limits=QUICK)


def success(kind: str, result: object, **more: object) -> Answer:
    """Return a successful response as of a Prometheus."""
    return Answer(json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more}))


def test_an_instant_keeps_the_text_of_each_value(client: PrometheusClient) -> None:
    """Labels and values are returned unchanged, with all digits."""
    found = client.instant("load", DAY + 5 * MINUTE)
    assert sorted((sample.labels["topic"], sample.value) for sample in found) == [("a", "5.1"), ("b", "5.1")]


def test_a_scalar_is_a_series_without_labels(client: PrometheusClient) -> None:
    """A bare number has no labels."""
    (sample,) = client.instant("1 + 1", DAY)
    assert (sample.labels, sample.value) == ({}, "2")


def test_what_is_no_number_comes_as_text(client: PrometheusClient) -> None:
    """NaN and infinities are returned as they are."""
    assert {sample.value for sample in client.instant("odd", DAY)} == {"NaN", "+Inf"}


def test_a_range_has_both_ends(client: PrometheusClient) -> None:
    """Start and end are inclusive; points are ordered by time."""
    (series,) = client.range('load{topic="a"}', DAY, DAY + 3 * MINUTE, MINUTE)
    assert series.points == tuple((DAY + n * MINUTE, f"{n}.1") for n in range(4))


def test_a_wrong_query_is_refused_for_good(client: PrometheusClient) -> None:
    """Invalid PromQL is a permanent error with the reason."""
    with pytest.raises(SourceRejected, match="parse error"):
        client.instant("load{", DAY)


def test_an_impossible_query_is_refused_for_good(client: PrometheusClient) -> None:
    """A query that cannot be executed (422) is a permanent error, not one of size."""
    with pytest.raises(SourceRejected, match="many-to-many"):
        client.instant("load + on() load", DAY + MINUTE)


def test_too_many_samples_is_too_large(client: PrometheusClient) -> None:
    """Exceeding the limit of samples is an error of size."""
    with pytest.raises(SourceTooLarge, match="too many samples"):
        client.range("load", DAY, DAY + timedelta(hours=1), timedelta(seconds=5))


def test_too_many_points_is_too_large(client: PrometheusClient) -> None:
    """Exceeding the limit of points is an error of size."""
    with pytest.raises(SourceTooLarge, match="maximum resolution"):
        client.range("load", DAY, DAY + timedelta(days=1), timedelta(seconds=1))


@pytest.mark.parametrize("settings", ["wrong", "none"])
def test_the_wrong_password_is_refused(prometheus: RealPrometheus, settings: str) -> None:
    """A wrong password is an error without retries."""
    chosen = basic(prometheus.url, "wrong-password") if settings == "wrong" else MetricsSettings(url=prometheus.url)
    with PrometheusClient(chosen, stop=Event(), limits=QUICK) as client, pytest.raises(SourceRejected) as caught:
        client.instant("load", DAY)
    assert caught.value.status == 401
    assert "wrong-password" not in str(caught.value)


def test_a_bearer_token_is_sent() -> None:
    """The bearer token is sent with a form-encoded POST."""
    with scripted(success("vector", [])) as server:
        settings = MetricsSettings(url=server.url, auth_type="bearer", bearer_token=SecretStr("tok-123"))
        with PrometheusClient(settings, stop=Event()) as client:
            assert client.instant("up", DAY) == []
    assert server.asked[0].headers["Authorization"] == "Bearer tok-123"
    assert server.asked[0].form.items() >= {"query": "up", "time": f"{int(DAY.timestamp())}.000"}.items()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(
            '{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}', status=503
        ),
        Answer(
            '{"status":"error","errorType":"execution","error":"query exceeded the maximum number of chunks limit"}',
            status=422,
        ),
        Answer(
            "the query hit the max number of series limit (limit: 100000 series)", status=422, content_type="text/plain"
        ),
    ],
)
def test_refusals_that_smaller_questions_avoid(answer: Answer) -> None:
    """Time-outs and size limits of Prometheus and compatible servers are errors of size, and not retried."""
    with scripted(answer) as server, plain(server) as client, pytest.raises(SourceTooLarge):
        client.instant("up", DAY)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=500),
        Answer('{"status":"error","errorType":"unavailable","error":"starting"}', status=503),
        Answer("<html>", content_type="text/html"),
        Answer('{"some": "thing"}'),
        Answer("<html>", status=502),
    ],
)
def test_what_may_pass_is_tried_again(answer: Answer) -> None:
    """Server errors, starting servers and proxies' pages are retried; then the source is unavailable."""
    with scripted(answer) as server, plain(server) as client, pytest.raises(SourceUnavailable):
        client.instant("up", DAY)
    assert len(server.asked) == QUICK.attempts


@pytest.mark.parametrize(
    "answer",
    [
        success("matrix", []),
        success("vector", None),
        success("vector", [{"metric": {}, "value": [1, 2]}]),
        success("vector", [{"metric": None, "value": [1, "2"]}]),
        success("vector", [{"metric": {}}]),
        Answer('{"status": "success"}'),
    ],
)
def test_an_answer_of_another_shape_is_not_trusted(answer: Answer) -> None:
    """A response of another shape is an error, not an empty result."""
    with scripted(answer) as server, plain(server) as client, pytest.raises(SourceDataError):
        client.instant("up", DAY)


def test_native_histograms_are_left_out() -> None:
    """Series with only native histograms are ignored."""
    result = [{"metric": {}, "histogram": [1, {}]}, {"metric": {"a": "b"}, "value": [1.5, "7"]}]
    with scripted(success("vector", result)) as server, plain(server) as client:
        assert [sample.value for sample in client.instant("up", DAY)] == ["7"]


def test_a_remark_on_the_query_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A warning or info about a query is logged only once."""
    remark = 'PromQL warning: encountered a mix of histograms and floats for metric name "up"'
    answer = success("vector", [], warnings=[remark])
    with caplog.at_level(logging.WARNING), scripted(answer) as server, plain(server) as client:
        client.instant("up", DAY)
        client.instant("up", DAY)
    assert [record.getMessage() for record in caplog.records] == [f"the metrics source warns: {remark}"]


@pytest.mark.parametrize(
    "more",
    [
        {"warnings": ["No StoreAPIs matched for this query"]},
        {"warnings": ["PromQL info: fine", "receive series from store 10.0.0.7:10901: context deadline exceeded"]},
        {"warnings": "remote storage resp not ok: 503"},
        {"isPartial": True},
    ],
)
def test_an_answer_that_says_it_is_partial_is_none(more: dict[str, object]) -> None:
    """A response that is marked as incomplete is a temporary error."""
    with scripted(success("vector", [], **more)) as server, plain(server) as client:
        with pytest.raises(SourcePartial, match="the answer is incomplete") as refused:
            client.instant("up", DAY)
        assert len(server.asked) == 1
    assert refused.value.retryable


def test_servers_are_asked_for_whole_answers(client: PrometheusClient) -> None:
    """Requests ask Thanos and VictoriaMetrics not to return partial responses; Prometheus ignores the parameters."""
    with scripted(success("vector", [])) as server, plain(server) as other:
        other.instant("up", DAY)
    assert server.asked[0].form["partial_response"] == "false"
    assert server.asked[0].form["deny_partial_response"] == "1"
    assert client.instant("vector(1)", DAY)[0].value == "1"
