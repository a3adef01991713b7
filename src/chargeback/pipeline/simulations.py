"""Simulations that are requested over HTTP: each in a child process, which needs no lease and writes no facts."""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.categories.parsing import parse_category
from chargeback.config import Tenant
from chargeback.config.settings import LoggingSettings
from chargeback.errors import ChargebackError, EngineBusy, NothingToSimulate, StorageError
from chargeback.logs import configure_logging
from chargeback.model.days import Clock, utc_now
from chargeback.recompute.rules import present_tenant
from chargeback.recompute.simulate import Progress, Trial, simulate_days
from chargeback.reports.simulation import SimulationAnswer, simulation_answer
from chargeback.reports.tenant_view import SimulationOrder, open_tenant
from chargeback.store.control.simulations import SILENCE, end_simulation, note_simulation
from chargeback.store.tenant import TenantStore, open_store

log = logging.getLogger(__name__)

#: How many are calculated at the same time in one process, how many may wait, and how long one may take.
MOST_RUNNING: Final = 2
MOST_WAITING: Final = 20
LONGEST_SECONDS: Final = 900
#: How often the progress of a simulation is stored.
_PROGRESS_SECONDS: Final = SILENCE.total_seconds() / 10
_BUSY: Final = f"the maximum of {MOST_WAITING} simulations are waiting; try again when one has ended"
# Delta's runtime does not survive a fork.
_SPAWN: Final = multiprocessing.get_context("spawn")


def simulated(tenant: Tenant, trial: Trial, by: Sequence[str], progress: Progress) -> SimulationAnswer:
    """Return what a trial changes on the days of a tenant.

    Raises:
        AllocationError: the amounts of a day do not fit 38 digits.
        NothingGathered: the tenant has no storage yet.
        NothingToSimulate: there are no such days, or their evidence is lost.
        StorageError: the storage cannot be read, or days were calculated again meanwhile.
        UnknownCategory: the tenant has no such cost category.
        ValueError: chargebacks cannot be grouped by these columns.
    """
    with (
        open_tenant(tenant, trial.as_of) as (view, reader, posted),
        TemporaryDirectory(prefix="chargeback-") as folder,
    ):
        found = simulate_days(view.whole_store, view.rules, trial, Path(folder), progress)
        if not found.days:
            why = next(iter(found.left_out.values()), "nothing was billed")
            raise NothingToSimulate(f"no day of the range can be simulated: {why}")
        return simulation_answer(view, reader, posted.books, trial, found, by)


@dataclass(frozen=True)
class _Result:
    """What a child process sends at its end: a response as JSON, or why there is none."""

    answer: str | None = None
    error: str | None = None
    days: int = 0


@dataclass(frozen=True)
class _Task:
    """The simulation that a child process executes."""

    tenant: Tenant
    order: SimulationOrder


class Simulations:
    """The simulations of one process: a few at a time, each in a child that is killed if it takes too long."""

    def __init__(self, logging: LoggingSettings, secrets: frozenset[str], clock: Clock = utc_now) -> None:
        self._logging = logging
        self._secrets = secrets
        self._clock = clock
        self._places = threading.BoundedSemaphore(MOST_RUNNING + MOST_WAITING)
        self._turns = threading.BoundedSemaphore(MOST_RUNNING)

    def start(self, task: _Task, store: TenantStore, number: str, begin: Callable[[], object]) -> None:
        """Start a simulation when it is its turn; store its progress and its end under its number in ``store``, which
        must stay open.

        Raises:
            EngineBusy: the maximum number of simulations is waiting.
        """
        if not self._places.acquire(blocking=False):
            raise EngineBusy(_BUSY)
        try:
            begin()
        except BaseException:
            self._places.release()
            raise
        name = f"simulation {number[:8]}"
        threading.Thread(target=self._watch, args=(task, store, number), name=name, daemon=True).start()

    def _watch(self, task: _Task, store: TenantStore, number: str) -> None:
        try:
            while not self._turns.acquire(timeout=_PROGRESS_SECONDS):
                self._save_progress(store, number, 0, 0)
            try:
                self._simulate(task, store, number)
            finally:
                self._turns.release()
        except (OSError, StorageError) as error:  # a request for it gets the error that it is no longer calculated
            log.error("the simulation %s of tenant %s: %s", number, task.tenant.name, error)
        finally:
            self._places.release()

    def _save_progress(self, store: TenantStore, number: str, done: int, days: int) -> None:
        with store.control.write() as connection:
            note_simulation(connection, number, self._clock(), done, days)

    def _simulate(self, task: _Task, store: TenantStore, number: str) -> None:
        receiver, sender = _SPAWN.Pipe(duplex=False)
        arguments = (task, sender, self._logging, self._secrets)
        # A daemon: it ends with this process.
        process = _SPAWN.Process(target=_child, args=arguments, name="chargeback simulation", daemon=True)
        try:
            process.start()
            sender.close()
            found = self._receive(receiver, store, number)
            with store.control.write() as connection:
                end_simulation(connection, number, found.days, answer=found.answer, error=found.error)
        finally:
            if process.is_alive():
                process.kill()
            receiver.close()

    def _receive(self, pipe: Connection, store: TenantStore, number: str) -> _Result:
        """Store the progress until there is a result."""
        limit, saved = time.monotonic() + LONGEST_SECONDS, 0.0
        done = days = 0
        while time.monotonic() < limit:
            if time.monotonic() - saved >= _PROGRESS_SECONDS:
                saved = time.monotonic()
                self._save_progress(store, number, done, days)
            try:
                if not pipe.poll(1):
                    continue
                sent = pipe.recv()
            except (EOFError, OSError):
                return _Result(error="the process of the simulation ended unexpectedly")
            if isinstance(sent, _Result):
                return replace(sent, days=days)
            done, days = sent
        return _Result(error=f"it took longer than {LONGEST_SECONDS // 60} minutes: simulate fewer days")


class TenantSimulator:
    """Simulates the days of one tenant."""

    def __init__(self, tenant: Tenant, store: TenantStore, simulations: Simulations) -> None:
        self._tenant = tenant
        self._store = store
        self._simulations = simulations

    def check(self, order: SimulationOrder) -> PolicyCatalogue:
        """Check the policies of an order; return the complete catalogue.

        Raises:
            ConfigurationError: they are not valid.
        """
        return _trial(present_tenant(self._tenant, self._store.control), order).candidate

    def start(self, number: str, order: SimulationOrder, begin: Callable[[], object]) -> None:
        """Start the simulation that is kept under a number; return immediately. ``begin`` is called immediately before
        the start; if it raises, nothing is started.

        Raises:
            EngineBusy: the maximum number of simulations is waiting.
        """
        self._simulations.start(_Task(self._tenant, order), self._store, number, begin)


def _trial(tenant: Tenant, order: SimulationOrder) -> Trial:
    """Return the trial of an order; the tenant has its present policies."""
    present = tenant.plugin_settings.allocation_policies
    trial = Trial.of(tenant, present if order.policies is None else order.policies, order.days, order.as_of)
    if order.isolate:
        in_force = tenant.catalogue_of(present)
        trial = replace(trial, candidate=trial.candidate.only(order.isolate, in_force), names=order.isolate)
    categories = {key: parse_category(key, each) for key, each in order.categories.items()}
    return replace(trial, categories=categories, tags=order.tags)


def _child(task: _Task, pipe: Connection, logging_: LoggingSettings, secrets: frozenset[str]) -> None:
    """Simulate; send the progress as (done, days), and the result."""
    configure_logging(logging_, secrets)
    with suppress(BrokenPipeError):  # the parent no longer waits for it
        try:
            with closing(open_store(task.tenant)) as store:
                trial = _trial(present_tenant(task.tenant, store.control), task.order)
            answer = simulated(task.tenant, trial, task.order.by, lambda done, days: pipe.send((done, days)))
            pipe.send(_Result(answer=answer.model_dump_json()))
        except (ChargebackError, ValueError) as error:
            pipe.send(_Result(error=str(error)))
