"""Contracts with the provider in FOCUS 1.4: the dataset *Contract Commitment*, a row for each commitment.

Properties that our contracts do not have are those of the usual agreements: negotiated, billed monthly in arrears, and
measured over their interval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final, Literal

from pydantic import Field, field_serializer

from chargeback.config.contracts import ContractSettings
from chargeback.model.contracts import SPEND, Commitment
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from chargeback.model.focus import focus_unit
from chargeback.reports.answers import Exact
from chargeback.reports.contracts import CommitmentItem, Standing
from chargeback.reports.focus.applied import commitment_id
from chargeback.reports.focus.metadata import FocusRecord, InstantText
from chargeback.reports.wording import counted

LifecycleStatus = Literal["Pending", "Active", "Exhausted", "Expired"]
FulfillmentInterval = Literal["Monthly", "Quarterly", "Annual", "Full Period"]

_INTERVALS: Final[Mapping[str, FulfillmentInterval]] = {
    "monthly": "Monthly",
    "quarterly": "Quarterly",
    "annual": "Annual",
    "term": "Full Period",
}
#: The columns of Cost and Usage that distinguish lines.
_DIMENSIONS: Final = {
    "product_category": "x_ProductCategory",
    "product_type": "SkuMeter",
    "resource_id": "ResourceId",
    "environment_id": "SubAccountId",
}
_MONTHS_OF_YEAR: Final = 12


class FocusContractCommitment(FocusRecord):
    """A commitment of a contract."""

    billing_currency: str = Field(examples=["USD"])
    contract_commitment_applicability: dict[str, Any] = Field(description="The charges that count, as JSON.")
    contract_commitment_benefit_category: Literal["Other"]
    contract_commitment_category: Literal["Spend", "Usage"]
    contract_commitment_cost: Exact | None = Field(description="For spend: the committed amount of each interval.")
    contract_commitment_created: InstantText
    contract_commitment_description: str | None
    contract_commitment_discount_percentage: Exact | None
    contract_commitment_duration_type: str = Field(examples=["1 Year"])
    contract_commitment_fulfillment_interval: FulfillmentInterval
    contract_commitment_id: str = Field(examples=["confluent-2026/spend"])
    contract_commitment_last_updated: InstantText
    contract_commitment_lifecycle_status: LifecycleStatus
    contract_commitment_model: Literal["Discontinuous"]
    contract_commitment_offer_category: Literal["Negotiated"]
    contract_commitment_payment_interval: Literal["Monthly"]
    contract_commitment_payment_model: Literal["No Upfront"]
    contract_commitment_period_end: InstantText = Field(description="Exclusive.")
    contract_commitment_period_start: InstantText
    contract_commitment_quantity: Exact | None = Field(
        description="For usage: the committed quantity of each interval."
    )
    contract_commitment_type: str
    contract_commitment_unit: str | None
    contract_id: str = Field(examples=["confluent-2026"])
    contract_period_end: InstantText = Field(description="Exclusive.")
    contract_period_start: InstantText
    invoice_issuer_name: str
    service_provider_name: str

    @field_serializer("contract_commitment_applicability", when_used="json")
    def _as_text(self, which: dict[str, Any]) -> str:
        return json.dumps(which, ensure_ascii=False)


def contract_commitments(
    contracts: Sequence[ContractSettings], standing: Standing, currency: str
) -> list[FocusContractCommitment]:
    """Return the commitments of contracts, in the order of the configuration."""
    return [
        _row(contract, commitment, item, standing.today, currency)
        for contract in contracts
        for commitment, item in zip(contract.committed, standing.item(contract, currency).commitments, strict=True)
    ]


def _row(
    contract: ContractSettings, commitment: Commitment, item: CommitmentItem, today: date, currency: str
) -> FocusContractCommitment:
    start, end = start_of_day(contract.days.start), start_of_day(contract.days.end)
    is_spend = commitment.kind == SPEND
    return FocusContractCommitment(
        billing_currency=currency,
        contract_commitment_applicability=_applicability(commitment),
        contract_commitment_benefit_category="Other",
        contract_commitment_category="Spend" if is_spend else "Usage",
        contract_commitment_cost=commitment.size if is_spend else None,
        contract_commitment_created=start,
        contract_commitment_description=None,
        contract_commitment_discount_percentage=None,
        contract_commitment_duration_type=_duration(contract.days),
        contract_commitment_fulfillment_interval=_INTERVALS[commitment.interval],
        contract_commitment_id=commitment_id(commitment),
        contract_commitment_last_updated=start,
        contract_commitment_lifecycle_status=_status(contract, item, today),
        contract_commitment_model="Discontinuous",
        contract_commitment_offer_category="Negotiated",
        contract_commitment_payment_interval="Monthly",
        contract_commitment_payment_model="No Upfront",
        contract_commitment_period_end=end,
        contract_commitment_period_start=start,
        contract_commitment_quantity=None if is_spend else commitment.size,
        contract_commitment_type=f"Minimum {'spend' if is_spend else 'usage'}",
        contract_commitment_unit=None if is_spend else focus_unit(commitment.unit),
        contract_id=contract.id,
        contract_period_end=end,
        contract_period_start=start,
        invoice_issuer_name=contract.issuer,
        service_provider_name=contract.issuer,
    )


def _applicability(commitment: Commitment) -> dict[str, Any]:
    if not commitment.applies_to:
        return {"IsGlobalScope": True}
    rules = [
        {"Dimension": _DIMENSIONS[name], "Operator": "In", "Values": sorted(values)}
        for name, values in sorted(commitment.applies_to.items())
    ]
    return {"InclusionOperator": "And", "Inclusions": rules}


def _status(contract: ContractSettings, item: CommitmentItem, today: date) -> LifecycleStatus:
    if today < contract.days.start:
        return "Pending"
    if today >= contract.days.end:
        return "Expired"
    return "Exhausted" if item.intervals and item.intervals[-1].remaining <= 0 else "Active"


def _duration(days: DayRange) -> str:
    """Return the length of some days in years or months, if these are whole, else in days.

    >>> first = date(2026, 1, 15)
    >>> [_duration(DayRange(first, end)) for end in (date(2027, 1, 15), date(2026, 4, 15), date(2026, 1, 16))]
    ['1 Year', '3 Months', '1 Day']
    """
    months = (days.end.year - days.start.year) * _MONTHS_OF_YEAR + days.end.month - days.start.month
    if months and days.start.day == days.end.day:
        years, rest = divmod(months, _MONTHS_OF_YEAR)
        return counted(months, "Month") if rest else counted(years, "Year")
    return counted((days.end - days.start) // ONE_DAY, "Day")
