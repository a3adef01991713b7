"""Edits name the version that they replace."""

from __future__ import annotations

import pytest

from chargeback.api.preconditions import Preconditions
from chargeback.api.problems import PreconditionFailed, PreconditionRequired


@pytest.mark.parametrize(
    ("match", "none_match", "present"),
    [
        (None, None, None),
        (None, "*", None),
        (None, '"1"', None),
        ('"1"', None, '"1"'),
        ("*", None, '"1"'),
        ('"0", "1"', '"2"', '"1"'),
    ],
)
def test_what_passes(match: str | None, none_match: str | None, present: str | None) -> None:
    """The headers name the present version, or there is none."""
    Preconditions(match, none_match).check(present, what="It", faster="Ann was.")


@pytest.mark.parametrize(
    ("match", "none_match", "present", "message"),
    [
        ('"0"', None, '"1"', "Ann was. Read it again, and repeat your change."),
        ('W/"1"', None, '"1"', "Ann was. Read it again, and repeat your change."),
        ("", None, '"1"', "Ann was. Read it again, and repeat your change."),
        ("*", None, None, "Ann was. Read it again, and repeat your change."),
        (None, "*", '"1"', "Ann was. To replace it, send its ETag as If-Match."),
        (None, '"1"', '"1"', "Ann was. To replace it, send its ETag as If-Match."),
    ],
)
def test_someone_was_faster(match: str | None, none_match: str | None, present: str | None, message: str) -> None:
    """412: something else is there, or nothing. Weak ETags name no version."""
    with pytest.raises(PreconditionFailed) as error:
        Preconditions(match, none_match).check(present, what="It", faster="Ann was.")
    assert str(error.value) == message


@pytest.mark.parametrize("none_match", [None, '"0"'])
def test_what_must_be_named(none_match: str | None) -> None:
    """428: something is there, and the request does not say that it knows."""
    with pytest.raises(PreconditionRequired) as error:
        Preconditions(None, none_match).check('"1"', what="It", faster="Ann was.")
    assert str(error.value) == ("It exists: send the ETag that GET returns as If-Match, so that no change is lost.")
