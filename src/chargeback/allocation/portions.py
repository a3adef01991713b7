"""The portions to split: the lines of a day that cost something, each divided into the portions of its policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NewType

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import integers_of
from chargeback.allocation.policies import Policy, Portion
from chargeback.allocation.split import split_in_order
from chargeback.model.billing import MONEY
from chargeback.model.money import to_units

_LINE_ORDER: Final = ("timestamp", "resource_id", "product_type", "line_id")

#: The position of a billing line in the table that :func:`billable_lines` returns.
LineIndex = NewType("LineIndex", int)


@dataclass(frozen=True, slots=True)
class PortionCost:
    """One portion of one line: ``number`` counts the portions of the line from 1, ``units`` are 10⁻¹² of the cost."""

    line_index: LineIndex
    resource_id: str
    policy: Policy
    number: int
    portion: Portion
    units: int


def billable_lines(billing: pa.Table) -> pa.Table:
    """Return the lines that cost something, in list order."""
    costly = billing.filter(pc.not_equal(billing["total_cost"], pa.scalar(Decimal(0), MONEY)))
    return costly.sort_by([(name, "ascending") for name in _LINE_ORDER]).combine_chunks()


def portion_costs(lines: pa.Table, policies: Mapping[str, Policy]) -> Iterator[PortionCost]:
    """Split every line exactly into the portions of its policy; portions of zero are left out.

    ``policies`` maps each product type of ``lines`` to its policy.
    """
    weights = {name: [to_units(portion.share) for portion in policy.portions] for name, policy in policies.items()}
    costs = integers_of(lines["total_cost"].combine_chunks())
    fields = zip(lines["resource_id"].to_pylist(), lines["product_type"].to_pylist(), costs, strict=True)
    for line_index, (resource_id, product_type, units) in enumerate(fields):
        policy = policies[product_type]
        parts = split_in_order(units, weights[product_type])
        for number, (portion, part) in enumerate(zip(policy.portions, parts, strict=True), start=1):
            if part:
                yield PortionCost(LineIndex(line_index), resource_id, policy, number, portion, part)
