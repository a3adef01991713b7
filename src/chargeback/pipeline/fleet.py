"""Where days are calculated: in the process of the run, or by the workers of a Dask cluster.

The workers write files, and only the run commits them: its lease and its epoch protect the tables as if it had
calculated every day itself.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from chargeback import how_to_install
from chargeback.allocation.day import DayCalculator
from chargeback.config.compute import ComputeSettings
from chargeback.errors import AllocationError, ChargebackError, WorkersUnavailable
from chargeback.pipeline.day_task import (
    DayTask,
    FinishedDay,
    calculate_day,
    calculate_on_worker,
    different_versions,
    versions,
)
from chargeback.store.control.catalogue import NewContent
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.tables import FactTables

if TYPE_CHECKING:
    from distributed import Client, Future

#: How long a scheduler may take to respond, and a cluster to start its first worker.
_CONNECT_SECONDS: Final = 20
_START_SECONDS: Final = 60
#: How many days are submitted ahead for each thread of a worker: one is calculated while the next is sent. The least is
#: more than one worker needs, so that a cluster that adapts to its load has a reason to grow.
_AHEAD: Final = 2
_LEAST_AHEAD: Final = 8


R_co = TypeVar("R_co", covariant=True)


class SubmittedWork(Protocol[R_co]):
    """A day that was submitted, and is derived now or later."""

    def done(self) -> bool:
        """Return whether :meth:`result` need not wait."""

    def wait(self, seconds: float) -> bool:
        """Wait for ``seconds`` at most; return whether it is done.

        Raises:
            WorkersUnavailable: it cannot be done any more.
        """

    def result(self) -> R_co:
        """Return the day.

        Raises:
            AllocationError: it cannot be derived.
            StorageError: its file cannot be written.
            WorkersUnavailable: no worker can derive it.
        """


@dataclass(frozen=True, slots=True)
class DoneWork(Generic[R_co]):
    """A derived day, or the error that prevented it."""

    outcome: R_co | ChargebackError

    def done(self) -> bool:
        """Return True."""
        return True

    def wait(self, seconds: float) -> bool:
        """Return True without waiting."""
        return True

    def result(self) -> R_co:
        """Return the day, or raise its error."""
        if isinstance(self.outcome, ChargebackError):
            raise self.outcome
        return self.outcome


class Fleet(Protocol):
    """Calculates days. ``capacity`` is how many may be submitted before the first result is taken."""

    capacity: int

    def submit(self, task: DayTask) -> SubmittedWork[FinishedDay]:
        """Calculate a day now or later.

        Raises:
            WorkersUnavailable: no worker takes it.
        """

    def check_files(self, facts: FactTables, contents: Sequence[NewContent]) -> None:
        """Check that the files of one table, which are about to be committed, are in the storage of the run.

        Raises:
            WorkersUnavailable: a worker has written to another storage.
            StorageError: the storage cannot be read.
        """


class LocalFleet:
    """Calculates each day immediately, in this process."""

    capacity = 1

    def __init__(self, calculator: DayCalculator) -> None:
        self._calculator = calculator

    def submit(self, task: DayTask) -> SubmittedWork[FinishedDay]:
        """Calculate a day."""
        try:
            return DoneWork(calculate_day(task, self._calculator))
        except ChargebackError as error:
            return DoneWork(error)

    def check_files(self, facts: FactTables, contents: Sequence[NewContent]) -> None:
        """Do nothing: this process has written the files."""


class DaskFleet:
    """Calculates days with the workers of a Dask cluster. A worker that dies is replaced by another one."""

    # The client's executor is not used: its futures never end if the scheduler dies while their result is fetched.

    def __init__(self, client: Client, where: str) -> None:
        self._client = client
        self._where = where
        try:
            threads: dict[str, int] = client.nthreads()
        except OSError as error:
            raise _unavailable(where, error) from error
        self.capacity = max(_LEAST_AHEAD, _AHEAD * sum(threads.values()))

    def submit(self, task: DayTask) -> SubmittedWork[FinishedDay]:
        """Send a day to a worker."""
        try:
            return _DaskDay(self._client.submit(calculate_on_worker, task, versions(), pure=False), self._where)
        except Exception as error:
            raise _unavailable(self._where, error) from error

    def check_files(self, facts: FactTables, contents: Sequence[NewContent]) -> None:
        """Check that the files exist: a worker may have a folder of the same name that is not shared."""
        if not contents:
            return
        name = contents[0].table
        with translate_file_errors(name):
            size_of = facts.place.sizes(name)
            for file in (each.file for each in contents if each.file is not None):
                try:
                    found = size_of(file.path)
                except FileNotFoundError:
                    found = -1
                if found != file.size:
                    raise WorkersUnavailable(
                        f"a worker of {self._where} has written {file.path} in another place "
                        f"than {facts.place}; mount the same storage at the same path on all workers"
                    )


@dataclass(frozen=True, slots=True)
class _DaskDay:
    """A day that was sent to a cluster."""

    future: Future[FinishedDay]
    where: str

    def done(self) -> bool:
        return bool(self.future.done())

    def wait(self, seconds: float) -> bool:
        try:
            self.future.exception(timeout=seconds)
        except TimeoutError:
            # A request that is sent while the client looks for a lost scheduler never gets a response.
            if self.future.client.status != "running":
                raise WorkersUnavailable(_lost(self.where, "the connection to the scheduler is lost")) from None
            return False
        except Exception as error:
            raise _unavailable(self.where, error) from error
        return True

    def result(self) -> FinishedDay:
        from distributed import KilledWorker

        try:
            finished: FinishedDay = self.future.result()
        except ChargebackError:
            raise
        except KilledWorker as error:
            raise AllocationError(
                f"the workers that calculated the day were killed ({error.last_worker.address} last); it may need "
                "more memory than a worker has"
            ) from error
        except (CancelledError, OSError) as error:
            raise _unavailable(self.where, error) from error
        return finished


@contextmanager
def open_fleet(compute: ComputeSettings, calculator: Callable[[], DayCalculator]) -> Iterator[Fleet]:
    """Open the configured fleet; ``calculator`` returns the calculator of this process, which outlives the fleet.

    Raises:
        WorkersUnavailable: the cluster cannot be reached or started, or a worker has other versions.
    """
    if compute.type == "local":
        yield LocalFleet(calculator())
        return
    with connect(compute) as client:
        yield DaskFleet(client, where_of(compute))


@contextmanager
def connect(compute: ComputeSettings) -> Iterator[Client]:
    """Connect to the scheduler, or start a cluster of processes of this machine.

    Raises:
        WorkersUnavailable: that is not possible, or a worker has other versions.
    """
    where = where_of(compute)
    # When it is imported, here and in workers, Dask sets the level of its own logs, which is INFO without this.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "warning")
    try:
        from distributed import Client, LocalCluster
        from distributed.security import Security
    except ImportError as error:
        raise WorkersUnavailable(
            f"features.compute.type is dask, which needs the extra dask: {how_to_install('dask')}"
        ) from error
    with ExitStack() as stack:
        try:
            if compute.address is None:
                cluster = stack.enter_context(
                    LocalCluster(
                        n_workers=compute.workers or len(os.sched_getaffinity(0)),
                        threads_per_worker=1,
                        processes=True,
                        host="127.0.0.1",
                        dashboard_address=None,
                        # Even without a dashboard, a scheduler has a web server on a port that every user can open.
                        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
                        # The task of a worker has already reported its failure.
                        silence_logs=logging.CRITICAL,
                        # Certificates for this cluster alone: no other user of this machine can use it.
                        security=True,
                    )
                )
                client = stack.enter_context(Client(cluster, timeout=_START_SECONDS, set_as_default=False))
            else:
                security = Security(
                    tls_ca_file=_text(compute.tls_ca),
                    tls_client_cert=_text(compute.tls_cert),
                    tls_client_key=_text(compute.tls_key),
                    require_encryption=compute.address.startswith("tls://"),
                )
                client = stack.enter_context(
                    Client(compute.address, security=security, timeout=_CONNECT_SECONDS, set_as_default=False)
                )
            client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
            found: dict[str, Any] = client.run(versions, on_error="return")
        except Exception as error:
            raise _unavailable(where, error) from error
        for address, each in sorted(found.items()):
            if isinstance(each, BaseException):
                raise WorkersUnavailable(f"the worker {address} of {where} cannot import chargeback: {each}")
            if difference := different_versions(versions(), each):
                raise WorkersUnavailable(
                    f"the worker {address} of {where} has {difference}; use the same image everywhere"
                )
        yield client


def where_of(compute: ComputeSettings) -> str:
    """Return the name of the cluster in messages."""
    return "the Dask cluster of this machine" if compute.address is None else f"the Dask cluster {compute.address}"


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _unavailable(where: str, error: BaseException) -> WorkersUnavailable:
    return WorkersUnavailable(_lost(where, " ".join(str(error).split()) or type(error).__name__))


def _lost(where: str, why: str) -> str:
    return f"{where} cannot be used: {why}; days that are not calculated yet stay due"
