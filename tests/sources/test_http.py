"""The HTTP client: retries, limits, redirects, and cancellable waits."""

from __future__ import annotations

import gzip
import json
import logging
import re
import socket
import struct
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from chargeback.errors import (
    SourceError,
    SourceRejected,
    SourceTooLarge,
    SourceUnavailable,
    SourceUnreachable,
    Stopped,
)
from chargeback.sources.calls import CALLS
from chargeback.sources.credentials import Credentials
from chargeback.sources.http import HttpClient, ResponseBody, next_address
from chargeback.sources.rate_limit import RateLimiter
from chargeback.sources.requests import Call, Limits
from tests.sources.loopback import Answer, Asked, Loopback, Script, each

SECRET = "s3cret-0123456789"
QUICK = Limits(
    attempts=4,
    deadline_seconds=5,
    exchange_seconds=2,
    silence_seconds=1,
    first_backoff_seconds=0.01,
    longest_backoff_seconds=0.05,
    largest_body=100_000,
)


@pytest.fixture
def stop() -> threading.Event:
    """An event that stops the client."""
    return threading.Event()


def client_for(
    server: Loopback, stop: threading.Event, limits: Limits = QUICK, credentials: Credentials | None = None
) -> HttpClient:
    """Return a client of the loopback server."""
    credentials = credentials or Credentials.basic("key", SECRET)
    return HttpClient(server.url, source="test", stop=stop, limits=limits, credentials=credentials)


def ask(script: Script, stop: threading.Event, limits: Limits = QUICK) -> tuple[object, list[Asked]]:
    """Run the client against the script; return its result and the requests."""
    with Loopback(script) as server, client_for(server, stop, limits) as client:
        return client.read_json(Call("/x", {"q": "1"})), server.asked


def refused(script: Script, stop: threading.Event, limits: Limits = QUICK) -> tuple[SourceError, list[Asked]]:
    """Run the client against the script; return the error and the requests."""
    with Loopback(script) as server, client_for(server, stop, limits) as client:
        with pytest.raises(SourceError) as caught:
            client.read_json(Call("/x"))
        return caught.value, server.asked


def test_a_question_and_its_answer(stop: threading.Event) -> None:
    """Parameters and credentials are sent; numbers are exact."""
    answer, asked = ask(each(Answer('{"n": 1.10}')), stop)
    assert answer == {"n": Decimal("1.10")}
    assert asked[0].query == {"q": "1"}
    assert asked[0].headers["Authorization"].startswith("Basic ")


def test_a_form_is_posted(stop: threading.Event) -> None:
    """A call with a form is sent as a form-encoded POST."""
    with Loopback(each(Answer())) as server, client_for(server, stop) as client:
        client.read_json(Call("/x", form={"query": "a+b &c"}))
        assert (server.asked[0].method, server.asked[0].form) == ("POST", {"query": "a+b &c"})


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_asked_again(stop: threading.Event, status: int) -> None:
    """Throttling and server errors are retried."""
    answer, asked = ask(each(Answer(status=status), Answer(status=status), Answer('{"ok": true}')), stop)
    assert answer == {"ok": True}
    assert len(asked) == 3


def test_a_body_cut_short_is_asked_again(stop: threading.Event) -> None:
    """Truncated responses, truncated JSON and a proxy's page are retried."""
    script = each(Answer("{}", promise=10), Answer('{"a": ['), Answer("<html>"), Answer('{"ok": true}'))
    assert ask(script, stop)[0] == {"ok": True}


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_final(stop: threading.Event, status: int) -> None:
    """Other client errors are not retried; the error has the address, the status and the provider's message."""
    body = json.dumps({"errors": [{"title": "No", "detail": "you may not"}]})
    with Loopback(each(Answer(body, status=status))) as server, client_for(server, stop) as client:
        with pytest.raises(SourceRejected) as caught:
            client.read_json(Call("/x", {"q": "private"}))
        assert caught.value.status == status
        assert str(caught.value) == f"GET {server.url}/x: HTTP {status}: No: you may not (source test)"
        assert len(server.asked) == 1


def test_attempts_are_limited(stop: threading.Event) -> None:
    """After the maximum number of attempts, the client fails."""
    error, asked = refused(each(Answer(status=500)), stop)
    assert isinstance(error, SourceUnavailable)
    assert error.retryable
    assert len(asked) == QUICK.attempts


def test_nobody_listens(stop: threading.Event) -> None:
    """A refused connection is an error with the address, without retries."""
    with Loopback(each(Answer())) as server:
        client = client_for(server, stop)
    with client:
        with pytest.raises(SourceUnreachable, match=f"^GET {server.url}/x: no connection: ") as first:
            client.read_json(Call("/x"))
        attempts = CALLS.read()
        with pytest.raises(SourceUnreachable) as second:
            client.read_json(Call("/y"))
        assert (str(second.value), CALLS.read()) == (str(first.value), attempts)


@pytest.mark.parametrize("linger", [None, 0], ids=["closed", "reset"])
@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]
)
def test_a_connection_that_breaks_has_one_text(stop: threading.Event, sent: bytes, linger: int | None) -> None:
    """The error is the same for every kind of broken connection, so that the days that it affects have one cause."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def _break_connections() -> None:
            with suppress(OSError):  # the listener is closed at the end of the test
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(65536)
                        connection.sendall(sent)
                        if linger is not None:
                            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, linger))

        threading.Thread(target=_break_connections, daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        broken = "the connection broke before the response was complete"
        with (
            HttpClient(address, source="test", stop=stop, limits=QUICK) as client,
            pytest.raises(SourceUnavailable, match=broken),
        ):
            client.read_json(Call("/x"))
        listener.shutdown(socket.SHUT_RDWR)


def test_refused_credentials_are_not_tried_again(stop: threading.Event) -> None:
    """If the first response is 401, every other call fails with the same error without sending a request."""
    with Loopback(each(Answer(status=401))) as server, client_for(server, stop) as client:
        for path in ("/x", "/y"):
            with pytest.raises(SourceRejected, match=f"GET {server.url}/x: HTTP 401"):
                client.read_json(Call(path))
        assert len(server.asked) == 1


@pytest.mark.parametrize("answers", [(Answer(), Answer(status=401)), (Answer(status=403), Answer(status=404))])
def test_one_refusal_among_others_stops_nothing(stop: threading.Event, answers: tuple[Answer, ...]) -> None:
    """After a success, a 401 does not affect other calls; neither do other client errors."""
    with Loopback(each(*answers, Answer('{"ok": true}'))) as server, client_for(server, stop) as client:
        for _ in answers:
            with suppress(SourceRejected):
                client.read_json(Call("/x"))
        assert client.read_json(Call("/y")) == {"ok": True}


def test_throttling_outlives_the_attempts_but_not_the_deadline(stop: threading.Event) -> None:
    """Any number of 429s is retried until the deadline."""
    limits = Limits(attempts=2, deadline_seconds=1, first_backoff_seconds=0.02, longest_backoff_seconds=0.05)
    error, asked = refused(each(Answer(status=429)), stop, limits)
    assert isinstance(error, SourceUnavailable)
    assert len(asked) > limits.attempts


def test_retry_after_is_honoured(stop: threading.Event) -> None:
    """The client waits at least as long as Retry-After says."""
    started = time.monotonic()
    ask(each(Answer(status=429, headers={"Retry-After": "1"}), Answer()), stop)
    assert time.monotonic() - started >= 1


def test_a_wait_past_the_deadline_is_not_begun(stop: threading.Event) -> None:
    """If Retry-After exceeds the deadline, the client fails at once."""
    started = time.monotonic()
    error, _ = refused(each(Answer(status=429, headers={"Retry-After": "3600"})), stop)
    assert isinstance(error, SourceUnavailable)
    assert time.monotonic() - started < 3


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=429, headers={"Retry-After": "300"}),
        Answer(hold=60),
        Answer('{"a": "' + "x" * 1000 + '"}', pieces=1000, pause=0.05),
    ],
    ids=["retry-after", "silence", "slow drip"],
)
def test_stop_ends_every_wait(stop: threading.Event, answer: Answer) -> None:
    """A stop ends every wait of the client soon."""
    patient = Limits(deadline_seconds=600, exchange_seconds=600, silence_seconds=600)
    with Loopback(each(answer)) as server, client_for(server, stop, patient) as client:
        timer = threading.Timer(0.3, stop.set)
        timer.start()
        started = time.monotonic()
        with pytest.raises(Stopped):
            client.read_json(Call("/x"))
        assert time.monotonic() - started < 5
        timer.join()


def test_nothing_is_sent_when_told_to_stop(stop: threading.Event) -> None:
    """After a stop, the client sends no requests."""
    stop.set()
    with Loopback(each(Answer())) as server, client_for(server, stop) as client:
        with pytest.raises(Stopped):
            client.read_json(Call("/x"))
        assert not server.asked


def test_a_slow_drip_is_cut_off(stop: threading.Event) -> None:
    """A response that arrives byte by byte is cancelled at its time limit."""
    limits = Limits(attempts=1, deadline_seconds=1, exchange_seconds=0.5)
    started = time.monotonic()
    error, _ = refused(each(Answer('"' + "x" * 1000 + '"', pieces=1000, pause=0.05)), stop, limits)
    assert isinstance(error, SourceUnavailable)
    assert time.monotonic() - started < 10


def test_a_body_beyond_the_limit_is_not_read(stop: threading.Event) -> None:
    """A response that exceeds the limit is an error and is not kept in memory."""
    error, asked = refused(each(Answer('"' + "x" * 200_000 + '"')), stop)
    assert isinstance(error, SourceTooLarge)
    assert len(asked) == 1


def zipped(body: str, **headers: str) -> Answer:
    """Return a response compressed with gzip."""
    return Answer(gzip.compress(body.encode()), headers={"Content-Encoding": "gzip"} | headers)


def test_a_compressed_answer(stop: threading.Event) -> None:
    """The client accepts gzip, and no other compression."""
    answer, asked = ask(each(zipped('{"a": 1}')), stop)
    assert answer == {"a": 1}
    assert asked[0].headers["Accept-Encoding"] == "gzip"


def test_a_few_bytes_that_hold_many_are_refused(stop: threading.Event) -> None:
    """The limit applies to the decompressed size, decompression stops there, and the error has the address."""
    bomb = zipped("[" + "0," * 50_000_000 + "0]")
    tracemalloc.start()
    try:
        error, asked = refused(each(bomb), stop)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(error, SourceTooLarge)
    assert len(asked) == 1
    assert re.search(r"the response of http://127\.0\.0\.1:\d+/x is larger than the limit of 0\.0954 MiB", str(error))
    assert peak < 5_000_000


def test_a_compressed_answer_that_is_cut_short_is_asked_for_again(stop: threading.Event) -> None:
    """A truncated compressed response is retried."""
    whole = zipped('{"a": 1}')
    short = Answer(whole.body[:-9], headers=whole.headers)
    answer, asked = ask(each(short, whole), stop)
    assert (answer, len(asked)) == ({"a": 1}, 2)


def test_redirects_on_the_same_server_keep_the_credentials(stop: threading.Event) -> None:
    """A redirect to the same origin is followed with the Authorization header."""
    answer, asked = ask(each(Answer(status=302, headers={"Location": "/y?z=2"}), Answer('{"ok": 1}')), stop)
    assert answer == {"ok": 1}
    assert (asked[1].path, asked[1].query) == ("/y", {"z": "2"})
    assert asked[1].headers["Authorization"] == asked[0].headers["Authorization"]


def test_redirects_do_not_go_on_for_ever(stop: threading.Event) -> None:
    """A redirect loop is an error."""
    error, asked = refused(each(Answer(status=302, headers={"Location": "/x"})), stop)
    assert isinstance(error, SourceRejected)
    assert len(asked) == 6


def test_credentials_never_reach_another_server(stop: threading.Event) -> None:
    """A redirect to another origin is an error, and nothing is sent there."""
    with Loopback(each(Answer())) as other:
        location = {"Location": f"{other.url}/steal"}
        error, _ = refused(each(Answer(status=307, headers=location)), stop)
        assert isinstance(error, SourceRejected)
        assert other.asked == []


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """All log records of all libraries."""
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "httpx"):
        yield caplog


def test_no_secret_in_logs_errors_and_reprs(stop: threading.Event, everything_logged: pytest.LogCaptureFixture) -> None:
    """No secret appears in logs, errors or reprs, even if a server echoes the Authorization header."""

    def echo(asked: Asked) -> Answer:
        return Answer(f"{'x' * 470} {asked.headers['Authorization']} {SECRET}", status=403 if asked.number else 500)

    with Loopback(echo) as server, client_for(server, stop) as client:
        with pytest.raises(SourceRejected) as caught:
            client.read_json(Call("/x"))
        shown = "".join(
            (everything_logged.text, str(caught.value), repr(caught.value), repr(client), repr(vars(client)))
        )
        token = server.asked[0].headers["Authorization"].removeprefix("Basic ")
    assert server.asked[1].number == 1
    for part in (SECRET[:12], token[:12]):
        assert part not in shown


def test_one_line_per_request_without_its_query(
    stop: threading.Event, everything_logged: pytest.LogCaptureFixture
) -> None:
    """Each request is logged in one debug line with path and status, without the query."""
    with Loopback(each(Answer())) as server, client_for(server, stop) as client:
        client.read_json(Call("/x", {"page_token": "opaque-token"}))
    lines = [record for record in everything_logged.records if record.name == "chargeback.sources.http"]
    assert len(lines) == 1
    assert "/x: 200" in lines[0].getMessage()
    assert "opaque-token" not in lines[0].getMessage()


def test_a_429_holds_back_everybody_who_shares_the_limit(stop: threading.Event, tmp_path: Path) -> None:
    """A 429 to one client delays all clients with the same limit."""
    first, second = (RateLimiter(tmp_path, "org", rate=1000, burst=10) for _ in range(2))
    with Loopback(each(Answer(status=429, headers={"Retry-After": "1"}), Answer())) as server:
        started = time.monotonic()
        with client_for(server, stop) as client:
            thread = threading.Thread(target=client.read_json, args=(Call("/x", limiter=first),))
            thread.start()
            while not server.asked:
                time.sleep(0.01)
            time.sleep(0.2)
            with client_for(server, stop) as other:
                other.read_json(Call("/x", limiter=second))
            assert time.monotonic() - started >= 1
            thread.join()


def test_threads_share_a_client(stop: threading.Event) -> None:
    """Threads can share a client; each gets the response to its own request."""

    def echo(asked: Asked) -> Answer:
        return Answer(json.dumps(asked.query))

    with Loopback(echo) as server, client_for(server, stop) as client:
        found: dict[int, object] = {}

        def work(number: int) -> None:
            found[number] = client.read_json(Call("/x", {"n": str(number)}))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {number: {"n": str(number)} for number in range(12)}


TEXT = b"what the provider says " * 50


def read(sent: bytes, encoding: str, largest: int = 10_000, *, pieces: int = 1) -> bytes:
    """Return a body that arrives in pieces of ``pieces`` bytes."""
    body = ResponseBody(encoding, largest, httpx.URL("http://source/x"))
    for start in range(0, len(sent), pieces):
        body.add(sent[start : start + pieces])
    return body.finish()


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("sent", "encoding"),
    [
        (TEXT, ""),
        (TEXT, "identity"),
        (gzip.compress(TEXT, mtime=0), "gzip"),
        (gzip.compress(TEXT, mtime=0), "X-GZIP"),
        (zlib.compress(TEXT), "deflate"),
        (gzip.compress(TEXT[:100], mtime=0) + gzip.compress(TEXT[100:], mtime=0), "gzip"),
    ],
)
def test_what_was_sent_arrives(sent: bytes, encoding: str, pieces: int) -> None:
    """The body is the same for every compression and every size of pieces."""
    assert read(sent, encoding, pieces=pieces) == TEXT


@pytest.mark.parametrize(("sent", "encoding"), [(TEXT, ""), (gzip.compress(TEXT, mtime=0), "gzip")])
def test_the_limit_is_exact(sent: bytes, encoding: str) -> None:
    """A body may be exactly as long as the limit, and no longer."""
    assert read(sent, encoding, len(TEXT)) == TEXT
    with pytest.raises(SourceTooLarge, match="the response of http://source/x is larger than"):
        read(sent, encoding, len(TEXT) - 1)


@pytest.mark.parametrize(
    ("sent", "encoding", "reason"),
    [
        (gzip.compress(TEXT, mtime=0)[:-4], "gzip", "is truncated"),
        (gzip.compress(TEXT, mtime=0)[:5], "gzip", "is truncated"),
        (b"no gzip", "gzip", "cannot be decompressed"),
        (TEXT, "br", "an encoding that was not requested: 'br'"),
        (TEXT, "gzip, gzip", "an encoding that was not requested"),
    ],
)
def test_what_cannot_be_read_may_be_better_next_time(sent: bytes, encoding: str, reason: str) -> None:
    """A body that cannot be decoded is a temporary error with the address."""
    with pytest.raises(SourceUnavailable, match=rf"http://source/x.*{reason}"):
        read(sent, encoding)


HERE = "https://api.confluent.cloud/a"


def follow(here: str, location: str | None, *, method: str = "GET", status: int = 307, authorized: bool = True) -> str:
    """Return the next address for a client that trusts confluent.cloud."""
    found = next_address(
        method, status, httpx.URL(here), location, authorized=authorized, trusted_domain="confluent.cloud"
    )
    return str(found)


@pytest.mark.parametrize(
    ("here", "location", "there"),
    [
        (HERE, "/b?x=1", "https://api.confluent.cloud/b?x=1"),
        (HERE, "https://api.confluent.cloud:443/b", "https://api.confluent.cloud/b"),
        (HERE, "https://flink.us-east-1.aws.confluent.cloud/b", "https://flink.us-east-1.aws.confluent.cloud/b"),
        ("http://metrics:9090/a", "https://metrics/a", "https://metrics/a"),
    ],
)
def test_followed_with_credentials(here: str, location: str, there: str) -> None:
    """Redirects to the same origin, to https on the same host, and to the provider's own domain keep the
    credentials."""
    assert follow(here, location) == there


@pytest.mark.parametrize(
    ("here", "location"),
    [
        (HERE, "https://evil.example/b"),
        (HERE, "https://confluent.cloud.evil.example/b"),
        (HERE, "https://evilconfluent.cloud/b"),
        (HERE, "http://api.confluent.cloud/b"),
        (HERE, "https://user:pw@api.confluent.cloud/b"),
        (HERE, "ftp://api.confluent.cloud/b"),
        (HERE, "https://[bad/b"),
        (HERE, None),
        ("https://metrics.corp/a", "https://flink.confluent.cloud/b"),
        ("http://127.0.0.1:1/a", "http://127.0.0.1:2/a"),
    ],
)
def test_not_followed_with_credentials(here: str, location: str | None) -> None:
    """Redirects to another host, without encryption or with an invalid address are errors if there are credentials."""
    with pytest.raises(SourceRejected):
        follow(here, location)


def test_without_credentials_another_host_may_answer() -> None:
    """Without credentials, a GET may be redirected to another host."""
    assert follow("http://a/x", "http://b/x", authorized=False) == "http://b/x"


@pytest.mark.parametrize(("status", "location"), [(302, "/b"), (303, "/b"), (307, "http://other/b")])
def test_a_post_is_repeated_only_where_it_is_meant_for(status: int, location: str) -> None:
    """A POST is redirected only with 307 or 308 on the same origin."""
    with pytest.raises(SourceRejected):
        follow("http://metrics/a", location, method="POST", status=status, authorized=False)
    assert follow("http://metrics/a", "/b", method="POST", status=308) == "http://metrics/b"
