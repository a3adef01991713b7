"""Changes name the version that they replace."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from chargeback.api.preconditions import Preconditions
from chargeback.api.problems import PreconditionFailed, PreconditionRequired


@dataclass(frozen=True)
class One:
    """A version of an object."""

    etag: str
    version: int = 3
    last_edit: str = "ann changed it"

    @property
    def is_removal(self) -> bool:
        """Return whether this is a removal."""
        return self.etag == "gone"


def check(match: str | None, none_match: str | None, last: str | None) -> None:
    """Check the headers against the ETag of the last version."""
    Preconditions(match, none_match).check("note 7", None if last is None else One(last))


@pytest.mark.parametrize(
    ("match", "none_match", "present"),
    [
        (None, None, None),
        (None, "*", None),
        (None, '"1"', None),
        (None, None, "gone"),
        ('"1"', None, '"1"'),
        ("*", None, '"1"'),
        ('"0", "1"', '"2"', '"1"'),
    ],
)
def test_what_passes(match: str | None, none_match: str | None, present: str | None) -> None:
    """The headers match the present version, or there is none."""
    check(match, none_match, present)


@pytest.mark.parametrize(
    ("match", "none_match", "present", "message"),
    [
        ('"0"', None, '"1"', "Someone else was faster: ann changed it. Read it again, and repeat your change."),
        ('W/"1"', None, '"1"', "Someone else was faster: ann changed it. Read it again, and repeat your change."),
        ("", None, '"1"', "Someone else was faster: ann changed it. Read it again, and repeat your change."),
        ("*", None, None, "There is no note 7. Read it again, and repeat your change."),
        ("*", None, "gone", "Someone else was faster: ann changed it. Read it again, and repeat your change."),
        (None, "*", '"1"', "Someone else was faster: ann changed it. To replace it, send its ETag as If-Match."),
        (None, '"1"', '"1"', "Someone else was faster: ann changed it. To replace it, send its ETag as If-Match."),
    ],
)
def test_someone_was_faster(match: str | None, none_match: str | None, present: str | None, message: str) -> None:
    """A 412 says that the version is another one or gone; weak ETags match none."""
    with pytest.raises(PreconditionFailed) as error:
        check(match, none_match, present)
    assert str(error.value) == message


@pytest.mark.parametrize("none_match", [None, '"0"'])
def test_what_must_be_named(none_match: str | None) -> None:
    """A 428 is returned if a version exists and the request names none."""
    with pytest.raises(PreconditionRequired) as error:
        check(None, none_match, '"1"')
    assert str(error.value) == (
        "Version 3 of the note 7 exists: send the ETag that GET returns as If-Match, so that no change is lost."
    )
