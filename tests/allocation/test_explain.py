"""Explanations of amounts for one identity: how a line was split, method by method."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from chargeback.allocation.day import Evidence
from chargeback.allocation.explain import FAILED, SKIPPED, PortionExplanation, explain_line, explain_topic
from chargeback.model.topics import EXISTED, UNATTRIBUTED, TopicPlan
from tests.allocation.bills import DAY, POLICIES, bill, usage
from tests.allocation.days import evidence
from tests.allocation.test_topics import PLAN, SKIPPING, TRAFFIC


def line_id(day: Evidence, product_type: str) -> str:
    """Return the id of the only line of a type."""
    (found,) = (row["line_id"] for row in day.billing.to_pylist() if row["product_type"] == product_type)
    return str(found)


def explained(day: Evidence, product_type: str, identity_id: str, portion: int | None = None) -> PortionExplanation:
    """Return the explanation of a line of a type."""
    return explain_line(day, POLICIES, line_id(day, product_type), identity_id, portion)


USED = evidence(
    "lkc-1 CKU 10",
    "bytes_in lkc-1 sa-1 3 \n bytes_out lkc-1 sa-1 3 \n bytes_out lkc-1 sa-2 1 \n bytes_in lkc-1 sa-4 0",
    "lkc-1 active sa-1 sa-2 sa-3",
)


def test_a_share_of_usage() -> None:
    """The explanation has the measure, everyone's usage, and the exact share before rounding."""
    found = explained(USED, "CKU", "sa-1", 1)
    assert (found.number, found.share, found.amount) == (1, Decimal("0.70"), Decimal(7))
    assert found.usage_split is not None
    assert (found.usage_split.measure, found.usage_split.total) == ("bytes_in + bytes_out", Decimal(7))
    assert [(each.identity_id, each.value) for each in found.usage_split.participants] == [
        ("sa-1", Decimal(6)),
        ("sa-2", Decimal(1)),
    ]
    assert (len(found.usage_split.participants), found.usage_split.members) == (2, 3)
    assert found.arithmetic is not None
    assert found.arithmetic.exact == Fraction(6 * 10**12)
    assert (found.arithmetic.amount, found.why_nothing) == (Decimal(6), None)


def test_the_methods_that_were_tried() -> None:
    """Each method says why it did not apply or was not needed, and how many identities it finds."""
    found = explained(evidence("lkc-1 CKU 1", "", "lkc-1 active a b \n * period a b c"), "CKU", "a", 1)
    assert [(str(each.method), each.applied, each.candidates) for each in found.methods] == [
        ("usage(bytes_in + bytes_out)", False, 0),
        ("even(active)", True, 2),
        ("even(period)", False, 3),
        ("unallocated", False, 1),
    ]
    assert [each.why_not for each in found.methods] == [
        "no bytes were measured on lkc-1 on this day",
        None,
        "not needed: method 2 applied",
        "not needed: method 2 applied",
    ]


@pytest.mark.parametrize(
    ("product_type", "used", "metrics", "reasons"),
    [
        (
            "WRITE",
            "",
            False,
            [
                "the metrics source did not answer, so no written bytes were measured",
                "no identity was active on r on this day",
                "no identity was active on any resource on this day",
            ],
        ),
        ("WRITE", "bytes_in r a 0", True, ["written bytes were measured on r, but they were all zero"]),
        ("CONNECT", "", True, ["the inventory has no owner of r on this day"]),
        (
            "FLINK",
            "",
            True,
            [
                "no CFU were measured on r on this day",
                "the inventory has no owner of r or of anything in it on this day",
            ],
        ),
        ("SUPPORT", "", True, ["no identity was charged for any line that is split by another method"]),
    ],
)
def test_unallocated_says_what_each_method_needed(
    product_type: str, used: str, metrics: bool, reasons: list[str]
) -> None:
    """If no identity is found, each method before the last says what was missing."""
    found = explained(evidence(f"r {product_type} 1", used, metrics=metrics), product_type, "UNALLOCATED")
    assert [each.why_not for each in found.methods][: len(reasons)] == reasons
    assert found.applied is not None
    assert str(found.applied.method) == "unallocated"
    assert found.arithmetic is not None
    assert found.arithmetic.amount == 1


@pytest.mark.parametrize(
    ("product_type", "used", "belong", "identity_id", "reason"),
    [
        ("WRITE", "bytes_in r b 1", "r active a", "a", "no written bytes of it were measured on r"),
        ("WRITE", "bytes_in r b 1 \n bytes_in r a 0", "r active a", "a", "its measured written bytes on r were zero"),
        ("BASE", "", "r active b \n * period a b", "a", "it was not active on r"),
        ("BASE", "", "* period b", "a", "it was not active on any resource on this day"),
        ("CONNECT", "", "r owner b \n r active a", "a", "it did not own r"),
        ("BASE", "", "r active b", "UNALLOCATED", "there was someone to charge, so nothing is left for UNALLOCATED"),
        ("NEWS", "", "r active a", "a", "no method of the policy found anyone to charge, so the cost is UNALLOCATED"),
        ("SUPPORT", "", "r active b", "a", "other lines charge it nothing, so there is nothing that this line could "
         "follow"),
    ],
)  # fmt: skip
def test_why_an_identity_gets_nothing(product_type: str, used: str, belong: str, identity_id: str, reason: str) -> None:
    """For an identity without a part of a line, the explanation says why, in terms of the method that applied."""
    others = "" if product_type == "BASE" else "\n r BASE 1"
    found = explained(evidence(f"r {product_type} 1 {others}", used, belong), product_type, identity_id)
    assert (found.why_nothing, found.arithmetic) == (reason, None)


def test_a_share_below_the_smallest_unit() -> None:
    """If an identity gets none of the few units, the explanation says so, with its rank."""
    found = explained(evidence("r BASE 0.000000000001", "", "r active a b"), "BASE", "b")
    assert found.why_nothing == "its exact share is less than 10⁻¹², and others have larger remainders"
    assert found.arithmetic is not None
    assert (found.arithmetic.exact, found.arithmetic.units_floor) == (Fraction(1, 2), 0)
    assert (found.arithmetic.spare_units, found.arithmetic.remainder_rank) == (1, 2)


def test_a_line_that_costs_nothing() -> None:
    """A line of zero needs neither a method nor evidence."""
    found = explained(evidence("r BASE 0", "", "r active a"), "BASE", "a")
    assert (found.why_nothing, found.methods, found.usage_split) == ("the line costs nothing", (), None)


def test_proportional_lines_follow_the_others() -> None:
    """The values of participants are their charges from the other lines; identities with a credit do not take part."""
    day = evidence(
        "lkc-1 BASE 6 \n lkc-2 BASE 2 \n lkc-3 BASE -5 \n org SUPPORT 8",
        "",
        "lkc-1 active a \n lkc-2 active b \n lkc-3 active c",
    )
    found = explained(day, "SUPPORT", "a")
    assert found.usage_split is not None
    assert [(each.identity_id, each.value) for each in found.usage_split.participants] == [
        ("a", Decimal(6)),
        ("b", Decimal(2)),
    ]
    assert (found.usage_split.measure, found.usage_split.total) == (None, Decimal(8))
    assert found.arithmetic is not None
    assert found.arithmetic.amount == 6
    assert explained(day, "SUPPORT", "c").why_nothing is not None


def test_all_contenders_the_largest_first() -> None:
    """Participants of a portion are listed by usage, largest first, then by id."""
    used = "\n".join(f"bytes_in r sa-{number:03} {number // 2}" for number in range(2, 101))
    found = explained(evidence("r WRITE 1", used), "WRITE", "sa-001")
    assert found.usage_split is not None
    listed = [each.identity_id for each in found.usage_split.participants]
    assert listed[:3] == ["sa-100", "sa-098", "sa-099"]
    assert len(listed) == 99
    assert found.usage_split.participant("sa-001") is None


def test_the_portion_may_be_left_out() -> None:
    """The default is the portion that charges the identity; if there are several, the request must name one."""
    assert explained(USED, "CKU", "sa-3").number == 2
    assert explained(USED, "CKU", "sa-9").number == 1
    with pytest.raises(ValueError, match="portions 1, 2: name one"):
        explained(USED, "CKU", "sa-1")
    with pytest.raises(ValueError, match="no portion 3"):
        explained(USED, "CKU", "sa-1", 3)
    with pytest.raises(KeyError):
        explain_line(USED, POLICIES, "no such line", "sa-1")


def explained_topic(
    line: str, topic: str, evidence: pa.Table | None = TRAFFIC, plan: TopicPlan = PLAN
) -> PortionExplanation:
    """Return the explanation of one line."""
    return explain_topic(DAY, bill(line), evidence, plan, topic)


def test_a_share_of_the_bytes() -> None:
    """The explanation has the measure of the type, every topic's usage, and the share."""
    found = explained_topic("lkc-1 WRITE 9", "orders")
    assert found.usage_split is not None
    assert found.arithmetic is not None
    assert (found.usage_split.measure, found.usage_split.total, found.usage_split.members) == (
        "bytes_in",
        Decimal(900),
        3,
    )
    assert [(each.identity_id, each.value) for each in found.usage_split.participants] == [
        ("orders", Decimal(600)),
        ("payments", Decimal(300)),
    ]
    assert (found.arithmetic.amount, found.why_nothing) == (Decimal(6), None)


def test_an_even_split() -> None:
    """Every known topic gets an equal part, including one named UNALLOCATED."""
    found = explained_topic("lkc-1 BASE 3", "UNALLOCATED", usage(f"{EXISTED} lkc-1 UNALLOCATED 1\n{EXISTED} lkc-1 a 1"))
    assert found.usage_split is not None
    assert found.arithmetic is not None
    assert [each.identity_id for each in found.usage_split.participants] == ["UNALLOCATED", "a"]
    assert (found.usage_split.total, found.arithmetic.amount) == (None, Decimal("1.5"))


@pytest.mark.parametrize(
    ("line", "topic", "why"),
    [
        ("lkc-1 WRITE 9", "idle", "no written bytes of it were measured on this day"),
        ("lkc-1 BASE 9", "gone", "it is not known to have existed on this day"),
        ("lkc-1 BASE 9", "_internal-log", "topics of the pattern _internal* are excluded"),
        ("lkc-1 BASE 9", UNATTRIBUTED, "there were topics to attribute the line to, so nothing is left for"),
        ("lkc-2 BASE 9", "orders", f"the line could be attributed to no topic, so it is {UNATTRIBUTED}"),
        ("lkc-1 BASE 0", "orders", "the line costs nothing"),
    ],
)
def test_why_not_this_topic(line: str, topic: str, why: str) -> None:
    """For a topic without a part of a line, the explanation says why."""
    found = explained_topic(line, topic)
    assert found.arithmetic is None
    assert (found.why_nothing or "").startswith(why)


def test_a_line_without_topics() -> None:
    """Each method says what was missing."""
    found = explained_topic("lkc-2 WRITE 9", UNATTRIBUTED)
    assert found.arithmetic is not None
    assert found.arithmetic.amount == 9
    assert [each.why_not for each in found.methods] == [
        "no written bytes were measured on lkc-2 on this day",
        "no topic of lkc-2 is known on this day",
        None,
    ]


def test_days_without_metrics_and_lines_that_are_left_out() -> None:
    """If metrics are missing, each method says so; a line that is left out has no amount."""
    failed = explained_topic("lkc-1 WRITE 9", UNATTRIBUTED, None)
    assert [each.why_not for each in failed.methods] == [FAILED, FAILED, None]
    assert failed.arithmetic is not None
    assert failed.arithmetic.amount == 9
    skipped = explained_topic("lkc-2 WRITE 9", UNATTRIBUTED, plan=SKIPPING)
    assert (skipped.arithmetic, skipped.usage_split, skipped.why_nothing) == (None, None, SKIPPED)


def test_a_type_that_is_not_attributed() -> None:
    """A type that is not attributed raises KeyError."""
    with pytest.raises(KeyError):
        explained_topic("lkc-1 SUPPORT 9", "orders")
