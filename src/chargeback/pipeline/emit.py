"""Emit calculated days through the tenant's emitters, with a state for each emitter and date.

A period (a day, a week, a month) is due if its facts or the emitter's settings have changed since it was emitted, or if
it failed. An error affects only its emitter and period.
"""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from chargeback.config.emitters import ConfiguredEmitter
from chargeback.emitters.contract import Emitter, Period
from chargeback.errors import ChargebackError, LeaseLost, PluginError, Stopped
from chargeback.model.accounting import AccountingPeriod
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.store.control import days as day_states
from chargeback.store.control.closings import Books, read_books
from chargeback.store.control.emissions import Emission, EmissionState, read_emissions, save_emission
from chargeback.store.facts.tables import CHARGEBACKS_TABLE

if TYPE_CHECKING:
    from chargeback.pipeline.emit_facts import StoredFacts

log = logging.getLogger(__name__)

_VERSION_BYTES = 16


def emit(run: RunContext) -> None:
    """Let every emitter write what is due; a failure does not affect other emitters.

    Raises:
        Stopped: the run was asked to stop; the rest is due in the next run.
        LeaseLost: another process has taken over.
        StorageError: the tenant's storage cannot be used.
    """
    if not run.tenant.emitters:
        return
    stage = _EmitStage.of(run)
    due = [(emitter, stage.due_of(emitter)) for emitter in run.tenant.emitters]
    stage.total = sum(len(periods) for _, periods in due)
    if not stage.total:
        return
    # The reader of facts is loaded only if there is something to emit.
    from chargeback.pipeline.emit_facts import facts_for

    run.enter(Stage.EMITTING, total=stage.total)
    with facts_for(run) as facts:
        for emitter, periods in due:
            if periods:
                facts.days = [day for day in stage.calculated if day >= stage.oldest(emitter)]
                stage.run_emitter(emitter, periods, facts)


@dataclass
class _EmitStage:
    """The emitting stage of a run: the ``calculated`` days, and the names of each day's ``files``."""

    run: RunContext
    calculated: Sequence[date]
    files: Mapping[date, str]
    done: int = 0
    total: int = 0

    @classmethod
    def of(cls, run: RunContext) -> _EmitStage:
        """Return the current facts; no other process changes them during the run."""
        files: dict[date, str] = defaultdict(str)
        for file in run.store.facts.snapshot(CHARGEBACKS_TABLE).files:
            if file.day is not None and file.rows:
                files[file.day] += Path(file.path).name
        with run.store.control.read() as connection:
            calculated = [
                state.tracking_date for state in day_states.read_days(connection) if state.chargebacks.is_current
            ]
        return cls(run, calculated, dict(files))

    def oldest(self, emitter: ConfiguredEmitter) -> date:
        """Return the first day within the emitter's lookback."""
        lookback = emitter.settings.lookback_days
        return date.min if lookback is None else self.run.today - timedelta(days=lookback)

    def due_of(self, emitter: ConfiguredEmitter) -> list[DuePeriod]:
        """Return the periods that an emitter has to write, oldest first; record the skipped ones."""
        run, settings = self.run, emitter.settings
        schedule = EmitterSchedule(
            name=emitter.name,
            aggregation=settings.aggregation,
            # Secrets are masked in the text.
            settings=f"{settings.type} {settings.aggregation} {emitter.params.model_dump_json()}",
            oldest=self.oldest(emitter),
            kept_from=run.today - timedelta(days=run.tenant.settings.retention_days),
            newest_only=self._query(emitter, lambda: emitter.kind.wants_newest_only(emitter.params)),
        )
        with run.store.control.read() as connection:
            known = read_emissions(connection, emitter.name)
            if self._query(emitter, lambda: emitter.kind.follows_books(emitter.params)):
                schedule = replace(schedule, books=read_books(connection))
        planned = plan(schedule, self.calculated, self.files, known)
        if planned.skipped:
            with run.lease.write() as connection:
                for emission in planned.skipped:
                    save_emission(connection, emission)
        return [due for due in planned.due if any(run.covers(day) for day in due.period.days)]

    def _query(self, emitter: ConfiguredEmitter, question: Callable[[], bool]) -> bool:
        """Return the result of a method of the plugin about its settings; False if the plugin fails."""
        try:
            return question()
        except PluginError as error:
            self.run.record_error(f"emitter {emitter.name}: {error}")
            return False

    def run_emitter(self, emitter: ConfiguredEmitter, due: Sequence[DuePeriod], facts: StoredFacts) -> None:
        """Let one emitter write its periods, in batches of the size that it declares."""
        context = emitter.context(self.run.tenant.name, self.run.tenant.settings)
        try:
            opened = emitter.kind.open(context, emitter.params, self.run.stop)
        except Stopped:
            raise
        except ChargebackError as error:
            self.run.check()
            self._record(emitter, due, f"it cannot start: {error}")
            return
        size = opened.batch or len(due)
        try:
            for start in range(0, len(due), size):
                self.run.check()
                some = due[start : start + size]
                self._record(emitter, some, self._attempt(opened, some, facts))
        finally:
            _close(opened, emitter.name)

    def _attempt(self, emitter: Emitter, due: Sequence[DuePeriod], facts: StoredFacts) -> str | None:
        """Write the periods; return the error, or None."""
        try:
            emitter.emit([each.period for each in due], facts)
        except (Stopped, LeaseLost):
            raise
        except ChargebackError as error:
            self.run.check()  # an emitter that is asked to stop may fail with any error
            return str(error)
        return None

    def _record(self, emitter: ConfiguredEmitter, due: Sequence[DuePeriod], error: str | None) -> None:
        """Record the result of some periods."""
        first, last = due[0].period.start, due[-1].period.start
        if error is not None:
            when = f"{first}" if first == last else f"{first} to {last}"
            self.run.record_error(f"emitter {emitter.name}: {when}: {error}")
        state = EmissionState.EMITTED if error is None else EmissionState.FAILED
        with self.run.lease.write() as connection:
            for each in due:
                emission = Emission(emitter.name, each.period.start, state, each.version, each.attempts + 1, error)
                save_emission(connection, emission)
        self.done += len(due)
        self.run.enter(Stage.EMITTING, last, self.done, self.total)


def _close(emitter: Emitter, name: str) -> None:
    try:
        emitter.close()
    except ChargebackError as error:
        log.warning("emitter %s could not be closed: %s", name, error)


@dataclass(frozen=True, slots=True)
class DuePeriod:
    """A period to emit: its version, and the number of earlier attempts at that version."""

    period: Period
    version: str
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class EmitterSchedule:
    """How one emitter is configured.

    ``settings`` is a text that changes with the settings; ``oldest`` the first day within its lookback, ``kept_from``
    the first day whose facts the tenant keeps. ``books`` are the closings that its periods follow, or None.
    """

    name: str
    aggregation: str
    settings: str
    oldest: date
    kept_from: date
    newest_only: bool = False
    books: Books = field(default_factory=Books)

    def version_of(self, period: Period, files: Mapping[date, str]) -> str:
        """Return a text that identifies the content of a period: it changes when one of its days is calculated, and
        when the emitter's settings change. Every calculation of a day writes a file with a new name.

        The version of a closed month is its closing. The first open month also has corrections of earlier months.
        """
        month = AccountingPeriod.of(period.start)
        closed = self.books.find(month)
        if closed is not None:
            return _digest([self.settings, closed.closing.digest])
        earlier = self.books.closed if month == self.books.first_open else ()
        days = [day for each in earlier if each.seal is None for day in each.period.days]
        contents = [f"{day}={files[day]}" for day in (*days, *period.days) if day in files]
        return _digest([self.settings, *(each.closing.digest for each in earlier), *contents])


@dataclass(frozen=True, slots=True)
class EmissionPlan:
    """The periods to emit, oldest first, and those that are newly skipped."""

    due: Sequence[DuePeriod]
    skipped: Sequence[Emission]


def plan(
    schedule: EmitterSchedule, calculated: Sequence[date], files: Mapping[date, str], known: Mapping[date, Emission]
) -> EmissionPlan:
    """Compare the ``calculated`` days (ascending, with the files of each day) with the ``known`` emissions."""
    last_days = {Period.containing(day, schedule.aggregation): day for day in calculated}
    newest = max(last_days, default=None)
    due: list[DuePeriod] = []
    skipped: list[Emission] = []
    for period, last_day in last_days.items():
        if period.start < schedule.kept_from:
            continue  # some of its facts are deleted: what was written earlier is more complete
        version = schedule.version_of(period, files)
        before = known.get(period.start)
        same = before if before is not None and before.version == version else None
        reason = _skip_reason(schedule, last_day, is_newest=period == newest)
        if reason is None:
            if same is None or same.state != EmissionState.EMITTED:
                due.append(DuePeriod(period, version, same.attempts if same else 0))
        elif same is None or same.state == EmissionState.FAILED:
            skipped.append(Emission(schedule.name, period.start, EmissionState.SKIPPED, version, error=reason))
    return EmissionPlan(due, skipped)


def _skip_reason(schedule: EmitterSchedule, last_day: date, *, is_newest: bool) -> str | None:
    if last_day < schedule.oldest:
        return "older than lookback_days"
    if schedule.newest_only and not is_newest:
        return "only the newest day is shown"
    return None


def _digest(texts: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=_VERSION_BYTES).hexdigest()
