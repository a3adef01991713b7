"""Shapes that many endpoints share."""

from datetime import date, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from chargeback.api.parameters import StrictModel
from chargeback.model.currency import CONVERTED_PLACES, RATE_PLACES
from chargeback.model.money import SHARED_PLACES

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


CurrencyCode = Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")]


class CurrencyParameter(StrictModel):
    """Lets a request choose the currency of the answer."""

    currency: CurrencyCode | None = Field(
        default=None,
        description="The currency of the amounts: the bill's, or one for which the configuration of the tenant has "
        "rates. The sum of each UTC month is converted by the rate of the month, and nothing is rounded, so that parts "
        "sum to their total. A month that has rows but no rate is an error. Default: the currency of the bill.",
        examples=["EUR"],
    )


class ConversionItem(ResponseModel):
    """How the amounts of an answer were converted."""

    billed_currency: str = Field(description="The currency of the bill.", examples=["USD"])
    rates: dict[str, str] = Field(
        description="By UTC month, what one unit of the bill's currency is in that of the answer; at most "
        f"{RATE_PLACES} decimal places. A converted amount has at most {CONVERTED_PLACES}, and "
        f"{SHARED_PLACES + RATE_PLACES} where values of cost categories hand on cost.",
        examples=[{"2026-10": "0.9131"}],
    )


CONVERSION: Any = Field(default=None, description="How the amounts were converted, if they were.")
