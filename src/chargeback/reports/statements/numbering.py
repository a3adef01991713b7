"""The numbers of statements, their revisions, and the digests of their content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from chargeback.model.inventory import UNALLOCATED, UNASSIGNED, UNTAGGED
from chargeback.model.money import render
from chargeback.reports.statements.content import StatementHeading, StatementLine
from chargeback.store.control.day_revisions import Revision
from chargeback.store.queries.keys import TAG_PREFIX
from chargeback.store.queries.lookups import CATEGORY_PREFIX

_MOST_CHARACTERS: Final = 48
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")
#: Texts with capitals that stay unchanged; all others get a digest, because some file systems and archives do not
#: distinguish names that differ only in case.
_CAPITALS: Final = frozenset({UNALLOCATED, UNASSIGNED, UNTAGGED})


def revision_of(days: Iterable[Revision], versions: Sequence[tuple[datetime, bool]] | None) -> tuple[int, int | None]:
    """Return the revision of a month's statements: 1 when its first day is calculated, and one more for each
    transaction that replaces days of it, and for each version of the cost category. Also return the revision that it
    supersedes: the previous one; None if there is none, or if there is a version of the cost category in between, which
    may have other values.

    Changes do not count while there are no statements: before the first day is calculated, and while the category does
    not exist. So every number up to this one was in force.

    Args:
        days: the revisions of the days of the month that took effect.
        versions: when each version of the cost category was written, and whether it has a document; None for other
            groupings.
    """
    replaced: dict[tuple[datetime, int], bool] = {}  # of each transaction, by its instant and run
    for each in days:
        key = (each.calculated_at, each.run_id or 0)
        replaced[key] = replaced.get(key, False) or each.revision > 1
    # When, in which run, whether something is replaced, and of a version whether it has a document.
    moments: list[tuple[datetime, int, bool, bool | None]] = [(*key, each, None) for key, each in replaced.items()]
    moments += [(at, -1, True, is_there) for at, is_there in versions or ()]
    number, is_calculated, has_category, superseded = 0, False, versions is None, None
    for _, _, replaces, is_there in sorted(moments, key=lambda moment: moment[:2]):
        if is_there is None:
            is_calculated = True
        else:
            has_category = is_there
        if is_calculated and has_category and (replaces or not number):
            superseded = number if number and is_there is None else None
            number += 1
    return max(number, 1), superseded


def statement_number(tenant: str, period: str, by: str, value: str, revision: int) -> str:
    """Return ``CB-{tenant}-{period}-{value}-r{revision}``; the value is preceded by the key of its cost category, or by
    ``tag`` and the key of its tag. The number is a valid name of a file: unsafe characters are replaced by ``-``. Such
    texts, and those with capitals, get a digest, so that no two numbers differ only in case.

    >>> statement_number("acme", "2026-10", "category:cost_center", "payments", 3)
    'CB-acme-2026-10-cost_center.payments-r3'
    >>> statement_number("acme", "2026-10", "tag:team", "R & D", 1)
    'CB-acme-2026-10-tag.team.R-D-09008848-r1'
    >>> statement_number("acme", "2026-10", "tag:team", "Payments", 1)
    'CB-acme-2026-10-tag.team.Payments-89c9cf8d-r1'
    """
    return f"CB-{_safe(tenant)}-{period}-{'.'.join(map(_safe, _parts(by, value)))}-r{revision}"


def closed_number(tenant: str, period: str, by: str, value: str, times: int) -> str:
    """Return the number of the statement of a closed month, which has no revisions: ``CB-{tenant}-{period}-{value}``.
    If the month was closed several ``times``, the numbers of the later ones end with that.

    >>> closed_number("acme", "2026-10", "category:cost_center", "payments", 1)
    'CB-acme-2026-10-cost_center.payments'
    >>> closed_number("acme", "2026-10", "tag:team", "payments", 2)
    'CB-acme-2026-10-tag.team.payments-2'
    """
    return f"CB-{_safe(tenant)}-{period}-{'.'.join(map(_safe, _parts(by, value)))}{again(times)}"


def again(times: int) -> str:
    """Return the end of the number of a statement after this number of closings: empty for the first one."""
    return "" if times == 1 else f"-{times}"


def _parts(by: str, value: str) -> list[str]:
    if by.startswith(CATEGORY_PREFIX):
        return [by.removeprefix(CATEGORY_PREFIX), value]
    return ["tag", by.removeprefix(TAG_PREFIX), value] if by.startswith(TAG_PREFIX) else [value]


def journal_number(tenant: str, period: str, by: str, end: str) -> str:
    """Return ``CBJ-{tenant}-{period}-{by}`` and an ``end`` such as ``-r3``; it is also a valid name of a file.

    >>> journal_number("acme", "2026-10", "category:cost_center", "-r3")
    'CBJ-acme-2026-10-cost_center-r3'
    >>> journal_number("acme", "2026-10", "tag:team", "")
    'CBJ-acme-2026-10-tag.team'
    """
    name = by.removeprefix(CATEGORY_PREFIX)
    parts = ["tag", name.removeprefix(TAG_PREFIX)] if name.startswith(TAG_PREFIX) else [name]
    return f"CBJ-{_safe(tenant)}-{period}-{'.'.join(map(_safe, parts))}{end}"


def content_digest(
    heading: StatementHeading, value: str, lines: Iterable[StatementLine], more: Sequence[object] = ()
) -> str:
    """Return the digest of a statement's content: its value, its days, and its lines with all digits and as printed;
    ``more`` are its corrections and adjustments. Names, comparisons and the number are not included."""
    content = [
        *(heading.tenant_name, heading.period, heading.by, value, heading.currency, heading.basis),
        *(heading.calculated_days, str(heading.data_through)),
        [
            [line.kind, line.product_category, line.product_type, render(line.amount), str(line.rounded)]
            for line in lines
        ],
        *more,
    ]
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def _safe(text: str) -> str:
    found = _UNSAFE.sub("-", text)[:_MOST_CHARACTERS].strip("-")
    has_own_case = text in _CAPITALS or (text == text.lower() and text.upper() not in _CAPITALS)
    if found and found == text and has_own_case:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
    return f"{found}-{digest}" if found else digest
