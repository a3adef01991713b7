"""Policies as anyone can read them: those in force, and those by which earlier days were split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from chargeback.allocation.policies import UNKNOWN, Policy
from chargeback.recompute.rules import CONFIGURED, RECORDED, SHIPPED, AllocationRules
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.store.control.policies import UsedPolicy


class PolicyPortion(ResponseModel):
    """A portion of a policy: its share of the cost, and the methods to try."""

    number: int
    share: Exact
    methods: list[str] = Field(examples=[["usage(bytes_in + bytes_out)", "even(active)", "unallocated"]])

    @classmethod
    def all_of(cls, policy: Policy) -> list[Self]:
        """Return the portions of a policy."""
        return [
            cls(number=number, share=each.share, methods=[str(method) for method in each.methods])
            for number, each in enumerate(policy.portions, start=1)
        ]


class PolicyItem(ResponseModel):
    """The policy of a product type."""

    product_type: str = Field(description="The name, or a pattern.", examples=["KAFKA_NUM_CKUS"])
    hash: str = Field(description="The same for equal policies.")
    source: Literal["shipped", "configured", "recorded", "unknown"] = Field(
        description="`shipped`: the ecosystem's own; `configured`: changed by the tenant's configuration; `recorded`: "
        "was used and is not in force any more; `unknown`: no policy is known for the product type, so its cost is "
        "charged to nobody."
    )
    portions: list[PolicyPortion]
    first_used_at: Instant | None = Field(description="When a day was first calculated by it; null if none was.")


def list_policies(rules: AllocationRules, used: Sequence[UsedPolicy]) -> list[PolicyItem]:
    """Return the policies in force by product type, then those of other product types and of earlier days, by product
    type and time."""
    in_force = [
        PolicyItem(
            product_type=name,
            hash=policy.hash,
            source=_source(rules, name, policy),
            portions=PolicyPortion.all_of(policy),
            first_used_at=_first_use(rules, name, policy, used),
        )
        for name, policy in sorted(rules.catalogue.policies.items())
    ]
    others = [
        PolicyItem(
            product_type=each.product_type,
            hash=each.hash,
            source=RECORDED if each.hash != UNKNOWN.hash else "unknown",
            portions=PolicyPortion.all_of(each.policy),
            first_used_at=each.first_used_at,
        )
        for each in used
        if not _is_in_force(rules, each)
    ]
    return [*in_force, *others]


def applies_to(rules: AllocationRules, listed: PolicyItem, product_type: str) -> bool:
    """Return whether a policy is or was that of a product type."""
    return listed.product_type in {product_type, rules.catalogue.match(product_type)}


def _is_in_force(rules: AllocationRules, used: UsedPolicy) -> bool:
    policy = rules.catalogue.find(used.product_type)
    return policy is not None and policy.hash == used.hash


def _source(rules: AllocationRules, name: str, policy: Policy) -> str:
    shipped = rules.shipped.find(name)
    return SHIPPED if shipped is not None and shipped.hash == policy.hash else CONFIGURED


def _first_use(rules: AllocationRules, name: str, policy: Policy, used: Iterable[UsedPolicy]) -> datetime | None:
    uses = [
        each.first_used_at
        for each in used
        if each.hash == policy.hash and rules.catalogue.match(each.product_type) == name
    ]
    return min(uses, default=None)
