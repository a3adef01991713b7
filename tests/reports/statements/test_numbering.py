"""Numbers of statements are unique, and valid as file names."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from chargeback.reports.statements.content import DIRECT, StatementLine
from chargeback.reports.statements.numbering import content_digest, revision_of, statement_number
from chargeback.store.control.day_revisions import Revision
from chargeback.store.control.days import DayDataset
from tests.reports.statements import heading_of_october

BY = st.one_of(
    st.just("identity_id"),
    st.from_regex(r"category:[A-Za-z][A-Za-z0-9_-]{0,63}", fullmatch=True),
    st.from_regex(r"tag:[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}", fullmatch=True),
)
ODD = (
    "payments",
    "Payments",
    "PAYMENTS",
    "UNTAGGED",
    "untagged",
    "Untagged",
    "pay.ments",
    "pay-ments",
    "../x",
    "-",
    "",
)
VALUES = st.one_of(st.text(min_size=1, max_size=80), st.sampled_from(ODD))


@given(BY, VALUES, BY, VALUES)
def test_numbers_tell_statements_apart(by: str, value: str, other_by: str, other: str) -> None:
    """Two statements have the same number only if they are the same; every number is a plain file name."""
    one, two = (statement_number("acme", "2026-10", *each, 1) for each in ((by, value), (other_by, other)))
    # Not even in case: some file systems and archives ignore it.
    assert (one.lower() == two.lower()) == ((by, value) == (other_by, other))
    for number in (one, two):
        assert re.fullmatch(r"CB-acme-2026-10-[A-Za-z0-9_.-]+-r1", number)
        assert ".." not in number
        assert len(number) < 200


def at(minute: int) -> datetime:
    """Return an instant."""
    return datetime(2026, 11, 1, 0, minute, tzinfo=UTC)


def calculated(minute: int, *numbers: int, run: int = 1) -> list[Revision]:
    """Return the revisions that a transaction gives to several days."""
    return [
        Revision(DayDataset.CHARGEBACKS, date(2026, 10, day), number, at(minute), "", run)
        for day, number in enumerate(numbers, start=1)
    ]


def test_a_revision_is_a_transaction() -> None:
    """A transaction is one revision for any number of days; new days do not count, later transactions of a run do."""
    assert revision_of([], None) == revision_of(calculated(1, 1, 1), None) == (1, None)
    first = [*calculated(1, 1, 1), *calculated(2, 1, 1)]
    assert revision_of(first, None) == (1, None)
    assert revision_of([*first, *calculated(3, 2, 2, 2)], None) == (2, 1)
    assert revision_of([*first, *calculated(3, 2, 2), *calculated(4, 2), *calculated(4, 3, run=2)], None) == (4, 3)


def test_versions_of_the_category_count_where_there_were_statements() -> None:
    """Versions of the category count only after the first calculated day, and replaced days only while the category
    exists; no number is skipped."""
    days = [*calculated(3, 1, 1), *calculated(5, 2), *calculated(7, 2)]
    before = [(at(1), True), (at(2), True)]
    assert revision_of(days, before) == (3, 2)
    assert revision_of(days, [*before, (at(4), True)]) == (4, 3)
    assert revision_of(days, [*before, (at(4), False), (at(6), True)]) == (3, 2)
    assert revision_of(days, [(at(6), True)]) == (2, 1)
    assert revision_of([], before) == (1, None)


def test_a_version_of_the_category_supersedes_nothing() -> None:
    """A new version of the category supersedes nothing, because its values may differ; days replaced later supersede
    again."""
    days, first = [*calculated(3, 1, 1), *calculated(5, 2)], (at(1), True)
    assert revision_of(days, [first, (at(6), True)]) == (3, None)
    assert revision_of(days, [first, (at(6), False), (at(7), True)]) == (3, None)
    assert revision_of([*days, *calculated(8, 3)], [first, (at(6), True)]) == (4, 3)


def test_a_digest_is_that_of_the_content() -> None:
    """The digest depends on the calculated days, even if they cost nothing, and on each line, exactly and in cents. It
    does not depend on the revision or the version of the category."""
    heading = heading_of_october(
        by="tag:team", calculated_days=17, data_through=date(2026, 10, 17), issued_at=at(1), revision=1
    )
    line = StatementLine(
        kind=DIRECT,
        product_category="KAFKA",
        product_type="KAFKA_STORAGE",
        amount=Decimal("1.004"),
        rounded=Decimal("1.00"),
    )
    known = content_digest(heading, "payments", [line])
    same = heading.model_copy(update={"revision": 2, "category_version": 3, "issued_at": at(2)})
    assert content_digest(same, "payments", [line]) == known
    others = [
        content_digest(
            heading.model_copy(update={"calculated_days": 18, "data_through": date(2026, 10, 18)}), "payments", [line]
        ),
        content_digest(heading, "orders", [line]),
        content_digest(heading, "payments", []),
        content_digest(heading, "payments", [line.model_copy(update={"amount": Decimal("1.005")})]),
        content_digest(heading, "payments", [line.model_copy(update={"rounded": Decimal("1.01")})]),
    ]
    assert len({known, *others}) == 1 + len(others)
