"""Amounts in another currency than the bill's."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from chargeback.api.parameters import StrictModel
from chargeback.api.schemas.common import ResponseModel
from chargeback.model.currency import CONVERTED_PLACES, RATE_PLACES
from chargeback.model.money import SHARED_PLACES

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
