"""A cancelled token interrupts what runs and lets nothing begin."""

from __future__ import annotations

import pytest

from chargeback.errors import QueryTimeout
from chargeback.store.queries.engine import CancellationToken


def test_what_runs_is_interrupted_and_nothing_else() -> None:
    """Every interrupt is called while its block lasts, and not after it."""
    token, calls = CancellationToken(), []
    with token.interruptible(lambda: calls.append("outer")):
        with token.interruptible(lambda: calls.append("inner")):
            pass
        token.cancel()
    token.cancel()
    assert calls == ["outer"]
    assert token.cancelled


def test_nothing_begins_after_it() -> None:
    """A cancelled token lets neither a check nor a block pass."""
    token = CancellationToken()
    token.check()
    token.cancel()
    with pytest.raises(QueryTimeout):
        token.check()
    with pytest.raises(QueryTimeout), token.interruptible(lambda: None):
        pytest.fail("it must not begin")


def test_a_token_expires_or_commits() -> None:
    """What has expired cannot be committed; what is being committed does not expire, and may be committed in parts."""
    expired, committed = CancellationToken(), CancellationToken()
    assert expired.expire()
    with pytest.raises(QueryTimeout):
        expired.begin_commit()
    committed.begin_commit()
    assert not committed.expire()
    committed.begin_commit()
    assert not committed.cancelled
