"""Messages of runs: request, progress and result. Plain records that are sent between processes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum


class Stage(StrEnum):
    """The stage of a run; the API shows it as ``pipeline_stage``."""

    GATHERING = "gathering"
    CALCULATING = "calculating"
    TOPIC_OVERLAY = "topic_overlay"
    EMITTING = "emitting"
    RETENTION = "retention"


class RunOutcome(StrEnum):
    """How a run ended, or that it is in progress; the API shows it as ``last_run_status``."""

    RUNNING = "running"
    COMPLETED = "completed"
    COMPLETED_WITH_ERRORS = "completed_with_errors"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a run was stopped, as recorded."""

    outcome: RunOutcome = RunOutcome.INTERRUPTED
    error: str = "the run was stopped before its end"


#: The process was asked to stop.
STOPPED = StopReason()
#: How long a run that was asked to stop may take to reach a safe point, in seconds.
GRACE_SECONDS = 7


def cancelled(actor: str) -> StopReason:
    """Return the reason of a run that was cancelled."""
    return StopReason(RunOutcome.CANCELLED, f"{actor} has cancelled the run")


def timed_out(seconds: float) -> StopReason:
    """Return the reason of a run that has reached its timeout."""
    return StopReason(RunOutcome.TIMED_OUT, f"Execution timed out after {seconds}s")


class StopSignal(threading.Event):
    """Asks a run to stop at its next safe point; ends every wait."""

    reason = STOPPED

    def ask(self, reason: StopReason) -> None:
        """Set the signal; only the first reason counts."""
        if not self.is_set():
            self.reason = reason
            self.set()


@dataclass(slots=True, kw_only=True)
class RunCounts:
    """The counters of a run, shared by progress, result and metrics."""

    dates_gathered: int = 0
    dates_pending: int = 0
    dates_calculated: int = 0
    chargeback_rows_written: int = 0
    lines: int = 0


@dataclass(slots=True, kw_only=True)
class RunStats(RunCounts):
    """The counters of a run, the time it spent and the requests it sent, for the metrics of the service.

    ``stage_seconds`` is the time spent in each stage; ``calls`` counts requests by source and HTTP status (``none``
    without a response).
    """

    stage_seconds: Mapping[Stage, float] = field(default_factory=dict)
    calls: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Begun:
    """A process has begun the run that it was assigned."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: ``done`` of ``total`` days of its stage, and its counters so far."""

    tenant: str
    stage: Stage
    day: date | None = None
    done: int = 0
    total: int = 0
    stats: RunStats = field(default_factory=RunStats)

    @property
    def lines(self) -> int:
        """Return how many billing lines were gathered."""
        return self.stats.lines

    @property
    def rows(self) -> int:
        """Return how many chargeback rows were written."""
        return self.stats.chargeback_rows_written


@dataclass(slots=True)
class RunResult(RunStats):
    """The result of a run. ``errors`` are sentences; a run with errors is partial, not lost."""

    tenant: str
    outcome: RunOutcome
    errors: tuple[str, ...] = ()
    completed_at: datetime | None = None
