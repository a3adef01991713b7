"""The digest of a week: its costs and their changes, anomalies, findings, and unallocated costs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from pydantic import Field
from sqlalchemy import Connection

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.anomalies import Criteria
from chargeback.model.budgets import Budget
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import difference, total
from chargeback.reports.anomalies import AnomaliesRequest, Remembered, anomalies
from chargeback.reports.answers import Exact, ResponseModel, Sum
from chargeback.reports.budgets import BudgetReport, BudgetState, is_within
from chargeback.reports.findings import findings
from chargeback.reports.names import NameReader
from chargeback.store.control.days import DayState
from chargeback.store.control.snoozes import read_snoozes
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by

#: How many of each are named, and after how many days without use a finding is reported.
NAMED: Final = 5
_UNUSED_DAYS: Final = 14
_TELLING: Final[Collection[BudgetState]] = ("warning", "exceeded")


class DigestChange(ResponseModel):
    """The charges of an identity for the week, and for the week before."""

    identity_id: str
    name: str | None
    amount: Sum
    before: Sum
    difference: Sum


class DigestBudget(ResponseModel):
    """A budget with a reached threshold."""

    id: str
    name: str
    budget: Exact | None
    to_date: Sum
    state: BudgetState


class DigestFinding(ResponseModel):
    """A resource or identity that has costs but is not used."""

    id: str
    subject: str
    why: str
    monthly_cost: Sum


class Digest(ResponseModel):
    """A week, of all costs or of those within a scope."""

    start_date: date
    end_date: date
    currency: str
    amount: Sum
    before: Sum | None = Field(description="The cost of the week before; null if not all of it is known.")
    changes: list[DigestChange] = Field(description="The largest changes of identities, the largest first.")
    stands_out: list[str] = Field(description="The anomalies of the week, without those that marks exclude.")
    budgets: list[DigestBudget]
    unused: list[DigestFinding] = Field(description="The most expensive findings.")
    unused_more: int = Field(description="The number of other findings.")
    unused_cost: Sum = Field(description="The cost of all findings in a month.")
    unallocated: Sum = Field(description="The costs without an identity to charge.")


@dataclass(frozen=True)
class Known:
    """The data of a digest in addition to the facts: the states of days, the present budgets, stored stories, and the
    criteria of anomalies."""

    states: Mapping[date, DayState]
    budgets: Collection[Budget]
    remembered: Remembered
    criteria: Criteria


def digest(
    reader: TenantReader,
    connection: Connection,
    week: DayRange,
    known: Known,
    currency: str,
    named: NameReader,
) -> Digest:
    """Return the digest of a week, within the scope of the reader.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    earlier = DayRange(week.start - (week.end - week.start), week.start)
    is_comparable = all(day in known.states and known.states[day].was_calculated for day in earlier)
    now, before = (
        {
            key[0] or "": amount
            for key, amount in sums_by(reader, CHARGEBACKS, Selection.of_days(days), ["identity_id"]).items()
        }
        for days in (week, earlier)
    )
    stories = anomalies(
        reader,
        known.states,
        AnomaliesRequest(week, known.criteria, 100, contributors=True),
        currency,
        known.remembered,
        named,
    )
    snoozes = read_snoozes(connection)
    unused = [
        each
        for each in findings(reader, connection, _UNUSED_DAYS)
        if each.id not in snoozes or not snoozes[each.id].holds_on(week.end)
    ]
    return Digest(
        start_date=week.start,
        end_date=week.end - ONE_DAY,
        currency=currency,
        amount=total(now.values()),
        before=total(before.values()) if is_comparable else None,
        changes=_changes(now, before, named) if is_comparable else [],
        stands_out=[each.sentence for each in stories.items if not each.is_aside and not each.is_explained][:NAMED],
        budgets=_budgets(reader, known, week, currency),
        unused=[DigestFinding.like(each, subject=each.subject.name or each.subject.id) for each in unused[:NAMED]],
        unused_more=max(0, len(unused) - NAMED),
        unused_cost=total(each.monthly_cost for each in unused),
        unallocated=now.get(UNALLOCATED, Decimal(0)),
    )


def _changes(now: Mapping[str, Decimal], before: Mapping[str, Decimal], named: NameReader) -> list[DigestChange]:
    nothing = Decimal(0)
    moved = {each: difference(now.get(each, nothing), before.get(each, nothing)) for each in {*now, *before}}
    largest = sorted((each for each in moved if moved[each]), key=lambda each: (-abs(moved[each]), each))[:NAMED]
    names = named("identity_id", largest)
    return [
        DigestChange(
            identity_id=each,
            name=names.get(each),
            amount=now.get(each, nothing),
            before=before.get(each, nothing),
            difference=moved[each],
        )
        for each in largest
    ]


def _budgets(reader: TenantReader, known: Known, week: DayRange, currency: str) -> list[DigestBudget]:
    period = AccountingPeriod.of(week.end - ONE_DAY)
    index = reader.categories.index
    within = [each for each in known.budgets if is_within(each, reader.scope, index)]
    report = BudgetReport(reader, known.states, currency, week.end)
    looked = [report.of(each, period).status for each in within]
    return [DigestBudget.like(each) for each in looked if each.state in _TELLING]
