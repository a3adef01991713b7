"""What is to be split: lines in their order, in exact portions."""

from __future__ import annotations

from chargeback.allocation.targets import billable_lines, portion_costs
from tests.allocation.bills import POLICIES, bill


def test_lines_without_cost_are_left_out() -> None:
    """Lines come in list order, whatever the order of the bill; a line that costs nothing is none."""
    lines = billable_lines(bill("r2 BASE 1 \n r1 WRITE 2 \n r1 BASE 0 \n r1 BASE -3"))
    found = zip(lines["resource_id"].to_pylist(), lines["product_type"].to_pylist(), strict=True)
    assert list(found) == [("r1", "BASE"), ("r1", "WRITE"), ("r2", "BASE")]


def test_the_portions_of_a_line_sum_to_it() -> None:
    """Each portion takes its share exactly, for charges and refunds; a portion of nothing is left out."""
    lines = billable_lines(bill("r1 CKU 10 \n r2 CKU -0.000000000001 \n r3 THIRDS 1"))
    found = [(c.line_index, c.resource_id, c.number, c.units) for c in portion_costs(lines, POLICIES)]
    assert found == [
        (0, "r1", 1, 7 * 10**12),
        (0, "r1", 2, 3 * 10**12),
        (1, "r2", 1, -1),
        (2, "r3", 1, 333_333_333_333),
        (2, "r3", 2, 666_666_666_667),
    ]
