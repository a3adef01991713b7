"""Budgets with every version that they have had, and how far their thresholds are. Nothing is ever overwritten."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, and_, delete, func, insert, select

from chargeback.model.budgets import Budget
from chargeback.model.days import Clock, utc_now
from chargeback.model.edits import edit_text, present_version, replaced_version, timed_etag
from chargeback.store.control.audit import BUDGET_CHANGED, BUDGET_CREATED, BUDGET_REMOVED, AuditEntry, record
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.inventory_lists import bytewise
from chargeback.store.control.schema import budget_states, budgets


@dataclass(frozen=True, slots=True)
class BudgetVersion:
    """One version of a budget, or None where it was removed; with its author, time and reason."""

    id: str
    version: int
    budget: Budget | None
    who: str
    at: datetime
    reason: str | None

    @property
    def is_removal(self) -> bool:
        """Whether this version removed the budget."""
        return self.budget is None

    @property
    def etag(self) -> str:
        """The strong ETag of the version."""
        return timed_etag(self.version, self.at)

    @property
    def last_edit(self) -> str:
        """Who wrote the version, and when, as a sentence without its full stop."""
        return f"{edit_text(self, self.who, self.id, self.at)} (version {self.version})"


def list_budgets(connection: Connection) -> list[BudgetVersion]:
    """Return the present version of every budget that is there, by id."""
    query = _present(budgets).order_by(bytewise(connection, budgets.c.id))
    return [_version(row) for row in connection.execute(query).mappings()]


def count_versions(connection: Connection) -> int:
    """Return how many versions there are of all budgets: a number that grows with every change."""
    return connection.execute(select(func.count()).select_from(budgets)).scalar_one()


def _present(*columns: Any) -> Select[Any]:
    newest = select(budgets.c.id, func.max(budgets.c.version).label("version")).group_by(budgets.c.id).subquery()
    same = and_(budgets.c.id == newest.c.id, budgets.c.version == newest.c.version)
    return select(*columns).join_from(budgets, newest, same).where(budgets.c.document.is_not(None))


def last_version(connection: Connection, budget_id: str) -> BudgetVersion | None:
    """Return the newest version of a budget, which may be its removal; None if there never was one."""
    query = select(budgets).where(budgets.c.id == budget_id).order_by(budgets.c.version.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else _version(row)


def read_budget(connection: Connection, budget_id: str) -> BudgetVersion | None:
    """Return the present version of a budget; None if there is none, or no more."""
    return present_version(last_version(connection, budget_id))


def write_budget(
    connection: Connection,
    budget_id: str,
    budget: Budget | None,
    *,
    expected: int | None,
    who: str,
    reason: str | None = None,
    clock: Clock = utc_now,
) -> BudgetVersion:
    """Write the next version of a budget, None to remove it, and return it. ``expected`` is the number of the version
    that it replaces; None for a budget that is not there.

    Raises:
        EditConflict: another version is there, or none.
    """
    lock_tenant(connection)
    last = last_version(connection, budget_id)
    before = replaced_version(f"budget {budget_id}", last, expected)
    version = BudgetVersion(budget_id, 1 if last is None else last.version + 1, budget, who, clock(), reason)
    document = None if budget is None else json.dumps(budget.as_json())
    values = {"id": budget_id, "version": version.version, "document": document, "who": who, "at": version.at}
    connection.execute(insert(budgets).values(**values, reason=reason))
    what = BUDGET_CREATED if before is None else BUDGET_REMOVED if budget is None else BUDGET_CHANGED
    record(connection, who, [AuditEntry(what, f"budget/{budget_id}", _logged(before), _logged(version))], clock)
    return version


def read_states(connection: Connection) -> dict[tuple[str, str], dict[str, Any]]:
    """Return what was found of each (budget, month) when it was looked at last."""
    rows = connection.execute(select(budget_states)).mappings()
    return {(row["budget_id"], row["period_id"]): json.loads(row["state"]) for row in rows}


def budget_ratios(connection: Connection) -> dict[str, tuple[float, float | None]]:
    """Return which part of each present budget was charged, and which was expected, in the last month that was looked
    at; budgets without an amount for it are left out."""
    found = {budget_id: state["ratios"] for budget_id, _, state in _newest_states(connection)}
    return {budget_id: (ratios[0], ratios[1]) for budget_id, ratios in found.items() if ratios}


def crossed_thresholds(connection: Connection) -> Iterator[tuple[str, str, str]]:
    """Yield (budget, month, key of a threshold) of what is reached in the last month that was examined and reported."""
    for budget_id, period_id, state in _newest_states(connection):
        for key in state.get("crossed", ()):
            yield budget_id, period_id, key


def _newest_states(connection: Connection) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what was found of each present budget in the last month that was looked at."""
    its = budget_states.c
    newest = select(its.budget_id, func.max(its.period_id).label("period_id")).group_by(its.budget_id).subquery()
    same = and_(its.budget_id == newest.c.budget_id, its.period_id == newest.c.period_id)
    query = select(its.budget_id, its.period_id, its.state).join_from(budget_states, newest, same)
    rows = connection.execute(query.where(its.budget_id.in_(_present(budgets.c.id))))
    return [(row.budget_id, row.period_id, json.loads(row.state)) for row in rows]


def save_state(connection: Connection, budget_id: str, period_id: str, state: Mapping[str, Any]) -> None:
    """Record what was found of a budget and a month."""
    row = {"budget_id": budget_id, "period_id": period_id}
    its = budget_states.c
    connection.execute(delete(budget_states).where(its.budget_id == budget_id, its.period_id == period_id))
    connection.execute(insert(budget_states).values(**row, state=json.dumps(state)))


def _version(row: RowMapping) -> BudgetVersion:
    document = row["document"]
    budget = None if document is None else Budget.of(row["id"], json.loads(document))
    return BudgetVersion(row["id"], row["version"], budget, row["who"], row["at"], row["reason"])


def _logged(version: BudgetVersion | None) -> dict[str, Any] | None:
    if version is None or version.budget is None:
        return None
    return {"version": version.version, "reason": version.reason, **version.budget.as_json()}
