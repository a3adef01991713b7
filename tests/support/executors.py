"""An executor of runs that end when the test releases them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from chargeback.model.days import utc_now
from chargeback.pipeline.executor import RunAssignment
from chargeback.pipeline.run_messages import STOPPED, Progress, RunOutcome, RunResult, StopReason


class HeldRun:
    """A run that does nothing until it is released."""

    def __init__(self, assignment: RunAssignment) -> None:
        self.tenant = assignment.tenant.name
        self._ended = threading.Event()
        self._outcome = RunOutcome.COMPLETED

    def end(self, outcome: RunOutcome = RunOutcome.COMPLETED) -> None:
        """Let the run end."""
        self._outcome = outcome
        self._ended.set()

    def stop(self, reason: StopReason = STOPPED) -> None:
        """End immediately."""
        self.end(reason.outcome)

    def wait(self, listener: Callable[[Progress], None]) -> RunResult:
        """Wait until the run may end."""
        self._ended.wait()
        return RunResult(self.tenant, self._outcome, completed_at=utc_now())


class HeldRuns:
    """Starts runs that wait to be released; with ``hold`` set to False, every run ends at once."""

    def __init__(self, *, hold: bool = True) -> None:
        self.started: list[HeldRun] = []
        self._hold = hold

    def start(self, assignment: RunAssignment) -> HeldRun:
        """Start a run."""
        run = HeldRun(assignment)
        self.started.append(run)
        if not self._hold:
            run.end()
        return run

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    @property
    def tenants(self) -> list[str]:
        """Return the tenants whose runs were started, in order."""
        return [run.tenant for run in self.started]
