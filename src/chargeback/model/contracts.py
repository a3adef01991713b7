"""Contracts: what was committed to a provider, and what is drawn from it.

Drawing is a pure function of commitments and costs, independent of the order in which these became known. The costs of
a day with the same place are one amount. It goes to the commitments that it applies to, by their priority, the end of
their interval, and their ids; an amount that exceeds the remainder is split in units of 10⁻¹², so that applied and
other amounts add up to the bill. Credits give back drawn amounts if the commitment counts the billed cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from typing import Final, Literal

from chargeback.model.days import ONE_DAY, DayRange, months_later
from chargeback.model.money import to_units

CommitmentKind = Literal["spend", "usage"]
Interval = Literal["monthly", "quarterly", "annual", "term"]
Counts = Literal["billed", "before_credits"]
SPEND: Final = "spend"
BILLED: Final = "billed"
#: The columns of the bill that distinguish costs.
PLACES: Final = ("product_category", "product_type", "resource_id", "environment_id")
_MONTHS: Final[Mapping[str, int]] = {"monthly": 1, "quarterly": 3, "annual": 12}
#: A day, a place, and a unit (or the empty text).
Place = tuple[date, tuple[tuple[str, str], ...], str]
_WEEK: Final = 7
#: How many days a forecast looks at, and how few are enough.
_RECENT: Final = 56
_FEWEST: Final = 14


@dataclass(frozen=True)
class Commitment:
    """What a contract commits to in each interval of its days.

    Attributes:
        kind: ``spend``, an amount of money, or ``usage``, a quantity in a ``unit`` of the bill.
        size: how much of that in each interval.
        counts: whether credits give back what was drawn (``billed``) or not.
        rollover: whether what is left of an interval is added to the next one.
        priority: which of several comes first; the lowest number does.
        applies_to: the conditions of the lines that count; empty for all.
    """

    contract: str
    id: str
    kind: CommitmentKind
    size: Decimal
    unit: str | None
    interval: Interval
    days: DayRange
    counts: Counts = BILLED
    rollover: bool = False
    priority: int = 100
    applies_to: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def intervals(self) -> tuple[DayRange, ...]:
        """The days of the contract in intervals that begin on the day of the month on which it does."""
        months = _MONTHS.get(self.interval)
        if months is None:
            return (self.days,)
        bounds, count = [self.days.start], months
        while (bound := months_later(self.days.start, count)) < self.days.end:
            bounds.append(bound)
            count += months
        return tuple(map(DayRange, bounds, (*bounds[1:], self.days.end)))

    def applies(self, cost: DayCost) -> bool:
        """Return whether the costs of a day count."""
        if cost.day not in self.days or (self.kind != SPEND and cost.unit != self.unit):
            return False
        return all(cost.place.get(name) in values for name, values in self.applies_to.items())


@dataclass(frozen=True)
class DayCost:
    """What lines of one place cost on a day: charges, credits (negative), and the quantity of the charges."""

    day: date
    place: Mapping[str, str]
    unit: str | None
    charges: Decimal
    credits: Decimal
    quantity: Decimal

    @property
    def key(self) -> Place:
        """Return what identifies it, and its place in the order of several."""
        return self.day, tuple(sorted(self.place.items())), self.unit or ""


@dataclass(frozen=True, slots=True)
class Applied:
    """What of a day's costs of one place went to a commitment, in units of 10⁻¹²: ``money``, which is negative where a
    credit gives it back, and the ``quantity`` of a commitment of usage."""

    commitment: Commitment
    money: int
    quantity: int


@dataclass
class Drawn:
    """What was drawn in an interval, in units of 10⁻¹² of money or of the quantity; ``applied`` and ``overage`` are
    money: what went to it, and what found no room. ``wanted`` is what would be drawn of a day without a limit."""

    days: DayRange
    committed: int
    drawn: int = 0
    applied: int = 0
    overage: int = 0
    exhausted_on: date | None = None
    wanted: dict[date, int] = field(default_factory=dict)

    @property
    def remaining(self) -> int:
        """Return its remainder."""
        return self.committed - self.drawn


@dataclass
class BillShares:
    """Where the bill of a contract's days went, in units: to its commitments, to those of others, and nowhere."""

    billed: int = 0
    applied: int = 0
    to_others: int = 0

    @property
    def not_applied(self) -> int:
        """What no commitment covers."""
        return self.billed - self.applied - self.to_others


@dataclass(frozen=True)
class Outlook:
    """What an interval is expected to come to: the days on which it is used up if costs are as high as in one week of
    ten, in half of them, or in nine of ten; None where that is not before its end; and what is left at the end."""

    early: date | None
    middle: date | None
    late: date | None
    shortfall: int


_Found = tuple[Commitment, Drawn]


class Drawing:
    """Commitments that costs are drawn from, in the order of these, see :func:`draw`. ``applied`` has what went where
    of the charges and the credits (by ``is_credit``) of some days, in the order in which it did."""

    def __init__(self, commitments: Sequence[Commitment], recorded: Collection[date] = ()) -> None:
        self._commitments = commitments
        self._recorded = recorded
        self.applied: dict[tuple[Place, bool], list[Applied]] = {}
        self._drawn: dict[tuple[str, str], list[Drawn]] = {(each.contract, each.id): [] for each in commitments}
        self._days = {each.contract: each.days for each in commitments}
        self.shares: dict[str, BillShares] = {each.contract: BillShares() for each in commitments}

    def of(self, commitment: Commitment, last: date) -> list[Drawn]:
        """Return what was drawn from a commitment, by interval, up to the one of a day."""
        self._at(commitment, min(last, commitment.days.end - ONE_DAY))
        return self._drawn[commitment.contract, commitment.id]

    def charge(self, cost: DayCost) -> None:
        """Draw what a day costs."""
        charges = to_units(cost.charges)
        self._share(cost, charges, _charge(self._found(cost), cost.day, charges, to_units(cost.quantity)))

    def give_back(self, cost: DayCost) -> None:
        """Give back what the credits of a day are."""
        credit = to_units(cost.credits)
        counting = [each for each in self._found(cost) if each[0].kind == SPEND and each[0].counts == BILLED]
        self._share(cost, credit, _give_back(counting, credit), is_credit=True)

    def _found(self, cost: DayCost) -> list[_Found]:
        """Return the commitments that a cost goes to, in their order."""
        found = [(each, self._at(each, cost.day)) for each in self._commitments if each.applies(cost)]
        return sorted(found, key=lambda each: (each[0].priority, each[1].days.end, each[0].contract, each[0].id))

    def _share(self, cost: DayCost, units: int, applied: list[Applied], *, is_credit: bool = False) -> None:
        if applied and cost.day in self._recorded:
            self.applied[cost.key, is_credit] = applied
        for contract, shares in self.shares.items():
            if cost.day in self._days[contract]:
                mine = sum(each.money for each in applied if each.commitment.contract == contract)
                shares.billed += units
                shares.applied += mine
                shares.to_others += sum(each.money for each in applied) - mine

    def _at(self, commitment: Commitment, day: date) -> Drawn:
        """Return what is drawn in the interval of a day; those before it are over."""
        known, size = self._drawn[commitment.contract, commitment.id], to_units(commitment.size)
        while not known or (day >= known[-1].days.end and len(known) < len(commitment.intervals)):
            left = known[-1].remaining if known and commitment.rollover else 0
            known.append(Drawn(commitment.intervals[len(known)], size + left))
        return known[-1]


def draw(commitments: Sequence[Commitment], costs: Iterable[DayCost], recorded: Collection[date] = ()) -> Drawing:
    """Return what is drawn from commitments by costs, in any order of these: by day, its charges first. The
    distribution is recorded for some days."""
    drawing = Drawing(commitments, recorded)
    for _, of_day in groupby(sorted(costs, key=lambda cost: cost.key), key=lambda cost: cost.day):
        day = list(of_day)
        for each in day:
            drawing.charge(each)
        for each in day:
            drawing.give_back(each)
    return drawing


def outlook(commitment: Commitment, drawn: Sequence[Drawn], counted: Sequence[date]) -> Outlook | None:
    """Return what the last interval is expected to come to, by the weeks before the last of the ``counted`` days; None
    if there are too few of these, or the interval is over."""
    now = drawn[-1]
    recent = [day for day in counted if day in commitment.days][-_RECENT:]
    if len(recent) < _FEWEST or recent[-1] not in now.days:
        return None
    wanted = {day: amount for each in drawn for day, amount in each.wanted.items()}
    amounts = [wanted.get(day, 0) for day in recent]
    weeks = sorted(sum(amounts[start : start + _WEEK]) for start in range(len(amounts) - _WEEK + 1))
    low, middle, high = (weeks[round(part * (len(weeks) - 1))] / _WEEK for part in (0.1, 0.5, 0.9))
    last, left = recent[-1], (now.days.end - ONE_DAY - recent[-1]).days

    def used_up(daily: float) -> date | None:
        days = -(-now.remaining // daily) if daily > 0 else left + 1
        return last + timedelta(days=int(days)) if days <= left else None

    if now.exhausted_on is not None:
        return Outlook(now.exhausted_on, now.exhausted_on, now.exhausted_on, 0)
    return Outlook(used_up(high), used_up(middle), used_up(low), max(0, round(now.remaining - middle * left)))


def _charge(found: Sequence[_Found], day: date, money: int, quantity: int) -> list[Applied]:
    applied: list[Applied] = []
    for commitment, state in found:
        if not money:
            return applied
        is_spend = commitment.kind == SPEND
        wanted = money if is_spend else quantity
        state.wanted[day] = state.wanted.get(day, 0) + wanted
        drawn = min(max(0, state.remaining), wanted)
        part = drawn if is_spend else money if drawn == quantity else money * drawn // quantity
        quantity -= quantity * part // money if is_spend else drawn
        money -= part
        state.drawn += drawn
        state.applied += part
        if part or drawn:
            applied.append(Applied(commitment, part, 0 if is_spend else drawn))
        if drawn and not state.remaining:
            state.exhausted_on = day
    if found:
        found[-1][1].overage += money
    return applied


def _give_back(found: Sequence[_Found], credit: int) -> list[Applied]:
    applied: list[Applied] = []
    for commitment, state in reversed(found):  # what was drawn last comes back first
        back = min(state.drawn, -credit)
        if back:
            state.drawn -= back
            state.applied -= back
            applied.append(Applied(commitment, -back, 0))
            state.exhausted_on = None
            credit += back
    return applied


def places_of(commitments: Iterable[Commitment]) -> Iterator[str]:
    """Yield the columns by which the commitments distinguish costs."""
    used = {name for each in commitments for name in each.applies_to}
    return (name for name in PLACES if name in used)
