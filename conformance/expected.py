"""The settings of the official validator, and which of its rules fail with correct data, with the reasons.

Any other rule that fails is a mistake of ours; one of these that passes is news of the validator. Both are to be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

#: The version of the rules; the package has no other.
MODEL: Final = "1.2.0.1"

#: Our declarations of support. Without its criterion a rule is skipped silently, so the list is part of the check.
CRITERIA: Final = (
    "ACCOUNT_NAMING_SUPPORTED",
    "BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED",
    "MULTIPLE_SUB_ACCOUNT_TYPES_SUPPORTED",
    "PUBLIC_PRICE_LIST_SUPPORTED",
    "REGION_SUPPORTED",
    "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED",
    "SUB_ACCOUNT_SUPPORTED",
    "TAGGING_SUPPORTED",
    "UNIT_PRICING_SUPPORTED",
    "USAGE_MEASUREMENT_SUPPORTED",
)

#: The rules say without any condition that an InvoiceId must be null (C-004) and that it must not be (C-005).
_INVOICE: Final = frozenset({"InvoiceId-C-005-C"})

#: These columns are for prices in virtual currencies *and* public price lists; the validator demands them where one of
#: both is supported. The rules about their presence fail, those about their values, and what these are parts of.
_PRICING_CURRENCY: Final = frozenset(
    {
        "CostAndUsage-D-001-M",
        *(f"CostAndUsage-D-0{number}-C" for number in (46, 47, 48, 50, 51, 52, 54, 55, 56)),
        "PricingCurrencyContractedUnitPrice-C-000-C",
        *(f"PricingCurrencyContractedUnitPrice-C-00{number}-M" for number in (1, 2)),
        "PricingCurrencyEffectiveCost-C-000-C",
        *(f"PricingCurrencyEffectiveCost-C-00{number}-M" for number in (1, 2, 3, 4)),
        *(f"PricingCurrencyListUnitPrice-C-00{number}-C" for number in (0, 4, 5, 7)),
        *(f"PricingCurrencyListUnitPrice-C-00{number}-M" for number in (1, 2, 3, 8)),
    }
)

#: The text that we put into ChargeClass is none of its values, which is what these say.
_CHARGE_CLASS: Final = frozenset({"ChargeClass-C-000-M", "ChargeClass-C-005-C", "CostAndUsage-D-002-M"})

#: The validator accepts only ASCII in names. FOCUS demands Unicode ("String values MUST be valid Unicode strings",
#: StringHandling-A-001-M), so names are exported as they are. These rules fail because of the names of a cluster and an
#: environment in the constructed bill, and with them the rule that all columns are part of.
_UNICODE_NAMES: Final = frozenset(
    {
        "CostAndUsage-D-002-M",
        *(f"{column}-C-{rule}" for column in ("ResourceName", "SubAccountName") for rule in ("000-C", "002-M")),
    }
)

AS_EXPORTED: Final = _INVOICE | _PRICING_CURRENCY | _UNICODE_NAMES
WITH_CHARGE_CLASS: Final = AS_EXPORTED | _CHARGE_CLASS


def differences(found: Set[str], expected: Set[str]) -> list[str]:
    """Say what is not as expected, line by line."""
    new = [f"fails, and should not: {rule}" for rule in sorted(found - expected)]
    return [*new, *(f"passes, and is expected to fail: {rule}" for rule in sorted(expected - found))]


def unseen(found: Set[str], expected: Set[str], broken: Iterable[str]) -> list[str]:
    """Say which broken columns no rule found, line by line."""
    new = found - expected
    return [
        f"no rule has found that {column} is broken"
        for column in sorted(broken)
        if not any(rule.startswith(f"{column}-") for rule in new)
    ]
