"""Callers named by a header: the service trusts what a test sends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from starlette.requests import Request

from chargeback.access.caller import Caller, Right, TenantAccess, rights_of
from chargeback.access.scope import RowScope
from chargeback.api.problems import Unauthenticated

HEADER = "X-Caller"


def caller(
    name: str,
    *allowed: Right,
    tenants: Collection[str] = ("acme",),
    scope: Mapping[str, Collection[str]] | None = None,
) -> Caller:
    """Return a caller with rights in some tenants, and perhaps a scope."""
    access = TenantAccess(rights_of(allowed), None if scope is None else RowScope.of(scope), "roles[0]")
    found = dict.fromkeys(tenants, access) if allowed else {}
    return Caller(name, "proxy", (), found.get)


@dataclass(frozen=True)
class Callers:
    """Finds the caller named in a request."""

    known: Mapping[str, Caller]

    @classmethod
    def of(cls, callers: Iterable[Caller]) -> Callers:
        """Set the known callers."""
        return cls({each.name: each for each in callers})

    async def __call__(self, request: Request) -> Caller:
        """Return the caller."""
        found = self.known.get(request.headers.get(HEADER, ""))
        if found is None:
            raise Unauthenticated("Nobody vouches for the sender of this request.")
        return found


def asked_by(name: str) -> dict[str, str]:
    """Return the headers of a caller's request."""
    return {HEADER: name}
