"""Checks of single values: texts, ids, numbers, times, and collections of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeVar

from chargeback.model.inventory import SYSTEM_IDENTITY, UNALLOCATED, Metadata
from chargeback.model.money import PLACES, PRECISION, is_exact, to_amount
from chargeback.model.texts import MAX_ID_LENGTH, MAX_TEXT_LENGTH, MAX_TYPE_LENGTH, clean_id, clean_text
from chargeback.model.usage import EVERYTHING

_MAX_QUOTE_LENGTH: Final = 60
#: Ids that the service uses for itself.
RESERVED_IDS: Final = frozenset({UNALLOCATED, EVERYTHING})

_T = TypeVar("_T")


class InvalidValue(Exception):
    """An invalid value in a plugin's result: where it is, and what is expected there."""


def quote(value: object) -> str:
    """Return a value for a message: its type, and the value itself if it is short and harmless."""
    kind = type(value).__name__
    if value is None:
        return "None"
    if isinstance(value, str | int | float | Decimal | date):
        text = clean_text(repr(value))
        return f"{kind} {text[:_MAX_QUOTE_LENGTH]}"
    return kind


def expect(kind: type[_T], value: object, where: str) -> _T:
    """Return ``value`` if it is an instance of ``kind``."""
    if not isinstance(value, kind):
        raise InvalidValue(f"{where} should be {_article(kind.__name__)}, not {quote(value)}")
    return value


def check_text(value: object, where: str, longest: int = MAX_TEXT_LENGTH) -> str:
    """Return a text that is not empty, cleaned and cut."""
    if not isinstance(value, str):
        raise InvalidValue(f"{where} should be a str, not {quote(value)}")
    cleaned = clean_text(value)[:longest]
    if not cleaned or cleaned.isspace():
        raise InvalidValue(f"{where} should not be empty")
    return cleaned


def optional_text(value: object, where: str, longest: int = MAX_TEXT_LENGTH) -> str | None:
    """Return a text, cleaned and cut, or None; an empty one is None."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise InvalidValue(f"{where} should be a str or None, not {quote(value)}")
    return clean_text(value)[:longest] or None


def check_id(value: object, where: str, longest: int = MAX_ID_LENGTH) -> str:
    """Return an id, cleaned, with at most ``longest`` characters."""
    if not isinstance(value, str):
        raise InvalidValue(f"{where} should be a str, not {quote(value)}")
    cleaned = clean_id(value, longest)
    if not cleaned or cleaned.isspace():
        raise InvalidValue(f"{where} should not be empty")
    return cleaned


def optional_id(value: object, where: str) -> str | None:
    """Return an id or None; an empty one is None."""
    if value is None or value == "":
        return None
    return check_id(value, where)


def check_own_id(value: object, where: str) -> str:
    """Return the id of a resource or an identity; ids that the service uses for itself are refused."""
    cleaned = check_id(value, where)
    if cleaned in RESERVED_IDS:
        raise InvalidValue(f"{where} should not be {cleaned!r}, which is reserved")
    return cleaned


def check_type(value: object, where: str) -> str:
    """Return a resource type or an identity type: a short name that the service does not use for itself."""
    cleaned = check_text(value, where, MAX_TYPE_LENGTH + 1)
    if len(cleaned) > MAX_TYPE_LENGTH:
        raise InvalidValue(f"{where} should have at most {MAX_TYPE_LENGTH} characters")
    if cleaned == SYSTEM_IDENTITY:
        raise InvalidValue(f"{where} should not be {SYSTEM_IDENTITY!r}, which is reserved")
    return cleaned


def check_day(value: object, where: str) -> date:
    """Return a date that is not a datetime."""
    if not isinstance(value, date) or isinstance(value, datetime):
        raise InvalidValue(f"{where} should be a date, not {quote(value)}")
    return value


def check_instant(value: object, where: str) -> datetime:
    """Return a datetime with a time zone."""
    if not isinstance(value, datetime):
        raise InvalidValue(f"{where} should be a datetime, not {quote(value)}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidValue(f"{where} should have a time zone, such as UTC; {value.isoformat()} has none")
    return value


def optional_instant(value: object, where: str) -> datetime | None:
    """Return a datetime with a time zone, or None."""
    return None if value is None else check_instant(value, where)


def check_amount(value: object, where: str) -> Decimal:
    """Return an amount: a finite Decimal of at most twelve places that fits."""
    if not isinstance(value, Decimal):
        raise InvalidValue(f"{where} should be a Decimal, not {quote(value)}")
    if not value.is_finite():
        raise InvalidValue(f"{where} should be a finite number, not {value}")
    try:
        if is_exact(value):
            return value
    except ValueError:
        raise InvalidValue(f"{where} does not fit DECIMAL({PRECISION},{PLACES})") from None
    raise InvalidValue(
        f"{where} has more than {PLACES} decimal places; round it with chargeback.model.money.to_amount, "
        f"which gives {to_amount(value)}"
    )


def check_count(value: object, where: str, least: int = 0) -> int:
    """Return a whole number of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidValue(f"{where} should be an int, not {quote(value)}")
    if value < least:
        raise InvalidValue(f"{where} should be at least {least}, not {value}")
    return value


def check_records(kind: type[_T], value: object, where: str, word: str) -> Iterator[tuple[str, _T]]:
    """Yield each record of a list or tuple with its place as text, such as ``resource 3``."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise InvalidValue(f"{where} should be a list or a tuple, not {quote(value)}")
    for number, each in enumerate(value, start=1):
        place = f"{word} {number}"
        yield place, expect(kind, each, place)


def check_names(value: object, where: str) -> frozenset[str]:
    """Return a set of names."""
    if isinstance(value, str) or not isinstance(value, Set):
        raise InvalidValue(f"{where} should be a set of names, not {quote(value)}")
    return frozenset(check_text(each, f"a name in {where}", MAX_TYPE_LENGTH) for each in value)


def check_mapping(value: object, where: str) -> Mapping[Any, Any]:
    """Return a mapping."""
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{where} should be a dict, not {quote(value)}")
    return value


def check_metadata(value: object, where: str) -> Metadata:
    """Return metadata: texts, integers and booleans by name."""
    cleaned: dict[str, str | int | bool | None] = {}
    for key, each in check_mapping(value, where).items():
        name = check_text(key, f"a key of {where}")
        if isinstance(each, str):
            cleaned[name] = clean_text(each)[:MAX_TEXT_LENGTH]
        elif each is None or isinstance(each, int):
            cleaned[name] = each
        else:
            raise InvalidValue(f"{where}[{name!r}] should be a str, an int, a bool or None, not {quote(each)}")
    return cleaned


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
