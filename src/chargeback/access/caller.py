"""Who sends a request, and what that caller may do with each tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from chargeback.access.scope import RowScope


class Right(StrEnum):
    """One thing that a caller may be allowed to do. ``admin`` is every one of them."""

    READ = "read"
    EXPORT = "export"
    TAG = "tag"
    RUN = "run"
    CLOSE = "close"
    ADMIN = "admin"


ALL_RIGHTS = frozenset(Right)


def rights_of(allowed: Iterable[Right]) -> frozenset[Right]:
    """Return everything that some rights include: ``admin`` all others, and each of them ``read``.

    >>> sorted(rights_of([Right.EXPORT]))
    [<Right.EXPORT: 'export'>, <Right.READ: 'read'>]
    """
    found = frozenset(allowed)
    if Right.ADMIN in found:
        return ALL_RIGHTS
    return found | {Right.READ} if found else found


#: The source of a caller's name.
CallerKind = Literal["anonymous", "proxy", "jwt", "token"]

#: What a caller with a scope gets in place of a reason.
HIDDEN_REASON: Final = "The reason concerns the whole bill and is shown only to readers who may see all of it."

#: The name of every caller where authentication is off.
ANONYMOUS: Final = "api"


@dataclass(frozen=True)
class TenantAccess:
    """What a caller may do with one tenant: ``rights``, with the rows of ``scope``, or with all rows where it is None.

    ``role`` says what gave the rights, for explanations.
    """

    rights: frozenset[Right]
    scope: RowScope | None = None
    role: str = ""

    def allows(self, right: Right) -> bool:
        """Return whether the caller has a right."""
        return right in self.rights

    @property
    def sees_everything(self) -> bool:
        """Whether the caller sees all rows of the tenant."""
        return self.scope is None

    def reason(self, text: str | None) -> str | None:
        """Return why something failed, as the caller may see it. The text may quote a provider, a query or a setting,
        with the clusters and products of others in it; that something failed concerns every figure, so that None, for
        no failure, stays None.

        >>> TenantAccess(frozenset()).reason("HTTP 404 for lkc-9")
        'HTTP 404 for lkc-9'
        >>> mine = TenantAccess(frozenset(), RowScope.of({"cluster_id": ["lkc-1"]}))
        >>> mine.reason("HTTP 404 for lkc-9") == HIDDEN_REASON
        True
        """
        return text if text is None or self.sees_everything else HIDDEN_REASON


EVERYTHING: Final = TenantAccess(ALL_RIGHTS)


def _everything(_tenant_name: str) -> TenantAccess | None:
    return EVERYTHING


@dataclass(frozen=True)
class Caller:
    """An authenticated caller, or every caller where authentication is off.

    ``kind`` says by what. ``access`` returns what the caller may do with a tenant, or None where there is nothing:
    then, for this caller, the tenant does not exist.
    """

    name: str
    kind: CallerKind = "anonymous"
    groups: tuple[str, ...] = ()
    access: Callable[[str], TenantAccess | None] = field(default=_everything, compare=False, repr=False)

    @property
    def is_known(self) -> bool:
        """Whether the caller is authenticated."""
        return self.kind != "anonymous"

    def signature(self, given: str) -> str:
        """Return who made something. ``given``, the name in the request, counts only if callers are not identified."""
        return self.name if self.is_known else given


#: Every caller, where authentication is off.
EVERYBODY: Final = Caller(ANONYMOUS)
