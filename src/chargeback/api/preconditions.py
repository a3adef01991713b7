"""Preconditions: edits name the version that they replace (``If-Match``), so that no change is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header

from chargeback.api.problems import PreconditionFailed, PreconditionRequired, sentence
from chargeback.model.edits import Edited, last_edit_of, present_version

ANY = "*"

_MATCH = "The ETag of the version that the change replaces, as GET returns it; required if there is one."
_NONE_MATCH = "`*`: change only if there is nothing to replace."


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The headers ``If-Match`` and ``If-None-Match`` of a write; None where they are absent."""

    match: str | None
    none_match: str | None

    def check(self, what: str, last: Edited | None) -> None:
        """Check the headers against the last version of ``what``, as "note 3", which may be its removal.

        Raises:
            PreconditionFailed: the present version is not the one that the client named.
            PreconditionRequired: there is a version, but the request names none.
        """
        present = present_version(last)
        faster = sentence(f"{'' if last is None else 'someone else was faster: '}{last_edit_of(what, last)}")
        if self.match is not None:
            if present is None or not _names(self.match, present.etag):
                raise PreconditionFailed(f"{faster} Read it again, and repeat your change.")
        elif present is not None:
            if self.none_match is not None and _names(self.none_match, present.etag):
                raise PreconditionFailed(f"{faster} To replace it, send its ETag as If-Match.")
            raise PreconditionRequired(
                f"Version {present.version} of the {what} exists: send the ETag that GET returns as If-Match, so that "
                "no change is lost."
            )


def _names(header: str, etag: str) -> bool:
    """Return whether a header names the ETag, by the strong comparison."""
    named = [each.strip() for each in header.split(",")]
    return ANY in named or etag in named


async def _preconditions(
    if_match: Annotated[str | None, Header(description=_MATCH)] = None,
    if_none_match: Annotated[str | None, Header(description=_NONE_MATCH)] = None,
) -> Preconditions:
    return Preconditions(if_match, if_none_match)


PreconditionsDep = Annotated[Preconditions, Depends(_preconditions)]
