"""The protocol between the supervisor, which holds the lease, and the executor of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from chargeback.config import Tenant
from chargeback.config.compute import LOCAL, ComputeSettings
from chargeback.config.settings import LoggingSettings
from chargeback.model.days import Clock, utc_now
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run_messages import STOPPED, Progress, RunResult, StopReason


@dataclass(frozen=True)
class RunAssignment:
    """A run to execute: the tenant, the request, the epoch of the lease that was taken for it, its clock, and where its
    days are calculated. Picklable."""

    tenant: Tenant
    request: RunRequest
    epoch: int
    logging: LoggingSettings
    clock: Clock = utc_now
    compute: ComputeSettings = LOCAL


class Execution(Protocol):
    """A started run."""

    def stop(self, reason: StopReason = STOPPED) -> None:
        """Ask the run to stop at its next safe point; kill it after a few seconds."""

    def wait(self, listener: Callable[[Progress], None]) -> RunResult:
        """Wait for the end of the run, passing on its progress. Never raises for a failure of the run."""


class RunExecutor(Protocol):
    """Starts runs, and enforces the timeout of each tenant."""

    def start(self, assignment: RunAssignment) -> Execution:
        """Start a run.

        Raises:
            OSError: the system cannot start a process.
        """

    def close(self) -> None:
        """Release what is kept for further runs."""
