"""Shadows in a run: days that are calculated by policies without effect, from the evidence of the real days.

Nothing is gathered for them. A day is calculated again when the real day or the policies have changed; if a shadow is
removed from the configuration, its rows are deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

from chargeback.allocation.columns import total_of
from chargeback.allocation.day import DayCalculator
from chargeback.allocation.policies import PolicyCatalogue
from chargeback.config.shadows import ENOUGH_DAYS, Shadow
from chargeback.errors import (
    ChargebackError,
    ConfigurationError,
    DamagedFacts,
    LeaseLost,
    StorageError,
    in_one_line,
)
from chargeback.model.inventory import Inventory
from chargeback.model.money import half_of_differences
from chargeback.pipeline.day_task import sums_by
from chargeback.pipeline.run_context import RunContext
from chargeback.pipeline.run_messages import Stage
from chargeback.recompute.rules import AllocationRules
from chargeback.recompute.simulate import CalculatedAgain, calculate_again
from chargeback.store.control.catalogue import replace_days
from chargeback.store.control.days import DayState, read_days
from chargeback.store.control.events import SHADOW_ENDED, SHADOW_READY, Event, add_events
from chargeback.store.control.shadows import (
    ShadowDay,
    read_shadow_days,
    remove_shadow_days,
    save_shadow_day,
    shadow_names,
    stored_days,
    table_of,
)
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, prepare_day
from chargeback.store.queries.as_of import REVISED_CHARGEBACKS

log = logging.getLogger(__name__)


def calculate_shadows(run: RunContext) -> None:
    """Calculate the days of the tenant's shadows that are due. Errors are recorded, and the next run tries again.

    Raises:
        LeaseLost: another process has taken over.
        Stopped: the run was asked to stop.
    """
    try:
        shadows = {each.name: each for each in run.tenant.shadows}
        with run.store.control.read() as connection:
            gone = set(shadow_names(connection)) - shadows.keys()
        for name in sorted(gone):
            _remove(run, name)
        if shadows:
            rules = AllocationRules.of(run.tenant)
            for each in shadows.values():
                _Shadowing(run, rules, each).calculate()
    except ConfigurationError as error:
        run.record_error(f"shadows: {in_one_line(error)}")
    except LeaseLost:
        raise
    except StorageError as error:
        run.record_error(f"shadows are incomplete and tried again in the next run: {error}")


def _remove(run: RunContext, name: str) -> None:
    """Remove all days of a shadow."""
    with run.store.control.read() as connection:
        days = stored_days(connection, name)
    with run.store.facts.commit(run.lease, run.now) as (connection, _):
        remove_shadow_days(connection, name, days)


class _Shadowing:
    """Calculates the days of one shadow."""

    def __init__(self, run: RunContext, rules: AllocationRules, shadow: Shadow) -> None:
        self._run = run
        self._rules = rules
        self._shadow = shadow
        self._catalogue: PolicyCatalogue = run.tenant.catalogue_of(shadow.policies)

    def calculate(self) -> None:
        """Calculate the days that are due, oldest first, and remove those that the tenant does not have any more."""
        run, shadow = self._run, self._shadow
        with run.store.control.read() as connection:
            states = read_days(connection, shadow.days)
            known = {each.tracking_date: each for each in read_shadow_days(connection, shadow.name)}
            stored = stored_days(connection, shadow.name)
        there = {each.tracking_date for each in states if each.was_calculated}
        if left := sorted(stored - there):
            with run.store.facts.commit(run.lease, run.now) as (connection, _):
                remove_shadow_days(connection, shadow.name, left)
        current = [each for each in states if each.chargebacks.is_current]
        due = [each for each in current if self._is_due(each, known.get(each.tracking_date))]
        if due:
            self._calculate(due)
            self._report_if_ready(states)
        if known and run.today >= shadow.days.end and not due:
            last = shadow.days.end.isoformat()
            self._record_event(SHADOW_ENDED, {"end": last}, last)

    def _is_due(self, state: DayState, known: ShadowDay | None) -> bool:
        now = (state.chargebacks.revision, self._catalogue.hash)
        return known is None or (known.revision, known.policies_hash) != now

    def _calculate(self, due: list[DayState]) -> None:
        run = self._run
        run.enter(Stage.CALCULATING, due[0].tracking_date, total=len(due))
        inventory = cache(run.store.inventory)
        with closing(DayCalculator(self._catalogue)) as calculator:
            for number, state in enumerate(due):
                run.check()
                run.enter(Stage.CALCULATING, state.tracking_date, number, len(due))
                try:
                    self._calculate_day(calculator, state, inventory)
                except LeaseLost:
                    raise
                except ChargebackError as error:
                    self._leave_out(state.tracking_date, str(error))

    def _calculate_day(self, calculator: DayCalculator, state: DayState, inventory: Callable[[], Inventory]) -> None:
        run, day = self._run, state.tracking_date
        again = calculate_again(run.store, self._rules, calculator, day, inventory)
        if isinstance(again, str):
            self._leave_out(day, again)
            return
        found = ShadowDay(
            day,
            state.chargebacks.revision,
            self._catalogue.hash,
            total_of(again.evidence.billing["total_cost"]),
            _moved(again),
        )
        content = prepare_day(
            run.store.facts.place,
            CHARGEBACKS_TABLE,
            day,
            again.calculated.rows,
            run.store.owner,
            into=table_of(self._shadow.name),
        )
        with run.store.facts.commit(run.lease, run.now) as (connection, at):
            replace_days(connection, [content], at)
            save_shadow_day(connection, self._shadow.name, found)

    def _leave_out(self, day: date, why: str) -> None:
        log.warning("tenant %s: shadow %s: %s: %s", self._run.tenant.name, self._shadow.name, day, why)

    def _report_if_ready(self, states: list[DayState]) -> None:
        """Record, once for these policies, that enough days are calculated by them, and none is missing."""
        with self._run.store.control.read() as connection:
            known = {each.tracking_date: each for each in read_shadow_days(connection, self._shadow.name)}
        there = [each for each in states if each.was_calculated]
        if len(there) >= ENOUGH_DAYS and not any(self._is_due(each, known.get(each.tracking_date)) for each in there):
            self._record_event(SHADOW_READY, {"days": len(there)}, self._catalogue.hash)

    def _record_event(self, kind: str, body: dict[str, Any], once: str) -> None:
        name, run = self._shadow.name, self._run
        with run.lease.write() as connection:
            add_events(connection, [Event(kind, f"shadow/{name}", body, f"{kind} {name} {once}")], run.now())


def _moved(again: CalculatedAgain) -> Decimal:
    """Return half of the sum of the changes of all identities."""
    try:
        before = sums_by(again.stored.rows, REVISED_CHARGEBACKS.payer)
    except DamagedFacts:
        raise StorageError("its real rows cannot be read") from None
    return half_of_differences(before, sums_by(again.calculated.rows, REVISED_CHARGEBACKS.payer))
