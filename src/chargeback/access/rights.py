"""What a caller may do with a tenant."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


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
