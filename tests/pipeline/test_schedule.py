"""The schedule calls each tenant in a thread of its own, and says when it will next."""

from __future__ import annotations

import logging
import threading
from collections import Counter

import pytest

from chargeback.pipeline.engine import NextTurn, Schedule
from tests.support.processes import eventually


def test_a_tenant_that_hangs_keeps_no_other_waiting(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the others do, each tenant has its turns; one that hangs does not keep the end waiting either."""
    turns: Counter[str] = Counter()
    release = threading.Event()

    def take_turn(name: str) -> NextTurn | None:
        if name == "hanging":
            release.wait(60)
            return None
        turns[name] += 1
        return NextTurn(0.01, "it is time")

    schedule = Schedule(take_turn)
    schedule.start(["hanging", "healthy"])
    eventually(lambda: turns["healthy"] > 3)
    schedule.stop()
    schedule.join(0.2)
    release.set()
    schedule.join(30)


def test_the_log_says_when_and_why_once(caplog: pytest.LogCaptureFixture) -> None:
    """A turn that is news is one line with the time and the reason; a repetition is none."""
    caplog.set_level(logging.INFO)
    turns = iter([NextTurn(0.01, "a reason"), NextTurn(0.01, "a reason", is_news=False), None])
    schedule = Schedule(lambda _: next(turns))
    schedule.start(["acme"])
    schedule.join(30)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("tenant acme: next run at 2")
    assert line.endswith("Z, in 0 s: a reason")


def test_an_error_no_one_expected_ends_no_tenant(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its traceback, and the tenant has its next turn."""
    said = threading.Event()

    def take_turn(name: str) -> NextTurn | None:
        said.set()
        raise ZeroDivisionError

    schedule = Schedule(take_turn)
    schedule.start(["acme"])
    eventually(lambda: "tenant acme: the scheduled run failed" in caplog.text)
    schedule.stop()
    schedule.join(30)
    assert said.is_set()
