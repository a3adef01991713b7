"""Checks of a bill: every day occurs once, and every line has all that a calculation needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date
from operator import attrgetter
from typing import Any, Final

from chargeback.ecosystems.contract import GatheredDay
from chargeback.ecosystems.validation.values import (
    RESERVED_IDS,
    InvalidValue,
    check_amount,
    check_day,
    check_id,
    check_instant,
    check_own_id,
    check_records,
    check_text,
    check_type,
    expect,
    optional_id,
    optional_text,
    quote,
)
from chargeback.model.billing import BillingLine
from chargeback.model.days import DayRange
from chargeback.model.inventory import SYSTEM_IDENTITY
from chargeback.model.texts import MAX_ID_LENGTH, MAX_TYPE_LENGTH

_AMOUNTS: Final = ("quantity", "unit_price", "original_amount", "discount_amount")
_TEXTS: Final = (
    "resource_name",
    "unit",
    "network_access_type",
    "description",
    "tier",
    "provider_id",
    "original_text",
)
_TWICE: Final = "the day was returned twice; return each day exactly once"
_FIELDS: Final = {
    "resource_id": check_own_id,
    "resource_type": check_type,
    "product_category": check_id,
    "product_type": check_id,
    "granularity": check_id,
    "environment_id": optional_id,
    **dict.fromkeys(_TEXTS, optional_text),
}
_REQUIRED_TEXTS: Final = attrgetter("resource_id", "resource_type", "product_category", "product_type", "granularity")
_OPTIONAL_TEXTS: Final = attrgetter("environment_id", *_TEXTS)


def check_days(answers: Iterable[object], days: DayRange, currency: str, asked: str) -> Iterator[GatheredDay]:
    """Yield every day of the range, each with its lines or with its error; ``asked`` names the method that was called.

    A day that occurs twice is yielded again with an error, so that a caller who stored the first one learns that it is
    incomplete. A missing day comes last, with an error.

    Raises:
        InvalidValue: a result belongs to no day of the range; every day has been yielded by then.
    """
    seen: set[date] = set()
    stray: str | None = None
    for number, answer in enumerate(answers, start=1):
        try:
            gathered = expect(GatheredDay, answer, f"answer {number}")
            day = check_day(gathered.day, f"day of answer {number}")
        except InvalidValue as mistake:
            stray = stray or str(mistake)
            continue
        if day not in days:
            stray = stray or f"{day} was not requested; {days.start} to {days.end} (exclusive) was"
        elif day in seen:
            yield GatheredDay(day, error=f"{asked}: {_TWICE}")
        else:
            seen.add(day)
            yield _day(gathered, currency, asked)
    for day in days:
        if day not in seen:
            yield GatheredDay(day, error=f"{asked}: the day was not returned{f' ({stray})' if stray else ''}")
    if stray is not None:
        raise InvalidValue(stray)


def _day(gathered: GatheredDay, currency: str, asked: str) -> GatheredDay:
    try:
        error: Any = gathered.error
        if error is not None:
            return GatheredDay(gathered.day, error=check_text(error, "error"))
        lines = []
        for place, line in check_records(BillingLine, gathered.lines, "lines", "line"):
            try:
                lines.append(check_line(line, gathered.day, currency))
            except InvalidValue as mistake:
                raise InvalidValue(f"{place}: {mistake}") from None
    except InvalidValue as mistake:
        return GatheredDay(gathered.day, error=f"{asked}: {mistake}")
    return GatheredDay(gathered.day, lines)


def check_line(line: BillingLine, day: date, currency: str) -> BillingLine:
    """Return a line of the bill of ``day``, in the tenant's ``currency``."""
    if check_day(line.day, "day") != day:
        raise InvalidValue(f"day should be {day}, the day that it is returned for, not {line.day}")
    if check_instant(line.timestamp, "timestamp").astimezone(UTC).date() != day:
        raise InvalidValue(f"timestamp should be within {day} UTC, not at {line.timestamp.isoformat()}")
    check_amount(line.total_cost, "total_cost")
    for name in _AMOUNTS:
        value = getattr(line, name)
        if value is not None:
            check_amount(value, name)
    if line.currency != currency:
        raise InvalidValue(f"currency should be {currency}, the tenant's, not {quote(line.currency)}")
    if line.ecosystem is not None:
        raise InvalidValue("ecosystem should be None: the service knows it")
    if _is_plain(line):
        return line
    changes: dict[str, Any] = {}
    for name, check in _FIELDS.items():
        value = getattr(line, name)
        checked = check(value, name)
        if checked != value:
            changes[name] = checked
    return replace(line, **changes) if changes else line


def _is_plain(line: BillingLine) -> bool:
    """Return whether no text of a line needs cleaning: a fast check, because a bill has many lines and nearly all
    pass."""
    for value in _REQUIRED_TEXTS(line):
        if type(value) is not str or not value.isprintable() or not 1 < len(value) <= MAX_TYPE_LENGTH or " " in value:
            return False
    for value in _OPTIONAL_TEXTS(line):
        if value is not None and (
            type(value) is not str or not value.isprintable() or not 0 < len(value) < MAX_ID_LENGTH
        ):
            return False
    return line.resource_id not in RESERVED_IDS and line.resource_type != SYSTEM_IDENTITY
