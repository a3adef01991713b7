"""The weekly digest: the costs of a week and what needs attention, recorded once when the whole week is known."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from chargeback.access.scope import RowScope
from chargeback.config.notifications import AlertmanagerSettings
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.pipeline.anomalies import scope_key
from chargeback.pipeline.run_facts import RunFacts, only_for
from chargeback.reports.anomalies import Remembered
from chargeback.reports.digest import Known, digest
from chargeback.store.control.anomalies import read_marks
from chargeback.store.control.budgets import list_budgets
from chargeback.store.control.events import DIGEST_WEEKLY, Event, are_recorded

#: A week that ended longer ago than this gets no digest.
_NEWS: Final = timedelta(days=14)
_WEEK: Final = timedelta(days=7)


def record_week(facts: RunFacts) -> None:
    """Record the digest of the last whole week, once, for each scope of the sinks that accept it.

    Raises:
        LeaseLost: another process has taken over.
        StorageError: the facts cannot be read.
    """
    readers = _readers(facts)
    week = _last_whole_week(facts) if readers else None
    if week is None:
        return
    due = {f"digest {week.start} {scope_key(scope)}": (scope, names) for scope, names in readers}
    run = facts.run
    with run.store.control.read() as connection:
        done = are_recorded(connection, due)
        budgets = [each.budget for each in list_budgets(connection) if each.budget is not None]
        remembered = Remembered(read_marks(connection))
    settings = run.tenant.settings
    known = Known(facts.states, budgets, remembered, settings.anomalies.criteria)
    events = []
    for key, (scope, names) in due.items():
        if key in done:
            continue
        with facts.reader(scope) as reader, run.store.control.read() as connection:
            found = digest(reader, connection, week, known, settings.currency, facts.named)
        body = found.model_dump(mode="json") | only_for(names)
        events.append(Event(DIGEST_WEEKLY, f"digest/{week.start}", body, key))
    facts.record(events)


def _readers(facts: RunFacts) -> list[tuple[RowScope | None, list[str]]]:
    """Return the names of the sinks that receive digests, by scope."""
    whole = [
        name
        for name, sink in sorted(facts.sinks.items())
        if sink.scope is None and sink.accepts(DIGEST_WEEKLY) and not isinstance(sink, AlertmanagerSettings)
    ]
    return [*([(None, whole)] if whole else []), *facts.owners(DIGEST_WEEKLY).items()]


def _last_whole_week(facts: RunFacts) -> DayRange | None:
    """Return the last week from Monday to Sunday if each of its days is calculated from its present bill."""
    if not facts.calculated:
        return None
    last = facts.calculated[-1]
    sunday = last - timedelta(days=(last.weekday() + 1) % 7)
    week = DayRange(sunday - _WEEK + ONE_DAY, sunday + ONE_DAY)
    is_known = all(day in facts.states and facts.states[day].chargebacks.is_current for day in week)
    return week if is_known and sunday > facts.run.today - _NEWS else None
