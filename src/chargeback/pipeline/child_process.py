"""The child process of runs, seen from inside: it executes the runs that its parent assigns, one after another.

The child does not depend on its parent otherwise: it enforces the timeouts itself, and is not blocked by a parent that
does not read. A child whose parent is gone exits immediately: all its work is crash-safe, and other processes must be
able to continue.
"""

from __future__ import annotations

import gc
import logging
import os
import queue
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection

from chargeback.errors import ChargebackError, LeaseLost
from chargeback.logs import configure_logging
from chargeback.pipeline.executor import RunAssignment
from chargeback.pipeline.run import run_tenant
from chargeback.pipeline.run_messages import (
    GRACE_SECONDS,
    STOPPED,
    Begun,
    Progress,
    RunOutcome,
    RunResult,
    StopSignal,
    timed_out,
)
from chargeback.store.control import runs
from chargeback.store.control.database import ConnectRetry
from chargeback.store.control.lease import EXPIRY, Lease, LeaseOwner
from chargeback.store.tenant import open_store

log = logging.getLogger(__name__)

#: How long a child without a run waits for the next one.
_IDLE_SECONDS = 60
#: How long a finished run waits for a parent that does not read its result. The run is already recorded.
_DELIVERY_SECONDS = 60
#: How long a run may take to record its end before it is killed.
_LAST_OUTPUT_SECONDS = 3


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

    def finish(self, result: RunResult, seconds: float) -> bool:
        """Send the last progress and the result; wait at most this long for the parent to read them. Return whether it
        has."""
        with self._changed:
            self._result = result
            self._changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _send(self) -> None:
        with suppress(OSError):
            self._pipe.send(Begun())
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._progress or self._result)
                    progress, self._progress, result = self._progress, None, self._result
                if progress is not None:
                    self._pipe.send(progress)
                if result is not None:
                    self._pipe.send(result)
                    return


class Inbox:
    """What the parent sends: the next run, or the request to stop the present one.

    Attributes:
        stop: the signal of the present run, or of the next one.
    """

    def __init__(self, pipe: Connection) -> None:
        self.stop = StopSignal()
        self._pipe = pipe
        # Unlike other queues, this one may be used in a signal handler.
        self._assigned: queue.SimpleQueue[tuple[RunAssignment, StopSignal] | None] = queue.SimpleQueue()
        self._runs_assigned = self._runs_ended = 0
        threading.Thread(target=self._follow, name="parent", daemon=True).start()

    def next_run(self) -> tuple[RunAssignment, StopSignal] | None:
        """Wait for the next run; return None if there is none."""
        # In short pieces: a signal that arrives just before the wait begins is handled when it ends.
        for _ in range(_IDLE_SECONDS):
            with suppress(queue.Empty):
                return self._assigned.get(timeout=1)
        return None

    def run_ended(self) -> None:
        """Record that the present run no longer needs its parent."""
        self._runs_ended += 1

    def end(self) -> None:
        """Stop the present run, and expect no other one."""
        self.stop.ask(STOPPED)
        self._assigned.put(None)

    def _follow(self) -> None:
        while True:
            try:
                message = self._pipe.recv()
            except (EOFError, OSError):
                if self._runs_assigned > self._runs_ended:
                    os._exit(1)
                self._assigned.put(None)
                return
            if isinstance(message, RunAssignment):
                self._runs_assigned += 1
                self.stop = StopSignal()
                self._assigned.put((message, self.stop))
            else:
                self.stop.ask(message)


def child_main(pipe: Connection, collections: tuple[int, int, int]) -> None:
    """Execute the runs that come through the pipe, until there are no more for a while.

    ``collections`` are the thresholds of the parent's garbage collector: the child collects as rarely.
    """
    gc.set_threshold(*collections)
    inbox = Inbox(pipe)
    # A terminal sends Ctrl-C to the whole group: the parent decides. SIGTERM is for this process only.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: inbox.end())
    secrets: frozenset[str] = frozenset()
    while assigned := inbox.next_run():
        assignment, stop = assigned
        # Those of earlier runs remain masked: a thread that a plugin left behind may still log.
        secrets |= assignment.tenant.secrets()
        about = {"tenant": assignment.tenant.name, "run": assignment.epoch}
        configure_logging(assignment.logging, secrets, about)
        messenger = Messenger(pipe)
        result = _run(assignment, stop, messenger)
        inbox.run_ended()
        if not messenger.finish(result, _DELIVERY_SECONDS):
            return


def _run(assignment: RunAssignment, stop: StopSignal, messenger: Messenger) -> RunResult:
    tenant = assignment.tenant
    over = threading.Event()
    threading.Thread(target=_enforce_end, args=(assignment, stop, over), name="end of the run", daemon=True).start()
    # A database server that restarts is available again before another process can take the lease.
    store = open_store(tenant, ConnectRetry(EXPIRY.total_seconds(), stop))
    try:
        lease = store.resume(LeaseOwner.this_process(), assignment.epoch)
        return run_tenant(
            tenant,
            store,
            lease,
            assignment.request,
            stop=stop,
            listener=messenger.show,
            clock=assignment.clock,
            compute=assignment.compute,
        )
    except LeaseLost as error:
        log.warning("tenant %s: %s; the run stops writing", tenant.name, error)
        return _failed(assignment, error)
    except ChargebackError as error:
        log.error("tenant %s: %s", tenant.name, error)
        return _failed(assignment, error)
    finally:
        store.close()
        over.set()
        stop.set()


def _failed(assignment: RunAssignment, error: ChargebackError) -> RunResult:
    name, now = assignment.tenant.name, assignment.clock()
    return RunResult(name, RunOutcome.FAILED, errors=(str(error),), completed_at=now)


def _enforce_end(assignment: RunAssignment, stop: StopSignal, over: threading.Event) -> None:
    """Stop the run at its timeout. Exit if a run that is to stop, because of that or because it was cancelled, does not
    reach a safe point soon: the parent may be paused or on another host, and other processes wait for the lease."""
    seconds = assignment.tenant.settings.tenant_execution_timeout_seconds
    if not stop.wait(seconds or None):
        stop.ask(timed_out(seconds))
    if over.wait(GRACE_SECONDS):
        return
    threading.Timer(_LAST_OUTPUT_SECONDS, os._exit, (1,)).start()
    with suppress(ChargebackError), open_store(assignment.tenant).control as control:
        with control.write() as connection:
            outcome, error = stop.reason.outcome, stop.reason.error
            runs.close_open_run(connection, assignment.epoch, outcome=outcome, error=error, clock=assignment.clock)
        Lease(control, LeaseOwner.this_process(), assignment.epoch).release()
    os._exit(1)
