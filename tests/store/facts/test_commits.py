"""How often a commit is tried."""

from __future__ import annotations

import pytest
from deltalake.exceptions import CommitFailedError

from chargeback.store.facts.commits import LEAST_ATTEMPTS, commit_attempts


@pytest.mark.extensive
def test_a_commit_is_tried_again_however_long_the_first_attempt_took() -> None:
    """The time may be over because the storage was away, which is no sign of other writers."""
    made = 0

    def fail() -> None:
        nonlocal made
        made += 1
        raise CommitFailedError("somebody was first")

    with pytest.raises(CommitFailedError):
        commit_attempts(seconds=0)(fail)
    assert made == LEAST_ATTEMPTS
