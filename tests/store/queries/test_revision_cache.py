"""Caches of values by revision."""

from __future__ import annotations

import pytest

from chargeback.store.queries.revision_cache import RevisionCache


def test_a_revision_is_made_once() -> None:
    """Another revision, even an earlier one, replaces the value."""
    cache: RevisionCache[str] = RevisionCache()
    assert cache.get("a", 1, lambda: "first") == "first"
    assert cache.get("a", 1, lambda: "again") == "first"
    assert cache.get("b", 1, lambda: "other") == "other"
    assert cache.get("a", 2, lambda: "second") == "second"
    assert cache.get("a", 1, lambda: "third") == "third"


def test_those_asked_for_last_are_remembered() -> None:
    """Reading an entry makes it the newest."""
    cache: RevisionCache[str] = RevisionCache(most=2)
    for name in ("a", "b", "a", "c"):
        cache.get(name, 1, lambda name=name: name)  # type: ignore[misc]
    assert cache.get("a", 1, lambda: "new") == "a"
    assert cache.get("b", 1, lambda: "new") == "new"


def test_a_failure_is_not_remembered() -> None:
    """After a failure, the next call tries again."""
    cache: RevisionCache[int] = RevisionCache()
    with pytest.raises(ZeroDivisionError):
        cache.get("a", 1, lambda: 1 // 0)
    assert cache.get("a", 1, lambda: 1) == 1
