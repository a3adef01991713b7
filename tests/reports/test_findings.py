"""Findings follow from what was measured."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from chargeback.reports.findings import (
    KINDS,
    TOPIC_NEVER_READ,
    FindingItem,
    FindingSubject,
    Unused,
    described,
    finding_id,
)

DAY = date(2026, 1, 5)
UNUSED = Unused(
    kind=TOPIC_NEVER_READ,
    place="lkc-1",
    name="orders",
    since=DAY,
    last_active=None,
    measured_days=10,
    unmeasured_days=0,
    last_measured=date(2026, 1, 14),
    used_in=Decimal(5),
    used_out=Decimal(0),
    monthly_cost=Decimal(10),
)


SUBJECT = FindingSubject(type="kafka_topic", id="lkc-1:topic:orders", name="orders", cluster_id="lkc-1")


def finding(**changes: object) -> FindingItem:
    """Return a finding with changed values."""
    return described(replace(UNUSED, **changes), SUBJECT, None, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(("avoidable", "expected"), [("0", "none"), ("4", "partial"), ("10", "full")])
def test_what_deleting_saves(avoidable: str, expected: str) -> None:
    """Deleting the subject saves none, a part or all of its monthly cost."""
    assert finding(avoidable=Decimal(avoidable)).avoidable == expected


@pytest.mark.parametrize(("unmeasured", "expected"), [(0, "high"), (1, "medium"), (10, "medium"), (11, "low")])
def test_confidence(unmeasured: int, expected: str) -> None:
    """Confidence is high if every day was measured, and low if less than half of them were."""
    assert finding(unmeasured_days=unmeasured).confidence == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_words(kind: str) -> None:
    """Every kind has a reason with the first day, and an action."""
    one = finding(kind=kind)
    assert "2026-01-05" in one.why
    assert one.action.endswith(".")


def test_ids() -> None:
    """Ids differ by kind and subject, and never change."""
    assert finding().id == finding_id(TOPIC_NEVER_READ, "lkc-1:topic:orders")
    assert len({finding_id(kind, subject) for kind in KINDS for subject in ("a", "b")}) == 2 * len(KINDS)
