"""What does a run: the protocol between the supervisor, who holds the lease, and whatever executes the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chargeback.config import Tenant
from chargeback.config.settings import LoggingSettings
from chargeback.model.days import Clock, utc_now
from chargeback.pipeline.run_messages import STOPPED, Progress, RunRequest, RunResult, StopReason


@dataclass(frozen=True)
class Assignment:
    """What an executor needs to know: the tenant, the request, the epoch of the lease that was taken for it, and the
    clock that the run asks for the time; all of it can be sent to another process."""

    tenant: Tenant
    request: RunRequest
    epoch: int
    logging: LoggingSettings
    secrets: frozenset[str]
    clock: Clock = utc_now


class Execution(Protocol):
    """A run that was started."""

    def stop(self, reason: StopReason = STOPPED) -> None:
        """Ask the run to end at its next safe place; it is ended by force if it has not after a few seconds."""

    def wait(self, listener: Callable[[Progress], None]) -> RunResult:
        """Wait for the end of the run, passing on its progress. Never raises for what happens to the run."""


class RunExecutor(Protocol):
    """Starts runs, and holds each to the time limit of its tenant."""

    def start(self, assignment: Assignment) -> Execution:
        """Start a run.

        Raises:
            OSError: the system has no room for it.
        """
