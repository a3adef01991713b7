"""Answers are kept while there is room."""

from __future__ import annotations

from chargeback.api.executor import AnswerCache


def test_what_was_used_longest_ago_makes_room() -> None:
    """Reading an answer keeps it young; the size is never beyond the room."""
    cache = AnswerCache(room=100)
    for name in ("a", "b", "c", "d"):
        cache.put(name, bytes(25), {"name": name})
    assert cache.get("a") == (bytes(25), {"name": "a"})
    cache.put("e", bytes(20), {})
    assert cache.get("b") is None
    assert [cache.get(name) is None for name in "acde"] == [False] * 4
    assert cache.size == 95


def test_an_answer_is_kept_once() -> None:
    """Two requests that made the same at the same time take room once."""
    cache = AnswerCache(room=100)
    cache.put("a", bytes(25), {})
    cache.put("a", bytes(25), {})
    assert cache.size == 25


def test_what_is_too_large_is_not_kept() -> None:
    """One answer does not drive out all others."""
    cache = AnswerCache(room=100)
    cache.put("a", bytes(26), {})
    assert cache.get("a") is None
    assert cache.size == 0
