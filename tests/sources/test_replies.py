"""The classification of responses."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from chargeback.errors import SourceRejected, SourceUnavailable
from chargeback.sources.replies import Reply, classify_json, classify_response


def reply(status: int, body: str = "{}", **headers: str) -> Reply:
    """Return a response with these headers (underscores stand for hyphens)."""
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, body.encode())


def test_numbers_are_exact_decimals() -> None:
    """A JSON number keeps all its digits."""
    assert reply(200, '{"a": 0.1000000000000000055}').json() == {"a": Decimal("0.1000000000000000055")}


def test_an_answer_is_parsed_once() -> None:
    """The document is parsed once for both classifying and reading a response."""
    answer = reply(200, '{"a": [1]}')
    assert classify_json(answer) is None
    assert answer.json() is answer.json()


@pytest.mark.parametrize("body", [b'{"a\\ud83d": ["b\\uDE00"]}', b'{"a\xed\xa0\xbd": ["b\xed\xb8\x80"]}'])
def test_half_a_surrogate_pair_is_replaced(body: bytes) -> None:
    """A name with half a surrogate pair can be stored; complete emoji are unchanged."""
    assert Reply(200, {}, body).json() == {"a\ufffd": ["b\ufffd"]}
    assert Reply(200, {}, b'"\\ud83d\\ude00"').json() == "\U0001f600"


@pytest.mark.parametrize(
    "body", ["", '{"data": [', "<html></html>", '{"a": NaN}', '{"a": 1e99999999999999999999}', "[" * 100_000]
)
def test_what_is_no_json_may_be_better_next_time(body: str) -> None:
    """A truncated body, a proxy's page or other non-JSON text is a temporary error."""
    with pytest.raises(SourceUnavailable):
        reply(200, body).json()
    assert isinstance(classify_json(reply(200, body)), SourceUnavailable)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"errors": [{"status": "403", "title": "Forbidden", "detail": "no role"}]}', "HTTP 403: Forbidden: no role"),
        ('{"status": 403, "error": {"code": 403, "message": "no role"}}', "HTTP 403: no role"),
        ('{"error_code": 40301, "message": "no role"}', "HTTP 403: no role"),
        ('{"code": 403, "message": "no role"}', "HTTP 403: no role"),
        ('{"status": "error", "errorType": "bad_data", "error": "no role"}', "HTTP 403: bad_data: no role"),
        ('{"errors": [{"code": "forbidden"}, "odd"]}', "HTTP 403: forbidden; odd"),
        ("no role\r\nhere", "HTTP 403: no role here"),
        ("<html>no role</html>", "HTTP 403"),
        ("", "HTTP 403"),
        ("[1]", "HTTP 403"),
    ],
)
def test_the_providers_words_are_told(body: str, words: str) -> None:
    """Each error shape results in one line with the provider's message; HTML results in none."""
    assert reply(403, body).explanation() == words


def test_words_are_cut() -> None:
    """Long messages of a provider are truncated."""
    assert len(reply(400, "x" * 10_000).explanation()) < 600


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "53"}, 53),
        ({"retry_after": "Fri, 20 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry_after": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0),
        ({"x_ratelimit_reset": "7"}, 7),
        ({"retry_after": "3", "x_ratelimit_reset": "70"}, 3),
        ({"retry_after": "soon", "x_ratelimit_reset": "4"}, 4),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "9" * 400}, None),
        ({}, None),
    ],
)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    """Retry-After takes precedence, in seconds or as a date; X-RateLimit-Reset is in relative seconds."""
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert reply(429, **headers).retry_after(now) == seconds


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"date": "some day"},
        {"date": "Fri, 20 Nov 2026 12:00:00 GMT"},
        {"date": "Thu, 19 Nov 2026 13:00:00 GMT"},
        {"date": "Sat, 21 Nov 2026 11:00:00 GMT"},
        {"date": "Tue, 17 Nov 2026 12:00:00 GMT", "age": "259200"},
    ],
)
def test_a_server_of_the_same_day(headers: dict[str, str]) -> None:
    """Clocks may differ by hours, and a response may lack a time; a cached response has an age."""
    reply(200, **headers).check_clock(datetime(2026, 11, 20, 12, tzinfo=UTC))


@pytest.mark.parametrize("date", ["Wed, 18 Nov 2026 12:00:00 GMT", "Sun, 22 Nov 2026 12:00:00 GMT"])
def test_a_server_of_another_day(date: str) -> None:
    """If the clocks differ by more than a day, the error names both times."""
    with pytest.raises(SourceRejected, match="this machine's 2026-11-20 12:00 UTC: set the clock"):
        reply(200, date=date).check_clock(datetime(2026, 11, 20, 12, tzinfo=UTC))


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_retryable(status: int) -> None:
    """Throttling and server errors are temporary."""
    assert isinstance(classify_response(reply(status)), SourceUnavailable)


@pytest.mark.parametrize("status", [304, 400, 401, 403, 404, 410, 422])
def test_what_was_refused_stays_refused(status: int) -> None:
    """Other statuses are permanent errors that have the status."""
    error = classify_response(reply(status))
    assert isinstance(error, SourceRejected)
    assert error.status == status


def test_success_has_no_error() -> None:
    """A 2xx response with JSON has no error."""
    assert classify_json(reply(200)) is None
