"""Successive values of a key: the effect of a new value on the others, and refused values."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.errors import TagConflict
from chargeback.model.dated import FOREVER, DatedValue, Period
from chargeback.store.control.tag_periods import Effect, HeldTag, OnExisting, place_value
from tests.support.facts import days_from
from tests.support.laws import examples

JAN, MARCH, OCTOBER = date(2026, 1, 1), date(2026, 3, 1), date(2026, 10, 1)
NAME = "The tag team of the identity sa-1"
UNDATED = (HeldTag(1, DatedValue("x")),)
TWO = (HeldTag(1, DatedValue("x", Period(None, MARCH))), HeldTag(2, DatedValue("y", Period(MARCH))))
CLOSED = (HeldTag(1, DatedValue("x", Period(JAN, OCTOBER))),)


def _placed(held: tuple[HeldTag, ...], value: str, during: Period, existing: OnExisting) -> tuple[list[str], str]:
    """Return the values afterwards, as texts, and the result of the write."""
    after, effect = place_value(NAME, held, DatedValue(value, during), existing)
    return [f"{each.tag_id} {each.held.value} {each.during}" for each in after], effect.value


@pytest.mark.parametrize(
    ("held", "during", "existing", "after"),
    [
        ((), FOREVER, OnExisting.KEEP, (["None new for ever"], "created")),
        ((), Period(MARCH), OnExisting.CHANGE, (["None new since 2026-03-01"], "created")),
        (UNDATED, FOREVER, OnExisting.KEEP, (["1 x for ever"], "skipped")),
        (UNDATED, FOREVER, OnExisting.CHANGE, (["1 new for ever"], "updated")),
        (UNDATED, Period(MARCH), OnExisting.CHANGE, (["1 x until 2026-03-01", "None new since 2026-03-01"], "updated")),
        (UNDATED, Period(None, MARCH), OnExisting.CHANGE, (["1 new until 2026-03-01"], "updated")),
        (CLOSED, FOREVER, OnExisting.CHANGE, (["1 new 2026-01-01 to 2026-10-01"], "updated")),
        (CLOSED, Period(JAN), OnExisting.CHANGE, (["1 new 2026-01-01 to 2026-10-01"], "updated")),
        (CLOSED, Period(JAN, MARCH), OnExisting.CHANGE, (["1 new 2026-01-01 to 2026-03-01"], "updated")),
        (CLOSED, Period(JAN, OCTOBER), OnExisting.KEEP, (["1 x 2026-01-01 to 2026-10-01"], "skipped")),
        (
            CLOSED,
            Period(MARCH),
            OnExisting.CHANGE,
            (["1 x 2026-01-01 to 2026-03-01", "None new since 2026-03-01"], "updated"),
        ),
        (
            CLOSED,
            Period(OCTOBER),
            OnExisting.KEEP,
            (["1 x 2026-01-01 to 2026-10-01", "None new since 2026-10-01"], "created"),
        ),
        (
            CLOSED,
            Period(None, JAN),
            OnExisting.KEEP,
            (["None new until 2026-01-01", "1 x 2026-01-01 to 2026-10-01"], "created"),
        ),
        (TWO, FOREVER, OnExisting.KEEP, (["1 x until 2026-03-01", "2 y since 2026-03-01"], "skipped")),
        (TWO, Period(MARCH), OnExisting.CHANGE, (["1 x until 2026-03-01", "2 new since 2026-03-01"], "updated")),
        (TWO, FOREVER, OnExisting.REPLACE, (["2 new for ever"], "updated")),
        (TWO, Period(JAN), OnExisting.REPLACE, (["2 new since 2026-01-01"], "updated")),
    ],
)
def test_where_a_value_goes(
    held: tuple[HeldTag, ...], during: Period, existing: OnExisting, after: tuple[list[str], str]
) -> None:
    """Without dates, the only value changes; with dates, the former value ends where the new one begins."""
    assert _placed(held, "new", during, existing) == after


_TO_CHANGE = "to end it where the new value begins, use PUT with valid_from, or override_existing."
_TO_CHOOSE = "choose other dates, or remove that one first."


@pytest.mark.parametrize(
    ("held", "during", "existing", "message"),
    [
        (UNDATED, Period(MARCH), OnExisting.KEEP, f"'new' since 2026-03-01: it is 'x' for ever; {_TO_CHANGE}"),
        (
            CLOSED,
            Period(MARCH, None),
            OnExisting.KEEP,
            f"'new' since 2026-03-01: it is 'x' 2026-01-01 to 2026-10-01; {_TO_CHANGE}",
        ),
        (
            CLOSED,
            Period(JAN),
            OnExisting.KEEP,
            f"'new' since 2026-01-01: it is 'x' 2026-01-01 to 2026-10-01; {_TO_CHANGE}",
        ),
        (
            TWO,
            Period(JAN),
            OnExisting.CHANGE,
            f"'new' since 2026-01-01: it is 'y' since 2026-03-01; {_TO_CHOOSE}",
        ),
        (
            UNDATED,
            Period(MARCH, OCTOBER),
            OnExisting.CHANGE,
            f"'new' 2026-03-01 to 2026-10-01: it is 'x' for ever; {_TO_CHOOSE}",
        ),
        (
            CLOSED,
            Period(None, MARCH),
            OnExisting.CHANGE,
            f"'new' until 2026-03-01: it is 'x' 2026-01-01 to 2026-10-01; {_TO_CHOOSE}",
        ),
    ],
)
def test_overlapping_dates_are_refused(
    held: tuple[HeldTag, ...], during: Period, existing: OnExisting, message: str
) -> None:
    """The error has both periods, and what to do."""
    with pytest.raises(TagConflict) as raised:
        _placed(held, "new", during, existing)
    assert str(raised.value) == f"{NAME} cannot be {message}"


def test_a_value_without_dates_where_there_are_several() -> None:
    """It is unclear which value is meant, and none is changed."""
    with pytest.raises(TagConflict) as raised:
        _placed(TWO, "new", FOREVER, OnExisting.CHANGE)
    assert str(raised.value) == (
        f"{NAME} has several values: 'x' until 2026-03-01, 'y' since 2026-03-01; name one by its valid_from, begin "
        "another one with a new valid_from, or set replace_periods to replace all of them."
    )
    days = days_from(JAN, 6)
    many = tuple(HeldTag(n, DatedValue("x", Period(first, end))) for n, (first, end) in enumerate(pairwise(days)))
    with pytest.raises(TagConflict, match=r"2026-01-03 to 2026-01-04 and 2 more; name one"):
        _placed(many, "new", FOREVER, OnExisting.CHANGE)


_days = st.none() | st.sampled_from(days_from(JAN, 8))
_writes = st.lists(
    st.tuples(st.sampled_from("abc"), _days, _days, st.sampled_from(OnExisting)).filter(
        lambda each: not Period(each[1], each[2]).is_empty
    ),
    max_size=8,
)


@given(writes=_writes)
@settings(max_examples=examples(300), database=None)
def test_no_two_values_hold_on_a_day(writes: list[tuple[str, date | None, date | None, OnExisting]]) -> None:
    """After any writes, each day has at most one value; a refused write changes nothing, and a written value holds."""
    held: tuple[HeldTag, ...] = ()
    for value, first, end, existing in writes:
        new = DatedValue(value, Period(first, end))
        try:
            after, effect = place_value(NAME, held, new, existing)
        except TagConflict:
            continue
        if effect is Effect.SKIPPED:
            assert after == held
        elif new.during != FOREVER:
            assert any(each.held.value == value and each.during.first == first for each in after)
        before = [day for day in days_from(JAN, 8) if first is not None and day < first]
        if existing is not OnExisting.REPLACE and new.during != FOREVER:
            assert _on(after, before) == _on(held, before)
        held = after
        for n, each in enumerate(held):
            assert not each.during.is_empty
            assert not any(each.during.overlaps(other.during) for other in held[n + 1 :])


def _on(held: tuple[HeldTag, ...], days: list[date]) -> list[list[str]]:
    return [[each.held.value for each in held if day in each.during] for day in days]
