"""The calculation of one day: who is charged how much, and why, without losing a digit."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings

from chargeback.allocation.day import Evidence
from chargeback.allocation.split import split_exactly
from chargeback.errors import AllocationError
from chargeback.model.chargeback import CHARGEBACKS, DIMENSION_COLUMNS, dimension_id
from chargeback.model.money import to_units
from tests.allocation.bills import CATALOGUE, DAY, POLICIES, calculate, rows_of
from tests.allocation.days import evidence, random_days
from tests.support.laws import examples


def test_by_usage_with_a_shared_portion() -> None:
    """A line of two portions is split by bytes and evenly; both portions become rows of their own."""
    day = calculate(
        evidence(
            "lkc-1 CKU 10",
            "bytes_in lkc-1 sa-1 3 \n bytes_out lkc-1 sa-1 3 \n bytes_out lkc-1 sa-2 1",
            "lkc-1 active sa-1 sa-2 sa-3",
        )
    )
    assert rows_of(day) == [
        "lkc-1 CKU 1 sa-1 usage 6 usage_ratio USAGE_RATIO_ALLOCATION",
        "lkc-1 CKU 2 sa-1 shared 1 even_split EVEN_SPLIT_ALLOCATION",
        "lkc-1 CKU 1 sa-2 usage 1 usage_ratio USAGE_RATIO_ALLOCATION",
        "lkc-1 CKU 2 sa-2 shared 1 even_split EVEN_SPLIT_ALLOCATION",
        "lkc-1 CKU 2 sa-3 shared 1 even_split EVEN_SPLIT_ALLOCATION",
    ]
    first = day.rows.to_pylist()[0]
    assert (first["identity_usage"], first["total_usage"]) == (Decimal(6), Decimal(7))
    assert (first["portion_share"], first["chain_position"]) == (Decimal("0.7"), 1)
    assert first["policy_hash"] == POLICIES["CKU"].hash


def test_the_owner_pays() -> None:
    """A known owner is charged directly; without an owner, the identities that are active on the resource share the
    cost."""
    day = calculate(
        evidence("lcc-1 CONNECT 2 \n lcc-2 CONNECT 2", "", "lcc-1 owner sa-1 \n lcc-1 active sa-1 \n lcc-2 active sa-2")
    )
    assert rows_of(day) == [
        "lcc-1 CONNECT 1 sa-1 usage 2 direct OWNER_ALLOCATION",
        "lcc-2 CONNECT 1 sa-2 shared 2 even_split NO_OWNER_LOCATED",
    ]


@pytest.mark.parametrize(
    ("used", "belong", "metrics", "expected"),
    [
        ("", "lkc-1 active a", True, "lkc-1 WRITE 1 a shared 1 even_split NO_METRICS_LOCATED"),
        ("bytes_in lkc-2 a 5", "lkc-1 active a", True, "lkc-1 WRITE 1 a shared 1 even_split NO_METRICS_LOCATED"),
        ("bytes_out lkc-1 a 5", "lkc-1 active a", True, "lkc-1 WRITE 1 a shared 1 even_split NO_METRICS_LOCATED"),
        (
            "bytes_in lkc-1 a 0",
            "lkc-1 active a",
            True,
            "lkc-1 WRITE 1 a shared 1 even_split NO_USAGE_FOR_ACTIVE_IDENTITIES",
        ),
        ("", "lkc-1 active a", False, "lkc-1 WRITE 1 a shared 1 even_split METRICS_UNAVAILABLE"),
        ("", "* period a", True, "lkc-1 WRITE 1 a shared 1 even_split NO_METRICS_LOCATED"),
        ("", "", True, "lkc-1 WRITE 1 UNALLOCATED shared 1 terminal NO_IDENTITIES_LOCATED"),
        ("", "", False, "lkc-1 WRITE 1 UNALLOCATED shared 1 terminal NO_IDENTITIES_LOCATED"),
    ],
)
def test_why_the_first_method_failed(used: str, belong: str, metrics: bool, expected: str) -> None:
    """The detail of a row says why the first method of the chain did not apply, unless no method found an identity."""
    assert rows_of(calculate(evidence("lkc-1 WRITE 1", used, belong, metrics=metrics))) == [expected]


def test_even_over_the_owners_of_the_parts() -> None:
    """Without usage, the cost of a pool is shared by the owners of its statements, not charged to one owner."""
    day = calculate(evidence("p FLINK 2 \n p CONNECT 2", "", "p owners a b \n p active c"))
    assert rows_of(day) == [
        "p FLINK 1 a shared 1 even_split NO_METRICS_LOCATED",
        "p FLINK 1 b shared 1 even_split NO_METRICS_LOCATED",
        "p CONNECT 1 c shared 2 even_split NO_OWNER_LOCATED",
    ]


def test_even_over_the_period_when_nobody_is_active() -> None:
    """If no identity is active, the second method applies, and the row says why the first one failed."""
    assert rows_of(calculate(evidence("lkc-1 BASE 3", "", "* period a b c"))) == [
        "lkc-1 BASE 1 a shared 1 even_split NO_ACTIVE_IDENTITIES_LOCATED",
        "lkc-1 BASE 1 b shared 1 even_split NO_ACTIVE_IDENTITIES_LOCATED",
        "lkc-1 BASE 1 c shared 1 even_split NO_ACTIVE_IDENTITIES_LOCATED",
    ]


def test_unknown_types_are_told_and_go_to_unallocated() -> None:
    """Lines of an unknown product type go to UNALLOCATED, and the type is reported."""
    day = calculate(evidence("x NEWS 5", "", "x active a \n * period a"))
    assert rows_of(day) == ["x NEWS 1 UNALLOCATED shared 5 terminal UNKNOWN_PRODUCT_TYPE"]
    assert day.unknown_types == ("NEWS",)


def test_usage_without_an_owner_keeps_its_weight() -> None:
    """Usage of an unknown identity is not charged to the other users of the resource."""
    day = calculate(evidence("p WRITE 4", "bytes_in p UNALLOCATED 3 \n bytes_in p a 1", "p active a"))
    assert rows_of(day) == [
        "p WRITE 1 UNALLOCATED usage 3 usage_ratio NO_OWNER_LOCATED",
        "p WRITE 1 a usage 1 usage_ratio USAGE_RATIO_ALLOCATION",
    ]


def test_proportional_follows_the_other_lines() -> None:
    """Support is shared in proportion to the other charges; UNALLOCATED and identities with a credit take no part."""
    day = calculate(
        evidence(
            "lkc-1 BASE 6 \n lkc-2 BASE 2 \n lkc-3 BASE -5 \n x NEWS 100 \n org SUPPORT 8 \n org SUPPORT -4",
            "",
            "lkc-1 active a \n lkc-2 active b \n lkc-3 active c",
        )
    )
    support = [row for row in rows_of(day) if row.startswith("org")]
    assert sorted(support) == [
        "org SUPPORT 1 a shared -3 proportional PROPORTIONAL_ALLOCATION",
        "org SUPPORT 1 a shared 6 proportional PROPORTIONAL_ALLOCATION",
        "org SUPPORT 1 b shared -1 proportional PROPORTIONAL_ALLOCATION",
        "org SUPPORT 1 b shared 2 proportional PROPORTIONAL_ALLOCATION",
    ]


def test_proportional_without_anything_to_follow() -> None:
    """If no identity was charged, support is shared by the next method of its chain."""
    assert rows_of(calculate(evidence("org SUPPORT 2", "", "* period a"))) == [
        "org SUPPORT 1 a shared 2 even_split NO_ACTIVE_IDENTITIES_LOCATED"
    ]


def test_unallocated_takes_no_part_in_an_even_split() -> None:
    """A membership of UNALLOCATED is ignored, whatever its source."""
    assert rows_of(calculate(evidence("r BASE 1", "", "r active UNALLOCATED a"))) == [
        "r BASE 1 a shared 1 even_split EVEN_SPLIT_ALLOCATION"
    ]


def test_ties_go_to_the_first_ids() -> None:
    """Units that cannot be divided evenly go, one each, to the first ids."""
    assert rows_of(calculate(evidence("r BASE 0.000000000005", "", "r active c a b"))) == [
        "r BASE 1 a shared 2E-12 even_split EVEN_SPLIT_ALLOCATION",
        "r BASE 1 b shared 2E-12 even_split EVEN_SPLIT_ALLOCATION",
        "r BASE 1 c shared 1E-12 even_split EVEN_SPLIT_ALLOCATION",
    ]


def test_rows_of_zero_are_not_written() -> None:
    """Lines of zero have no rows, and neither do shares of zero."""
    assert rows_of(calculate(evidence("r BASE 0 \n r BASE 0.000000000001", "", "r active a b"))) == [
        "r BASE 1 a shared 1E-12 even_split EVEN_SPLIT_ALLOCATION"
    ]


def test_a_day_without_lines() -> None:
    """A gathered day without lines has no rows, but the right schema."""
    rows = calculate(evidence("")).rows
    assert (rows.num_rows, rows.cast(CHARGEBACKS).schema) == (0, CHARGEBACKS)


def test_beyond_128_bits() -> None:
    """The largest bill is split exactly by the largest usages."""
    day = calculate(
        evidence(
            "r WRITE 99999999999999999999999999.999999999999",
            "bytes_in r a 99999999999999999999999999 \n bytes_in r b 33333333333333333333333333.333333",
        )
    )
    expected = split_exactly(10**38 - 1, [("a", (10**26 - 1) * 10**6), ("b", 33333333333333333333333333333333)])
    found = zip(day.rows["identity_id"].to_pylist(), map(to_units, day.rows["amount"].to_pylist()), strict=True)
    assert list(found) == expected


def test_the_same_evidence_gives_the_same_bytes() -> None:
    """The rows and their order do not depend on the order of the evidence."""
    given_ = evidence(
        "b CKU 7 \n a CKU 7 \n a BASE 1 \n o SUPPORT 3",
        "bytes_in a x 1 \n bytes_in b y 2 \n bytes_out a y 3",
        "a active x y z \n b active z",
    )
    turned = Evidence(
        DAY,
        given_.billing.take(pa.array([3, 1, 0, 2])),
        given_.usage.take(pa.array([2, 0, 1])),
        given_.members.take(pa.array([3, 2, 1, 0])),
    )
    first, second = calculate(given_).rows, calculate(turned).rows
    assert first.combine_chunks().equals(second.combine_chunks())


def test_dimension_ids_are_those_of_the_columns() -> None:
    """The dimension id of each row is the hash of its dimension columns."""
    rows = calculate(evidence("a CKU 7 \n x NEWS 1", "bytes_in a x 1", "a active x y")).rows.to_pylist()
    for row in rows:
        assert row["dimension_id"] == dimension_id(tuple(row[name] for name in DIMENSION_COLUMNS))


def test_amounts_that_do_not_fit_are_an_error_of_the_day() -> None:
    """If the sums of a day exceed 38 digits, the day is an error."""
    largest = "99999999999999999999999999"
    with pytest.raises(AllocationError, match="38 digits"):
        calculate(evidence(f"r BASE {largest} \n r2 BASE {largest} \n o SUPPORT 1", "", "r active a \n r2 active a"))


@settings(max_examples=examples(60))
@given(random_days())
def test_the_rows_of_every_line_sum_to_the_line(day: Evidence) -> None:
    """The rows of each line sum to it exactly, for any sign, size, number of decimals and number of identities."""
    rows = calculate(day).rows
    sums: dict[str, int] = defaultdict(int)
    for line_id, amount in zip(rows["line_id"].to_pylist(), rows["amount"].to_pylist(), strict=True):
        sums[line_id] += to_units(amount)
        assert amount != 0
    billed = zip(day.billing["line_id"].to_pylist(), day.billing["total_cost"].to_pylist(), strict=True)
    assert sums == {line_id: to_units(cost) for line_id, cost in billed if cost}
    keys = rows.select(["line_id", "portion", "identity_id"])
    assert keys.group_by(keys.column_names).aggregate([]).num_rows == rows.num_rows


def test_a_catalogue_knows_its_measures() -> None:
    """A catalogue lists every measure that its policies use."""
    assert CATALOGUE.measures == {"bytes_in", "bytes_out", "cfu"}
