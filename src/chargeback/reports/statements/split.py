"""How the costs of a statement were split: by policies, rules and steps of reallocation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal

from sqlalchemy import Connection

from chargeback.allocation.policies import UNKNOWN, Policy
from chargeback.categories.document import CostCategory
from chargeback.categories.resolve import rule_name
from chargeback.model.money import total
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.statements.content import SHARED_IN, SHARED_OUT, StatementPolicy, StatementRule, StatementStep
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.policies import used_policies
from chargeback.store.queries.sums import StatementSum


def applied_policies(
    tenant: TenantView, connection: Connection, used: Mapping[str, Collection[str]]
) -> dict[str, list[StatementPolicy]]:
    """Return the policies of each product type whose hashes were ``used``, by hash; those of earlier days only if they
    are recorded."""
    recorded = {each.hash: each.policy for each in used_policies(connection)}
    found: dict[str, list[StatementPolicy]] = {}
    for product_type, hashes in used.items():
        present = tenant.rules.catalogue.find(product_type) or UNKNOWN
        known: dict[str, Policy] = {**recorded, UNKNOWN.hash: UNKNOWN, present.hash: present}
        applied = [known[each] for each in sorted(hashes) if each in known]
        found[product_type] = [
            StatementPolicy(product_type=product_type, hash=policy.hash, portions=PolicyPortion.all_of(policy))
            for policy in applied
        ]
    return found


def rule_shares(category: CostCategory, rows: Iterable[StatementSum]) -> list[StatementRule]:
    """Return the costs that each rule assigned, the largest first."""
    amounts: dict[int | None, list[Decimal]] = {}
    for each in rows:
        amounts.setdefault(each.rule, []).append(each.direct)
    summed = {place: total(parts) for place, parts in amounts.items() if any(parts)}
    in_order = sorted(summed, key=lambda place: (-summed[place], -1 if place is None else place))
    return [_rule_share(category, place, summed[place]) for place in in_order]


def _rule_share(category: CostCategory, place: int | None, amount: Decimal) -> StatementRule:
    if place is None:
        return StatementRule(id=None, reason=None, amount=amount)
    rule = rule_name(category, place)
    return StatementRule(id=rule.id, reason=rule.reason, amount=amount)


def steps_for(category: CostCategory, value: str, kinds: Collection[str]) -> Iterator[StatementStep]:
    """Yield the steps that reallocated costs to a value with lines of these kinds, or from it."""
    for each in category.share:
        is_own = each.source == value
        reaches = each.targets is None or value in each.targets or value in dict(each.fees)
        if (is_own and SHARED_OUT in kinds) or (not is_own and reaches and SHARED_IN in kinds):
            yield StatementStep(source=each.source, by=str(each))
