"""The public keys with which an issuer signs its tokens: a JSON Web Key Set (RFC 7517), in a file or at an address.

Keys change while the service runs. A set is read again when it is old, and when a token names a key that is not in it,
but not for every such token. While it cannot be read, the keys that are known are used, for a day.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final
from urllib.parse import parse_qsl

from chargeback.api.problems import ApiError
from chargeback.config.access import JwtSettings
from chargeback.errors import ChargebackError, ConfigProblem, ConfigurationError, SourceError
from chargeback.sources.requests import Call, Limits

log = logging.getLogger(__name__)

#: Short, because a request waits for it; and so that the service stops in time.
_LIMITS: Final = Limits(
    attempts=1, deadline_seconds=3, exchange_seconds=3, silence_seconds=3, connect_seconds=2, largest_body=2**20
)
_MAX_FILE_BYTES: Final = 2**20
#: How long keys are used that cannot be read again, and when to try again, in seconds.
_KEPT_SECONDS: Final = 86_400
_RETRY_SECONDS: Final = 5
_PUBLIC: Final = frozenset({"RSA", "EC", "OKP"})

Jwk = Mapping[str, Any]


class KeysUnavailable(ApiError):
    """The keys of the issuer cannot be read now, so that no token can be checked."""

    status = 503
    kind = "keys-unavailable"


class UnreadableKeys(ChargebackError):
    """A set of keys that cannot be read; the message says why."""


@dataclass(frozen=True)
class KeySource:
    """Where keys are read, after how many seconds they are read again, and the minimum number of seconds before they
    are read again for an unknown key."""

    read: Callable[[], list[Jwk]]
    lifetime: float
    pause: float


def key_source(settings: JwtSettings) -> KeySource:
    """Return where the configured keys are read."""
    if settings.jwks_file is not None:
        file = settings.jwks_file
        return KeySource(lambda: _from_file(file), lifetime=1, pause=1)
    url = settings.jwks_url or ""
    return KeySource(lambda: _from_address(url), lifetime=600, pause=60)


def check_keys(settings: JwtSettings) -> None:
    """Read the keys once.

    Raises:
        ConfigurationError: they cannot be read.
    """
    try:
        key_source(settings).read()
    except UnreadableKeys as error:
        key = "jwks_url" if settings.jwks_file is None else "jwks_file"
        raise ConfigurationError([ConfigProblem(f"access.jwt.{key}", str(error))]) from None


class SigningKeys:
    """The keys of one source, as they are now. Used by the event loop only."""

    def __init__(self, source: KeySource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._keys: Sequence[Jwk] = ()
        self._read_at = self._tried_at = -float("inf")
        self._reading: asyncio.Task[None] | None = None

    async def find(self, key_id: str | None) -> Jwk | None:
        """Return the key with an id, or the only key for a token that names none; None if there is no such key.

        Raises:
            KeysUnavailable: no keys are known.
        """
        age, idle = self._clock() - self._read_at, self._clock() - self._tried_at
        if age >= self._source.lifetime and idle >= min(self._source.lifetime, _RETRY_SECONDS):
            await self._refresh()
        found = self._known(key_id)
        if found is None and self._clock() - self._tried_at >= self._source.pause:
            await self._refresh()
            found = self._known(key_id)
        if self._clock() - self._read_at > _KEPT_SECONDS:
            raise KeysUnavailable("The keys that tokens are verified with cannot be read now; the log has the reason.")
        return found

    def _known(self, key_id: str | None) -> Jwk | None:
        matching = [key for key in self._keys if key_id is None or key.get("kid") == key_id]
        return matching[0] if len(matching) == 1 else None

    async def _refresh(self) -> None:
        """Read the keys again, once for all requests that wait for them, even if one of these is cancelled."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        try:
            keys = await asyncio.to_thread(self._source.read)
        except UnreadableKeys as error:
            log.error("the keys that tokens are verified with cannot be read: %s", error)
        else:
            self._keys, self._read_at = keys, self._clock()
        finally:
            self._tried_at = self._clock()
            self._reading = None


def _from_file(path: Path) -> list[Jwk]:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableKeys(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _MAX_FILE_BYTES:
        raise UnreadableKeys(f"{path} is larger than {_MAX_FILE_BYTES // 2**20} MiB")
    try:
        return _usable(json.loads(content), str(path))
    except (ValueError, RecursionError):
        raise UnreadableKeys(f"{path} is not JSON") from None


def _from_address(url: str) -> list[Jwk]:
    from chargeback.sources.http import HttpClient

    address, _, query = url.partition("?")
    try:
        with HttpClient(address, source="jwks", stop=Event(), limits=_LIMITS) as client:
            return _usable(client.read_json(Call("", dict(parse_qsl(query)))), url)
    except SourceError as error:
        raise UnreadableKeys(error.message) from None


def _usable(document: Any, where: str) -> list[Jwk]:
    """Return the public keys for signatures in a set."""
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise UnreadableKeys(f"{where} is not a set of keys: it has no list `keys`")
    usable: list[Jwk] = [key for key in keys if isinstance(key, dict) and _is_usable(key)]
    if not usable:
        raise UnreadableKeys(f"{where} has no public key for signatures (kty RSA, EC or OKP, use sig)")
    return usable


def _is_usable(key: Jwk) -> bool:
    return key.get("kty") in _PUBLIC and key.get("use", "sig") == "sig"
