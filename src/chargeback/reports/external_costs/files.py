"""Files of external costs, such as an invoice or a provider's own cost allocation as CSV.

A mapping describes the columns of the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from chargeback.config.document import parse_document
from chargeback.errors import ConfigurationError
from chargeback.model.currency import CURRENCY_CODES
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import LIMIT, exact_sum, parse_decimal

T = TypeVar("T")

#: The maximum number of listed mistakes of a file.
MOST_MISTAKES: Final = 20

#: The maximum number of decimal places of an amount in a file: sums of such amounts are exact.
MOST_PLACES: Final = 100

_DOLLARS: Final = "ARS AUD BBD BMD BND BSD BZD CAD CLP COP FJD GYD HKD JMD KYD LRD MXN NAD NZD SBD SGD SRD TTD TWD XCD"
#: Currency sign → the currencies that are written with it. The sign alone stands for the first.
_SIGNS: Final = {
    **{"$": ("USD", *_DOLLARS.split()), "US$": ("USD",), "A$": ("AUD",), "AU$": ("AUD",), "C$": ("CAD",)},
    **{"CA$": ("CAD",), "HK$": ("HKD",), "MX$": ("MXN",), "NT$": ("TWD",), "NZ$": ("NZD",), "R$": ("BRL",)},
    **{"S$": ("SGD",), "€": ("EUR",), "£": ("GBP", "EGP", "FKP", "GIP", "SHP"), "¥": ("JPY", "CNY")},
    **{"CN¥": ("CNY",), "₹": ("INR",), "₩": ("KRW",), "₪": ("ILS",), "₫": ("VND",), "₱": ("PHP",), "₺": ("TRY",)},
}
_SIGN_OR_CODE: Final = r"[^\d\s.,;+\-()]{1,3}"
# There are no costs before or after these years, whose days have valid timestamps.
_FIRST_DAY: Final = date(1970, 1, 2)
_LAST_DAY: Final = date(2999, 12, 30)
_PROBE: Final = date(2026, 1, 31)

#: The compared key: the values of the entity column and of the product type column, None without such a column.
CostKey = tuple[str | None, str | None]


def _date_format(text: str) -> str:
    try:
        is_complete = datetime.strptime(_PROBE.strftime(text), text).date() == _PROBE  # noqa: DTZ007 - a date
    except ValueError:
        is_complete = False
    if not is_complete:
        raise ValueError("should have day, month and year in the notation of Python, such as %m/%d/%Y")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=255)]


class FileColumns(BaseModel):
    """The names of the columns of a file of costs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    amount: Name = Field(description="The column with the amount.", examples=["amount"])
    entity: Name | None = Field(default=None, description="The column with the id of the resource or identity.")
    product_type: Name | None = Field(default=None, description="The column with the product type.")
    date: Name | None = Field(default=None, description="The column with the day.", examples=["start_date"])
    currency: Name | None = Field(
        default=None,
        description="The column with the code of the currency (ISO 4217). Every line must have that of the tenant.",
        examples=["currency"],
    )

    @model_validator(mode="after")
    def _are_distinct(self) -> Self:
        fields: dict[str, str] = {}
        for field, column in self.model_dump(exclude_none=True).items():
            if (other := fields.setdefault(column, field)) != field:
                raise ValueError(f"{other} and {field} should not be the same column, {column!r}")
        return self


class CostMapping(BaseModel):
    """How to read a file of costs: the mapping of its columns and of its words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: FileColumns
    entity: Literal["resource_id", "identity_id"] = Field(
        default="resource_id",
        description="The entities in the entity column: resources, whose costs are compared with the bill, or "
        "identities, whose costs are compared with the chargebacks.",
    )
    date_format: Annotated[str, StringConstraints(max_length=40), AfterValidator(_date_format)] | None = Field(
        default=None,
        description="The format of days, in the notation of Python's `strptime`. Default: ISO 8601, a time is ignored.",
        examples=["%m/%d/%Y"],
    )
    delimiter: Literal[",", ";", "\t", "|"] = Field(default=",", description="The separator of columns.")
    decimal: Literal[".", ","] = Field(
        default=".", description="The decimal separator; the other one may separate thousands."
    )
    entities: dict[str, str] = Field(default={}, description="The ids of entities by their names in the file.")
    product_types: dict[str, str] = Field(default={}, description="The product types by their names in the file.")


@dataclass(frozen=True, slots=True)
class CostMistake:
    """A mistake in a file: the line (from 1, the head is the first), the column, if any, and the message."""

    line: int
    column: str | None
    message: str

    def __str__(self) -> str:
        place = f"line {self.line}" if self.column is None else f"line {self.line}, column {self.column!r}"
        return f"{place}: {self.message}"


class CostFileError(ValueError):
    """A file of costs cannot be read; ``mistakes`` are the first of them."""

    def __init__(self, mistakes: Sequence[CostMistake]) -> None:
        super().__init__("; ".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)


@dataclass(frozen=True, slots=True)
class ExternalCost:
    """One line of a file: the day, if the file has days, what it is about, and its exact amount."""

    day: date | None
    key: CostKey
    amount: Decimal


def parse_mapping(text: str) -> CostMapping:
    """Return the mapping in a YAML text.

    Raises:
        ConfigurationError: it is not YAML, or not such a mapping.
    """
    document = parse_document(text, None)
    if document.problems:
        raise ConfigurationError(document.problems)
    try:
        return CostMapping.model_validate(document.values)
    except ValidationError as error:
        raise ConfigurationError(
            [
                document.problem(each["loc"], each["msg"].removeprefix("Value error, "))
                for each in error.errors(include_url=False)
            ]
        ) from None


def read_costs(text: str, mapping: CostMapping, currency: str) -> list[ExternalCost]:
    """Return the lines of a CSV file with amounts in ``currency``; empty ones are ignored. Amounts have all decimal
    places of the file.

    Raises:
        CostFileError: a column is missing or occurs twice, a value of a line cannot be read, an amount is in another
            currency, or the sum of the amounts has too many digits.
    """
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=mapping.delimiter, strict=True)
    costs: list[ExternalCost] = []
    mistakes: list[CostMistake] = []
    try:
        reader = _LineReader(next(rows, []), mapping, currency)
        for row in rows:
            if any(row):
                found = reader.read(row, rows.line_num)
                costs.append(found) if isinstance(found, ExternalCost) else mistakes.extend(found)
            if len(mistakes) >= MOST_MISTAKES:
                break
    except csv.Error as error:
        mistakes.append(CostMistake(rows.line_num, None, f"is not CSV: {error}"))
    if mistakes:
        raise CostFileError(mistakes[:MOST_MISTAKES])
    return costs


class _LineReader:
    """Reads the lines of one file."""

    def __init__(self, head: Sequence[str], mapping: CostMapping, currency: str) -> None:
        names = [name.strip() for name in head]
        wanted = mapping.columns.model_dump(exclude_none=True)
        mistakes = [
            CostMistake(1, name, _several_columns(names.count(name)) if name in names else _no_column(names))
            for name in wanted.values()
            if names.count(name) != 1
        ]
        if mistakes:
            raise CostFileError(mistakes)
        self._count = len(names)
        self._mapping = mapping
        self._currency = currency
        self._columns = {what: (name, names.index(name)) for what, name in wanted.items()}
        self._amount = _amount_reader(mapping.decimal, currency, is_certain="currency" in wanted)
        self._sum = Decimal(0)

    def read(self, row: Sequence[str], line: int) -> ExternalCost | list[CostMistake]:
        """Return the cost of a line, or its mistakes."""
        if len(row) != self._count:
            return [CostMistake(line, None, f"has {len(row)} fields, and the head has {self._count}")]
        mistakes: list[CostMistake] = []
        self._value(row, line, "currency", self._check_currency, mistakes)
        amount = self._value(row, line, "amount", self._amount, mistakes)
        day = self._value(row, line, "date", self._day, mistakes)
        if mistakes or amount is None:
            return mistakes
        self._sum = exact_sum([self._sum, amount.copy_abs()])
        if self._sum >= LIMIT:
            too_large = (
                "up to here, the amounts without their signs sum to more than 26 digits before the decimal point"
            )
            return [CostMistake(line, self._columns["amount"][0], too_large)]
        entity, product_type = self._text(row, "entity"), self._text(row, "product_type")
        names = self._mapping
        key = (
            None if entity is None else names.entities.get(entity, entity),
            None if product_type is None else names.product_types.get(product_type, product_type),
        )
        return ExternalCost(day, key, amount)

    def _text(self, row: Sequence[str], what: str) -> str | None:
        return row[self._columns[what][1]].strip() if what in self._columns else None

    def _value(
        self, row: Sequence[str], line: int, what: str, parse: Callable[[str], T], mistakes: list[CostMistake]
    ) -> T | None:
        text = self._text(row, what)
        if text is None:
            return None
        try:
            return parse(text)
        except (ValueError, ArithmeticError) as error:
            mistakes.append(CostMistake(line, self._columns[what][0], str(error)))
            return None

    def _check_currency(self, text: str) -> None:
        if text.upper() != self._currency:
            raise ValueError(f"{text[:40]!r} is not {self._currency}, the currency of the costs here")

    def _day(self, text: str) -> date:
        shown, form = repr(text[:40]), self._mapping.date_format
        try:
            return datetime.fromisoformat(text).date() if form is None else datetime.strptime(text, form).date()  # noqa: DTZ007 - a date
        except ValueError:
            how = "such as 2026-01-31; the mapping may have a date_format" if form is None else f"written {form}"
            raise ValueError(f"{shown} is not a day {how}") from None


def _no_column(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:20])
    return f"there is no such column; the columns are {shown}" if shown else "the file is empty"


def _several_columns(count: int) -> str:
    return f"there are {count} columns with this name; rename all but one of them"


def _amount_reader(decimal: str, currency: str, *, is_certain: bool) -> Callable[[str], Decimal]:
    """Return a function that reads amounts with this decimal separator, which may have the sign or code of their
    currency. ``is_certain`` means that a column has the currency, so that signs of several currencies are accepted."""
    thousands = {".": ",", ",": "."}[decimal]
    digits = rf"(?:\d+|\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+)"
    number = rf"{digits}?(?:{re.escape(decimal)}\d*)?(?:[eE][+-]?\d{{1,3}})?"
    pattern = re.compile(rf"([+-]?)(?:({_SIGN_OR_CODE})\s?)?({number})(?:\s?({_SIGN_OR_CODE}))?")

    def _read(text: str) -> Decimal:
        found = pattern.fullmatch(text)
        marks = [] if found is None else [mark for mark in (found[2], found[4]) if mark]
        is_known = all(mark in _SIGNS or mark in CURRENCY_CODES for mark in marks)
        if found is None or not re.search(r"\d", found[3]) or not is_known:
            raise ValueError(f"{text[:40]!r} is not an amount such as 1234{decimal}56")
        for mark in marks:
            _check_mark(text, mark, currency, is_certain=is_certain or currency in marks)
        amount = parse_decimal(found[1] + found[3].replace(thousands, "").replace(decimal, "."))
        if amount.copy_abs() >= LIMIT:
            raise ValueError(f"{text[:40]!r} has more than 26 digits before the decimal separator")
        if -int(amount.as_tuple().exponent) > MOST_PLACES:
            raise ValueError(f"{text[:40]!r} has more than {MOST_PLACES} decimal places")
        return amount

    return _read


def _check_mark(text: str, mark: str, currency: str, *, is_certain: bool) -> None:
    """Check that the sign or code of an amount is that of ``currency``; with ``is_certain``, a sign that it shares with
    other currencies is accepted."""
    codes = _SIGNS.get(mark, (mark,))
    if currency == codes[0] or (is_certain and currency in codes):
        return
    if currency in codes:
        raise ValueError(
            f"{text[:40]!r} has the sign {mark!r}, which alone stands for {codes[0]}, and the costs here are in "
            f"{currency}; write {currency}, or map a column with the currency"
        )
    raise ValueError(f"{text[:40]!r} is in {codes[0]}, and the costs here are in {currency}")


def period_of(costs: Iterable[ExternalCost], start: date | None, end: date | None) -> DayRange | None:
    """Return the days from ``start`` to ``end`` (inclusive), by default those of the file; None if it has none."""
    days = [cost.day for cost in costs if cost.day is not None]
    first, last = start or min(days, default=None), end or max(days, default=None)
    if first is None or last is None:
        return None
    return DayRange(max(first, _FIRST_DAY), min(last, _LAST_DAY) + ONE_DAY)
