"""The ``share`` stage: on every UTC day, the cost of a value is reallocated to others.

The steps of a day depend only on the cost of every value on that day over the whole bill, so they are the same for
every part of the bill that is shown. Together they give the part of a value's cost that each value has in the end, as
whole weights that sum to :data:`WHOLE`. An amount times a weight is an exact number of 10⁻²⁴, so that nothing is
rounded when cost is reallocated, and every sum of rows is exact.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from chargeback.allocation.split import split_in_order
from chargeback.categories.document import CostCategory, Handover
from chargeback.categories.weights import split_units, weights_of
from chargeback.model.dated import value_on
from chargeback.model.money import to_units

#: What the weights of a value that hands on sum to, on each day.
WHOLE: Final = 10**12


@dataclass(frozen=True)
class Step:
    """What one step does on one day: ``parts`` are (value, positive weight), ascending by value, in proportion to which
    the cost of ``source`` is reallocated; one for ``source`` itself remains with it."""

    source: str
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Receiver:
    """A value that gets a part of what another value was assigned on a day, in parts of :data:`WHOLE`: the ``weight``
    that remains with it, and what it ``passed`` on in a later step. It got the sum of both."""

    value: str
    weight: int
    passed: int = 0


def day_steps(
    category: CostCategory,
    held: Mapping[str, int],
    usage: Mapping[str, Mapping[str, int]],
    day: date,
) -> tuple[Step, ...]:
    """Return the steps of one UTC day, in order; those that hand nothing on are left out.

    ``held`` is what each value holds by the rules over the whole bill of the day, in units; values without rows are
    absent. ``usage`` is each value's usage by metric. Values that are not valid on the ``day`` get nothing. What a
    value holds before a later step is counted in whole units.
    """
    holdings = dict(held)
    sources: set[str] = set()
    steps: list[Step] = []
    for handover in category.share:
        excluded = {*sources, handover.source, category.default}
        sources.add(handover.source)
        if handover.source not in holdings:
            continue
        targets = [value for value, units in holdings.items() if units and value not in excluded]
        if handover.targets is not None:
            targets = list(handover.targets)
        valid = [value for value in targets if day in category.validity(value)]
        weights = _weights(handover, valid, holdings, usage)
        fees = {value: units for value, units in _fees(handover, day) if day in category.validity(value)}
        if fees and holdings[handover.source] > 0:
            weights = _after_fees(handover.source, holdings[handover.source], fees, weights)
        if weights:
            step = Step(handover.source, tuple(sorted(weights.items())))
            _hand_on(step, holdings)
            steps.append(step)
    return tuple(steps)


def _weights(
    handover: Handover, targets: Sequence[str], holdings: Mapping[str, int], usage: Mapping[str, Mapping[str, int]]
) -> dict[str, int]:
    """Return the positive weights of a step's targets; they are those of the rest after fees."""
    if handover.by is None:
        return {}
    if handover.by == "even":
        return dict.fromkeys(targets, 1)
    if handover.by == "fixed":
        weights: Mapping[str, int] = dict(weights_of(handover.percentages))
    else:
        weights = holdings if handover.by == "proportional" else usage.get(handover.metric or "", {})
    return {value: weights[value] for value in targets if weights.get(value, 0) > 0}


def _fees(handover: Handover, day: date) -> Iterator[tuple[str, int]]:
    """Yield each value's part of a day of what it gets a month, in units: the days of a month sum to the amount."""
    days = monthrange(day.year, day.month)[1]
    for value, amounts in handover.fees:
        if (amount := value_on(amounts, day)) is not None:
            units = to_units(Decimal(amount))
            yield value, units * day.day // days - units * (day.day - 1) // days


def _after_fees(source: str, whole: int, fees: Mapping[str, int], weights: Mapping[str, int]) -> dict[str, int]:
    """Return the weights of fees and of a division of the rest together. Fees that are more than the ``whole`` cost
    share it; without another division, the rest remains with its source."""
    rest = whole - sum(fees.values())
    if rest <= 0:
        return {value: units for value, units in fees.items() if units}
    sharing = weights or {source: 1}
    parts = sum(sharing.values())
    both = {value: fees.get(value, 0) * parts + sharing.get(value, 0) * rest for value in {*fees, *sharing}}
    return {value: part for value, part in both.items() if part}


def _hand_on(step: Step, holdings: dict[str, int]) -> None:
    for value, units in split_units(holdings.pop(step.source), step.parts):
        holdings[value] = holdings.get(value, 0) + units


def composed(steps: Sequence[Step]) -> dict[str, tuple[Receiver, ...]]:
    """Return the parts of the cost of each source of the steps by receiver, ascending by value.

    The parts are exact fractions until all steps are done, and are rounded once, by largest remainder: the weights of a
    source sum to :data:`WHOLE`.

    >>> first, second = Step("platform", (("infra", 1), ("orders", 2))), Step("infra", (("orders", 1),))
    >>> [(each.value, each.weight, each.passed) for each in composed([first, second])["platform"]]
    [('infra', 0, 333333333333), ('orders', 1000000000000, 0)]
    """
    return {step.source: _receivers(step, steps[place + 1 :]) for place, step in enumerate(steps)}


def _receivers(first: Step, later: Sequence[Step]) -> tuple[Receiver, ...]:
    """Hand on the parts of one step by the later ones; the parts are numerators of a common denominator."""
    parts = dict(first.parts)
    passed: dict[str, int] = {}
    for step in later:
        part = parts.pop(step.source, 0)
        if part:
            whole = sum(weight for _, weight in step.parts)
            gone = whole - dict(step.parts).get(step.source, 0)
            passed[step.source] = part * gone * WHOLE // (sum([part, *parts.values()]) * whole)
            parts = {value: each * whole for value, each in parts.items()}
            for value, weight in step.parts:
                parts[value] = parts.get(value, 0) + part * weight
    values = sorted(parts)
    weights = dict(zip(values, split_in_order(WHOLE, [parts[value] for value in values]), strict=True))
    found = (Receiver(value, weights.get(value, 0), passed.get(value, 0)) for value in sorted({*values, *passed}))
    return tuple(each for each in found if each.weight or each.passed)
