"""Reasons of failures, as a caller may see them.

The text of a failure is about the whole bill: it may quote a provider, a query or a setting, with the clusters and
products in it. A caller with a scope learns that something failed, because it concerns every figure, but not why.
"""

from __future__ import annotations

from typing import Final

from chargeback.access.caller import TenantAccess

#: What a caller with a scope is told in place of a reason.
UNTOLD: Final = "The reason is about the whole bill, and told to those who may see all of it."


def told_reason(reason: str | None, access: TenantAccess) -> str | None:
    """Return a reason as a caller is told it; None stays None, as there is nothing to give a reason for.

    >>> from chargeback.access.scope import RowScope
    >>> told_reason("HTTP 404 for lkc-9", TenantAccess(frozenset()))
    'HTTP 404 for lkc-9'
    >>> told_reason("HTTP 404 for lkc-9", TenantAccess(frozenset(), RowScope.of({"cluster_id": ["lkc-1"]}))) == UNTOLD
    True
    """
    return reason if reason is None or access.scope is None else UNTOLD
