"""One stage for every dataset of days: fetch the evidence of each day, derive its rows, publish them in batches.

A :class:`Derivation` has what differs between datasets. The stage ensures the rest: an error affects only its own day,
every wait ends when the run must stop, a run without its lease commits nothing, and a batch is committed when its time
is up. A batch is one transaction. A process that dies leaves the days of a batch as they were before it, and the next
run derives them again.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from types import TracebackType
from typing import ClassVar, Final, Generic, Protocol, TypeVar

import pyarrow as pa
from sqlalchemy import Connection

from chargeback.errors import AllocationError, ChargebackError, LeaseLost, StorageError
from chargeback.logs import log_context
from chargeback.pipeline.day_task import NewRows
from chargeback.pipeline.evidence import DayUsage, UsageFetcher, UsageRequest
from chargeback.pipeline.fleet import SubmittedWork
from chargeback.pipeline.partials import PartialsWriter
from chargeback.pipeline.revise import DayReviser, RevisedDay
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.store.control import days as day_states
from chargeback.store.control.days import DayState
from chargeback.store.queries.as_of import RevisedDataset
from chargeback.store.queries.datasets import Dataset

log = logging.getLogger(__name__)

#: Limits of a batch: days, rows, and the seconds that its first day waits. It is committed at the first one reached.
MAX_DAYS: Final = 16
MAX_ROWS: Final = 1_000_000
MAX_SECONDS: Final = 2.0

_POLL_SECONDS: Final = 0.2

T = TypeVar("T")


class Batch(Generic[T]):
    """Collects prepared days and hands them to ``commit``, which is never called without any.

    A context manager: its end commits the last days, also if the stage is stopped or ends with an error, unless the
    storage is the problem.
    """

    def __init__(self, commit: Callable[[Sequence[T]], None]) -> None:
        self._commit = commit
        self._days: list[T] = []
        self._rows = 0
        self._since = 0.0

    def __enter__(self) -> Batch[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
        elif isinstance(error, Exception) and not isinstance(error, StorageError):
            try:
                self.commit()
            except ChargebackError as another:
                log.warning("the last days of the stage could not be stored: %s", another)

    @property
    def seconds_left(self) -> float | None:
        """How long the batch may still wait for another day; None if it is empty."""
        return max(0.0, self._since + MAX_SECONDS - time.monotonic()) if self._days else None

    def add(self, day: T, rows: int) -> None:
        """Add a day with its number of rows; commit the batch if it is full."""
        if not self._days:
            self._since = time.monotonic()
        self._days.append(day)
        self._rows += rows
        if len(self._days) >= MAX_DAYS or self._rows >= MAX_ROWS or self.seconds_left == 0:
            self.commit()

    def commit(self) -> None:
        """Commit the days that were added. Those of a commit that fails are not tried again."""
        days, self._days, self._rows = self._days, [], 0
        if days:
            self._commit(days)


@dataclass(frozen=True, slots=True)
class DueDay:
    """A day to derive.

    Attributes:
        is_due: it has no rows that were derived from its present bill.
        is_requested: the run's request derives it again.
        has_evidence: the stored evidence is sufficient to derive it.
        is_outdated: its stored measurements may be less complete than what the metrics source has now.
        is_listed: types that could not be listed when it was derived can be listed now.
    """

    state: DayState
    is_due: bool
    is_requested: bool
    has_evidence: bool
    is_outdated: bool = False
    is_listed: bool = False

    @property
    def day(self) -> date:
        """Return the UTC day."""
        return self.state.tracking_date

    @property
    def is_optional(self) -> bool:
        """Return whether the day has its rows already, and is only derived again if the evidence is more complete."""
        return not (self.is_due or self.is_requested)

    @property
    def use_stored(self) -> bool:
        """Return whether stored usage is sufficient, without a query of the metrics source."""
        return self.has_evidence and not (self.is_requested or self.is_outdated)


class DerivedDay(Protocol):
    """The rows of a day, written but not committed, and one hash of the rules by which they were derived."""

    @property
    def rows(self) -> NewRows:
        """Return the rows."""

    @property
    def policies_hash(self) -> str:
        """Return the hash."""

    @property
    def policy_version(self) -> str | None:
        """Return the hash of the version of the tenant's own policies that is in force, if any."""


D = TypeVar("D", bound=DerivedDay)


@dataclass(frozen=True, slots=True)
class StartedDay(Generic[D]):
    """A day that is being derived.

    Attributes:
        evidence: what is stored with its rows.
        lacks: the evidence that is missing now, or no longer missing.
        is_fetched: the metrics source was queried successfully.
        is_measured: measurements of the day are stored.
    """

    due: DueDay
    work: SubmittedWork[D]
    evidence: Mapping[str, pa.Table]
    lacks: Mapping[str, str | None]
    is_fetched: bool
    is_measured: bool


@dataclass(frozen=True, slots=True)
class NewDay(Generic[D]):
    """A derived day that is ready to be committed."""

    started: StartedDay[D]
    derived: D
    revised: RevisedDay

    @property
    def due(self) -> DueDay:
        """Return the day as it was when the stage began."""
        return self.started.due


class Derivation(ABC, Generic[D]):
    """How the days of one dataset are derived, for one run.

    Attributes:
        stage: the stage of the run.
        dataset: the tables that are replaced.
        aggregates: the datasets of the partial aggregates.
        not_again: the beginning of the error about a requested day that cannot be measured again.
        fetcher: fetches the usage of days ahead.
        capacity: how many days may be submitted before the first result is taken.
    """

    stage: ClassVar[Stage]
    dataset: ClassVar[RevisedDataset]
    aggregates: ClassVar[tuple[Dataset, ...]]
    not_again: ClassVar[str]
    fetcher: UsageFetcher
    capacity: int = 1

    @abstractmethod
    def opened(self) -> AbstractContextManager[None]:
        """Hold what is needed to derive days, and release it after the last batch.

        Raises:
            WorkersUnavailable: the workers cannot be reached.
        """

    @abstractmethod
    def derive(self, due: DueDay, usage: DayUsage, measured: pa.Table | None, why: str | None) -> StartedDay[D]:
        """Begin to derive a day from ``measured``; None if nothing is stored. ``why`` says why the metrics are missing,
        if they are.

        Raises:
            AllocationError: the day cannot be derived.
            StorageError: its evidence cannot be read.
        """

    @abstractmethod
    def has_to_wait(self, due: DueDay, usage: DayUsage) -> bool:
        """Count a run in which a due day could not be measured; return whether the day waits for another one. Record
        the error."""

    @abstractmethod
    def record_failure(self, error: AllocationError | StorageError, *days: date) -> None:
        """Record why days are not derived; they are tried again in the next run."""

    def finish(self, started: StartedDay[D], derived: D) -> None:
        """Process a derived day before it is prepared to be committed."""

    def check(self, days: Sequence[NewDay[D]]) -> None:
        """Check the files of a batch, and write what its rows refer to in other tables."""

    def record_references(self, connection: Connection, days: Sequence[NewDay[D]], at: datetime) -> None:
        """Record what the rows of a batch refer to, in the transaction that makes them visible at an instant."""

    @abstractmethod
    def publish(self, connection: Connection, day: NewDay[D]) -> None:
        """Record further data of a day whose rows are committed, and clear its errors."""

    def published(self, day: NewDay[D]) -> None:
        """Process a day after its state is committed."""


class DayStage(Generic[D]):
    """Derives days of one dataset in one run, and commits them in batches."""

    def __init__(self, run: RunContext, derivation: Derivation[D]) -> None:
        self._run = run
        self._derivation = derivation
        self._total = 0
        self._done = 0
        self._started: deque[StartedDay[D]] = deque()
        self._reviser = DayReviser(run, derivation.dataset)
        self._partials = PartialsWriter(run.store.facts, *derivation.aggregates)
        self._batch: Batch[NewDay[D]] = Batch(self._commit)

    def process(self, days: Sequence[DueDay]) -> None:
        """Derive the days in this order.

        Raises:
            Stopped: the run was asked to stop.
            LeaseLost: another process has taken over.
            StorageError: the storage cannot be used for now.
            WorkersUnavailable: no worker derives days.
        """
        derivation, replace = self._derivation, self._run.request.recalculate and self._run.request.accept_less
        requests = [UsageRequest(each.day, each.use_stored, replace and each.is_requested) for each in days]
        self._total = len(days)
        try:
            with derivation.opened(), derivation.fetcher.fetching(requests) as usages, self._batch:
                for due in days:
                    self._run.check()
                    self._wait(usages.wait)
                    usage = next(usages)
                    with log_context(date=due.day), self._run.catch_day_errors(due.day):
                        self._begin(due, usage)
                    self._collect()
                self._collect(everything=True)
        finally:
            self._partials.close()

    def _wait(self, is_ready: Callable[[float], bool]) -> None:
        """Wait until ``is_ready(seconds)`` returns True. Commit the batch when its time is up.

        Raises:
            Stopped: the run was asked to stop.
            LeaseLost: another process has taken over.
        """
        while not is_ready(min(_POLL_SECONDS, self._batch.seconds_left or _POLL_SECONDS)):
            if self._run.stop.is_set() or self._run.lease.lost.is_set():
                self._run.check()
            if self._batch.seconds_left == 0:
                self._batch.commit()

    @contextmanager
    def _record_failures(self, *days: date) -> Iterator[None]:
        """Record permanent errors of these days; raise errors that are temporary or end the run."""
        try:
            yield
        except (AllocationError, StorageError) as error:
            if isinstance(error, LeaseLost) or error.retryable:
                raise
            self._derivation.record_failure(error, *days)

    def _begin(self, due: DueDay, usage: DayUsage) -> None:
        """Begin to derive one day, or record why that is not possible."""
        started = None
        try:
            with self._record_failures(due.day):
                started = self._measured(due, usage)
            if started is not None:
                self._started.append(started)
        finally:
            if started is None:
                self._show_done(due)

    def _measured(self, due: DueDay, usage: DayUsage) -> StartedDay[D] | None:
        """Begin to derive a day from its usage. If the metrics are unavailable, use the stored ones if they are
        sufficient; otherwise wait for some runs, then derive the day without metrics."""
        run, derivation, day = self._run, self._derivation, due.day
        if usage.table is not None:
            if usage.poorer and due.is_requested:
                what = ", ".join(usage.poorer)
                run.record_error(
                    f"the metrics source has less {what} than before; the stored measurements are kept", day
                )
            return derivation.derive(due, usage, usage.table, None)
        if due.has_evidence and usage.stored is not None:
            if due.is_requested:
                run.record_error(f"{derivation.not_again}: {usage.error}; the stored measurements are kept", day)
            is_enough = not due.is_optional or due.is_listed
            return derivation.derive(due, usage, usage.stored, None) if is_enough else None
        why = str(usage.error)
        if due.is_due:
            return None if derivation.has_to_wait(due, usage) else derivation.derive(due, usage, usage.stored, why)
        if due.is_listed:
            why = due.state.incomplete.get(day_states.METRICS, why)
            return derivation.derive(due, usage, usage.stored, why)
        if due.is_requested:
            run.record_error(f"metrics still unavailable, the previous calculation is kept: {usage.error}", day)
        return None

    def _collect(self, *, everything: bool = False) -> None:
        """Take the days that are derived, in the order in which they were begun; wait for them if there are too many,
        or for ``everything``."""
        while self._started:
            first = self._started[0]
            if not (everything or first.work.done() or len(self._started) >= self._derivation.capacity):
                return
            self._wait(first.work.wait)
            self._started.popleft()
            day = first.due.day
            with log_context(date=day), self._run.catch_day_errors(day), self._record_failures(day):
                self._prepare(first)
            self._show_done(first.due)

    def _show_done(self, due: DueDay) -> None:
        self._done += 1
        self._run.enter(self._derivation.stage, due.day, self._done, self._total)

    def _prepare(self, started: StartedDay[D]) -> None:
        """Prepare a derived day to be committed with the batch."""
        derived = started.work.result()
        self._derivation.finish(started, derived)
        revised = self._reviser.prepare(
            started.due.state,
            derived.rows,
            started.evidence,
            policies_hash=derived.policies_hash,
            policy_version=derived.policy_version,
            is_requested=started.due.is_requested,
        )
        self._batch.add(NewDay(started, derived, revised), derived.rows.rows)

    def _commit(self, days: Sequence[NewDay[D]]) -> None:
        """Commit the days of a batch; a permanent error is recorded for every day."""
        run, derivation, dates = self._run, self._derivation, [each.due.day for each in days]
        with self._record_failures(*dates), run.catch_day_errors(*dates):
            derivation.check(days)
            with run.store.facts.commit(run.lease, run.now) as (connection, at):
                derivation.record_references(connection, days, at)
                self._reviser.commit(connection, [each.revised for each in days], at)
                for each in days:
                    day_states.mark_current(
                        connection,
                        derivation.dataset.name,
                        each.due.day,
                        fingerprint=each.due.state.gathered_fingerprint,
                        rows=each.derived.rows.rows,
                        revision=each.revised.revision.revision,
                        is_measured=each.started.is_measured,
                    )
                    derivation.publish(connection, each)
                    day_states.mark_incomplete(connection, each.due.day, each.started.lacks)
            for each in days:
                derivation.published(each)
                if each.revised.is_new:
                    self._partials.day_written(each.due.day, each.derived.rows.rows)
