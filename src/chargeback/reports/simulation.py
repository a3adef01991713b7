"""The result of a simulation: how other policies would have changed the charges of some days.

The totals are those of the days that were calculated. Days whose evidence is lost, and measures that were never
gathered, are listed: nothing is estimated.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final, Literal

import pyarrow as pa
from pydantic import Field

from chargeback import __version__
from chargeback.allocation.methods import MethodKind
from chargeback.allocation.policies import Policy
from chargeback.categories.document import CostCategory
from chargeback.errors import StorageError
from chargeback.model.days import ONE_DAY
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import difference, half_of_changes, half_of_differences, total
from chargeback.recompute.explain import ExplainKey, TriedDay, explain
from chargeback.recompute.simulate import Simulated, Trial
from chargeback.recompute.stored_day import where
from chargeback.reports.answers import Exact, ResponseModel, Sum
from chargeback.reports.closing.reach import MovedAmount, moved_in_month
from chargeback.reports.explain.charges import ExplainAnswer, explained_charge, names_of_explanation
from chargeback.reports.names import display_names
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.closings import Books
from chargeback.store.facts.files import DayFile, read_file
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, SCHEMAS
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import KeyValues, sums_by

Cause = Literal["portion", "method", "measure"]
_TYPE: Final = "product_type"
_IDENTITY: Final = "identity_id"
#: The number of identities that an example lists for a line.
_LISTED: Final = Page(0, 5)
_ZERO: Final = Decimal(0)
_HUNDREDTH: Final = Decimal("0.01")
# A change of the largest amount against the smallest one has more digits than Python's usual context.
_WIDE: Final = Context(prec=100, rounding=ROUND_HALF_EVEN)


class DayRevision(ResponseModel):
    """A day that was simulated, and the revision that it is compared with."""

    date: date
    revision: int | None


class LeftOutDay(ResponseModel):
    """A billed day that could not be simulated."""

    date: date
    reason: str


class BeforeAndAfter(ResponseModel):
    """A sum as it is, and as it would be."""

    before: Sum
    after: Sum


class SimulatedSum(ResponseModel):
    """The present and the simulated cost of one group."""

    dimensions: dict[str, str | None] = Field(examples=[{"identity_id": "sa-1"}])
    before: Sum
    after: Sum
    delta: Sum
    percent: Exact | None = Field(description="`delta` in percent of `before`, to two places; null where that is zero.")


class ChangedPolicy(ResponseModel):
    """A product type that would be split by another policy on some of the days."""

    product_type: str
    days: int
    cost: Sum = Field(description="The bill for it on all simulated days.")
    moved: Sum = Field(description="The part of it that would be charged to other identities.")
    cause: Cause = Field(
        description="The difference: how its cost is divided into portions, the methods by which these are split, or "
        "the measures of these methods."
    )
    before: list[PolicyPortion]
    after: list[PolicyPortion]


class MovedByCause(ResponseModel):
    """The amounts that would be charged to others within each product type, by cause. Amounts that offset each other
    between product types are included in both, so the sum may be larger than the total moved amount."""

    portion: Sum
    method: Sum
    measure: Sum
    proportional: Sum = Field(
        description="For product types whose policy stays, and whose cost is split in proportion to that of others."
    )
    tag: Sum = Field(description="Between the groups, because tags differ.")
    category: Sum = Field(description="Between the groups, because cost categories differ.")
    earlier: Sum = Field(
        description="For other product types whose policy stays: the days were calculated by an earlier policy "
        "without a date."
    )


class SimulationExample(ResponseModel):
    """The explanations, present and simulated, of the line of a day that changes most for one identity."""

    identity_id: str
    date: date
    line_id: str
    before: ExplainAnswer
    after: ExplainAnswer


class SimulationBase(ResponseModel):
    """The data of a simulation."""

    days: list[DayRevision]
    policies: str = Field(description="One hash for the policies in force.")
    candidate: str = Field(description="One hash for the simulated policies.")
    software: str


class SimulationAnswer(ResponseModel):
    """The result of a simulation."""

    start_date: date
    end_date: date = Field(description="Inclusive.")
    currency: str
    group_by: list[str]
    base: SimulationBase
    digest: str = Field(description="A digest of the whole result: equal results have equal digests.")
    verdict: Literal["complete", "incomplete"]
    left_out: list[LeftOutDay] = Field(description="Billed days that could not be simulated, and why.")
    never_measured: list[str] = Field(description="Measures that the policies need but that were not gathered.")
    never_applied: list[str] = Field(description="Product types of the policies that are not on the bill of the days.")
    billed: Sum
    moved: Sum = Field(description="The amount that would be charged to others: half the sum of all changes.")
    moved_share: Exact = Field(description="`moved` in percent of the bill, to two places.")
    by_cause: MovedByCause
    unallocated: BeforeAndAfter
    policies: list[ChangedPolicy]
    names: dict[str, dict[str, str]] = Field(
        description="The display names of the ids in `items`, by column and id. Ids without a name are left out."
    )
    items: list[SimulatedSum] = Field(description="All groups whose cost changes, the largest change first.")
    examples: list[SimulationExample] = Field(
        description="For the identity whose cost rises most and the one whose cost falls most: a line with its present "
        "and its simulated explanation."
    )
    corrections: list[MovedAmount] = Field(
        description="The corrections of closed months that would be posted if the days were calculated by these "
        "policies."
    )

    @property
    def content_digest(self) -> str:
        """Return ``digest``: a digest of everything else, except display names, also those in examples."""
        content = self.model_copy(update={"digest": "", "names": {}, "examples": []})
        return hashlib.sha256(content.model_dump_json().encode()).hexdigest()


@dataclass(frozen=True)
class _Sides:
    """Readers of the present and of the simulated rows of the days."""

    before: TenantReader
    after: TenantReader

    def sums(self, selection: Selection, *by: str) -> tuple[dict[KeyValues, Decimal], dict[KeyValues, Decimal]]:
        """Return the sums of both."""
        before, after = (sums_by(each, CHARGEBACKS, selection, by) for each in (self.before, self.after))
        return before, after


def simulation_answer(
    tenant: TenantView, reader: TenantReader, books: Books, trial: Trial, found: Simulated, by: Sequence[str]
) -> SimulationAnswer:
    """Return the result of a trial; ``reader`` sees the present charges.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read, or days were calculated again meanwhile.
        UnknownCategory: the tenant has no such cost category.
        ValueError: chargebacks cannot be grouped by these columns.
    """
    simulated = {each.day for each in found.days}
    stored = [each for each in reader.snapshot(CHARGEBACKS_TABLE).within(trial.days) if each.day in simulated]
    files = [each.file for each in found.days if each.file is not None]
    known = _knowing(tenant, reader, trial)
    sides = _Sides(*(known.with_files(CHARGEBACKS_TABLE, each) for each in (stored, files)))
    everything, billed = Selection.of_days(trial.days), total(each.billed for each in found.days)
    old, split = sides.sums(everything, *by)
    tagged, whole = _regrouped(tenant, sides.after, trial)
    by_tags = split if tagged is sides.after else sums_by(tagged, CHARGEBACKS, everything, by)
    new = by_tags if whole is tagged else sums_by(whole, CHARGEBACKS, everything, by)
    if {total(old.values()), total(new.values())} != {billed}:
        raise StorageError("days were calculated again while they were simulated: simulate again")
    items = changed_sums(by, old, new)
    moved = half_of_changes(each.delta for each in items)
    of_identities = sides.sums(everything, _IDENTITY)
    unallocated = [sums.get((UNALLOCATED,), _ZERO) for sums in of_identities]
    types = sums_by(sides.before, CHARGEBACKS, everything, (_TYPE,))
    within = _moved_within(*sides.sums(everything, _TYPE, *(each for each in by if each != _TYPE)))
    policies = _changed(found, types, within)
    never_measured = sorted(set[str]().union(*(each.unmeasured for each in found.days)))
    left_out = [LeftOutDay(date=day, reason=reason) for day, reason in sorted(found.left_out.items())]
    answer = SimulationAnswer(
        start_date=trial.days.start,
        end_date=trial.days.end - ONE_DAY,
        currency=tenant.currency,
        group_by=list(by),
        base=SimulationBase(
            days=[DayRevision(date=each.day, revision=each.revision) for each in found.days],
            policies=tenant.rules.catalogue.hash,
            candidate=trial.candidate.hash,
            software=__version__,
        ),
        digest="",
        verdict="incomplete" if left_out or never_measured else "complete",
        left_out=left_out,
        never_measured=never_measured,
        never_applied=_never_applied(trial, found),
        billed=billed,
        moved=moved,
        moved_share=percent_of(moved, billed) or _ZERO,
        by_cause=_by_cause(within, policies, found).model_copy(
            update={"tag": half_of_differences(split, by_tags), "category": half_of_differences(by_tags, new)}
        ),
        unallocated=BeforeAndAfter(before=unallocated[0], after=unallocated[1]),
        policies=policies,
        names={},
        items=items,
        examples=_examples(tenant, trial, found, stored, changed_sums((_IDENTITY,), *of_identities)),
        corrections=[
            moved
            for period in books.unsealed(trial.days.start, trial.days.end - ONE_DAY)
            for grouping in tenant.closing.by
            for moved in moved_in_month(sides.before, whole, period, grouping)
        ],
    )
    with tenant.store.control.read() as connection:
        names = display_names(connection, by, [each.dimensions for each in items])
    return answer.model_copy(update={"digest": answer.content_digest, "names": names})


def _knowing(tenant: TenantView, reader: TenantReader, trial: Trial) -> TenantReader:
    """Return the same reader with a category of every simulated key: new categories do not assign anything yet."""
    index = reader.categories.index
    new = [key for key in trial.categories if key not in index.by_key]
    if not new:
        return reader
    for key in new:
        index = index.including(key, CostCategory(key))
    return reader.with_categories(LookupCaches().candidate(tenant.whole_store, index, reader.tags))


def _regrouped(tenant: TenantView, reader: TenantReader, trial: Trial) -> tuple[TenantReader, TenantReader]:
    """Return the same reader with the simulated tags, and the same with the simulated cost categories as well."""
    if not trial.tags and not trial.categories:
        return reader, reader
    tags, index = reader.tags.with_values(trial.tags), reader.categories.index
    tagged = reader.with_entities(tags, LookupCaches().candidate(tenant.whole_store, index, tags))
    for key, category in trial.categories.items():
        index = index.including(key, category)
    return tagged, reader.with_entities(tags, LookupCaches().candidate(tenant.whole_store, index, tags))


def _examples(
    tenant: TenantView, trial: Trial, found: Simulated, stored: Sequence[DayFile], changed: Sequence[SimulatedSum]
) -> list[SimulationExample]:
    """Return the examples for the identities whose cost rises most and falls most."""
    more = next((each for each in changed if each.delta > 0), None)
    less = next((each for each in changed if each.delta < 0), None)
    identities = [each.dimensions[_IDENTITY] or "" for each in (more, less) if each is not None]
    examples = [_example(tenant, trial, found, stored, each) for each in identities]
    return [each for each in examples if each is not None]


def _example(
    tenant: TenantView, trial: Trial, found: Simulated, stored: Sequence[DayFile], identity: str
) -> SimulationExample | None:
    """Return the explanations of the line that changes most for an identity, on its last day with a change."""
    for day in reversed(found.days):
        before = _rows_of([each for each in stored if each.day == day.day])
        after = _rows_of([] if day.file is None else [day.file])
        mine, then = (where(rows, identity_id=identity) for rows in (before, after))
        old, new = _by_line(mine), _by_line(then)
        lines = [line for line in old.keys() | new.keys() if old.get(line, _ZERO) != new.get(line, _ZERO)]
        if not lines:
            continue
        line = max(lines, key=lambda each: (abs(new.get(each, _ZERO) - old.get(each, _ZERO)), each))
        tried = TriedDay(trial.candidate.on(day.day), after)
        keys = [ExplainKey(day.day, line, identity, _portion(rows, line), trial.as_of) for rows in (mine, then)]
        explained = [_explained(tenant, keys[0], None), _explained(tenant, keys[1], tried)]
        return SimulationExample(
            identity_id=identity, date=day.day, line_id=line, before=explained[0], after=explained[1]
        )
    return None


def _rows_of(files: Sequence[DayFile]) -> pa.Table:
    """Return the rows of the files of a day."""
    if not files:
        return SCHEMAS[CHARGEBACKS_TABLE].empty_table()
    return pa.concat_tables([read_file(each) for each in files])


def _by_line(rows: pa.Table) -> dict[str, Decimal]:
    amounts: dict[str, list[Decimal]] = {}
    for line, amount in zip(rows["line_id"].to_pylist(), rows["amount"].to_pylist(), strict=True):
        amounts.setdefault(line, []).append(amount)
    return {line: total(each) for line, each in amounts.items()}


def _portion(rows: pa.Table, line: str) -> int | None:
    """Return the portion with the largest part of a line's cost; the first one if there is none."""
    of_line = where(rows, line_id=line)
    amounts = list(zip(of_line["amount"].to_pylist(), of_line["portion"].to_pylist(), strict=True))
    return max(amounts, key=lambda each: (each[0].copy_abs(), -each[1]))[1] if amounts else 1


def _explained(tenant: TenantView, key: ExplainKey, tried: TriedDay | None) -> ExplainAnswer:
    found = explain(tenant.whole_store, tenant.rules, key, tried)
    with tenant.store.control.read() as connection:
        names = names_of_explanation(connection, found, _LISTED)
    return explained_charge(found, names, tenant.currency, _LISTED)


def _never_applied(trial: Trial, found: Simulated) -> list[str]:
    """Return the names of the tenant's own policies that apply to no line of the days."""
    applied: set[str | None] = set()
    for each in found.days:
        applied.update(map(trial.candidate.on(each.day).match, each.after))
    aliases = trial.candidate.aliases
    return [name for name in trial.names if aliases.get(name, name) not in applied]


def changed_sums(
    by: Sequence[str], old: Mapping[KeyValues, Decimal], new: Mapping[KeyValues, Decimal]
) -> list[SimulatedSum]:
    """Return the groups whose sums differ, the largest change first."""
    found = []
    for key in old.keys() | new.keys():
        before, after = old.get(key, _ZERO), new.get(key, _ZERO)
        if before != after:
            delta = difference(after, before)
            found.append(
                SimulatedSum(
                    dimensions=dict(zip(by, key, strict=True)),
                    before=before,
                    after=after,
                    delta=delta,
                    percent=percent_of(delta, before),
                )
            )
    return sorted(found, key=lambda each: (-each.delta.copy_abs(), [value or "" for value in each.dimensions.values()]))


def percent_of(part: Decimal, whole: Decimal) -> Decimal | None:
    """Return a part in percent of the absolute value of a whole; None if that is zero."""
    if not whole:
        return None
    share = _WIDE.divide(_WIDE.multiply(Decimal(100), part), whole.copy_abs())
    return share.quantize(_HUNDREDTH, context=_WIDE)


def _moved_within(old: Mapping[KeyValues, Decimal], new: Mapping[KeyValues, Decimal]) -> dict[str | None, Decimal]:
    """Return the moved amount within each product type, the first of the keys."""
    deltas: dict[str | None, list[Decimal]] = {}
    for key in old.keys() | new.keys():
        deltas.setdefault(key[0], []).append(difference(new.get(key, _ZERO), old.get(key, _ZERO)))
    return {name: half_of_changes(each) for name, each in deltas.items()}


def _by_cause(
    within: Mapping[str | None, Decimal], policies: Sequence[ChangedPolicy], found: Simulated
) -> MovedByCause:
    """Return the moved amounts within product types by cause."""
    causes: dict[str | None, str] = {
        name: "proportional" for each in found.days for name, policy in each.after.items() if policy.is_proportional
    }
    causes |= {each.product_type: each.cause for each in policies}
    moved: dict[str, list[Decimal]] = {name: [] for name in MovedByCause.model_fields}
    for name, amount in within.items():
        moved[causes.get(name, "earlier")].append(amount)
    return MovedByCause(**{name: total(amounts) for name, amounts in moved.items()})


def _cause(before: Policy, after: Policy) -> Cause:
    """Return the first difference between two policies."""
    if [each.share for each in before.portions] != [each.share for each in after.portions]:
        return "portion"
    return "method" if _methods(before) != _methods(after) else "measure"


def _methods(policy: Policy) -> list[list[tuple[MethodKind, tuple[str, ...]]]]:
    """Return the methods of each portion, without their measures."""
    return [
        [(each.kind, () if each.kind is MethodKind.USAGE else each.arguments) for each in portion.methods]
        for portion in policy.portions
    ]


def _changed(
    found: Simulated, cost: Mapping[KeyValues, Decimal], within: Mapping[str | None, Decimal]
) -> list[ChangedPolicy]:
    """Return the product types whose policies differ, with the policies of the last day on which they do."""
    days: Counter[str] = Counter()
    latest: dict[str, tuple[Policy, Policy]] = {}
    for each in found.days:
        for name, policy in each.after.items():
            if policy.hash != each.before[name].hash:
                days[name] += 1
                latest[name] = (each.before[name], policy)
    return [
        ChangedPolicy(
            product_type=name,
            days=days[name],
            cost=cost.get((name,), _ZERO),
            moved=within.get(name, _ZERO),
            cause=_cause(*latest[name]),
            before=PolicyPortion.all_of(latest[name][0]),
            after=PolicyPortion.all_of(latest[name][1]),
        )
        for name in sorted(latest)
    ]
