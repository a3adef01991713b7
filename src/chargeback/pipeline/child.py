"""A run as a child process: it can be stopped at its time limit, and gives its memory back.

The parent takes the lease, starts the child and hears its progress and its result over a pipe; over the same pipe it
can ask the child to stop. A child whose parent is gone ends at once: whatever it was doing is crash-safe, and nobody
else may be kept from going on.
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
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from chargeback.config import Tenant
from chargeback.config.settings import LoggingSettings
from chargeback.errors import ChargebackError, LeaseLost
from chargeback.logs import configure_logging
from chargeback.model.days import utc_now
from chargeback.pipeline.events import STOPPED, Outcome, Progress, RunRequest, RunResult, StopReason, StopSignal
from chargeback.pipeline.run import run_tenant
from chargeback.store.control.database import Patience
from chargeback.store.control.lease import EXPIRY, Owner, resume
from chargeback.store.tenant import open_store

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 7
# Delta's runtime does not survive a fork, and a forked thread pool would not either.
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Assignment:
    """What a child needs to know: the tenant, the request, and the epoch of the lease its parent took."""

    tenant: Tenant
    request: RunRequest
    epoch: int
    logging: LoggingSettings
    secrets: frozenset[str]


class RunningChild:
    """A started child, seen from its parent."""

    def __init__(self, assignment: Assignment) -> None:
        self._tenant = assignment.tenant
        self._pipe, theirs = _SPAWN.Pipe()
        self._process: BaseProcess = _SPAWN.Process(
            target=_main, args=(assignment, theirs), name=f"chargeback run {self._tenant.name}", daemon=False
        )
        self._process.start()
        theirs.close()
        self._stop_reason: StopReason | None = None
        self._stop_deadline: float | None = None

    def stop(self, reason: StopReason = STOPPED) -> None:
        """Ask the child to end at the next safe place; it is killed if it has not after a few seconds."""
        if self._stop_reason is None:
            self._stop_reason = reason
            self._stop_deadline = time.monotonic() + _GRACE_SECONDS
            with suppress(OSError):
                self._pipe.send(reason)

    def wait(self, listener: Callable[[Progress], None], timeout_seconds: int) -> RunResult:
        """Hear the child out; ``timeout_seconds`` of 0 means no limit. Never raises for what happens to the child."""
        limit = time.monotonic() + timeout_seconds if timeout_seconds else None
        result = None
        while result is None:
            if limit is not None and time.monotonic() >= limit:
                self.stop(StopReason(Outcome.TIMED_OUT, f"Execution timed out after {timeout_seconds}s"))
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
        return result or self._end_of_the_silent()

    def _end_of_the_silent(self) -> RunResult:
        """The result of a child that ended without telling one."""
        unexpected = f"the process of the run ended unexpectedly (exit code {self._process.exitcode})"
        reason = self._stop_reason or StopReason(Outcome.FAILED, unexpected)
        return RunResult(self._tenant.name, reason.outcome, errors=(reason.error,), completed_at=utc_now())


def _main(assignment: Assignment, pipe: Connection) -> None:
    """The child."""
    # A terminal sends Ctrl-C to the whole group: the parent decides. SIGTERM asks this process alone.
    stop = StopSignal()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stop.ask(STOPPED))
    tenant = assignment.tenant
    about = {"tenant": tenant.name, "run": assignment.epoch}
    configure_logging(assignment.logging, assignment.secrets, about)
    threading.Thread(target=_hear, args=(pipe, stop), name="parent", daemon=True).start()
    # A database server that is started again is back before anybody else may take the lease.
    store = open_store(tenant, Patience(EXPIRY.total_seconds(), stop))
    try:
        lease = resume(store.control, Owner.this_process(), assignment.epoch)
        result = run_tenant(tenant, store, lease, assignment.request, stop=stop, listener=pipe.send)
    except LeaseLost as error:
        log.warning("tenant %s: %s; nothing more is written", tenant.name, error)
        result = _failed(tenant, error)
    except ChargebackError as error:
        log.error("tenant %s: %s", tenant.name, error)
        result = _failed(tenant, error)
    finally:
        store.close()
    with suppress(OSError):
        pipe.send(result)


def _failed(tenant: Tenant, error: ChargebackError) -> RunResult:
    return RunResult(tenant.name, Outcome.FAILED, errors=(str(error),), completed_at=utc_now())


def _hear(pipe: Connection, stop: StopSignal) -> None:
    """Wait for the parent's wish to stop, or for its end."""
    while True:
        try:
            stop.ask(pipe.recv())
        except (EOFError, OSError):
            os._exit(1)
