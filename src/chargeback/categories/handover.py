"""The ``share`` stage: on every UTC day, the cost of a value is handed on to others.

The steps of a day follow from what every value holds on that day over the whole bill, and from nothing else: they are
the same whatever part of the bill is shown. Each row is then handed on by these steps on its own, so that every sum of
rows is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from chargeback.allocation.split import split_in_order
from chargeback.categories.document import CostCategory, Handover
from chargeback.categories.weights import Outcome, split_units, weights_of

#: The parts in which a step hands on; the weights of a step sum to this.
WHOLE: Final = 10**12


@dataclass(frozen=True)
class Step:
    """What one step does on one day: ``parts`` are (value, weight), ascending by value, with the sum
    :data:`WHOLE`."""

    source: str
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Amounts:
    """What one value has of a row, in units: by the rules, and what was handed on to it and by it."""

    direct: int = 0
    shared_in: int = 0
    shared_out: int = 0

    @property
    def total(self) -> int:
        """What remains with the value."""
        return self.direct + self.shared_in - self.shared_out


def day_steps(
    category: CostCategory,
    held: Mapping[str, int],
    usage: Mapping[str, Mapping[str, int]],
    day: date | None = None,
) -> tuple[Step, ...]:
    """Return the steps of one UTC day, in order; those that hand nothing on are left out.

    ``held`` is what each value holds by the rules over the whole bill of the day, in units; values without rows are
    absent. ``usage`` is each value's usage by metric. On a ``day``, values that are not valid then get nothing.
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
        valid = [value for value in targets if day is None or day in category.validity(value)]
        if weights := _weights(handover, valid, holdings, usage):
            step = Step(handover.source, _in_parts_of_whole(weights))
            _hand_on(step, holdings)
            steps.append(step)
    return tuple(steps)


def _weights(
    handover: Handover, targets: Sequence[str], holdings: Mapping[str, int], usage: Mapping[str, Mapping[str, int]]
) -> dict[str, int]:
    """Return the positive weights of a step's targets."""
    if handover.by == "even":
        return dict.fromkeys(targets, 1)
    if handover.by == "fixed":
        weights: Mapping[str, int] = dict(weights_of(handover.percentages))
    else:
        weights = holdings if handover.by == "proportional" else usage.get(handover.metric or "", {})
    return {value: weights[value] for value in targets if weights.get(value, 0) > 0}


def _in_parts_of_whole(weights: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    values = sorted(weights)
    shares = split_in_order(WHOLE, [weights[value] for value in values])
    return tuple((value, share) for value, share in zip(values, shares, strict=True) if share)


def _hand_on(step: Step, holdings: dict[str, int]) -> None:
    for value, units in split_units(holdings.pop(step.source), step.parts):
        holdings[value] = holdings.get(value, 0) + units


def row_amounts(units: int, outcome: Outcome, steps: Sequence[Step]) -> dict[str, Amounts]:
    """Return what every value has of one row: its units are split by the outcome, then handed on step by step.

    The totals of the values sum exactly to ``units``.

    >>> step = Step("platform", (("orders", WHOLE // 2), ("payments", WHOLE // 2)))
    >>> row_amounts(3, Outcome((("platform", 1),), None), [step])["orders"]
    Amounts(direct=0, shared_in=2, shared_out=0)
    """
    amounts = {value: Amounts(direct=share) for value, share in split_units(units, outcome.parts)}
    for step in steps:
        source = amounts.get(step.source)
        if source is None:
            continue
        amounts[step.source] = Amounts(source.direct, source.shared_in, source.shared_out + source.total)
        for value, share in split_units(source.total, step.parts):
            before = amounts.get(value, Amounts())
            amounts[value] = Amounts(before.direct, before.shared_in + share, before.shared_out)
    return amounts
