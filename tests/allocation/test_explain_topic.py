"""Explanations of topic rows: how a line was attributed, as it concerns one topic."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from chargeback.allocation.explain import FAILED, SKIPPED, ExplainedPortion, explain_topic
from chargeback.model.topics import EXISTED, UNATTRIBUTED, TopicPlan
from tests.allocation.bills import DAY, bill, usage
from tests.allocation.test_topics import PLAN, SKIPPING, TRAFFIC


def explained(line: str, topic: str, evidence: pa.Table | None = TRAFFIC, plan: TopicPlan = PLAN) -> ExplainedPortion:
    """The explanation of one line."""
    return explain_topic(DAY, bill(line), evidence, plan, topic)


def test_a_share_of_the_bytes() -> None:
    """The measure of the line's type, every topic's part of it, and the share."""
    found = explained("lkc-1 WRITE 9", "orders")
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
    """Every topic that is known has an equal part, also one of the name UNALLOCATED."""
    found = explained("lkc-1 BASE 3", "UNALLOCATED", usage(f"{EXISTED} lkc-1 UNALLOCATED 1\n{EXISTED} lkc-1 a 1"))
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
    """A topic that has nothing of a line is told why."""
    found = explained(line, topic)
    assert found.arithmetic is None
    assert (found.why_nothing or "").startswith(why)


def test_a_line_without_topics() -> None:
    """Each method says what it would have needed."""
    found = explained("lkc-2 WRITE 9", UNATTRIBUTED)
    assert found.arithmetic is not None
    assert found.arithmetic.amount == 9
    assert [each.why_not for each in found.methods] == [
        "no written bytes were measured on lkc-2 on this day",
        "no topic of lkc-2 is known on this day",
        None,
    ]


def test_days_without_metrics_and_lines_that_are_left_out() -> None:
    """A failed day says so for each method; what the settings leave out has no amount."""
    failed = explained("lkc-1 WRITE 9", UNATTRIBUTED, None)
    assert [each.why_not for each in failed.methods] == [FAILED, FAILED, None]
    assert failed.arithmetic is not None
    assert failed.arithmetic.amount == 9
    skipped = explained("lkc-2 WRITE 9", UNATTRIBUTED, plan=SKIPPING)
    assert (skipped.arithmetic, skipped.usage_split, skipped.why_nothing) == (None, None, SKIPPED)


def test_a_type_that_is_not_attributed() -> None:
    """It is the caller's mistake."""
    with pytest.raises(KeyError):
        explained("lkc-1 SUPPORT 9", "orders")
