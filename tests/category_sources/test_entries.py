"""Entries of one entity with the same days belong together."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from chargeback.category_sources.contract import CategoryEntry
from chargeback.category_sources.entries import MOST_PERIODS, assignments_of
from chargeback.errors import ConfigurationError
from chargeback.model.dated import Period

MARCH = Period(date(2026, 3, 1), date(2026, 4, 1))


def entry(value: str, percent: str | None = None, during: Period = MARCH, line: int = 2) -> CategoryEntry:
    """Return an entry of one identity."""
    return CategoryEntry(
        "identity", "sa-1", value, None if percent is None else Decimal(percent), during, f"line {line}"
    )


def test_splits() -> None:
    """Entries of one entity form a split, in any order; a single 100 percent does not."""
    other = CategoryEntry("topic", "orders", "b")
    since = Period(date(2026, 4, 1))
    found = assignments_of([entry("a", "33.3"), other, entry("b", "66.7"), entry("c", "100", since)])
    assert [(each.entity_id, each.parts) for each in found] == [
        ("sa-1", (("a", Decimal("33.3")), ("b", Decimal("66.7")))),
        ("orders", (("b", Decimal(100)),)),
        ("sa-1", (("c", Decimal(100)),)),
    ]
    assert [[part.percent for part in each.entries()] for each in found][1:] == [[None], [None]]


@pytest.mark.parametrize(
    ("entries", "problems"),
    [
        (
            [entry("a", "60"), entry("b", "30", line=3)],
            ["line 3: the percentages of the identity sa-1 on these days sum to 90, not to 100"],
        ),
        (
            [entry("a"), entry("b", line=3)],
            [
                "line 3: the identity sa-1 has the value 'a' on the same days (line 2); give both a percent to split "
                "its cost, or other days"
            ],
        ),
        ([entry("a"), entry("a", line=3)], ["line 3: the identity sa-1 has the value 'a' already (line 2)"]),
        (
            [entry("a", "0"), entry("b", "100.5", line=3)],
            [
                "line 2: percent should be above 0 and at most 100",
                "line 3: percent should be above 0 and at most 100",
                "line 3: the percentages of the identity sa-1 on these days sum to 100.5, not to 100",
            ],
        ),
        (
            [entry("b", None, Period(date(2026, 3, 31))), entry("a", line=3), entry("c", None, Period(), line=4)],
            [
                "line 4: the identity sa-1 has the value 'c' for ever, and the value 'a' 2026-03-01 to 2026-04-01 "
                "(line 3); a day can have one of them: let one end where the other begins",
                "line 4: the identity sa-1 has the value 'c' for ever, and the value 'b' since 2026-03-31 (line 2); a "
                "day can have one of them: let one end where the other begins",
            ],
        ),
        (
            [entry("a", "60"), entry("b", "40", line=3), entry("a", None, Period(None, date(2026, 3, 2)), line=4)],
            [
                "line 4: the identity sa-1 has the value 'a' until 2026-03-02, and the values 'a' and 'b' 2026-03-01 "
                "to 2026-04-01 (line 2); a day can have one of them: let one end where the other begins"
            ],
        ),
    ],
)
def test_what_does_not_fit(entries: list[CategoryEntry], problems: list[str]) -> None:
    """Two values on one day, or percentages that do not sum to 100, are refused; the error names the lines."""
    with pytest.raises(ConfigurationError) as error:
        assignments_of(entries)
    assert [str(each) for each in error.value.problems] == problems


def test_the_periods_of_an_entity_have_a_limit() -> None:
    """Periods are limited, because each is compared with the others of its entity."""
    days = [date(2026, 1, 1) + timedelta(days=number) for number in range(MOST_PERIODS + 2)]
    entries = [
        CategoryEntry("identity", "sa-1", "a", None, Period(first, end), f"line {number}")
        for number, (first, end) in enumerate(pairwise(days), start=2)
    ]
    assert len(assignments_of(entries[:-1])) == MOST_PERIODS
    with pytest.raises(ConfigurationError) as raised:
        assignments_of(entries)
    assert [str(each) for each in raised.value.problems] == ["line 102: the identity sa-1 has more than 100 periods"]
