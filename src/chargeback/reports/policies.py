"""Policies as anyone can read them: those in force, and those by which earlier days were split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from pydantic import Field

from chargeback.allocation.policies import UNKNOWN, Policy
from chargeback.model.money import render
from chargeback.recompute.rules import CONFIGURED, RECORDED, SHIPPED, AllocationRules
from chargeback.reports.answers import Exact, ResponseModel
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


UNKNOWN_TYPE: Final = "unknown"


@dataclass(frozen=True, slots=True)
class ListedPolicy:
    """A policy of a product type.

    Attributes:
        product_type: the name, or a pattern such as ``CONNECT_*``.
        policy: how it is split.
        source: ``shipped`` with the ecosystem; ``configured`` by the tenant; ``recorded``: it was used, and is not in
            force any more; ``unknown``: none is known for the product type, so its cost is unallocated.
        first_used_at: when a day was first calculated by it; None if none was.
    """

    product_type: str
    policy: Policy
    source: str
    first_used_at: datetime | None


def policy_json(policy: Policy) -> list[dict[str, Any]]:
    """Return the portions of a policy."""
    return [
        {"number": number, "share": render(each.share.normalize()), "methods": [str(method) for method in each.methods]}
        for number, each in enumerate(policy.portions, start=1)
    ]


def list_policies(rules: AllocationRules, used: Sequence[UsedPolicy]) -> list[ListedPolicy]:
    """Return the policies in force by product type, then those of other product types and of earlier days, by product
    type and time."""
    in_force = [
        ListedPolicy(name, policy, _source(rules, name, policy), _first_use(rules, name, policy, used))
        for name, policy in sorted(rules.catalogue.policies.items())
    ]
    others = [
        ListedPolicy(
            each.product_type, each.policy, RECORDED if each.hash != UNKNOWN.hash else UNKNOWN_TYPE, each.first_used_at
        )
        for each in used
        if not _is_in_force(rules, each)
    ]
    return [*in_force, *others]


def applies_to(rules: AllocationRules, listed: ListedPolicy, product_type: str) -> bool:
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
