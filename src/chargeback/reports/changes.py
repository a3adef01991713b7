"""Changes between two ranges of days and their reasons: differences as sums of effects, each with a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

from pydantic import Field
from sqlalchemy import Connection

from chargeback.model.cents import minor_unit
from chargeback.model.chargeback import DIRECT, EVEN_SPLIT, PROPORTIONAL, TERMINAL, USAGE_RATIO
from chargeback.model.days import InstantRange
from chargeback.model.effects import (
    CALENDAR,
    CORRECTION,
    EFFECTS,
    GONE,
    NEW,
    POLICY,
    PRICE,
    QUANTITY,
    BilledChange,
    BilledType,
    Cause,
    Quantity,
)
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import difference, from_units, part_of, to_units, total
from chargeback.reports.answers import ComparedWith, Counted, Exact, Grouped, ResponseModel, Sum
from chargeback.reports.names import display_names
from chargeback.reports.periods import Comparison
from chargeback.reports.wording import DisplayNames, money_text, name
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, names_of
from chargeback.store.queries.categorised import digits_of, units_of
from chargeback.store.queries.costs import days_with_rows
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, CHARGED_LINES, MEASURED_LINES, REFUNDED_LINES
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.partials import ROW_COUNT, SumSource
from chargeback.store.queries.question import TOTAL, SumRelation, Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE, Condition
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sql_format import distance, sum_exact
from chargeback.store.queries.sums import KeyValues

_PAYER: Final = "identity_id"
#: A product type on a resource, and the method by which its cost was allocated.
_BILLED: Final = ("resource_id", "product_type", "allocation_method")
#: A product type on a resource.
_Billed = tuple[str, str]
#: Costs in units of 10⁻¹², by the allocation method.
_Costs = dict[_Billed, dict[str, int]]
#: The same before and after.
_ComparedCosts = dict[_Billed, tuple[dict[str, int], dict[str, int]]]
_NOTHING: Final = from_units(0)


class ComparedPart(NamedTuple):
    """The charges for a product type on a resource in both ranges, by allocation method, and the differences of the
    identities whose amounts rose and fell most, in units of 10⁻¹²; without these if a single identity pays."""

    resource_id: str
    product_type: str
    billed: BilledChange
    before: dict[str, int]
    after: dict[str, int]
    by_identity: dict[str, int]


class ComparedGroup(NamedTuple):
    """The charges of one combination of values, or of several together.

    Attributes:
        key: the values; empty for several combinations.
        number: how many combinations.
        amounts: the charges before and after, with all digits of what cost categories reallocate.
        parts: the charges for each product type on each resource.
    """

    key: KeyValues
    number: int
    amounts: tuple[Decimal, Decimal]
    parts: list[ComparedPart]


@dataclass(frozen=True)
class ComparedCharges:
    """The charges of a range (``before``) and of another (``after``).

    Attributes:
        days: the number of UTC days of each range that have costs, regardless of filters.
        listed: the combinations of values, the largest differences first.
        other: the combinations that are not listed, together.
        by_identity: as in the parts, of all combinations together.
    """

    days: tuple[int, int]
    listed: Sequence[ComparedGroup]
    other: ComparedGroup
    by_identity: Mapping[_Billed, Mapping[str, int]]


#: The place of what is not listed, and that of everything together; what is listed has the places from 1 on.
_OTHER, _WHOLE = 0, -1


def compared_charges(
    reader: TenantReader, selection: Selection, before: InstantRange, by: Sequence[str], limit: int | None = None
) -> ComparedCharges:
    """Return the selected charges and those of the range ``before``, by columns or ``tag:<key>``; at most ``limit``
    combinations of values are listed. Their shares refer to the whole bills or, within a scope, to the billing lines
    with a visible row.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped by these columns.
    """
    windows = (before, selection.window)
    days = (days_with_rows(reader, before), days_with_rows(reader, selection.window))
    names = list(dict.fromkeys((*by, _PAYER, *_BILLED)))
    sums = reader.sums(Sums(CHARGEBACKS, selection, keys_of(CHARGEBACKS, names), periods=windows))
    places = _Places.of(sums, names, by, limit)
    costs, payers = places.costs(), places.payers()
    is_everything = reader.sees_everything and selection == Selection(selection.window)
    earlier, later = _bills(reader, windows, costs[_WHOLE] if is_everything else None)
    billed = {what: BilledChange(earlier.get(what), later.get(what), days) for what in costs[_WHOLE]}
    groups = places.groups()
    for place, group in groups.items():
        its_payers = payers.get(place, {})
        group.parts.extend(
            ComparedPart(*what, billed[what], *its, its_payers.get(what, {})) for what, its in costs[place].items()
        )
    other = groups.pop(_OTHER)
    return ComparedCharges(days, [*groups.values()], other, payers[_WHOLE])


@dataclass(frozen=True)
class _Places:
    """The sums of two periods by the values of ``by``, payers and :data:`_BILLED`, with the column of each of these
    names, and a ``table`` of the amounts ``earlier`` and ``later`` of the values, with their ``place``: that of the
    largest difference is 1."""

    sums: SumRelation
    by: Sequence[str]
    columns: Mapping[str, str]
    table: str

    @classmethod
    def of(cls, sums: SumRelation, names: Sequence[str], by: Sequence[str], limit: int | None) -> Self:
        """Order the values of some of the keys, whose ``names`` are in their order."""
        columns = {name: f"d{number}" for number, name in enumerate(names)}
        values = [columns[name] for name in by]
        order = [f"{distance('earlier', 'later', is_fine=sums.is_fine)} DESC", *(f"coalesce({d}, '')" for d in values)]
        place = f"row_number() OVER (ORDER BY {', '.join(order)})"
        amounts = [sums.total_or_zero(where=f"period = {period}") for period in (0, 1)]
        table = sums.table(
            "places",
            f"""SELECT * REPLACE ({"place" if limit is None else f"if(place <= {limit}, place, {_OTHER})"} AS place)
                FROM (SELECT *, {place} AS place FROM (
                    SELECT {", ".join(values)}, {amounts[0]} AS earlier, {amounts[1]} AS later
                    FROM sums GROUP BY ALL))""",
        )
        return cls(sums, by, columns, table)

    def _columns(self, *names: str) -> list[str]:
        return [f"sums.{self.columns[name]}" for name in names]

    @property
    def _with_place(self) -> str:
        values = [self.columns[name] for name in self.by]
        same = " AND ".join(f"sums.{column} IS NOT DISTINCT FROM {self.table}.{column}" for column in values)
        return f"sums JOIN {self.table} ON {same}"

    def groups(self) -> dict[int, ComparedGroup]:
        """Return the group at each place, in this order, still without its parts."""
        columns = ", ".join(f"any_value({self.columns[name]})" for name in self.by)
        amounts = ", ".join(sum_exact(name, is_fine=self.sums.is_fine) for name in ("earlier", "later"))
        rows = self.sums.cursor.rows(
            f"SELECT place, count(*), {amounts}, {columns} FROM {self.table} GROUP BY place ORDER BY place"
        )
        found = {_OTHER: ComparedGroup((), 0, (_NOTHING, _NOTHING), [])}
        for place, count, earlier, later, *values in rows:
            found[place] = ComparedGroup(() if place == _OTHER else tuple(values), count, (earlier, later), [])
        return found

    def costs(self) -> dict[int, _ComparedCosts]:
        """Return the costs before and after at each place, and of everything, by product type and resource."""
        found: dict[int, _ComparedCosts] = {_WHOLE: {}, _OTHER: {}}
        of_all = self._columns(*_BILLED)
        for place, *row in _compared(self.sums, ["place", *of_all], self._with_place, of_all):
            _add(found.setdefault(_WHOLE if place is None else place, {}), *row)
        return found

    def payers(self) -> dict[int, dict[_Billed, dict[str, int]]]:
        """Return the differences of the payers whose costs rose and fell most, of everything and at each place with
        several payers, by resource and product type. A sentence shows them in cents, so further digits are left out."""
        resource, product, payer = self._columns("resource_id", "product_type", _PAYER)
        several = f"place = {_OTHER}" if _PAYER in self.by else "TRUE"
        by_payer = f"""{resource} AS resource, {product} AS product, coalesce({payer}, '') AS payer,
                       sum(if(period = 0, -{TOTAL}, {TOTAL})) AS changed"""
        rows = self.sums.rows(
            f"""SELECT place, resource, product, rose.payer, {units_of("rose.by")}, fell.payer, -{units_of("fell.by")}
                FROM (SELECT place, resource, product, max({{'by': changed, 'payer': payer}}) AS rose,
                             max({{'by': -changed, 'payer': payer}}) AS fell
                      FROM (SELECT {_WHOLE} AS place, {by_payer} FROM sums GROUP BY ALL
                            UNION ALL SELECT place, {by_payer} FROM {self._with_place} WHERE {several} GROUP BY ALL)
                      GROUP BY ALL)"""
        )
        found: dict[int, dict[_Billed, dict[str, int]]] = {_WHOLE: {}}
        for place, resource, product, rising, rose, falling, fell in rows:
            found.setdefault(place, {})[resource, product] = {falling: fell, rising: rose}
        return found


def _compared(
    sums: SumRelation, columns: Sequence[str], relation: str = "sums", of_all: Sequence[str] = ()
) -> list[tuple[Any, ...]]:
    """Return the sums of two periods by some columns of a relation of them: the values of the columns, and the amounts
    as :func:`_add` reads them. Those by the columns ``of_all`` are among them, with None as the values of the
    others."""
    amounts = [sums.total(where=f"period = {period}") for period in (0, 1)]
    if not sums.is_fine:
        amounts = [digits_of(amount) for amount in amounts]
    sets = ", ".join(f"({', '.join(each)})" for each in (columns, of_all) if each)
    return sums.rows(f"SELECT {', '.join([*columns, *amounts])} FROM {relation} GROUP BY GROUPING SETS ({sets})")


def _add(
    costs: _ComparedCosts,
    resource: str,
    product: str,
    method: str,
    earlier: str | Decimal | None,
    later: str | Decimal | None,
) -> None:
    """Add the costs of a method before and after: the digits of an amount, an amount, or None where it is no cost."""
    what = (resource, product)
    if what not in costs:
        costs[what] = ({}, {})
    before, after = costs[what]
    if earlier is not None:
        before[method] = int(earlier) if isinstance(earlier, str) else to_units(earlier)
    if later is not None:
        after[method] = int(later) if isinstance(later, str) else to_units(later)


def _bills(
    reader: TenantReader, windows: tuple[InstantRange, InstantRange], everything: _ComparedCosts | None
) -> list[dict[_Billed, BilledType]]:
    """Return the bill of the calculated days of each window, by resource and product type. Costs are the charged ones,
    so that the shares of all payers sum to one; ``everything`` is all of them, if they are already known."""
    if not reader.sees_everything:
        return [_bill(reader, window, *_costs_of_visible_lines(reader, window)) for window in windows]
    if everything is None:
        sums = reader.sums(Sums(CHARGEBACKS, Selection(windows[0]), keys_of(CHARGEBACKS, _BILLED), periods=windows))
        everything = {}
        for row in _compared(sums, ["d0", "d1", "d2"]):
            _add(everything, *row)
    costs = [{what: its[period] for what, its in everything.items() if its[period]} for period in (0, 1)]
    return [_bill(reader, window, its, Condition()) for window, its in zip(windows, costs, strict=True)]


def _bill(reader: TenantReader, window: InstantRange, costs: _Costs, only: Condition) -> dict[_Billed, BilledType]:
    if not costs:
        return {}
    (quantities, refunded), policies = _lines(reader.unscoped(), window, only), policies_used(reader, window)
    return {
        billed: BilledType(
            by_method, quantities.get(billed), frozenset(policies.get(billed[1], ())), billed in refunded
        )
        for billed, by_method in costs.items()
    }


def _costs_of_visible_lines(reader: TenantReader, window: InstantRange) -> tuple[_Costs, Condition]:
    """Return the charges of all payers for the billing lines with a visible row, by allocation method; and what selects
    these lines."""
    visible = reader.scan(CHARGEBACKS, Selection(window))
    if not visible.files:
        return {}, Condition()
    condition, lines = visible.condition(), reader.cursor.new_name("visible_lines")
    reader.cursor.run(
        f"CREATE TEMP TABLE {lines} AS SELECT DISTINCT date, line_id FROM {SOURCE} WHERE {condition.sql}",
        condition.parameters,
    )
    chosen = f"(date, line_id) IN (SELECT (date, line_id) FROM {lines})"
    only = Condition((chosen,), reads=frozenset(["date", "line_id"]))
    condition = reader.unscoped().scan(CHARGEBACKS, Selection(window)).condition() & only
    rows = reader.cursor.rows(
        f"""SELECT resource_id, product_type, allocation_method, sum(amount)
            FROM {SOURCE} WHERE {condition.sql} GROUP BY ALL""",
        condition.parameters,
    )
    costs: _Costs = {}
    for resource, product, method, amount in rows:
        costs.setdefault((resource, product), {})[method] = to_units(amount)
    return costs, only


def _lines(reader: TenantReader, window: InstantRange, only: Condition) -> tuple[dict[_Billed, Quantity], set[_Billed]]:
    """Return the billed quantities of the calculated days, if all lines have one in the same unit; and the product
    types on resources that have both charges and refunds. ``only`` is a condition on the lines."""
    calculated = {file.day for file in reader.scan(CHARGEBACKS, Selection(window)).files if file.day is not None}
    scan = reader.scan(BILLING_LINES, Selection(window)).only(calculated)
    scan = replace(scan, filter=scan.filter & only)

    def _sql(source: SumSource) -> str:
        sums = source.sums
        return f"""SELECT resource_id, product_type, {sums["quantity"]}, min(unit),
                          {sums[MEASURED_LINES]} = {sums[ROW_COUNT]}
                              AND min(coalesce(unit, '')) = max(coalesce(unit, '')),
                          {sums[CHARGED_LINES]} > 0 AND {sums[REFUNDED_LINES]} > 0
                   FROM {source.relation} WHERE {source.condition.sql} GROUP BY resource_id, product_type"""

    rows = reader.read(BILLING_LINES, scan, ("resource_id", "product_type", "unit"), _sql)
    quantities = {row[:2]: Quantity(to_units(row[2]), row[3]) for row in rows if row[4]}
    return quantities, {row[:2] for row in rows if row[5]}


def policies_used(reader: TenantReader, window: InstantRange) -> dict[str, list[str]]:
    """Return the hashes of the policies by which the rows of each product type were split.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """

    def _sql(source: SumSource) -> str:
        return f"""SELECT product_type, list(DISTINCT policy_hash)
                   FROM {source.relation} WHERE {source.condition.sql} GROUP BY product_type"""

    scan = reader.scan(CHARGEBACKS, Selection(window))
    return dict(reader.read(CHARGEBACKS, scan, ("product_type", "policy_hash"), _sql))


#: The texts of effects without a direction; {what} is a product type on a resource.
_REASONS: Final = {
    POLICY: "{what} was split in another way",
    CORRECTION: "{what} has charges and refunds, which offset each other",
    NEW: "nothing was charged for {what} before",
    GONE: "nothing is charged for {what} any more",
}
#: The texts of changed shares, by the allocation method: if the share grew, if it shrank, and if neither is known.
_SHARES: Final = {
    USAGE_RATIO: (
        "its share of the usage for {what} grew",
        "its share of the usage for {what} shrank",
        "shares of the usage for {what} changed",
    ),
    PROPORTIONAL: (
        "its share of the other costs, which {what} follows, grew",
        "its share of the other costs, which {what} follows, shrank",
        "shares of the other costs, which {what} follows, changed",
    ),
    DIRECT: (
        "its part of {what} as an owner grew",
        "its part of {what} as an owner shrank",
        "other parts of {what} are owned",
    ),
    EVEN_SPLIT: (
        "its part of {what}, which is shared evenly, grew",
        "its part of {what}, which is shared evenly, shrank",
        "parts of {what}, which is shared evenly, changed",
    ),
    TERMINAL: (
        "a larger part of {what} is unallocated",
        "a smaller part of {what} is unallocated",
        "another part of {what} is unallocated",
    ),
}


class Reason(NamedTuple):
    """The part of an effect that is due to one product type on one resource, and the difference of each identity for it
    by all effects, in units of 10⁻¹²."""

    resource_id: str
    product_type: str
    cause: Cause
    by_identity: Mapping[str, int]

    def payer(self, currency: str) -> tuple[str, Decimal] | None:
        """Return the identity whose amount changed most in the direction of the reason, and by how much; None if that
        is less than a cent."""
        sign = 1 if self.cause.amount > 0 else -1
        most = max(self.by_identity, key=lambda each: (self.by_identity[each] * sign, each), default=None)
        if most is None:
            return None
        changed = from_units(self.by_identity[most])
        return (most, changed) if changed * sign >= minor_unit(currency) else None


class EffectReason(NamedTuple):
    """An effect for a sentence: its largest reason in its direction, and whether that is the only one."""

    amount: Decimal
    reason: Reason
    is_only: bool


class ChangeEffects(ResponseModel):
    """Why an amount changed; the effects sum exactly to the difference.

    An amount is a quantity × a price × a share. In this order, each effect replaces one more of these factors by that
    of the later range, and is the resulting change of the amount."""

    calendar: Sum = Field(description="More or fewer days have costs.")
    quantity: Sum = Field(description="Larger or smaller quantities per day were billed, or credited.")
    price: Sum = Field(description="The average price of a unit rose or fell; without a quantity, the cost per day.")
    policy: Sum = Field(
        description="The cost was split by another policy, or by another method of it, for example as measurements "
        "were missing."
    )
    share: Sum = Field(description="The share of the measured usage changed.")
    ownership: Sum = Field(description="The share as an owner or a member changed: others own it, or share it evenly.")
    correction: Sum = Field(
        description="The whole difference of a product type on a resource that has both charges and refunds, or a "
        "share that is not between 0 and 1, which quantities, prices and shares do not explain."
    )
    new: Sum = Field(description="The resource was not billed for the product type in the earlier range.")
    gone: Sum = Field(description="The resource is not billed for the product type in the later range.")


@dataclass(frozen=True)
class Change:
    """The change of one combination of values, or the sum of several.

    Attributes:
        key: the values; empty for a sum of several.
        before: the amount of the earlier range.
        after: the amount of the later one.
        effects: every effect by its name, or zero; they sum to :attr:`delta`.
        reasons: the reasons of the effects.
        is_of_identity: whether all of it is charged to one identity, which is in the key.
    """

    key: KeyValues
    before: Decimal
    after: Decimal
    effects: Mapping[str, Decimal]
    reasons: Sequence[Reason] = ()
    is_of_identity: bool = False

    @property
    def delta(self) -> Decimal:
        """Return the amount after minus the amount before."""
        return difference(self.after, self.before)

    def main_effects(self, currency: str) -> list[EffectReason]:
        """Return the effects for a sentence, the largest first; effects of less than a cent are left out if there are
        larger ones. An effect without a reason is only digits below 10⁻¹²."""
        one_cent, found = minor_unit(currency), self._largest_effects
        shown = [each for each in found if each[0].copy_abs() >= one_cent] or found
        return [EffectReason(amount, reason, others < one_cent) for amount, reason, others in shown]

    @cached_property
    def _largest_effects(self) -> list[tuple[Decimal, Reason, Decimal]]:
        """The effects with reasons, the largest first: the amount, the largest reason in its direction, and the size of
        the others."""
        reasons: dict[str, list[Reason]] = {}
        for each in self.reasons:
            reasons.setdefault(each.cause.effect, []).append(each)
        found = [
            (amount, *_main_reason(amount, reasons[name]))
            for name, amount in self.effects.items()
            if name in reasons and amount
        ]
        return sorted(found, key=lambda each: each[0].copy_abs(), reverse=True)

    def sentence(self, currency: str, names: DisplayNames) -> str:
        """Return a sentence about the change: the largest reason of each effect, and the identity that pays most of
        it."""
        effects = self.main_effects(currency)
        if not effects:
            return "Nothing changed."
        delta = _signed(self.delta, currency)
        if len(effects) == 1:
            return f"{delta} {self._because(effects[0], names, currency)}."
        amounts = [_signed(each.amount, currency, with_currency=False) for each in effects]
        parts = "; ".join(
            f"{amount} {self._because(each, names, currency)}" for amount, each in zip(amounts, effects, strict=True)
        )
        return f"{delta}: {parts}."

    def _because(self, effect: EffectReason, names: DisplayNames, currency: str) -> str:
        reason, payer = effect.reason, None if self.is_of_identity else effect.reason.payer(currency)
        text = _reason_text(reason, names)
        if reason.cause.effect == CALENDAR:
            return f"because {text}"
        if payer is not None and reason.cause.method != TERMINAL:
            identity_id, changed = payer
            amount = money_text(changed.copy_abs(), currency, with_currency=False)
            amount = f"{amount} {'more' if changed > 0 else 'less'}"
            if identity_id == UNALLOCATED:
                text = f"{text}, of which {amount} is unallocated"
            else:
                text = f"{text}, for which {name(names.identities, identity_id)} pays {amount}"
        if effect.is_only:
            return f"because {text}"
        most = _signed(from_units(reason.cause.amount), currency, with_currency=False)
        return f"above all because {text} ({most})"


class ChangedAmounts(ResponseModel):
    """The amounts of both ranges, and the reasons of their difference."""

    before: Sum
    after: Sum
    delta: Sum = Field(description="After minus before.")
    per_day_before: Exact | None = Field(
        description="Per day with costs, rounded to twelve places; null if there are none."
    )
    per_day_after: Exact | None
    effects: ChangeEffects
    sentence: str = Field(
        description="The change in words: the largest reason of each effect, and the identity that pays most of it.",
        examples=[
            "+412.10 USD: +380.02 above all because larger quantities of KAFKA_NETWORK_WRITE on orders-prod were "
            "billed, for which payments pays 310.00 more (+350.02); +32.08 because the price of KAFKA_NUM_CKUS on "
            "orders-prod rose."
        ],
    )

    @classmethod
    def of(cls, change: Change, days: tuple[int, int], currency: str, names: DisplayNames, **own: Any) -> Self:
        """Return a change between ranges; ``days`` are the numbers of days with costs in each, and ``own`` further
        fields of a subclass."""
        return cls(
            **own,
            before=change.before,
            after=change.after,
            delta=change.delta,
            per_day_before=part_of(change.before, days[0]),
            per_day_after=part_of(change.after, days[1]),
            effects=ChangeEffects(**change.effects),
            sentence=change.sentence(currency, names),
        )


class ChangedItem(ChangedAmounts, Grouped):
    """One combination of values."""


class ChangedRest(ChangedAmounts, Counted):
    """The combinations that are not listed, together."""


class ChangesAnswer(ResponseModel):
    """The changes between two ranges. Items and `other` sum to the totals, whose amounts equal those of the aggregates.
    The effects of each of them are rounded to twelve places, so the last places of those in the totals depend on
    `limit`."""

    start_date: date = Field(description="First day of the later range.")
    end_date: date
    timezone: str = Field(examples=["UTC"])
    days_with_costs: int = Field(description="UTC days of the later range that have costs, regardless of filters.")
    compared_with: ComparedWith = Field(description="The earlier range.")
    currency: str = Field(examples=["USD"])
    items: list[ChangedItem] = Field(description="The largest changes first.")
    other: ChangedRest | None = Field(
        description="The changes beyond `limit`, together: the effects are those of the sum of their costs."
    )
    totals: ChangedAmounts
    names: dict[str, dict[str, str]] = Field(
        description="The display names of the listed ids, by column. Ids without a name are left out.",
        examples=[{"identity_id": {"sa-123abc": "orders-service"}}],
    )


def explained_changes(
    reader: TenantReader,
    connection: Connection,
    comparison: Comparison,
    by: Sequence[str],
    *,
    timezone: str,
    currency: str,
    limit: int,
) -> ChangesAnswer | None:
    """Return the changes between two periods, by columns or ``tag:<key>``: at most ``limit`` changes, and the sum of
    the rest; None without another period.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped by these columns.
    """
    if comparison.compared is None or comparison.previous is None:
        return None
    compared = compared_charges(reader, comparison.selection, comparison.previous, by, limit)
    days, others = compared.days, compared.other.number
    listed = _changes_of(compared, by)
    other = change_of(compared.other)
    totals = together([*listed, other], compared.by_identity)
    names = names_of_changes(connection, [*listed, other, totals], currency)
    items = [
        ChangedItem.of(each, days, currency, names, dimensions=dict(zip(by, each.key, strict=True))) for each in listed
    ]
    return ChangesAnswer(
        start_date=comparison.period.start,
        end_date=comparison.period.end,
        timezone=timezone,
        days_with_costs=days[1],
        compared_with=ComparedWith(
            start_date=comparison.compared.start, end_date=comparison.compared.end, days_with_costs=days[0]
        ),
        currency=currency,
        items=items,
        other=ChangedRest.of(other, days, currency, names, count=others) if others else None,
        totals=ChangedAmounts.of(totals, days, currency, names),
        names=display_names(connection, by, [item.dimensions for item in items]),
    )


@dataclass(frozen=True)
class Changes:
    """The changes of the selected costs, the largest first, and the numbers of days with costs in both ranges."""

    items: Sequence[Change]
    days: tuple[int, int]


def changes(reader: TenantReader, selection: Selection, before: InstantRange, by: Sequence[str]) -> Changes:
    """Return the changes since the range ``before``, by columns or ``tag:<key>``.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
        ValueError: costs cannot be filtered or grouped by these columns.
    """
    compared = compared_charges(reader, selection, before, by)
    return Changes(_changes_of(compared, by), compared.days)


def _changes_of(compared: ComparedCharges, by: Sequence[str]) -> list[Change]:
    if _PAYER not in by:
        return [change_of(group) for group in compared.listed]
    place = by.index(_PAYER)
    return [change_of(group, group.key[place] or "") for group in compared.listed]


def change_of(group: ComparedGroup, payer: str | None = None) -> Change:
    """Return the change of some charges, all to one ``payer`` if there is one. Digits of reallocated costs below 10⁻¹²
    are added to the largest effect."""
    sums = dict.fromkeys(EFFECTS, 0)
    reasons = []
    for part in group.parts:
        causes = part.billed.causes(part.before, part.after)
        by_identity = part.by_identity if payer is None else {payer: sum([each.amount for each in causes])}
        for cause in causes:
            sums[cause.effect] += cause.amount
            reasons.append(Reason(part.resource_id, part.product_type, cause, by_identity))
    effects = {effect: from_units(units) if units else _NOTHING for effect, units in sums.items()}
    change = Change(group.key, *group.amounts, effects, reasons, is_of_identity=payer is not None)
    rest = difference(change.delta, total(effects.values()))
    if rest:
        largest = max(EFFECTS, key=lambda name: effects[name].copy_abs())
        effects[largest] = total([effects[largest], rest])
    return change


def together(items: Iterable[Change], by_identity: Mapping[_Billed, Mapping[str, int]] | None = None) -> Change:
    """Return the sum of some changes; their identities are added up, or known as those ``by_identity``."""
    each = list(items)
    reasons = _added_up(reason for item in each for reason in item.reasons)
    if by_identity is not None:
        reasons = [one._replace(by_identity=by_identity[one.resource_id, one.product_type]) for one in reasons]
    return Change(
        (),
        total(item.before for item in each),
        total(item.after for item in each),
        {effect: total(item.effects[effect] for item in each) for effect in EFFECTS},
        reasons,
    )


def names_of_changes(connection: Connection, found: Iterable[Change], currency: str) -> DisplayNames:
    """Return the display names of the ids in the sentences of some changes."""
    reasons = [(change, effect.reason) for change in found for effect in change.main_effects(currency)]
    of_several = [reason for change, reason in reasons if not change.is_of_identity]
    payers = {payer[0] for reason in of_several if (payer := reason.payer(currency)) is not None}
    resources = names_of(connection, RESOURCES, {reason.resource_id for _, reason in reasons})
    return DisplayNames(
        {id_: each.name for id_, each in names_of(connection, IDENTITIES, payers).items() if each.name},
        {id_: each.name for id_, each in resources.items() if each.name},
    )


def _added_up(reasons: Iterable[Reason]) -> list[Reason]:
    """Return one reason for each effect, product type, resource and allocation method; it has a direction if all of its
    parts have the same one."""
    alike: dict[tuple[object, ...], list[Reason]] = {}
    for each in reasons:
        effect, _, _, method, per_unit, is_credit, days_differ = each.cause
        kind = (each.resource_id, each.product_type, effect, method, per_unit, is_credit, days_differ)
        alike.setdefault(kind, []).append(each)
    found = []
    for some in alike.values():
        by_identity: dict[str, int] = {}
        for each in some:
            for identity_id, changed in each.by_identity.items():
                by_identity[identity_id] = by_identity.get(identity_id, 0) + changed
        first, directions = some[0], {each.cause.grew for each in some}
        grew = first.cause.grew if len(directions) == 1 else None
        cause = first.cause._replace(amount=sum(each.cause.amount for each in some), grew=grew)
        found.append(first._replace(cause=cause, by_identity=by_identity))
    return found


def _main_reason(amount: Decimal, reasons: Sequence[Reason]) -> tuple[Reason, Decimal]:
    """Return the largest reason in the direction of an effect, and the size of the others."""
    sign = 1 if amount > 0 else -1
    main = max(reasons, key=lambda each: (each.cause.amount * sign, each.product_type, each.resource_id))
    return main, from_units(sum(abs(each.cause.amount) for each in reasons if each is not main))


def _reason_text(reason: Reason, names: DisplayNames) -> str:
    """Return a reason in words. Directions are those of days, quantities, prices and shares: halving a refund raises a
    cost."""
    cause = reason.cause
    resource = name(names.resources, reason.resource_id)
    what = f"{reason.product_type} on {resource}" if resource else reason.product_type
    if cause.effect in _REASONS:
        return _REASONS[cause.effect].format(what=what)
    per_day = " per day" if cause.days_differ else ""
    billed = "credited" if cause.is_credit else "billed"
    words: tuple[str, ...]
    if cause.effect == CALENDAR:
        words = ("more days have costs", "fewer days have costs", "the number of days with costs changed")
    elif cause.effect == QUANTITY:
        words = tuple(f"{size} quantities of {what} were {billed}{per_day}" for size in ("larger", "smaller", "other"))
    elif cause.effect == PRICE and cause.per_unit:
        price = "the credit for a unit" if cause.is_credit else "the price"
        words = tuple(f"{price} of {what} {verb}" for verb in ("rose", "fell", "changed"))
    elif cause.effect == PRICE:
        words = tuple(f"{size} was {billed} for {what}{per_day}" for size in ("more", "less", "another amount"))
    else:
        words = tuple(text.format(what=what) for text in _SHARES[cause.method])
    grew, shrank, changed = words
    return changed if cause.grew is None else grew if cause.grew else shrank


def _signed(amount: Decimal, currency: str, *, with_currency: bool = True) -> str:
    return f"{'' if amount < 0 else '+'}{money_text(amount, currency, with_currency=with_currency)}"
