"""Shapes that many endpoints share."""

from datetime import date, datetime
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

#: An exact decimal as text: plain notation, at least two decimals.
Decimal = Annotated[str, Field(pattern=r"^-?\d+\.\d{2,12}$", examples=["1234.56"])]

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
