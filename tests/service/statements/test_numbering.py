"""Numbers of statements tell them apart, and can be names of files."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from chargeback.service.statements.numbering import revision_of, statement_number

BY = st.one_of(
    st.just("identity_id"),
    st.from_regex(r"category:[A-Za-z][A-Za-z0-9_-]{0,63}", fullmatch=True),
    st.from_regex(r"tag:[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}", fullmatch=True),
)
ODD = ("payments", "pay.ments", "pay-ments", "../x", "-", "")
VALUES = st.one_of(st.text(min_size=1, max_size=80), st.sampled_from(ODD))


@given(BY, VALUES, BY, VALUES)
def test_numbers_tell_statements_apart(by: str, value: str, other_by: str, other: str) -> None:
    """Two statements have the same number only if they are the same; all are plain names of files."""
    one, two = (statement_number("acme", "2026-10", *each, 1) for each in ((by, value), (other_by, other)))
    assert (one == two) == ((by, value) == (other_by, other))
    for number in (one, two):
        assert re.fullmatch(r"CB-acme-2026-10-[A-Za-z0-9_.-]+-r1", number)
        assert ".." not in number
        assert len(number) < 200


def test_revisions_count_what_was_replaced() -> None:
    """New days do not; days without a revision are none."""
    assert revision_of([], None) == revision_of([1, 1, 0], 1) == 1
    assert revision_of([1, 3, 2], 4) == 7
