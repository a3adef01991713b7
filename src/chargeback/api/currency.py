"""Responses in another currency: the parameter ``currency``, and the header of a file with the rates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from chargeback.api.parameters import StrictModel
from chargeback.api.problems import InvalidParameter, InvalidRequest
from chargeback.model.currency import Conversion, missing_months, months_of
from chargeback.model.days import InstantRange
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.closings import pinned_rates
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.reader import TenantReader

#: The header of a file with the currency from which its amounts were converted, and the rates.
RATES: Final = "X-Currency-Rates"

RATES_HEADER: Final = {
    RATES: {
        "description": "With `currency` only: the rates by which the amounts were converted, as `month=rate`, after "
        "the currencies.",
        "schema": {"type": "string", "examples": ["USD to EUR: 2026-09=0.9044, 2026-10=0.9131"]},
    }
}


CurrencyCode = Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")]


class CurrencyParameter(StrictModel):
    """Lets a request choose the currency of the response."""

    currency: CurrencyCode | None = Field(
        default=None,
        description="The currency of the amounts: the bill's, or one for which the configuration of the tenant has "
        "rates. The sum of each UTC month is converted by the rate of the month, and nothing is rounded, so that parts "
        "sum to their total. A month that has rows but no rate is an error. Default: the currency of the bill.",
        examples=["EUR"],
    )


def conversion_for(
    tenant: TenantView,
    reader: TenantReader,
    currency: str | None,
    datasets: Iterable[Dataset],
    windows: Iterable[InstantRange | None],
) -> Conversion | None:
    """Return how the amounts of some datasets in some windows are converted; None if they are requested in the currency
    of the bill.

    Raises:
        InvalidRequest: the tenant has no such currency, or no rate of a month that has rows.
    """
    if currency is None or currency == tenant.currency:
        return None
    rates = tenant.currencies.get(currency)
    if rates is None:
        known = ", ".join([tenant.currency, *sorted(tenant.currencies)])
        raise InvalidRequest([InvalidParameter("currency", f"should be a currency of this tenant: {known}")])
    with tenant.store.control.read() as connection:
        rates = {**rates, **pinned_rates(connection, currency)}
    ranges = [window.days() for window in windows if window is not None and window.start < window.end]
    days = [day for dataset in datasets for day in reader.dates(dataset) if any(day in each for each in ranges)]
    missing = missing_months(rates, days)
    if missing:
        message = f"has no rate for {', '.join(missing)}; add them to currencies.{currency} of the tenant"
        raise InvalidRequest([InvalidParameter("currency", message)])
    return Conversion(tenant.currency, currency, {month: rates[month] for month in months_of(days)})


def rates_header(conversion: Conversion | None) -> dict[str, str]:
    """Return the header of a converted file."""
    if conversion is None:
        return {}
    rates = ", ".join(f"{month}={rate}" for month, rate in conversion.named_rates.items())
    return {RATES: f"{conversion.billed} to {conversion.currency}: {rates}"}
