"""Answers that were given, kept while there is room: the same request again costs nothing.

An answer is kept under all that it was made of, so that it never becomes wrong and is never taken away for that.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

#: How many bytes of answers are kept.
ROOM: Final = 32 * 2**20


class AnswerCache:
    """The answers used last, in at most ``room`` bytes. Safe for use by several threads."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, tuple[bytes, dict[str, str]]] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return self._size

    def get(self, key: str) -> tuple[bytes, dict[str, str]] | None:
        """Return the body and the headers that were kept under a key, if they still are."""
        with self._lock:
            found = self._answers.get(key)
            if found is not None:
                self._answers.move_to_end(key)
            return found

    def put(self, key: str, body: bytes, headers: dict[str, str]) -> None:
        """Keep an answer; what was used longest ago makes room. One that would take a quarter of it is not kept."""
        if len(body) > self._room // 4:
            return
        with self._lock:
            if key in self._answers:
                return
            self._answers[key] = (body, headers)
            self._size += len(body)
            while self._size > self._room:
                _, (oldest, _) = self._answers.popitem(last=False)
                self._size -= len(oldest)
