"""Shapes that many endpoints share."""

from datetime import date, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

#: An exact decimal as text: plain notation, at least two decimals.
Decimal = Annotated[str, Field(pattern=r"^-?\d+\.\d{2,12}$", examples=["1234.56"])]

#: A sum in the currency of the bill: a product of twelve decimals and, where cost categories hand on cost, twelve more.
Sum = Annotated[str, Field(pattern=r"^-?\d+\.\d{2,24}$", examples=["1234.56"])]

#: The same of a sum that may be converted to another currency: eight decimals more.
Amount = Annotated[str, Field(pattern=r"^-?\d+\.\d{2,32}$", examples=["1234.56"])]

#: An instant in UTC.
Instant = Annotated[datetime, Field(examples=["2026-01-31T00:00:00Z"])]

Metadata = Annotated[
    dict[str, str | int | bool | None],
    Field(description="Further information; keys depend on the ecosystem.", examples=[{"environment_id": "env-abc12"}]),
]


class ResponseModel(BaseModel):
    """A model of a response body: exactly these fields."""

    model_config = ConfigDict(extra="forbid")


class PageOf(ResponseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    total: int = Field(description="Number of entries in the whole list.", examples=[1])
    page: int = Field(description="Number of this page, from 1.", examples=[1])
    page_size: int = Field(description="Entries per page.", examples=[100])
    pages: int = Field(description="Number of pages; 0 for an empty list.", examples=[1])


class DatesAnswer(ResponseModel):
    """Days that have data."""

    dates: list[date] = Field(description="UTC days, ascending.")


class CategoryPart(ResponseModel):
    """The part of a row that belongs to one value of a cost category."""

    value: str = Field(examples=["payments"])
    category_share: str = Field(description="Of the amount; 1 where the row is not split.", examples=["0.6"])
    amount: Decimal


_BY_CATEGORY = "Only when grouped by a cost category: "
DIRECT_AMOUNT: Any = Field(default=None, description=f"{_BY_CATEGORY}what its rules assigned to the value.")
SHARED_IN: Any = Field(default=None, description=f"{_BY_CATEGORY}what other values handed on to it.")
SHARED_OUT: Any = Field(
    default=None,
    description=f"{_BY_CATEGORY}what it handed on. `total_amount` is `direct_amount` + `shared_in` − `shared_out`.",
)
