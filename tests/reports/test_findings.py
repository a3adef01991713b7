"""What a finding says follows from what was measured."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from chargeback.reports.findings import (
    FULL,
    HIGH,
    KINDS,
    LOW,
    MEDIUM,
    NONE,
    PARTIAL,
    TOPIC_NEVER_READ,
    Finding,
    Unused,
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


def finding(**changes: object) -> Finding:
    """A finding about these facts."""
    return Finding(replace(UNUSED, **changes), "kafka_topic", "lkc-1:topic:orders", "orders", None, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(("avoidable", "expected"), [("0", NONE), ("4", PARTIAL), ("10", FULL)])
def test_what_deleting_saves(avoidable: str, expected: str) -> None:
    """Nothing, a part or all of the monthly cost."""
    assert finding(avoidable=Decimal(avoidable)).avoidable == expected


@pytest.mark.parametrize(("unmeasured", "expected"), [(0, HIGH), (1, MEDIUM), (10, MEDIUM), (11, LOW)])
def test_confidence(unmeasured: int, expected: str) -> None:
    """It is high if every day was measured, and low if less than half of them were."""
    assert finding(unmeasured_days=unmeasured).confidence == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_words(kind: str) -> None:
    """Why, with the first day, and what can be done."""
    one = finding(kind=kind)
    assert "2026-01-05" in one.why
    assert one.action.endswith(".")


def test_ids() -> None:
    """They tell kinds and subjects apart, and never change."""
    assert finding().id == finding_id(TOPIC_NEVER_READ, "lkc-1:topic:orders")
    assert len({finding_id(kind, subject) for kind in KINDS for subject in ("a", "b")}) == 2 * len(KINDS)
