"""Models of responses, whose fields have their JSON format and description, and their text as CSV.

A report returns them, the API writes them as JSON, and the OpenAPI document describes them.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Final, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

from chargeback.model.currency import CONVERTED_PLACES, RATE_PLACES, Conversion
from chargeback.model.days import render_instant
from chargeback.model.money import SHARED_PLACES, render
from chargeback.store.queries.paging import Page
from chargeback.store.queries.sql_format import END_OF_LINE, csv_field

T = TypeVar("T")


def places(most: int) -> WithJsonSchema:
    """Return the description of an exact decimal with at most ``most`` places."""
    return WithJsonSchema(
        {"type": "string", "pattern": rf"^-?\d+\.\d{{2,{most}}}$", "examples": ["1234.56"]}, mode="serialization"
    )


#: The JSON format of amounts.
RENDERED: Final = PlainSerializer(render, return_type=str)

#: An exact decimal: plain notation, at least two decimals.
Exact = Annotated[decimal.Decimal, RENDERED, places(12)]

#: A sum in the currency of the bill: twelve decimals and, where cost categories reallocate cost, twelve more.
Sum = Annotated[decimal.Decimal, RENDERED, places(24)]

#: A sum that may be converted to another currency: eight decimals more.
Amount = Annotated[decimal.Decimal, RENDERED, places(32)]

#: An instant in UTC.
Instant = Annotated[datetime, Field(examples=["2026-01-31T00:00:00Z"])]

Metadata = Annotated[
    dict[str, str | int | bool | None],
    Field(description="Further information; keys depend on the ecosystem.", examples=[{"environment_id": "env-abc12"}]),
]


class ResponseModel(BaseModel):
    """A model of a response body: exactly these fields. What validates and writes it is built at its first use:
    to build hundreds of models would be a tenth of a start."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @classmethod
    def like(cls, found: object, **own: Any) -> Self:
        """Return the model with the fields of ``found``, an object or a mapping; ``own`` are the other fields."""
        value = found.__getitem__ if isinstance(found, Mapping) else partial(getattr, found)
        same = {name: value(name) for name in cls.model_fields if name not in own}
        return cls.model_validate(same | own, from_attributes=True)

    @classmethod
    def columns(cls) -> dict[str, str]:
        """Return the fields as the columns of a table, see :func:`~chargeback.reports.answers.table_text`."""
        return {name: name for name in cls.model_fields}


class Counted(ResponseModel):
    """The number of combined entries. As the last base of a model, its field is the first one."""

    count: int


def left_out(description: str, **options: Any) -> Any:
    """Return a field that is left out if it is None, the default."""
    return Field(default=None, exclude_if=_is_none, description=description, **options)


def _is_none(value: object) -> bool:
    return value is None


class PageOf(ResponseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    total: int = Field(description="Number of entries in the whole list.", examples=[1])
    page: int = Field(description="Number of this page, from 1.", examples=[1])
    page_size: int = Field(description="Entries per page.", examples=[100])
    pages: int = Field(description="Number of pages; 0 for an empty list.", examples=[1])

    @classmethod
    def cut(cls, everything: Sequence[T], paging: Page, **more: Any) -> Self:
        """Return one page of the complete list ``everything``; ``more`` are further fields."""
        items = list(everything[paging.offset : paging.offset + paging.limit])
        return cls.of(items, len(everything), paging, **more)

    @classmethod
    def of(cls, items: list[T], total: int, paging: Page, **more: Any) -> Self:
        """Return a page from its ``items``, of a list of ``total``."""
        pages = -(-total // paging.limit)
        return cls(
            items=items,
            total=total,
            page=paging.offset // paging.limit + 1,
            page_size=paging.limit,
            pages=pages,
            **more,
        )


class DatesAnswer(ResponseModel):
    """Days that have data."""

    dates: list[date] = Field(description="UTC days, ascending.")


class CategoryPart(ResponseModel):
    """The part of a row that belongs to one value of a cost category."""

    value: str = Field(examples=["payments"])
    category_share: str = Field(description="The share of the amount; 1 if the row is not split.", examples=["0.6"])
    amount: Exact


_BY_CATEGORY = "Only when grouped by a cost category: "
DIRECT_AMOUNT = left_out(f"{_BY_CATEGORY}the cost that its rules assign to the value.")
SHARED_IN = left_out(f"{_BY_CATEGORY}the cost reallocated to it by other values.")
SHARED_OUT = left_out(
    f"{_BY_CATEGORY}the cost that it reallocated. `total_amount` is `direct_amount` + `shared_in` − `shared_out`."
)


class ConversionItem(ResponseModel):
    """How the amounts of a response were converted."""

    billed_currency: str = Field(description="The currency of the bill.", examples=["USD"])
    rates: dict[str, str] = Field(
        description="By UTC month, the amount of one unit of the bill's currency in that of the response; at most "
        f"{RATE_PLACES} decimal places. A converted amount has at most {CONVERTED_PLACES}, and "
        f"{SHARED_PLACES + RATE_PLACES} where values of cost categories reallocate cost.",
        examples=[{"2026-10": "0.9131"}],
    )


CONVERSION = left_out("How the amounts were converted, if they were.")


def currency_of(billed: str, conversion: Conversion | None) -> dict[str, Any]:
    """Return the fields ``currency`` and ``conversion`` of a response; ``billed`` is the currency of the bill."""
    if conversion is None:
        return {"currency": billed}
    rates = ConversionItem(billed_currency=conversion.billed, rates=conversion.named_rates)
    return {"currency": conversion.currency, "conversion": rates}


class ComparedWith(ResponseModel):
    """The other period."""

    start_date: date
    end_date: date
    days_with_costs: int = Field(description="The number of its UTC days that have costs.")


class Grouped(ResponseModel):
    """An entry about the rows with the same values of some columns."""

    dimensions: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc"}])


def csv_text(columns: Sequence[str], items: Iterable[Mapping[str, Any]], *, numbers: Collection[str] = ()) -> str:
    """Return items as CSV with a header (RFC 4180), in the format of exports.

    ``numbers`` are the columns whose texts are decimals: a leading minus sign does not make them formulas.
    """
    fields = ([_field(item[column], is_number=column in numbers) for column in columns] for item in items)
    return _lines(columns, fields)


def table_text(columns: Mapping[str, str], items: Iterable[ResponseModel]) -> str:
    """Return items as CSV with a header, in the format of exports. ``columns`` are the names of the header with the
    paths of their fields in an item, such as ``subject.name``; the text is empty if a field of the path is None."""
    paths = [path.split(".") for path in columns.values()]
    return _lines(columns, ([_field(_found(item, path)) for path in paths] for item in items))


def _lines(columns: Iterable[str], rows: Iterable[list[str]]) -> str:
    lines = [[csv_field(column) for column in columns], *rows]
    return "".join(f"{','.join(fields)}{END_OF_LINE}" for fields in lines)


def _found(item: object, path: Sequence[str]) -> object:
    for name in path:
        item = None if item is None else getattr(item, name)
    return item


def _field(value: object, *, is_number: bool = False) -> str:
    match value:
        case None:
            return ""
        case Decimal():
            return render(value)
        case datetime():
            return render_instant(value)
        case bool():
            return "true" if value else "false"
        case str():
            return value if is_number else csv_field(value)
        case Mapping():
            text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            # An escape of JSON, so that it is no separator.
            return '"' + text.replace(";", "\\u003b").replace('"', '""') + '"'
        case _:
            return str(value)
