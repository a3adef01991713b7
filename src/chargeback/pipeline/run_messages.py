"""What a run asks, tells while it works, and answers. Plain records that pass between processes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum


class Stage(StrEnum):
    """Where a run is; the API shows it as ``pipeline_stage``."""

    GATHERING = "gathering"
    CALCULATING = "calculating"
    TOPIC_OVERLAY = "topic_overlay"
    EMITTING = "emitting"
    RETENTION = "retention"


class RunOutcome(StrEnum):
    """How a run ended, or that it is still under way; the API shows it as ``last_run_status``."""

    RUNNING = "running"
    COMPLETED = "completed"
    COMPLETED_WITH_ERRORS = "completed_with_errors"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a run ends before its end, as it will be recorded."""

    outcome: RunOutcome = RunOutcome.INTERRUPTED
    error: str = "the run was stopped before its end"


#: Somebody asked the process to end.
STOPPED = StopReason()


class StopSignal(threading.Event):
    """Asks a run to end at its next safe place; every wait ends with it."""

    reason = STOPPED

    def ask(self, reason: StopReason) -> None:
        """Set the signal; only the first reason counts."""
        if not self.is_set():
            self.reason = reason
            self.set()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run shall do: by default everything that is due.

    ``start`` and ``end`` (both inclusive UTC days, either may be missing) narrow the days that are calculated; with
    ``recalculate`` those days are calculated again although their inputs have not changed, with usage fetched anew, and
    with ``accept_less`` also from answers that are less than what is stored.
    """

    start: date | None = None
    end: date | None = None
    recalculate: bool = False
    accept_less: bool = False


@dataclass(slots=True, kw_only=True)
class RunCounts:
    """What a run has done. The only place where its counters are listed: progress, result and metrics share them."""

    dates_gathered: int = 0
    dates_pending: int = 0
    dates_calculated: int = 0
    chargeback_rows_written: int = 0
    lines: int = 0


@dataclass(slots=True, kw_only=True)
class RunStats(RunCounts):
    """The counters of a run, the time it spent and the requests it sent, for the metrics of the service.

    ``stage_seconds`` is the time spent in each stage; ``calls`` counts requests by source and HTTP status (``none``
    where no answer came).
    """

    stage_seconds: Mapping[Stage, float] = field(default_factory=dict)
    calls: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: ``done`` of ``total`` days of its stage, and what it has done so far in all."""

    tenant: str
    stage: Stage
    day: date | None = None
    done: int = 0
    total: int = 0
    stats: RunStats = field(default_factory=RunStats)

    @property
    def lines(self) -> int:
        """How many billing lines were gathered."""
        return self.stats.lines

    @property
    def rows(self) -> int:
        """How many chargeback rows were written."""
        return self.stats.chargeback_rows_written


@dataclass(slots=True)
class RunResult(RunStats):
    """What a run did. ``errors`` are sentences; a run with errors is not lost, only partial."""

    tenant: str
    outcome: RunOutcome
    errors: tuple[str, ...] = ()
    completed_at: datetime | None = None
