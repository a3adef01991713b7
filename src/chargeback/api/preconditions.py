"""Edits that say which version they replace (``If-Match``), so that no change is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header

from chargeback.api.problems import PreconditionFailed, PreconditionRequired

ANY = "*"

_MATCH = "The ETag of what the change replaces, as GET returns it; it is needed where there is something to replace."
_NONE_MATCH = "`*`: only if there is nothing to replace."


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The headers ``If-Match`` and ``If-None-Match`` of a write; None where they are absent."""

    match: str | None
    none_match: str | None

    def check(self, present: str | None, *, what: str, faster: str) -> None:
        """Check them against the ETag of what is there, None if nothing is. ``what`` names it, and ``faster`` is a
        sentence that says who made it so.

        Raises:
            PreconditionFailed: something else is there than the editor saw.
            PreconditionRequired: something is there, and the request does not say that it knows.
        """
        if self.match is not None:
            if present is None or not _names(self.match, present):
                raise PreconditionFailed(f"{faster} Read it again, and repeat your change.")
        elif present is not None:
            if self.none_match is not None and _names(self.none_match, present):
                raise PreconditionFailed(f"{faster} To replace it, send its ETag as If-Match.")
            raise PreconditionRequired(
                f"{what} is there: send the ETag that GET returns as If-Match, so that no change is lost."
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
