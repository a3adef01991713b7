"""The facts that a run has calculated, from which events are recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

from chargeback.access.scope import RowScope
from chargeback.config.notifications import SinkSettings
from chargeback.errors import StorageError
from chargeback.pipeline.run_context import RunContext
from chargeback.reports.names import names_of_ids
from chargeback.store.control.catalogue import read_published_revision
from chargeback.store.control.days import DayState, read_days
from chargeback.store.control.events import NOTIFY, OWNERS, Event, add_events, are_recorded
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader


@dataclass
class RunFacts:
    """The published facts of a run: their ``revision``, the states of days, and the sinks of notifications. Each is
    read when it is first used, so that a run without news reads nothing."""

    run: RunContext
    revision: int
    _opened: ExitStack = field(default_factory=ExitStack)
    _caches: LookupCaches = field(default_factory=LookupCaches)

    @cached_property
    def states(self) -> Mapping[date, DayState]:
        """The states of all days that are known."""
        with self.run.store.control.read() as connection:
            return {each.tracking_date: each for each in read_days(connection)}

    @cached_property
    def calculated(self) -> list[date]:
        """The days that are calculated, ascending."""
        return sorted(day for day, state in self.states.items() if state.was_calculated)

    @cached_property
    def sinks(self) -> Mapping[str, SinkSettings]:
        """The sinks of notifications about the tenant, by name."""
        return self.run.tenant.settings.notifications

    def owners(self, kind: str) -> dict[RowScope, list[str]]:
        """Return the names of the sinks with a scope that receive events of a kind, by scope."""
        found: dict[RowScope, list[str]] = {}
        for name, sink in sorted(self.sinks.items()):
            if sink.scope is not None and sink.accepts(kind):
                found.setdefault(RowScope.of(sink.scope), []).append(name)
        return found

    def record(self, found: Sequence[Event]) -> None:
        """Record the events that are new.

        Raises:
            LeaseLost: another process has taken over.
        """
        with self.run.store.control.read() as connection:
            known = are_recorded(connection, [each.dedupe_key for each in found])
        new = [each for each in found if each.dedupe_key not in known]
        if new:
            with self.run.lease.write() as connection:
                add_events(connection, new, self.run.now())

    def named(self, column: str, ids: Collection[str]) -> Mapping[str, str]:
        """Return the display names of some ids of a column."""
        with self.run.store.control.read() as connection:
            return names_of_ids(connection, column, ids)

    @contextmanager
    def reader(self, scope: RowScope | None = None) -> Iterator[TenantReader]:
        """Open a reader of the facts; with a scope, of the facts in it.

        Raises:
            StorageError: the facts cannot be read.
        """
        with open_reader(self._engine, self.run.store, CancellationToken(), self._caches, scope=scope) as reader:
            yield reader

    @cached_property
    def _engine(self) -> QueryEngine:
        return self._opened.enter_context(closing(QueryEngine()))

    def close(self) -> None:
        """Close the query engine of the readers."""
        self._opened.close()


def only_for(owners: list[str]) -> dict[str, list[str]]:
    """Return the part of an event's body that sends it to these sinks alone, because it is about their scope."""
    return {NOTIFY: owners, OWNERS: owners}


def record_events(run: RunContext, recorders: Mapping[str, Callable[[RunFacts], None]]) -> None:
    """Call each function that records events of the facts. If the facts cannot be read, record an error, which begins
    with the function's key.

    Raises:
        LeaseLost: another process has taken over.
    """
    with run.store.control.read() as connection:
        revision, _ = read_published_revision(connection)
    with closing(RunFacts(run, revision)) as facts:
        for repeated, record in recorders.items():
            try:
                record(facts)
            except StorageError as error:
                run.record_error(f"{repeated} in the next run: {error}")
