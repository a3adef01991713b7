"""Reads plain data (from YAML or JSON) into typed values, and collects every problem on the way.

Every method takes a value and its path. If the value is wrong, the problem is recorded and None (or an empty
collection) is returned, so that reading goes on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final

from chargeback.categories.matching import Pattern
from chargeback.errors import CategoryProblem
from chargeback.model.dated import Period
from chargeback.model.money import is_exact, parse_decimal, total

MAX_TEXT: Final = 255
MAX_PROBLEMS: Final = 1_000
MAX_AMOUNT: Final = 10**12
#: The most texts of all patterns together, which also bounds what YAML's aliases can unfold to.
MAX_ENTRIES: Final = 200_000
#: The largest compiled size of all regexes together: about 5,000 regexes of 40 characters.
MAX_REGEXES_SIZE: Final = 200_000
# To compare with every known name takes milliseconds each, so only the first problems get a suggestion.
_MAX_SUGGESTIONS: Final = 20
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Reader:
    """Reads one document; ``problems`` are in the order in which they were found.

    One that ``is_stored`` may have regexes of any size.
    """

    def __init__(self, *, is_stored: bool = False) -> None:
        self.problems: list[CategoryProblem] = []
        self.is_stored = is_stored
        #: The patterns that others can name.
        self.sets: dict[str, Pattern] = {}
        self._suggestions_left = _MAX_SUGGESTIONS
        self._entries_left = MAX_ENTRIES
        self._regex_size_left = MAX_REGEXES_SIZE

    def problem(self, path: str, message: str) -> None:
        """Record a problem, unless there are too many already."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(CategoryProblem(path, message))
        elif len(self.problems) == MAX_PROBLEMS:
            self.problems.append(CategoryProblem("", f"has more problems than these {MAX_PROBLEMS:,}"))

    def suggestion(self, name: object, known: Collection[str]) -> str:
        """Return ``; did you mean …?``, or an empty text if no known name is similar."""
        if not isinstance(name, str) or self._suggestions_left == 0:
            return ""
        self._suggestions_left -= 1
        near = get_close_matches(name, known, n=1)
        return f"; did you mean {near[0]}?" if near else ""

    def mapping(self, value: object, path: str, keys: Collection[str]) -> dict[str, Any]:
        """Return a mapping without its unknown keys; an empty one if it is none."""
        if not isinstance(value, dict):
            self.problem(path, f"should be a mapping with the keys {', '.join(keys)}")
            return {}
        for key in value:
            if key not in keys:
                self.problem(below(path, key), f"unknown key{self.suggestion(key, keys)}")
        return {key: each for key, each in value.items() if key in keys}

    def entries(self, value: object, path: str, longest: int, what: str) -> Iterator[tuple[str, Any, str]]:
        """Yield (key, value, path) of a mapping whose keys are the user's own."""
        if not isinstance(value, dict):
            self.problem(path, f"should be a mapping of {what}")
            return
        if self._too_many(len(value), path, longest):
            return
        for key, each in value.items():
            at = below(path, key)
            if self.text(key, at, what="its key") is not None:
                yield key, each, at

    def items(self, value: object, path: str, longest: int, what: str) -> Iterator[tuple[Any, str]]:
        """Yield (item, path) of a list."""
        if not isinstance(value, list | tuple):
            self.problem(path, f"should be {what}")
        elif not self._too_many(len(value), path, longest):
            for place, item in enumerate(value):
                yield item, f"{path}[{place}]"

    def _too_many(self, count: int, path: str, longest: int) -> bool:
        if count > longest:
            self.problem(path, f"has {count:,} entries; at most {longest:,} are allowed")
            return True
        if self._entries_left < 0:
            return True
        self._entries_left -= count
        if self._entries_left < 0:
            self.problem(path, f"the document has more than {MAX_ENTRIES:,} entries in all; the rest was not read")
        return self._entries_left < 0

    def allows_regex(self, size: int, path: str) -> bool:
        """Return whether the document may have another regex of that compiled size."""
        if self._regex_size_left < 0:
            return False
        self._regex_size_left -= size
        if self._regex_size_left < 0:
            self.problem(path, f"{too_large_in_all()}; the rest was not read")
        return self._regex_size_left >= 0

    def text(
        self, value: object, path: str, *, longest: int = MAX_TEXT, what: str = "", padded: bool = False
    ) -> str | None:
        """Return a printable text that is not empty and, unless ``padded``, does not start or end with a space."""
        wrong = _wrong_with_text(value, longest, padded=padded)
        if wrong is not None:
            self.problem(path, f"{what} {wrong}".lstrip())
            return None
        return str(value)

    def percentages(self, value: object, path: str) -> tuple[tuple[str, Decimal], ...]:
        """Return (value, percentage) ascending by value; they sum to 100."""
        found = [
            (key, self.percentage(each, at))
            for key, each, at in self.entries(value, path, 1000, "values to percentages")
        ]
        read = sorted((key, percentage) for key, percentage in found if percentage is not None)
        if isinstance(value, dict) and value and len(read) == len(value):
            self._sums_to_100([percentage for key, percentage in found if percentage is not None], path)
        return tuple(read)

    def _sums_to_100(self, percentages: list[Decimal], path: str) -> None:
        if (whole := total(percentages)) != 100:
            shown = [plain(each) for each in percentages]
            terms = " + ".join([*shown[:10], "…"] if len(shown) > 10 else shown)
            self.problem(path, f"{terms} = {plain(whole)}; they must sum to 100")

    def percentage(self, value: object, path: str) -> Decimal | None:
        """Return a percentage above 0 and at most 100, with at most twelve decimal places."""
        number = self._number(value, path, 'a percentage such as "60" or "33.3"')
        if number is not None and not 0 < number <= 100:
            self.problem(path, "should be above 0 and at most 100")
            return None
        return self._exact(number, path)

    def amount(self, value: object, path: str) -> str | None:
        """Return an amount above 0, with at most twelve decimal places, as a text without exponent."""
        number = self._number(value, path, 'an amount such as "500.00"')
        if number is not None and not 0 < number < MAX_AMOUNT:
            self.problem(path, f"should be above 0 and below {MAX_AMOUNT:,}")
            return None
        exact = self._exact(number, path)
        return None if exact is None else f"{exact:f}"

    def _number(self, value: object, path: str, what: str) -> Decimal | None:
        try:
            return _decimal(value)
        except ValueError:
            self.problem(path, f"should be {what}")
            return None

    def _exact(self, number: Decimal | None, path: str) -> Decimal | None:
        if number is None or is_exact(number):
            return number
        self.problem(path, "should have at most 12 decimal places")
        return None

    def period(self, document: dict[str, Any], path: str) -> Period:
        """Return the period from ``valid_from`` to ``valid_to`` of a mapping."""
        first = self._day(document.get("valid_from"), f"{path}.valid_from")
        end = self._day(document.get("valid_to"), f"{path}.valid_to")
        period = Period(first, end)
        if period.is_empty:
            self.problem(path, f"valid_from {first} is not before valid_to {end}, the first day on which it ends")
            return Period()
        return period

    def _day(self, value: object, path: str) -> date | None:
        if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
            return value
        try:
            if isinstance(value, str) and _DAY.fullmatch(value):
                return date.fromisoformat(value)
        except ValueError:
            self.problem(path, f"{value} is not a day of the calendar")
            return None
        self.problem(path, "should be a date such as 2026-03-01")
        return None


def too_large_in_all() -> str:
    """Return what is wrong with a document whose regexes are too large together."""
    return (
        "the regexes of the document are too large in all: with their repetitions unfolded they have more than "
        f"{MAX_REGEXES_SIZE:,} parts"
    )


def below(path: str, key: object) -> str:
    """Return the path of a key of a mapping."""
    name = shown(key) if not isinstance(key, str) or _wrong_with_text(key, MAX_TEXT) else key
    return f"{path}.{name}" if path else name


def shown(value: object) -> str:
    """Return a value as it is quoted in a message: printable and short."""
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except ValueError:  # an integer with thousands of digits, which YAML takes in hexadecimal
        text = "a number"
    return text if len(text) <= 80 else f"{text[:79]}…"


def plain(number: Decimal) -> str:
    """Return a number without exponent and without trailing zeros.

    >>> plain(Decimal("60.50")), plain(Decimal("1E+2"))
    ('60.5', '100')
    """
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal) or len(str(value)) > 100:
        raise ValueError("not a number")
    return parse_decimal(str(value))


def _wrong_with_text(value: object, longest: int, *, padded: bool = False) -> str | None:
    if not isinstance(value, str):
        return "should be a text; quote numbers, dates, true and false"
    if not value:
        return "should not be empty"
    if len(value) > longest:
        return f"should have at most {longest:,} characters"
    if not value.isprintable():
        return "should have no control characters"
    return "should not start or end with a space" if value != value.strip() and not padded else None
