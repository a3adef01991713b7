"""The posted statements of a month: its own costs, corrections of earlier months, and adjustments.

A correction is the difference of two statements of its month, also in cents: so the amounts booked for a value in all
months sum, to the cent, to its present statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import Connection

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.cents import rounded_cents
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import difference, total
from chargeback.reports.statements.amounts import StatementGrouping, stated_amounts, sums_by_value
from chargeback.reports.statements.compile import compile_statements
from chargeback.reports.statements.content import (
    StatedAmount,
    StatementAdjustment,
    StatementAnswer,
    StatementCorrection,
    StatementHeading,
    Statements,
    StatementTieOut,
    current_verdict,
)
from chargeback.reports.statements.numbering import closed_number, content_digest
from chargeback.reports.tenant_view import TenantView
from chargeback.reports.wording import counted, money_text
from chargeback.store.control import cost_categories, tags
from chargeback.store.control.adjustments import Adjustment, adjustments_of, read_adjustments
from chargeback.store.control.closings import ClosedPeriod, KnownMonth
from chargeback.store.control.day_revisions import (
    BILL_CHANGED,
    FIRST,
    MANUAL,
    MEMBERS_CHANGED,
    METRICS_RETURNED,
    POLICY_CHANGED,
    REPAIR,
    read_day_revisions,
)
from chargeback.store.control.days import DayDataset
from chargeback.store.control.invoices import read_invoices
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.keys import keys_of
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.question import Sums
from chargeback.store.queries.selection import Selection

TAG_CHANGED: Final = "tag_changed"
CATEGORY_CHANGED: Final = "category_changed"

_PHRASES: Final = {
    FIRST: "costs of {days} were calculated for the first time",
    BILL_CHANGED: "the bill of {days} changed",
    POLICY_CHANGED: "the policy of {days} changed",
    METRICS_RETURNED: "metrics of {days} became available",
    MEMBERS_CHANGED: "who belonged to what on {days} changed",
    MANUAL: "costs of {days} were calculated again on request",
    REPAIR: "lost files of {days} were restored",
    TAG_CHANGED: "tags were changed",
    CATEGORY_CHANGED: "cost categories were changed",
}


@dataclass(frozen=True)
class _Correction:
    """The changes of a month: by value, exactly and in cents, with their causes."""

    period: AccountingPeriod
    amounts: Mapping[str, StatedAmount]
    causes: Sequence[tuple[str, int]]

    def of(self, value: str, currency: str) -> StatementCorrection | None:
        """Return the correction of a value; None if there is none."""
        found = self.amounts.get(value)
        if found is None:
            return None
        size = money_text((found.rounded or found.amount).copy_abs(), currency)
        than = "less" if found.amount < 0 else "more"
        why = ", and ".join(_PHRASES[cause].format(days=counted(days, "day")) for cause, days in self.causes)
        return StatementCorrection(
            period_id=self.period.id,
            start_date=self.period.start,
            end_date=self.period.last_day,
            amount=found.amount,
            rounded=found.rounded,
            causes=[cause for cause, _ in self.causes],
            sentence=f"{self.period.name} costs {size} {than} than was booked{': ' if why else ''}{why}.",
        )


def compile_posted(tenant: TenantView, reader: PostedReader, period: AccountingPeriod, by: str) -> Statements:
    """Return the posted statements of a month.

    Raises:
        HistoryGone: rows that it needs are no longer kept.
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
        UnknownCategory: the tenant has no such cost category.
        ValueError: chargebacks cannot be grouped so, or the month is before the books.
    """
    books, closed = reader.books, reader.books.find(period)
    own = reader.known(books.regular(period).at)
    grouping = StatementGrouping.of(own, by)
    learned = [_correction(tenant, reader, by, *sides) for sides in books.corrections(period)]
    corrections = [each for each in learned if each is not None]
    with tenant.store.control.read() as connection:
        made = adjustments_of(read_adjustments(connection), period, books.closed_at(period))
        invoices = read_invoices(connection, period)
    adjusted = _adjusted(made, grouping, tenant.currency) if own.sees_everything else {}
    also = {value for each in corrections for value in each.amounts} | adjusted.keys()
    found = compile_statements(tenant, own, period.start, by, also)
    heading = found.heading.model_copy(
        update={
            "basis": "posted",
            "status": "PROVISIONAL" if closed is None else "CLOSED",
            "closed_at": None if closed is None else closed.at,
            "times_closed": None if closed is None else closed.times,
            "issuer": tenant.issuer,
            "invoices": [each.invoice_id for each in invoices if not each.is_voided],
        }
    )
    items = []
    for each in found.items:
        value = each.recipient.value
        parts = [part for of_month in corrections if (part := of_month.of(value, tenant.currency)) is not None]
        items.append(_posted(each, heading, closed, parts, adjusted.get(value, [])))
    checked = None
    if found.tie_out is not None:
        checked = _tie_out(tenant, reader, period, items, found.tie_out)
        items = [each.model_copy(update={"tie_out": checked}) for each in items]
    return Statements(heading, items, StatedAmount.sum(items, tenant.currency), checked)


def _correction(
    tenant: TenantView, reader: PostedReader, by: str, after: KnownMonth, before: KnownMonth
) -> _Correction | None:
    """Return the changes of a month between two instants; None if there are none."""
    of_month = Selection.of_days(after.period.days)
    if not reader.changed_days(Sums(CHARGEBACKS, of_month, keys_of(CHARGEBACKS, (by,))), after, before):
        return None
    then, now = (_stated(tenant, reader, by, known) for known in (before, after))
    nothing = StatedAmount.alone(Decimal(0), tenant.currency)
    amounts = {}
    for value in then.keys() | now.keys():
        old, new = then.get(value, nothing), now.get(value, nothing)
        if (old.amount, old.rounded) != (new.amount, new.rounded):
            cents = rounded_cents(difference(new.rounded, old.rounded), tenant.currency)
            amounts[value] = StatedAmount(amount=difference(new.amount, old.amount), rounded=cents)
    if not amounts:
        return None
    with tenant.store.control.read() as connection:
        return _Correction(after.period, amounts, _causes(connection, after, before))


def _stated(tenant: TenantView, reader: PostedReader, by: str, known: KnownMonth) -> dict[str, StatedAmount]:
    """Return the amounts of a month's statements as of an instant."""
    then = reader.known(known.at)
    try:
        grouping = StatementGrouping.of(then, by)
    except LookupError:
        return {}
    sums = sums_by_value(then, known.period.days, grouping)
    whole = sums if then.sees_everything else sums_by_value(then.unscoped(), known.period.days, grouping)
    return stated_amounts(sums, whole, tenant.currency)


def _causes(connection: Connection, after: KnownMonth, before: KnownMonth) -> list[tuple[str, int]]:
    """Return the causes of a month's changes between two instants with the number of days, the most frequent first."""
    since, until = before.at, after.at
    if since is None:
        return []
    recorded = read_day_revisions(connection, DayDataset.CHARGEBACKS, after.period.days, until)
    days = {(each.tracking_date, each.cause) for each in recorded if each.calculated_at > since}
    counts = Counter(cause for _, cause in days if cause in _PHRASES)
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    found += [(TAG_CHANGED, 0)] if tags.changed_between(connection, since, until) else []
    found += [(CATEGORY_CHANGED, 0)] if cost_categories.changed_between(connection, since, until) else []
    return found


def _adjusted(
    made: Iterable[Adjustment], grouping: StatementGrouping, currency: str
) -> dict[str, list[StatementAdjustment]]:
    """Return the adjustments of each value. Those by another grouping are added to the costs without an identity, so
    that the statements of every grouping are complete."""
    found: dict[str, list[StatementAdjustment]] = {}
    for each in made:
        its = each.made
        is_own = its.grouping == grouping.by
        sides = [(its.value, its.from_value, its.amount)]
        if its.from_value is not None:
            sides.append((its.from_value, its.value, its.amount.copy_negate()))
        for value, other, amount in sides:
            found.setdefault(value if is_own else UNALLOCATED, []).append(
                StatementAdjustment(
                    id=each.id,
                    kind=its.kind,
                    amount=amount,
                    rounded=rounded_cents(amount, currency),
                    other=other,
                    applies_to=None if its.applies_to is None else its.applies_to.id,
                    reason=its.reason,
                    reference=its.reference,
                )
            )
    return found


def _posted(
    own: StatementAnswer,
    heading: StatementHeading,
    closed: ClosedPeriod | None,
    corrections: list[StatementCorrection],
    adjustments: list[StatementAdjustment],
) -> StatementAnswer:
    """Return the statement of a value with its corrections and adjustments."""
    value = own.recipient.value
    regular = StatedAmount(amount=own.amount, rounded=own.rounded)
    whole = StatedAmount.sum([regular, *corrections, *adjustments], own.currency)
    more = [each.model_dump(mode="json", exclude={"sentence"}) for each in (*corrections, *adjustments)]
    digest = content_digest(heading, value, own.lines, more)
    replies = own.replies
    if replies is not None:
        replies = [each.model_copy(update={"is_current": each.digest == digest}) for each in replies]
    numbers = {} if closed is None else _numbers(own, closed.times)
    same = {name: getattr(heading, name) for name in StatementHeading.model_fields}
    return own.model_copy(
        update={
            **same,
            **numbers,
            "digest": digest,
            "amount": whole.amount,
            "rounded": whole.rounded,
            "regular": regular,
            "corrections": corrections,
            "adjustments": adjustments,
            "replies": replies,
            "verdict": current_verdict(replies or ()),
        }
    )


def as_closed(found: Statements, at: datetime, times: int) -> Statements:
    """Return posted statements as those of a month that is closed at an instant for this number of times."""
    closed = {"status": "CLOSED", "closed_at": at, "times_closed": times}
    items = [each.model_copy(update={**closed, **_numbers(each, times)}) for each in found.items]
    return replace(found, heading=found.heading.model_copy(update=closed), items=items)


def _numbers(statement: StatementAnswer, times: int) -> dict[str, str | None]:
    """Return the number of a statement of a closed month, and the one that it supersedes."""
    place = (statement.tenant_name, statement.period, statement.by, statement.recipient.value)
    before = closed_number(*place, times - 1) if times > 1 else None
    return {"number": closed_number(*place, times), "supersedes": before}


def _tie_out(
    tenant: TenantView,
    reader: PostedReader,
    period: AccountingPeriod,
    items: Sequence[StatementAnswer],
    own: StatementTieOut,
) -> StatementTieOut:
    """Return all statements compared with the bill, with corrections that are summed independently of them."""
    currency = tenant.currency
    statements = StatedAmount.sum(items, currency)
    by_month = reader.corrections_by_month(period)
    corrections = StatedAmount(
        amount=total(by_month.values()),
        rounded=rounded_cents(total(part.rounded for each in items for part in each.corrections or ()), currency),
    )
    adjustments = StatedAmount.sum([part for each in items for part in each.adjustments or ()], currency)
    accounted = total([own.billed.amount, own.outdated.amount, corrections.amount, adjustments.amount])
    return own.model_copy(
        update={
            "difference": difference(statements.amount, accounted),
            "statements": statements,
            "corrections": corrections,
            "adjustments": adjustments,
        }
    )
