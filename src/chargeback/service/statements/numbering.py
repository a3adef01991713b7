"""The numbers of statements: the same content has the same number, and other statements have others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from chargeback.store.queries.aggregate import TAG_PREFIX
from chargeback.store.queries.category_index import CATEGORY_PREFIX

_MOST_CHARACTERS: Final = 48
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


def revision_of(day_revisions: Iterable[int], category_version: int | None) -> int:
    """Return the revision of a month's statements: 1, and one more for each time that one of its days was replaced, or
    the cost category changed.

    >>> revision_of([1, 1, 3], 2)
    4
    """
    replaced = sum(revision - 1 for revision in day_revisions if revision)
    return 1 + replaced + (0 if category_version is None else category_version - 1)


def statement_number(tenant: str, period: str, by: str, value: str, revision: int) -> str:
    """Return ``CB-{tenant}-{period}-{value}-r{revision}``; before the value stands the key of its cost category, or
    ``tag`` and the key of its tag. It can be the name of a file: characters that are unsafe there become ``-``, and the
    text is then told apart by a digest.

    >>> statement_number("acme", "2026-10", "category:cost_center", "payments", 3)
    'CB-acme-2026-10-cost_center.payments-r3'
    >>> statement_number("acme", "2026-10", "tag:team", "R & D", 1)
    'CB-acme-2026-10-tag.team.R-D-09008848-r1'
    """
    if by.startswith(CATEGORY_PREFIX):
        parts = [by.removeprefix(CATEGORY_PREFIX), value]
    elif by.startswith(TAG_PREFIX):
        parts = ["tag", by.removeprefix(TAG_PREFIX), value]
    else:
        parts = [value]
    return f"CB-{_safe(tenant)}-{period}-{'.'.join(map(_safe, parts))}-r{revision}"


def journal_number(tenant: str, period: str, by: str, revision: int) -> str:
    """Return ``CBJ-{tenant}-{period}-{by}-r{revision}``, which can be the name of a file as well.

    >>> journal_number("acme", "2026-10", "category:cost_center", 3)
    'CBJ-acme-2026-10-cost_center-r3'
    >>> journal_number("acme", "2026-10", "tag:team", 1)
    'CBJ-acme-2026-10-tag.team-r1'
    """
    name = by.removeprefix(CATEGORY_PREFIX)
    parts = ["tag", name.removeprefix(TAG_PREFIX)] if name.startswith(TAG_PREFIX) else [name]
    return f"CBJ-{_safe(tenant)}-{period}-{'.'.join(map(_safe, parts))}-r{revision}"


def _safe(text: str) -> str:
    found = _UNSAFE.sub("-", text)[:_MOST_CHARACTERS].strip("-")
    if found and found == text:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{found}-{digest}" if found else digest
