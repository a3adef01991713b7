"""Compiles the statements of a month from a tenant's facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from sqlalchemy import Connection

from chargeback.allocation.policies import UNKNOWN, Policy
from chargeback.categories.document import CostCategory
from chargeback.model.currency import month_name
from chargeback.model.days import ONE_DAY, DayRange, month_of
from chargeback.model.money import total
from chargeback.reports.changes import Change, ChangeEffects, changes, names_of_changes, policies_used, together
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.reconciliation import ECOSYSTEM
from chargeback.reports.statements.amounts import (
    StatementGrouping,
    amounts_by,
    largest,
    lines_of,
    seen_in_part,
    stated_amounts,
    sums_by_value,
)
from chargeback.reports.statements.content import (
    SHARED_IN,
    SHARED_OUT,
    PathStep,
    PreviousStatement,
    StatedAmount,
    StatementAnswer,
    StatementHeading,
    StatementLine,
    StatementPolicy,
    StatementRanking,
    StatementRecipient,
    StatementReply,
    StatementRule,
    Statements,
    StatementSplit,
    StatementStep,
    StatementTieOut,
    StatementUnitCost,
    current_verdict,
)
from chargeback.reports.statements.heading import heading_of, tie_out
from chargeback.reports.statements.numbering import content_digest, statement_number
from chargeback.reports.tenant_view import TenantView
from chargeback.reports.unit_costs import UNIT_MEASURES, unit_costs
from chargeback.reports.wording import DisplayNames
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, EntityKind, names_of
from chargeback.store.control.policies import used_policies
from chargeback.store.control.statement_replies import RecordedReply, read_replies
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import StatementSum, sums_by

IDENTITY: Final = "identity_id"

_TOPIC: Final = ("cluster_resource_id", "topic_name")
#: The unit costs in a statement: of the traffic that identities wrote and read.
_UNITS: Final = ("gib_in", "gib_out")

#: By value: the amounts on the bill of each ecosystem.
_Bills = Mapping[str, Mapping[str, Decimal]]
#: By value: the attribution of each topic, as (cluster, name).
_Topics = Mapping[str, Mapping[tuple[str, str], Decimal]]


def compile_statements(
    tenant: TenantView, reader: TenantReader, month: date, by: str, also: Collection[str] = ()
) -> Statements:
    """Return the statements of the UTC month of a day by ``identity_id``, ``tag:<key>`` or ``category:<key>``: one for
    each value with costs in this month or the one before, and for the values of ``also``. If no day of the month is
    calculated, only the latter have statements.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
        UnknownCategory: the tenant has no such cost category.
        ValueError: chargebacks cannot be grouped by these columns.
    """
    days = month_of(month)
    grouping = StatementGrouping.of(reader, by)
    sums = sums_by_value(reader, days, grouping)
    whole = sums if reader.sees_everything else sums_by_value(reader.unscoped(), days, grouping)
    amounts = stated_amounts(sums, whole, tenant.currency)
    changed = _changes(reader, days, grouping)
    topics = _topics(tenant, reader, days, grouping)
    bills = _bills(reader, days, grouping)
    per_unit = _unit_costs(reader, days, grouping, len(sums))
    used = policies_used(reader, Selection.of_days(days).window)
    rows = [each for of_value in sums.values() for each in of_value]
    clusters = {cluster for of_value in (topics or {}).values() for cluster, _ in of_value}
    with tenant.store.control.read() as connection:
        heading, superseded = heading_of(tenant, reader, connection, days, grouping)
        if not heading.calculated_days:
            sums, whole, amounts, changed = {}, {}, {}, {}
        checked = tie_out(tenant, reader, connection, days, amounts.values()) if reader.sees_everything else None
        maker = _StatementMaker(
            heading,
            superseded,
            grouping,
            _applied_policies(tenant, connection, used),
            _names(connection, IDENTITIES, {each.identity_id for each in rows}),
            _names(connection, RESOURCES, {each.resource_id for each in rows} | clusters),
            names_of_changes(connection, changed.values(), tenant.currency),
            _Replies(
                read_replies(connection, heading.period, heading.by),
                seen_in_part(sums, whole),
                heading.revision if reader.past_states is not None else None,
            ),
            checked,
        )
    nothing = StatedAmount.alone(Decimal(0), tenant.currency)
    items = [
        maker.statement(
            value,
            sums.get(value, ()),
            amounts.get(value, nothing),
            changed.get(value),
            topics,
            bills.get(value, {}),
            per_unit.get(value, ()),
        )
        for value in sorted({*sums, *changed, *also}, key=grouping.order)
    ]
    return Statements(heading, items, StatedAmount.sum(items, tenant.currency), checked)


@dataclass(frozen=True)
class _Replies:
    """The replies to the statements of a month, by value. Those to a ``partly`` visible statement are left out, because
    they were about other amounts. ``last`` is the revision of statements as of an earlier instant: they have the
    replies to their content, and to this revision or an earlier one."""

    by_value: Mapping[str, Sequence[RecordedReply]]
    partly: Collection[str]
    last: int | None

    def to(self, value: str, digest: str) -> list[StatementReply] | None:
        """Return the replies to the statement of a value whose content has the ``digest``."""
        if value in self.partly:
            return None
        return [
            StatementReply.of(each, digest)
            for each in self.by_value.get(value, ())
            if self.last is None or each.digest == digest or each.revision <= self.last
        ]


@dataclass(frozen=True)
class _StatementMaker:
    """Makes the statements of one month. ``superseded`` is the previous revision, ``policies`` are those of each
    product type, ``identities`` and ``resources`` the display names by id, ``changed`` the names in the changes."""

    heading: StatementHeading
    superseded: int | None
    grouping: StatementGrouping
    policies: Mapping[str, Sequence[StatementPolicy]]
    identities: Mapping[str, str]
    resources: Mapping[str, str]
    changed: DisplayNames
    replies: _Replies
    tie_out: StatementTieOut | None

    def statement(
        self,
        value: str,
        rows: Sequence[StatementSum],
        amount: StatedAmount,
        changed: Change | None,
        topics: _Topics | None,
        bills: Mapping[str, Decimal],
        per_unit: Sequence[StatementUnitCost],
    ) -> StatementAnswer:
        """Return the statement of a value."""
        heading = self.heading
        numbered = (heading.tenant_name, heading.period, heading.by, value)
        lines = lines_of(rows, amount, heading.currency)
        digest = content_digest(heading, value, lines)
        replies = self.replies.to(value, digest)
        return StatementAnswer(
            **dict(heading),
            number=statement_number(*numbered, heading.revision),
            supersedes=None if self.superseded is None else statement_number(*numbered, self.superseded),
            digest=digest,
            recipient=self._recipient(value),
            amount=amount.amount,
            rounded=amount.rounded,
            lines=lines,
            previous=None if changed is None else self._previous(changed),
            identities=None
            if heading.by == IDENTITY
            else self._ranking(rows, amount, lambda each: each.identity_id, self.identities),
            resources=self._ranking(rows, amount, lambda each: each.resource_id, self.resources),
            bills=None
            if len(bills) < 2
            else largest(bills, amount, heading.currency, lambda ecosystem: (ecosystem, None, None)),
            topics=None if topics is None else self._topics(topics.get(value, {})),
            unit_costs=list(per_unit),
            split=self._split(value, rows, lines),
            verdict=current_verdict(replies or ()),
            replies=replies,
            tie_out=self.tie_out,
        )

    def _recipient(self, value: str) -> StatementRecipient:
        name = self.identities.get(value) if self.heading.by == IDENTITY else None
        category = self.grouping.category
        entry = None if category is None else category.register.get(value)
        if category is None or entry is None:
            return StatementRecipient(value=value, name=name, path=[], gl={}, contacts=[])
        names = {each.key: each.name for each in category.values}
        last_day = self.heading.end_date
        return StatementRecipient(
            value=value,
            name=entry.name,
            path=[PathStep(value=above, name=names.get(above)) for above in category.path(value, last_day)],
            gl=entry.ledger_ids(last_day),
            contacts=list(entry.contacts),
        )

    def _previous(self, changed: Change) -> PreviousStatement:
        return PreviousStatement(
            period=month_name(self.heading.start_date - ONE_DAY),
            amount=changed.before,
            delta=changed.delta,
            effects=ChangeEffects(**changed.effects),
            sentence=changed.sentence(self.heading.currency, self.changed),
        )

    def _ranking(
        self,
        rows: Sequence[StatementSum],
        amount: StatedAmount,
        key: Callable[[StatementSum], str],
        names: Mapping[str, str],
    ) -> StatementRanking:
        return largest(
            amounts_by(rows, key), amount, self.heading.currency, lambda found: (found, names.get(found), None)
        )

    def _topics(self, amounts: Mapping[tuple[str, str], Decimal]) -> StatementRanking:
        currency = self.heading.currency
        whole = StatedAmount.alone(total(amounts.values()), currency)
        return largest(
            amounts, whole, currency, lambda topic: (topic[1], None, self.resources.get(topic[0]) or topic[0])
        )

    def _split(self, value: str, rows: Sequence[StatementSum], lines: Sequence[StatementLine]) -> StatementSplit:
        products = sorted({line.product_type for line in lines})
        policies = [policy for product in products for policy in self.policies.get(product, ())]
        category = self.grouping.category
        if category is None or self.heading.scope is not None:
            return StatementSplit(policies=policies, rules=None, steps=None)
        steps = _steps_for(category, value, {line.kind for line in lines})
        return StatementSplit(policies=policies, rules=_rule_shares(category, rows), steps=list(steps))


def _applied_policies(
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


def _rule_shares(category: CostCategory, rows: Iterable[StatementSum]) -> list[StatementRule]:
    """Return the costs that each rule assigned, the largest first."""
    amounts: dict[int | None, list[Decimal]] = {}
    for each in rows:
        amounts.setdefault(each.rule, []).append(each.direct)
    summed = {place: total(parts) for place, parts in amounts.items() if any(parts)}
    return [
        StatementRule(
            id=None if place is None else category.rule_id(place),
            reason=None if place is None else category.rules[place].reason,
            amount=summed[place],
        )
        for place in sorted(summed, key=lambda place: (-summed[place], -1 if place is None else place))
    ]


def _steps_for(category: CostCategory, value: str, kinds: Collection[str]) -> Iterator[StatementStep]:
    """Yield the steps that reallocated costs to a value with lines of these kinds, or from it."""
    for each in category.share:
        is_own = each.source == value
        reaches = each.targets is None or value in each.targets or value in dict(each.fees)
        if (is_own and SHARED_OUT in kinds) or (not is_own and reaches and SHARED_IN in kinds):
            yield StatementStep(source=each.source, by=str(each))


def _changes(reader: TenantReader, days: DayRange, grouping: StatementGrouping) -> dict[str, Change]:
    """Return the changes since the month before, by the values of statements; empty if that month has no costs."""
    before = month_of(days.start - ONE_DAY)
    by = (grouping.by,) if grouping.unassigned is None else (grouping.by, IDENTITY)
    found = changes(reader, Selection.of_days(days), Selection.of_days(before).window, by)
    if not found.days[0]:
        return {}
    by_value: dict[str, list[Change]] = {}
    for each in found.items:
        by_value.setdefault(grouping.value_of(each.key[0], each.key[-1]), []).append(each)
    # The sentence in a statement of an identity does not name it; in other statements it names who pays more.
    return {value: parts[0] if by == (IDENTITY,) else together(parts) for value, parts in by_value.items()}


def _topics(tenant: TenantView, reader: TenantReader, days: DayRange, grouping: StatementGrouping) -> _Topics | None:
    """Return the topics of each value of a cost category. Identities have none, and the tags of a topic are those of
    its cluster."""
    if grouping.category is None or tenant.topic_attribution_status != "enabled":
        return None
    found: dict[str, dict[tuple[str, str], Decimal]] = {}
    sums = sums_by(reader, TOPIC_ATTRIBUTIONS, Selection.of_days(days), (grouping.by, *_TOPIC))
    for (value, cluster, topic), amount in sums.items():
        found.setdefault(value or "", {})[cluster or "", topic or ""] = amount
    return found


def _bills(reader: TenantReader, days: DayRange, grouping: StatementGrouping) -> _Bills:
    """Return the amounts of each value on the bill of each ecosystem; empty if all lines of these days are on one
    bill."""
    selection = Selection.of_days(days)
    if len(sums_by(reader.unscoped(), BILLING_LINES, selection, (ECOSYSTEM,))) < 2:
        return {}
    by = (grouping.by,) if grouping.unassigned is None else (grouping.by, IDENTITY)
    found: dict[str, dict[str, Decimal]] = {}
    for (*key, ecosystem), amount in sums_by(reader, CHARGEBACKS, selection, (*by, ECOSYSTEM)).items():
        of_value = found.setdefault(grouping.value_of(key[0], key[-1]), {})
        of_value[ecosystem or ""] = of_value.get(ecosystem or "", Decimal(0)) + amount
    return found


def _unit_costs(
    reader: TenantReader, days: DayRange, grouping: StatementGrouping, most: int
) -> dict[str, list[StatementUnitCost]]:
    """Return the unit costs of at most ``most`` values. Unassigned costs are left out, because a part of them has no
    identity with usage."""
    found: dict[str, list[StatementUnitCost]] = {}
    for per in _UNITS:
        measure = UNIT_MEASURES[per]
        for each in unit_costs(reader, measure, Selection.of_days(days), (grouping.by,), most).items:
            value = each.dimensions[grouping.by] or ""
            if each.usage is not None and each.unit_cost is not None and value != grouping.unassigned:
                cost = StatementUnitCost(
                    per=per,
                    unit=measure.unit.name,
                    amount=each.amount,
                    usage=each.usage,
                    unit_cost=each.unit_cost,
                )
                found.setdefault(value, []).append(cost)
    return found


def _names(connection: Connection, kind: EntityKind, ids: set[str]) -> dict[str, str]:
    return {each: named.name for each, named in names_of(connection, kind, ids).items() if named.name is not None}
