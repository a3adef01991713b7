"""Random numbers that are the same in every process: derived from text through SHA, never from ``hash()``."""

from __future__ import annotations

import hashlib
import random
import struct

LETTERS = "abcdefghijkmnpqrstuvwxyz0123456789"
KEY_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def stream(*parts: object) -> random.Random:
    """Return a separate generator for ``parts``; equal parts give an equal sequence.

    >>> stream("a", 1).randrange(1000) == stream("a", 1).randrange(1000)
    True
    """
    return random.Random(int.from_bytes(_digest(*parts)[:8], "big"))  # noqa: S311 (no secret is made of it)


def numbers(count: int, *parts: object) -> tuple[int, ...]:
    """Return ``count`` integers of 32 bits at once, which is much cheaper than a generator for each."""
    return struct.unpack(f">{count}I", hashlib.shake_128(_text(*parts)).digest(4 * count))


def token(length: int, *parts: object) -> str:
    """Return a hexadecimal text of ``length`` ≤ 64 characters."""
    return _digest(*parts).hex()[:length]


class IdMaker:
    """Generates unique ids in the provider's format (``sa-8k2m4q``)."""

    def __init__(self, *parts: object) -> None:
        self._random = stream("ids", *parts)
        self._given: set[str] = set()

    def make(self, prefix: str, length: int = 6, letters: str = LETTERS) -> str:
        """Return a new id with ``prefix``."""
        while True:
            new_id = prefix + "".join(self._random.choice(letters) for _ in range(length))
            if new_id not in self._given:
                self._given.add(new_id)
                return new_id


def _text(*parts: object) -> bytes:
    return "|".join(str(part) for part in parts).encode()


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(_text(*parts)).digest()
