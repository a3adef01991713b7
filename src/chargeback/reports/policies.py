"""Policies in words: those in force, and those by which earlier days were split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Literal, Self

from pydantic import Field

from chargeback.allocation.policies import UNKNOWN, Policy, PolicyCatalogue, PolicyVersion
from chargeback.model.days import ONE_DAY
from chargeback.recompute.rules import CONFIGURED, RECORDED, SHIPPED, AllocationRules
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.store.control.policies import AppliedVersion, UsedPolicy


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
        "used, but no longer in force; `unknown`: no policy is known for the product type, so its cost is unallocated."
    )
    portions: list[PolicyPortion]
    effective_from: date | None = Field(
        description="The UTC day from which it is in a version of the tenant's own policies; null for one without a "
        "date, and for those of other days."
    )
    first_used_at: Instant | None = Field(description="When a day was first calculated by it; null if none was.")


class VersionPolicy(ResponseModel):
    """A policy of a version."""

    product_type: str
    hash: str
    portions: list[PolicyPortion]


class PolicyVersionItem(ResponseModel):
    """A version of the tenant's own policies, or of those of its ecosystem."""

    effective_from: date = Field(description="Its first UTC day.")
    last_day: date | None = Field(description="Its last UTC day; null while no other version of its source follows.")
    source: Literal["shipped", "configured"] = Field(
        description="`configured`: the tenant's own, which take precedence; `shipped`: those of its ecosystem, which "
        "an upgrade has changed: the new ones are in force from the first day that was calculated after it."
    )
    reason: str
    hash: str = Field(description="The same for equal policies, regardless of their first day.")
    calculated_days: int | None = Field(
        description="The number of days that were calculated by it; if there are any, it cannot change any more. Null "
        "within a scope."
    )
    applied_by: str | None = Field(description="The actor who applied it; null for one of the configuration.")
    applied_at: Instant | None
    policies: list[VersionPolicy] = Field(description="For `shipped`, those that differ from the previous version.")


def list_versions(
    rules: AllocationRules, calculated: Mapping[date, str | None] | None, applied: Iterable[AppliedVersion] = ()
) -> list[PolicyVersionItem]:
    """Return the versions of the tenant's own policies and those that an upgrade began, the first one first.
    ``calculated`` has the version by which each visible day was calculated; ``applied`` are those that were applied
    from a plan."""
    by_day = {each.effective_from: each for each in applied}

    def item(version: PolicyVersion, last_day: date | None, days: int | None, source: str) -> PolicyVersionItem:
        each = by_day.get(version.effective_from) if source == CONFIGURED else None
        return PolicyVersionItem(
            effective_from=version.effective_from,
            last_day=last_day,
            source=source,
            reason=version.reason,
            hash=version.hash,
            calculated_days=days,
            applied_by=None if each is None else each.applied_by,
            applied_at=None if each is None else each.applied_at,
            policies=[
                VersionPolicy(product_type=name, hash=policy.hash, portions=PolicyPortion.all_of(policy))
                for name, policy in sorted(version.policies.items())
            ],
        )

    own, eras = rules.catalogue, rules.shipped.eras
    versions = [
        item(version, last, None if calculated is None else _count(own, version, calculated), CONFIGURED)
        for version, last in _with_last_days(own.versions)
    ]
    begun = [
        item(
            replace(era, policies=_other_policies(era.policies, before.policies)),
            last,
            None if calculated is None else sum(era.effective_from <= day <= (last or day) for day in calculated),
            SHIPPED,
        )
        for before, (era, last) in zip(eras, _with_last_days(eras[1:]), strict=False)
    ]
    return sorted([*versions, *begun], key=lambda each: each.effective_from)


def _with_last_days(versions: Sequence[PolicyVersion]) -> list[tuple[PolicyVersion, date | None]]:
    """Return versions with their last days; None for the last version."""
    ends = [each.effective_from - ONE_DAY for each in versions[1:]]
    return list(zip(versions, [*ends, None], strict=False))


def _other_policies(policies: Mapping[str, Policy], before: Mapping[str, Policy]) -> dict[str, Policy]:
    return {name: policy for name, policy in policies.items() if name not in before or before[name].hash != policy.hash}


def _count(catalogue: PolicyCatalogue, version: PolicyVersion, calculated: Mapping[date, str | None]) -> int:
    return sum(hash_ == version.hash and catalogue.version_on(day) is version for day, hash_ in calculated.items())


def list_policies(rules: AllocationRules, used: Sequence[UsedPolicy], day: date) -> list[PolicyItem]:
    """Return the policies in force on a UTC day by product type, then those of other product types and of other days,
    by product type and time."""
    version = rules.catalogue.version_on(day)
    dated = {} if version is None else version.policies
    names = {rules.catalogue.aliases.get(name, name) for name in dated}
    rules = rules.on(day)
    in_force = [
        PolicyItem(
            product_type=name,
            hash=policy.hash,
            source=_source(rules, name, policy),
            portions=PolicyPortion.all_of(policy),
            effective_from=version.effective_from if version is not None and name in names else None,
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
            effective_from=None,
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
