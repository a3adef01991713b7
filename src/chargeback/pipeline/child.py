"""Runs as child processes, seen from their parent: they can be stopped at their timeout, and release their memory.

The parent takes the lease, starts the child and receives its progress and its result over a pipe; over the same pipe it
can ask the child to stop. A child that found nothing to calculate is kept for a minute for the next run of any tenant:
starting a process costs more than such a run does. Every other child ends with its run.
"""

from __future__ import annotations

import gc
import multiprocessing
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

from chargeback.model.days import Clock
from chargeback.pipeline.executor import RunAssignment
from chargeback.pipeline.run_messages import (
    GRACE_SECONDS,
    STOPPED,
    Begun,
    Progress,
    RunOutcome,
    RunResult,
    StopReason,
    timed_out,
)

_POLL_SECONDS = 0.2
#: How long an idle child may take to confirm that it begins a run; it does nothing else.
_BEGIN_SECONDS = 5
#: A child ends after this many runs, which bounds what a plugin may leave behind.
_MAX_RUNS: Final = 200
# Delta's runtime does not survive a fork, and a forked thread pool would not either.
_SPAWN = multiprocessing.get_context("spawn")


def _child_main(pipe: Connection, collections: tuple[int, int, int]) -> None:
    # What runs is imported where runs are: a parent waits, and starts without it.
    from chargeback.pipeline.child_process import child_main

    child_main(pipe, collections)


class Child:
    """A process that executes one run at a time, and the pipe to it."""

    def __init__(self) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(
            target=_child_main, args=(theirs, gc.get_threshold()), name="chargeback run", daemon=False
        )
        self.process.start()
        theirs.close()
        self.runs = 0

    def assign(self, assignment: RunAssignment) -> None:
        """Let a process that was just started begin a run.

        Raises:
            OSError: the process has ended.
        """
        self.runs += 1
        self.pipe.send(assignment)

    def begins(self, assignment: RunAssignment) -> bool:
        """Let an idle process begin a run; return whether it did. It may have ended, or be about to."""
        try:
            self.assign(assignment)
            return self.pipe.poll(_BEGIN_SECONDS) and isinstance(self.pipe.recv(), Begun)
        except (EOFError, OSError):
            return False

    def end(self) -> int | None:
        """Close the pipe, which ends the process; kill it if it does not end soon. Return the exit code."""
        self.pipe.close()
        self.process.join(GRACE_SECONDS)
        self.kill()
        return self.process.exitcode

    def kill(self) -> None:
        """Kill the process if it has not ended."""
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class ChildProcesses:
    """Executes each run in a child process of its own, or in an idle one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._closed = False

    def start(self, assignment: RunAssignment) -> RunningChild:
        """Start a run.

        Raises:
            OSError: the system cannot start a process.
        """
        return RunningChild(self._child_for(assignment), assignment, self._keep)

    def close(self) -> None:
        """End the idle processes."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _child_for(self, assignment: RunAssignment) -> Child:
        while child := self._take():
            if child.begins(assignment):
                return child
            child.kill()
            child.end()
        child = Child()
        # If the process dies immediately, the caller that waits for its result notices and describes it.
        with suppress(OSError):
            child.assign(assignment)
        return child

    def _take(self) -> Child | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, child: Child) -> bool:
        """Keep a child for the next run; return whether it is kept."""
        with self._lock:
            ended = [each for each in self._idle if not each.process.is_alive()]
            self._idle = [each for each in self._idle if each not in ended]
            kept = not self._closed and child.runs < _MAX_RUNS
            if kept:
                self._idle.append(child)
        for each in ended:
            each.end()
        return kept


class RunningChild:
    """A run in a child process."""

    def __init__(self, child: Child, assignment: RunAssignment, keep: Callable[[Child], bool]) -> None:
        self._child = child
        self._keep = keep
        self._tenant = assignment.tenant
        self._clock: Clock = assignment.clock
        self._lock = threading.Lock()
        self._has_ended = False
        self._stop_reason: StopReason | None = None
        self._stop_deadline: float | None = None

    def stop(self, reason: StopReason = STOPPED) -> None:
        """Ask the child to stop at the next safe point; kill it after a few seconds. Nothing happens after the end: the
        child may be executing another run."""
        with self._lock:
            if self._stop_reason is None and not self._has_ended:
                self._stop_reason = reason
                self._stop_deadline = time.monotonic() + GRACE_SECONDS
                with suppress(OSError):
                    self._child.pipe.send(reason)

    def wait(self, listener: Callable[[Progress], None]) -> RunResult:
        """Wait for the end of the run. Never raises for a failure of the child."""
        result = self._receive(listener)
        with self._lock:
            self._has_ended = True
        if result is not None and _found_nothing(result) and self._stop_reason is None and self._keep(self._child):
            return result
        exit_code = self._child.end()
        return result or self._result_without_message(exit_code)

    def _receive(self, listener: Callable[[Progress], None]) -> RunResult | None:
        """Pass on the progress until the result; None if the child ends without one."""
        seconds = self._tenant.settings.tenant_execution_timeout_seconds
        limit = time.monotonic() + seconds if seconds else None
        pipe = self._child.pipe
        while True:
            if limit is not None and time.monotonic() >= limit:
                self.stop(timed_out(seconds))
            if self._stop_deadline is not None and time.monotonic() >= self._stop_deadline:
                self._child.process.kill()
            try:
                if not pipe.poll(_POLL_SECONDS):
                    continue
                message = pipe.recv()
            except (EOFError, OSError):
                return None
            if isinstance(message, RunResult):
                return message
            if isinstance(message, Progress):
                listener(message)

    def _result_without_message(self, exit_code: int | None) -> RunResult:
        unexpected = f"the process of the run ended unexpectedly (exit code {exit_code})"
        reason = self._stop_reason or StopReason(RunOutcome.FAILED, unexpected)
        return RunResult(self._tenant.name, reason.outcome, errors=(reason.error,), completed_at=self._clock())


def _found_nothing(result: RunResult) -> bool:
    """Return whether the run completed and had nothing to calculate, so that its process has used little memory."""
    return result.outcome is RunOutcome.COMPLETED and not result.dates_calculated and not result.chargeback_rows_written
