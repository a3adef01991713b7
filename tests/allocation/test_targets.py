"""The targets of a portion, method by method."""

from __future__ import annotations

import pyarrow as pa
import pytest

from chargeback.allocation.columns import INTEGER, decimals_of, integers_of
from chargeback.allocation.methods import AllocationMethod
from chargeback.allocation.targets import AllocationTargets, billable_lines, portion_costs
from chargeback.model import chargeback as chargeback_model
from tests.allocation.bills import POLICIES, bill, members, usage


def targets(used: str = "", belong: str = "", *methods: str) -> AllocationTargets:
    """Return the targets of ``methods``, from text."""
    return AllocationTargets(usage(used), members(belong), [AllocationMethod.parse(method) for method in methods])


def group(found: AllocationTargets, method: str, resource_id: str) -> tuple[list[str], list[int] | None] | None:
    """Return ids and weights, for a line of a resource."""
    taking = found.find(AllocationMethod.parse(method), resource_id)
    if taking is None:
        return None
    weights = None if taking.weights is None else integers_of(taking.weights)
    return [found.identity_ids[index] for index in taking.identity_index.to_pylist()], weights


def test_usage_is_summed_over_its_measures() -> None:
    """The measures of a method are summed per resource and identity; identities without usage take no part."""
    used = "in r b 1 \n out r b 2 \n in r a 0.5 \n in s a 4 \n other r c 9 \n in r z 0"
    found = targets(used, "", "usage(in + out)", "usage(out)")
    assert group(found, "usage(in + out)", "r") == (["a", "b"], [500_000, 3_000_000])
    assert group(found, "usage(in + out)", "s") == (["a"], [4_000_000])
    assert group(found, "usage(out)", "r") == (["b"], [2_000_000])
    assert group(found, "usage(out)", "s") is None


def test_members_take_part_once() -> None:
    """Each member takes part once in an even split, in the order of ids, even if it is listed twice."""
    found = targets("", "r active b a b \n r owner b \n r owners c \n * period z", *_EVEN, "owner")
    assert group(found, "even(active)", "r") == (["a", "b"], None)
    assert group(found, "even(owners)", "r") == (["c"], None)
    assert group(found, "owner", "r") == (["b"], None)
    assert group(found, "even(period)", "r") == group(found, "even(period)", "elsewhere") == (["z"], None)
    assert group(found, "even(active)", "elsewhere") is None


def test_nobody_is_always_there() -> None:
    """A portion without targets goes to UNALLOCATED, which otherwise takes part only with its own usage."""
    found = targets("in r UNALLOCATED 1", "r active UNALLOCATED", "usage(in)", "even(active)")
    assert group(found, "unallocated", "r") == (["UNALLOCATED"], None)
    assert group(found, "usage(in)", "r") == (["UNALLOCATED"], [1_000_000])
    assert group(found, "even(active)", "r") is None


def test_proportional_follows_charges() -> None:
    """The proportional method weighs charges; identities with a credit, and UNALLOCATED, are left out."""
    found = targets("", "r active a b c", "even(active)", "proportional")
    assert group(found, "proportional", "r") is None
    units = {"UNALLOCATED": 9, "a": 5, "b": -1, "c": 7}
    index = pa.array([found.identity_ids.index(name) for name in units], pa.int32())
    found.add_charged(pa.table({"identity_index": index, "units": decimals_of(units.values(), INTEGER)}))
    assert group(found, "proportional", "r") == (["a", "c"], [5, 7])


@pytest.mark.parametrize(
    ("method", "available", "expected"),
    [
        ("usage(in)", True, chargeback_model.NO_METRICS_LOCATED),
        ("usage(zero)", True, chargeback_model.NO_USAGE_FOR_ACTIVE_IDENTITIES),
        ("usage(zero)", False, chargeback_model.METRICS_UNAVAILABLE),
        ("owner", True, chargeback_model.NO_OWNER_LOCATED),
        ("even(owners)", True, chargeback_model.NO_OWNER_LOCATED),
        ("even(active)", True, chargeback_model.NO_ACTIVE_IDENTITIES_LOCATED),
        ("even(period)", True, chargeback_model.NO_IDENTITIES_LOCATED),
        ("proportional", True, chargeback_model.NO_ACTIVE_IDENTITIES_LOCATED),
    ],
)
def test_why_a_method_has_no_identities(method: str, available: bool, expected: str) -> None:
    """The reason names what was missing."""
    found = targets("zero r a 0 \n in s a 1", "", method, "usage(in)", "usage(zero)")
    assert found.failure_detail(AllocationMethod.parse(method), "r", metrics_available=available) == expected


_EVEN = ("even(active)", "even(owners)", "even(period)")


def test_lines_without_cost_are_left_out() -> None:
    """Lines are in list order, whatever the order of the bill; lines without cost are left out."""
    lines = billable_lines(bill("r2 BASE 1 \n r1 WRITE 2 \n r1 BASE 0 \n r1 BASE -3"))
    found = zip(lines["resource_id"].to_pylist(), lines["product_type"].to_pylist(), strict=True)
    assert list(found) == [("r1", "BASE"), ("r1", "WRITE"), ("r2", "BASE")]


def test_the_portions_of_a_line_sum_to_it() -> None:
    """Each portion gets its share exactly, for charges and refunds; portions of zero are left out."""
    lines = billable_lines(bill("r1 CKU 10 \n r2 CKU -0.000000000001 \n r3 THIRDS 1"))
    found = [(c.line_index, c.resource_id, c.number, c.units) for c in portion_costs(lines, POLICIES)]
    assert found == [
        (0, "r1", 1, 7 * 10**12),
        (0, "r1", 2, 3 * 10**12),
        (1, "r2", 1, -1),
        (2, "r3", 1, 333_333_333_333),
        (2, "r3", 2, 666_666_666_667),
    ]
