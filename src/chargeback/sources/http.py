"""The HTTP client: time limits, retries, shared rate limits, and waits that can be stopped.

A few kilobytes of gzip can decompress to gigabytes, so bodies are decompressed as they arrive and never beyond their
limit. Redirects never send credentials to another host than intended.
"""

from __future__ import annotations

import copy
import logging
import os
import random
import ssl
import time
import zlib
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, Self, TypeVar

import httpx
import tenacity

from chargeback import __version__
from chargeback.errors import (
    SourceError,
    SourceRejected,
    SourceTooLarge,
    SourceUnavailable,
    SourceUnreachable,
    Stopped,
)
from chargeback.sources.calls import CALLS, NO_ANSWER
from chargeback.sources.credentials import Credentials
from chargeback.sources.replies import Reply
from chargeback.sources.requests import WRONG_CREDENTIALS, Call, Limits

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEPING_METHOD = frozenset({307, 308})

#: The accepted encodings; others are refused.
ACCEPTED: Final = "gzip"

_MEBIBYTE: Final = 1024 * 1024
#: Makes zlib accept both its own header and that of gzip.
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS

logger = logging.getLogger(__name__)

#: httpx's message if the server closed the connection in an orderly way.
_CUT_OFF = ("Server disconnected", "peer closed connection")
_UNREACHABLE = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)
_POLL_SECONDS = 0.1
_MAX_REDIRECTS = 5
_T = TypeVar("_T")


def next_address(
    method: str, status: int, here: httpx.URL, location: str | None, *, authorized: bool, trusted_domain: str | None
) -> httpx.URL:
    """Return the next address.

    A redirect is followed on the same origin, and from ``http`` to ``https`` on the same host. Without credentials
    (``authorized`` is false), a GET may be redirected to any host with the same scheme. With credentials, another host
    is only allowed over https, and if both hosts are in ``trusted_domain``. A POST is only repeated if the status
    demands it.

    Raises:
        SourceRejected: the redirect must not be followed; the message names its host.
    """
    try:
        there = here.join(location or "")
    except (httpx.InvalidURL, ValueError):
        raise SourceRejected(f"HTTP {status}: redirected to an invalid address", status=status) from None
    if not location or there.scheme not in {"http", "https"} or there.userinfo:
        raise SourceRejected(f"HTTP {status}: redirected without a valid address", status=status)
    if method != "GET" and status not in _KEEPING_METHOD:
        raise SourceRejected(f"HTTP {status}: redirected to {_origin(there)}; configure that address", status=status)
    upgraded = here.scheme == "http" and there.scheme == "https" and here.host == there.host
    if _origin(here) == _origin(there) or upgraded:
        return there
    if here.scheme != there.scheme:
        raise SourceRejected(f"HTTP {status}: redirected from {here.scheme} to {_origin(there)}", status=status)
    if not authorized and method == "GET":
        return there
    if authorized and there.scheme == "https" and trusted_domain and _within(here, there, domain=trusted_domain):
        return there
    raise SourceRejected(
        f"HTTP {status}: redirected to {_origin(there)}, to which this request must not be sent", status=status
    )


def _within(*addresses: httpx.URL, domain: str) -> bool:
    return all(address.host == domain or address.host.endswith(f".{domain}") for address in addresses)


def _origin(address: httpx.URL) -> str:
    port = address.port or {"http": 80, "https": 443}.get(address.scheme)
    return f"{address.scheme}://{address.host}:{port}"


class ResponseBody:
    """The part of a response body that has arrived.

    ``encoding`` is the response's ``Content-Encoding``; ``largest`` is the limit in bytes, once decompressed;
    ``address`` names the source in errors, without its query.

    Raises:
        SourceUnavailable: the encoding is not an accepted one.
    """

    def __init__(self, encoding: str, largest: int, address: httpx.URL) -> None:
        self._largest = largest
        self._url = address
        self._content = bytearray()
        names = [name for each in encoding.split(",") if (name := each.strip().lower()) not in {"", "identity"}]
        if len(names) > 1 or set(names) - {"gzip", "x-gzip", "deflate"}:
            raise SourceUnavailable(
                f"{self._address} responded in an encoding that was not requested: {encoding[:60]!r}"
            )
        self._is_compressed = bool(names)
        self._stream: Any = None

    @property
    def _address(self) -> str:
        return str(self._url.copy_with(query=None))

    def add(self, chunk: bytes) -> None:
        """Add data that has arrived.

        Raises:
            SourceTooLarge: the body is larger than the limit.
            SourceUnavailable: it is not compressed with its encoding.
        """
        if not self._is_compressed:
            self._append(chunk)
            return
        while chunk:
            if self._stream is None:
                self._stream = zlib.decompressobj(_ANY_HEADER)
            try:
                # One byte beyond the limit distinguishes a body that is too large from one that just fits.
                self._append(self._stream.decompress(chunk, self._largest - len(self._content) + 1))
            except zlib.error:
                raise SourceUnavailable(f"the response of {self._address} cannot be decompressed") from None
            if self._stream.eof:  # another member may follow
                chunk, self._stream = self._stream.unused_data, None
            else:
                chunk = self._stream.unconsumed_tail

    def _append(self, content: bytes) -> None:
        if len(self._content) + len(content) > self._largest:
            limit = f"{self._largest / _MEBIBYTE:.3g} MiB"
            raise SourceTooLarge(f"the response of {self._address} is larger than the limit of {limit}")
        self._content += content

    def finish(self) -> bytes:
        """Return the whole body.

        Raises:
            SourceUnavailable: it is incomplete.
        """
        if self._stream is not None:
            raise SourceUnavailable(f"the response of {self._address} is truncated")
        return bytes(self._content)


# These log each request at INFO, with its query.
for _noisy in ("httpx", "httpcore"):
    logging.getLogger(_noisy).setLevel(logging.WARNING)


class RetryableError(Exception):
    """An attempt that failed but may be retried; ``delay`` is the wait that the server requested."""

    def __init__(self, error: SourceError, *, delay: float | None = None, throttled: bool = False) -> None:
        super().__init__()
        self.error = error
        self.delay = delay
        self.throttled = throttled


def _authorities() -> ssl.SSLContext:
    """Return whom TLS connections trust: the file or folder that the environment names, else the public authorities.

    Reading them takes tens of milliseconds, and each run of each tenant has several clients: they are read again only
    when another file is named, or the file was replaced.
    """
    named = os.environ.get("SSL_CERT_FILE")
    written = Path(named).stat().st_mtime_ns if named else None
    return _read_authorities(named, written, os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=1)
def _read_authorities(*_named: str | int | None) -> ssl.SSLContext:
    return httpx.create_ssl_context()


class HttpClient:
    """Sends requests to one server, at a base address, for one tenant. May be used from several threads.

    ``source`` names the server in errors. ``trusted_domain``: see :func:`.redirects.next_address`.
    TLS certificates are verified; proxies are taken from the environment (``HTTPS_PROXY``, ``NO_PROXY``).

    A client gives up if no connection is possible in all attempts of a call, or if the credentials are refused (401)
    before any request has succeeded: every later call fails at once with the same error, which is kept in ``given_up``.
    A new client tries again.
    """

    def __init__(
        self,
        base_url: str,
        *,
        source: str,
        stop: Event,
        credentials: Credentials | None = None,
        limits: Limits | None = None,
        trusted_domain: str | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.source = source
        self.given_up: SourceError | None = None
        self._has_succeeded = False
        self._stop = stop
        self._credentials = credentials
        self._limits = limits or Limits()
        self._trusted_domain = trusted_domain
        headers = {"Accept": "application/json", "Accept-Encoding": ACCEPTED, "User-Agent": f"chargeback/{__version__}"}
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(self._limits.silence_seconds, connect=self._limits.connect_seconds),
            limits=httpx.Limits(max_connections=self._limits.connections),
            verify=_authorities(),
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"HttpClient({self.base_url!r})"

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def read_json(self, call: Call) -> Any:
        """Return the JSON of the response, with exact decimals.

        Raises:
            SourceUnavailable: no valid response within the limits.
            SourceRejected: the server refused the request.
            SourceTooLarge: the response is larger than the limit.
            Stopped: ``stop`` was set meanwhile.
        """
        return self.send(call).json()

    def send(self, call: Call) -> Reply:
        """Return the first response that the call's classifier accepts; errors as for :meth:`read_json`."""
        if self.given_up is not None:
            raise copy.copy(self.given_up)
        deadline = time.monotonic() + self._limits.deadline_seconds
        trying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(RetryableError),
            wait=self._backoff,
            stop=lambda state: self._is_over(state, deadline),
            before_sleep=lambda state: self._log_retry(call, state),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            reply = trying(self._attempt, call, deadline)
        except RetryableError as last:
            error = last.error
        except SourceError as refused:
            error = refused
        else:
            self._has_succeeded = True
            return reply
        error = self._with_address(error, call)
        if self._is_final(error):
            self.given_up = copy.copy(error)
        raise error from None

    def address_of(self, path: str) -> str:
        """Return the address of ``path`` on this server for messages: without credentials and without a query."""
        return str(httpx.URL(self.base_url + path).copy_with(userinfo=b"", query=None, fragment=None))

    def _is_final(self, error: SourceError) -> bool:
        """Return whether every other request to this server will fail with the same error."""
        if isinstance(error, SourceRejected):
            return error.status == WRONG_CREDENTIALS and not self._has_succeeded
        return isinstance(error, SourceUnreachable)

    def _attempt(self, call: Call, deadline: float) -> Reply:
        self._sleep(0)  # once stopped, nothing is sent
        if call.limiter is not None:
            call.limiter.acquire(self._stop, deadline)
        reply = self._exchange(call, deadline)
        reply.check_clock()
        error = call.classify(reply)
        if error is None:
            return reply
        throttled = reply.status == 429
        delay = reply.retry_after() if reply.status in {429, 503} else None
        if throttled and call.limiter is not None:
            call.limiter.block(delay or self._limits.first_backoff_seconds)
        if error.retryable:
            raise RetryableError(error, delay=delay, throttled=throttled)
        raise error

    def _exchange(self, call: Call, deadline: float) -> Reply:
        """Send one request and return its response; follow redirects."""
        limit = min(deadline, time.monotonic() + self._limits.exchange_seconds)
        address = httpx.URL(self.base_url + call.path, params=dict(call.params) or None)
        for _ in range(_MAX_REDIRECTS + 1):
            started = time.monotonic()
            try:
                reply = self._run_interruptibly(partial(self._transfer, call, address, limit), limit)
            except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, _DeadlineExceededError) as error:
                CALLS.count(self.source, NO_ANSWER)
                kind = SourceUnreachable if isinstance(error, _UNREACHABLE) else SourceUnavailable
                raise RetryableError(kind(_describe(error))) from None
            except SourceUnavailable as error:
                CALLS.count(self.source, NO_ANSWER)
                raise RetryableError(error) from None
            CALLS.count(self.source, str(reply.status))
            elapsed = time.monotonic() - started
            size = len(reply.body)
            logger.debug(
                "%s %s%s: %s, %s bytes, %.3f s", call.method, address.host, call.path, reply.status, size, elapsed
            )
            if reply.status not in REDIRECTS:
                return reply
            address = next_address(
                call.method,
                reply.status,
                address,
                reply.headers.get("location"),
                authorized=self._credentials is not None,
                trusted_domain=self._trusted_domain,
            )
        raise SourceRejected(f"more than {_MAX_REDIRECTS} redirects", status=reply.status)

    def _transfer(self, call: Call, address: httpx.URL, limit: float) -> Reply:
        headers = {"Authorization": self._credentials.header} if self._credentials else {}
        form = dict(call.form) if call.form is not None else None
        with self._client.stream(call.method, address, headers=headers, data=form) as answer:
            encoding = answer.headers.get("content-encoding", "")
            arriving = ResponseBody(encoding, self._limits.largest_body, address)
            for chunk in answer.iter_raw():
                arriving.add(chunk)
                if time.monotonic() > limit or self._stop.is_set():
                    raise _DeadlineExceededError("the response took too long to arrive")
            body = arriving.finish()
            names = {name.lower(): value for name, value in answer.headers.items()}
            if answer.is_error:
                # Errors must not quote our secrets, whole or in part.
                body = self._redact(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            return Reply(answer.status_code, names, body)

    def _run_interruptibly(self, work: Callable[[], _T], limit: float) -> _T:
        """Return the result of ``work``, which waits for the network; give up when ``stop`` is set or at ``limit``.

        A blocking read cannot be interrupted, so it runs in a thread that is abandoned: it ends by its own timeouts,
        and does not keep the process alive.
        """
        done, outcome = Event(), _ThreadResult()
        Thread(target=outcome.run, args=(work, done), name=f"{self.source}-request", daemon=True).start()
        while not done.wait(_POLL_SECONDS):
            if self._stop.is_set():
                raise Stopped("stopped while waiting for a response", source=self.source)
            if time.monotonic() > limit:
                raise _DeadlineExceededError("the response took too long")
        if self._stop.is_set():
            raise Stopped("stopped while waiting for a response", source=self.source)
        if outcome.error is not None:
            raise outcome.error
        result: _T = outcome.value
        return result

    def _backoff(self, state: tenacity.RetryCallState) -> float:
        """Return the wait: full jitter below a capped exponential. If the server requested a wait, return that and a
        little more, so that clients do not all return at once."""
        limits = self._limits
        ceiling = min(limits.longest_backoff_seconds, limits.first_backoff_seconds * 2.0 ** (state.attempt_number - 1))
        jitter = random.uniform(0, ceiling)  # noqa: S311 - not for secrets
        asked = _retryable_error(state).delay
        return jitter if asked is None else asked + min(jitter, 1.0)

    def _is_over(self, state: tenacity.RetryCallState, deadline: float) -> bool:
        exhausted = not _retryable_error(state).throttled and state.attempt_number >= self._limits.attempts
        return exhausted or time.monotonic() + state.upcoming_sleep > deadline

    def _sleep(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Stopped("stopped before sending the request", source=self.source)

    def _log_retry(self, call: Call, state: tenacity.RetryCallState) -> None:
        retry = _retryable_error(state)
        level = logging.INFO if retry.throttled else logging.DEBUG
        message = self._redact(retry.error.message)
        address = self.address_of(call.path)
        logger.log(level, "%s %s: %s; retrying in %.1f s", self.source, address, message, state.upcoming_sleep)

    def _with_address(self, error: SourceError, call: Call) -> SourceError:
        """Return the error with its address, and without secrets."""
        error.message = self._redact(f"{call.method} {self.address_of(call.path)}: {error.message}")
        error.args = (error.message,)
        error.source = self.source
        return error

    def _redact(self, text: str) -> str:
        return self._credentials.redact(text) if self._credentials else text


class _DeadlineExceededError(Exception):
    """A request took longer than its time limit."""


class _ThreadResult:
    """The result or the error of a function that runs in another thread."""

    value: Any = None
    error: BaseException | None = None

    def run(self, work: Callable[[], Any], done: Event) -> None:
        try:
            self.value = work()
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
            self.error = error
        finally:
            done.set()


def _retryable_error(state: tenacity.RetryCallState) -> RetryableError:
    error = state.outcome.exception() if state.outcome is not None else None
    if not isinstance(error, RetryableError):  # pragma: no cover - tenacity only passes errors that are retried
        raise TypeError("only a retryable attempt has a delay")
    return error


def _describe(error: Exception) -> str:
    """Return the network error as a text that cannot have a header's value."""
    if isinstance(error, httpx.LocalProtocolError):
        return "the request is invalid and cannot be sent"
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection within the timeout"
    if isinstance(error, _UNREACHABLE):
        return f"no connection: {error}" if str(error) else "no connection"
    if isinstance(error, httpx.TimeoutException):
        return "no response within the timeout"
    if isinstance(error, httpx.NetworkError) or str(error).startswith(_CUT_OFF):
        # The class and text of the error depend on the moment of the failure; one text lets days with this cause be
        # reported together.
        return "the connection broke before the response was complete"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
