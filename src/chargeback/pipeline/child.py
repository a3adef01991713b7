"""A run as a child process: it can be stopped at its timeout, and releases its memory.

The parent takes the lease, starts the child and receives its progress and its result over a pipe; over the same pipe it
can ask the child to stop. The child does not depend on its parent otherwise: it enforces its own timeout, and is not
blocked by a parent that does not read. A child whose parent is gone exits immediately: all its work is crash-safe, and
other processes must be able to continue.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from chargeback.config import Tenant
from chargeback.errors import ChargebackError, LeaseLost
from chargeback.logs import configure_logging
from chargeback.pipeline.executor import Assignment
from chargeback.pipeline.run import run_tenant
from chargeback.pipeline.run_messages import STOPPED, Progress, RunOutcome, RunResult, StopReason, StopSignal
from chargeback.store.control import runs
from chargeback.store.control.database import ConnectRetry
from chargeback.store.control.lease import EXPIRY, Lease, LeaseOwner, resume
from chargeback.store.tenant import open_store

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
#: How long a run that was told to stop may take to reach a safe point.
_GRACE_SECONDS = 7
#: How long a finished child waits for a parent that does not read its result. The run is already recorded.
_DELIVERY_SECONDS = 60
#: How long a run may take to record its end before it is killed.
_LAST_OUTPUT_SECONDS = 3
# Delta's runtime does not survive a fork, and a forked thread pool would not either.
_SPAWN = multiprocessing.get_context("spawn")


class ChildProcesses:
    """Executes each run in its own child process."""

    def start(self, assignment: Assignment) -> RunningChild:
        """Start the process of a run.

        Raises:
            OSError: the system cannot start a process.
        """
        return RunningChild(assignment)


class RunningChild:
    """A started child, seen from its parent."""

    def __init__(self, assignment: Assignment) -> None:
        self._tenant = assignment.tenant
        self._clock = assignment.clock
        self._pipe, theirs = _SPAWN.Pipe()
        self._process: BaseProcess = _SPAWN.Process(
            target=_main, args=(assignment, theirs), name=f"chargeback run {self._tenant.name}", daemon=False
        )
        self._process.start()
        theirs.close()
        self._stop_reason: StopReason | None = None
        self._stop_deadline: float | None = None

    def stop(self, reason: StopReason = STOPPED) -> None:
        """Ask the child to stop at the next safe point; kill it after a few seconds."""
        if self._stop_reason is None:
            self._stop_reason = reason
            self._stop_deadline = time.monotonic() + _GRACE_SECONDS
            with suppress(OSError):
                self._pipe.send(reason)

    def wait(self, listener: Callable[[Progress], None]) -> RunResult:
        """Wait for the end of the child. Never raises for a failure of the child."""
        seconds = self._tenant.settings.tenant_execution_timeout_seconds
        limit = time.monotonic() + seconds if seconds else None
        result = None
        while result is None:
            if limit is not None and time.monotonic() >= limit:
                self.stop(_timed_out(self._tenant))
            if self._stop_deadline is not None and time.monotonic() >= self._stop_deadline:
                self._process.kill()
            try:
                if self._pipe.poll(_POLL_SECONDS):
                    message = self._pipe.recv()
                    if isinstance(message, RunResult):
                        result = message
                    else:
                        listener(message)
            except (EOFError, OSError):
                break
        self._process.join(_GRACE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()
        return result or self._result_without_message()

    def _result_without_message(self) -> RunResult:
        unexpected = f"the process of the run ended unexpectedly (exit code {self._process.exitcode})"
        reason = self._stop_reason or StopReason(RunOutcome.FAILED, unexpected)
        return RunResult(self._tenant.name, reason.outcome, errors=(reason.error,), completed_at=self._clock())


class Messenger:
    """Sends progress and the result to the parent from a separate thread.

    A parent that does not read, because it is paused, never blocks the run: only the newest unsent progress is kept.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._changed = threading.Condition()
        self._progress: Progress | None = None
        self._result: RunResult | None = None
        self._thread = threading.Thread(target=self._send, name="messenger", daemon=True)
        self._thread.start()

    def show(self, progress: Progress) -> None:
        """Send this soon, unless newer progress replaces it; return immediately."""
        with self._changed:
            self._progress = progress
            self._changed.notify()

    def finish(self, result: RunResult, seconds: float) -> None:
        """Send the last progress and the result; wait at most this long for the parent to read them."""
        with self._changed:
            self._result = result
            self._changed.notify()
        self._thread.join(seconds)

    def _send(self) -> None:
        with suppress(OSError):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._progress or self._result)
                    progress, self._progress, result = self._progress, None, self._result
                if progress is not None:
                    self._pipe.send(progress)
                if result is not None:
                    self._pipe.send(result)
                    return


def _main(assignment: Assignment, pipe: Connection) -> None:
    """Run the child process."""
    # A terminal sends Ctrl-C to the whole group: the parent decides. SIGTERM is for this process only.
    stop = StopSignal()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stop.ask(STOPPED))
    tenant = assignment.tenant
    about = {"tenant": tenant.name, "run": assignment.epoch}
    configure_logging(assignment.logging, assignment.secrets, about)
    threading.Thread(target=_follow_parent, args=(pipe, stop), name="parent", daemon=True).start()
    threading.Thread(target=_enforce_time_limit, args=(assignment, stop), name="time limit", daemon=True).start()
    messenger = Messenger(pipe)
    # A database server that restarts is available again before another process can take the lease.
    store = open_store(tenant, ConnectRetry(EXPIRY.total_seconds(), stop))
    try:
        lease = resume(store.control, LeaseOwner.this_process(), assignment.epoch)
        result = run_tenant(
            tenant, store, lease, assignment.request, stop=stop, listener=messenger.show, clock=assignment.clock
        )
    except LeaseLost as error:
        log.warning("tenant %s: %s; the run stops writing", tenant.name, error)
        result = _failed(assignment, error)
    except ChargebackError as error:
        log.error("tenant %s: %s", tenant.name, error)
        result = _failed(assignment, error)
    finally:
        store.close()
    messenger.finish(result, _DELIVERY_SECONDS)


def _failed(assignment: Assignment, error: ChargebackError) -> RunResult:
    name, now = assignment.tenant.name, assignment.clock()
    return RunResult(name, RunOutcome.FAILED, errors=(str(error),), completed_at=now)


def _timed_out(tenant: Tenant) -> StopReason:
    seconds = tenant.settings.tenant_execution_timeout_seconds
    return StopReason(RunOutcome.TIMED_OUT, f"Execution timed out after {seconds}s")


def _enforce_time_limit(assignment: Assignment, stop: StopSignal) -> None:
    """Stop the run at its timeout, and exit if it does not reach a safe point soon: the parent may be paused, and other
    processes wait for the lease."""
    tenant = assignment.tenant
    if not (seconds := tenant.settings.tenant_execution_timeout_seconds):
        return
    never = threading.Event()
    never.wait(seconds)
    stop.ask(_timed_out(tenant))
    never.wait(_GRACE_SECONDS)
    threading.Timer(_LAST_OUTPUT_SECONDS, os._exit, (1,)).start()
    with suppress(ChargebackError), open_store(tenant).control as control:
        with control.write() as connection:
            reason = _timed_out(tenant)
            runs.close_open_run(
                connection, assignment.epoch, outcome=reason.outcome, error=reason.error, clock=assignment.clock
            )
        Lease(control, LeaseOwner.this_process(), assignment.epoch).release()
    os._exit(1)


def _follow_parent(pipe: Connection, stop: StopSignal) -> None:
    """Wait for the parent's request to stop, or for its end."""
    while True:
        try:
            stop.ask(pipe.recv())
        except (EOFError, OSError):
            os._exit(1)
