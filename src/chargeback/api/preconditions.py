"""Preconditions: edits name the version that they replace (``If-Match``), so that no change is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header

from chargeback.api.problems import PreconditionFailed, PreconditionRequired

ANY = "*"

_MATCH = "The ETag of the version that the change replaces, as GET returns it; required if there is one."
_NONE_MATCH = "`*`: change only if there is nothing to replace."


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The headers ``If-Match`` and ``If-None-Match`` of a write; None where they are absent."""

    match: str | None
    none_match: str | None

    def check(self, present: str | None, *, what: str, faster: str) -> None:
        """Check the headers against the ETag of the present version, None if there is none. ``what`` names the object,
        and ``faster`` is a sentence about who changed it last.

        Raises:
            PreconditionFailed: the present version is not the one that the client named.
            PreconditionRequired: there is a version, but the request names none.
        """
        if self.match is not None:
            if present is None or not _names(self.match, present):
                raise PreconditionFailed(f"{faster} Read it again, and repeat your change.")
        elif present is not None:
            if self.none_match is not None and _names(self.none_match, present):
                raise PreconditionFailed(f"{faster} To replace it, send its ETag as If-Match.")
            raise PreconditionRequired(
                f"{what} exists: send the ETag that GET returns as If-Match, so that no change is lost."
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
