"""The keys of an issuer: when they are read again, and what happens while they cannot be read."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chargeback.api.signing_keys import (
    Jwk,
    KeySource,
    KeysUnavailable,
    SigningKeys,
    UnreadableKeys,
    check_keys,
    key_source,
)
from chargeback.config.access import JwtSettings
from chargeback.errors import ConfigurationError
from tests.support.issuer import Issuer
from tests.support.processes import free_port

A, B = Issuer(key_id="a").jwk, Issuer(key_id="b").jwk


class Source:
    """Keys that a test changes, with the number of reads; a read fails while they are None."""

    def __init__(self, *keys: Jwk) -> None:
        self.keys: list[Jwk] | None = list(keys)
        self.reads = 0
        self.now = 0.0

    def read(self) -> list[Jwk]:
        """Return the keys."""
        self.reads += 1
        if self.keys is None:
            raise UnreadableKeys("nobody answers")
        return self.keys

    def kept(self) -> SigningKeys:
        """Return the keys as for an address: read again after ten minutes, or after one for an unknown key."""
        return SigningKeys(KeySource(self.read, lifetime=600, pause=60), lambda: self.now)


def settings(**where: str) -> JwtSettings:
    """Return settings with a source of keys."""
    return JwtSettings.model_validate({"issuer": "x", "audience": "y", **where})


def test_known_keys_are_not_read_again() -> None:
    """Known keys are read again only after their lifetime."""

    async def _scenario() -> None:
        source = Source(A)
        keys = source.kept()
        for source.now in (0, 30, 599):
            assert await keys.find("a") == A
        assert source.reads == 1
        source.now = 600
        assert await keys.find("a") == A
        assert source.reads == 2

    asyncio.run(_scenario())


def test_an_unknown_key_is_looked_for_once_a_minute() -> None:
    """A new key is fetched for its first token; unknown keys cause at most one fetch a minute."""

    async def _scenario() -> None:
        source = Source(A)
        keys = source.kept()
        assert await keys.find("a") == A
        for source.now in (1, 30, 59):
            assert await keys.find("invented") is None
        assert source.reads == 1
        source.keys = [A, B]
        source.now = 60
        assert await keys.find("b") == B
        for source.now in (61, 100, 119):
            assert await keys.find("invented") is None
        assert source.reads == 2

    asyncio.run(_scenario())


def test_a_removed_key_ends_with_the_next_reading() -> None:
    """A removed key is refused after the next read."""

    async def _scenario() -> None:
        source = Source(A, B)
        keys = source.kept()
        assert await keys.find("a") == A
        source.keys, source.now = [B], 600
        assert await keys.find("a") is None
        assert await keys.find("b") == B

    asyncio.run(_scenario())


def test_keys_that_cannot_be_read_again_are_kept_for_a_day(caplog: pytest.LogCaptureFixture) -> None:
    """While an issuer is down, known keys are used for a day at most; the log has the reason."""

    async def _scenario() -> None:
        source = Source(A)
        keys = source.kept()
        await keys.find("a")
        source.keys = None
        for source.now in (600, 601, 605, 86_400):
            assert await keys.find("a") == A
        assert source.reads == 4  # no retry within five seconds
        source.now = 86_401
        with pytest.raises(KeysUnavailable):
            await keys.find("a")
        source.keys, source.now = [A], 86_500
        assert await keys.find("a") == A

    asyncio.run(_scenario())
    assert "cannot be read: nobody answers" in caplog.text


def test_without_any_keys_nobody_is_told_apart() -> None:
    """Without keys a token is neither accepted nor called wrong; reading is retried soon."""

    async def _scenario() -> None:
        source = Source()
        source.keys = None
        keys = source.kept()
        for source.now in (0, 1, 4):
            with pytest.raises(KeysUnavailable):
                await keys.find("a")
        assert source.reads == 1
        source.keys, source.now = [A], 5
        assert await keys.find("a") == A

    asyncio.run(_scenario())


def test_the_only_key_needs_no_name() -> None:
    """A token without a key id is verified with the only key; if there are several, none is chosen."""

    async def _scenario() -> None:
        assert await Source(A).kept().find(None) == A
        assert await Source(A, B).kept().find(None) is None
        assert await Source(A, A | {"x": "another"}).kept().find("a") is None

    asyncio.run(_scenario())


def test_requests_wait_together() -> None:
    """Concurrent requests share one read, and cancelling one of them does not cancel the others."""

    async def _scenario() -> None:
        released = threading.Event()
        source = Source(A)

        def _slow() -> list[Jwk]:
            released.wait(30)
            return source.read()

        keys = SigningKeys(KeySource(_slow, lifetime=600, pause=60))
        first, *others = (asyncio.create_task(keys.find("a")) for _ in range(20))
        await asyncio.sleep(0.05)
        first.cancel()
        await asyncio.sleep(0)
        released.set()
        assert await asyncio.gather(*others) == [A] * 19
        assert source.reads == 1

    asyncio.run(_scenario())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file"),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no list `keys`"),
        ('{"keys": {}}', "has no list `keys`"),
        ('{"keys": []}', "has no public key for signatures"),
        ('{"keys": [7, {"kty": "oct", "k": "c2VjcmV0"}, {"kty": "RSA", "use": "enc"}]}', "has no public key"),
        (" " * (2**20 + 1), "is larger than 1 MiB"),
    ],
)
def test_files_that_are_no_set_of_keys(tmp_path: Path, content: str | None, reason: str) -> None:
    """The message names the file and what is wrong with it, but shows no content."""
    file = tmp_path / "jwks.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigurationError, match=reason) as caught:
        check_keys(settings(jwks_file=str(file)))
    (problem,) = caught.value.problems
    assert problem.path == "access.jwt.jwks_file"
    assert str(file) in problem.message
    assert "c2VjcmV0" not in problem.message


@contextmanager
def served(answers: dict[str, tuple[int, bytes]]) -> Iterator[str]:
    """Serve responses by path; yield the address."""

    class _Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers[self.path]
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_keys_at_an_address() -> None:
    """Keys are fetched from an address with its query; an invalid key set is reported with the address."""
    published = json.dumps({"keys": [A, {"kty": "oct", "k": "c2VjcmV0"}]}).encode()
    answers = {"/keys?tenant=1": (200, published), "/html": (200, b"<html>"), "/gone": (404, b"{}")}
    with served(answers) as address:
        assert key_source(settings(jwks_url=f"{address}/keys?tenant=1")).read() == [A]
        for path in ("html", "gone"):
            with pytest.raises(ConfigurationError, match=f"{address}/{path}"):
                check_keys(settings(jwks_url=f"{address}/{path}"))


def test_an_address_where_nobody_is() -> None:
    """A request waits only a few seconds for a missing server."""
    with pytest.raises(UnreadableKeys, match="no connection"):
        key_source(settings(jwks_url=f"http://127.0.0.1:{free_port()}/keys")).read()
