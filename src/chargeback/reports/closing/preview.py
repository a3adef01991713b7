"""Previews of closings: the amounts that closing a month would book, and its blockers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

from pydantic import Field
from sqlalchemy import Connection

from chargeback.model.accounting import AccountingPeriod, periods_within
from chargeback.model.days import DayRange
from chargeback.model.inventory import UNALLOCATED, UNASSIGNED, UNTAGGED
from chargeback.model.money import difference, render, total
from chargeback.reports.answers import Instant, ResponseModel, Sum, left_out
from chargeback.reports.closing.sealing import RETENTION_MARGIN
from chargeback.reports.reconciliation import DIFFERS, EQUAL, NONE, ReconciledDay, reconcile, states_seen
from chargeback.reports.statements.content import Cents, Statements
from chargeback.reports.statements.posted import compile_posted
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.adjustments import Adjustment, adjustments_of, read_adjustments
from chargeback.store.control.catalogue import last_change
from chargeback.store.control.closings import Books, canonical, digest_of, read_receipt
from chargeback.store.control.days import DayState
from chargeback.store.control.invoices import Invoice, read_invoices
from chargeback.store.control.policies import used_policies
from chargeback.store.control.runs import pipeline_state
from chargeback.store.control.statement_replies import DISPUTED, read_replies
from chargeback.store.queries.datasets import BILLING_LINES
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by

#: How long after its end a month may still change because of late bills.
SETTLING: Final = timedelta(hours=72)

PeriodState = Literal["accruing", "settling", "blocked", "ready", "closed", "sealed"]
ACCRUING: Final = "accruing"
SETTLES: Final = "settling"

_ZERO: Final = Decimal(0)


class Blocker(ResponseModel):
    """A reason for which a month cannot be closed, and a remedy."""

    id: str = Field(description="The id for `accept` of the request.", examples=["day-pending:2026-10-31"])
    kind: str = Field(examples=["day-pending"])
    date: date | None
    detail: str
    remedy: str
    can_be_accepted: bool = Field(description="Whether the month can be closed in spite of it.")


class PeriodWarning(ResponseModel):
    """Something to review before a month is closed."""

    kind: str = Field(examples=["unallocated"])
    detail: str


class CorrectionTotal(ResponseModel):
    """The changes of an earlier month."""

    period_id: str = Field(examples=["2026-09"])
    amount: Sum


class PeriodTotals(ResponseModel):
    """The sums of a month."""

    billed: Sum = Field(description="The provider's bill for its days.")
    regular: Sum = Field(description="The charges for its days.")
    corrections: Sum = Field(description="The corrections of earlier months that are posted to it.")
    adjustments: Sum = Field(description="The manual adjustments.")
    posted: Sum = Field(description="The booked amount: `regular` + `corrections` + `adjustments`.")


class PeriodReceipt(ResponseModel):
    """The receipt of a closing."""

    n: int = Field(description="Its number among all receipts.", examples=[1])
    receipt_digest: str = Field(description="Its SHA-256.")
    previous: str | None = Field(description="The SHA-256 of the receipt before it; null for the first one.")
    note: str | None
    accepted: list[str] = Field(description="The ids of accepted blockers.", examples=[["day-missing:2026-10-31"]])
    reason: str | None = Field(description="Why they were accepted.")


class PeriodItem(ResponseModel):
    """A month."""

    period_id: str = Field(examples=["2026-10"])
    start: date
    end: date = Field(description="Its last day.")
    state: PeriodState = Field(
        description="`accruing`: it is not over. `settling`: late bills may still arrive. `blocked`: it cannot be "
        "closed. `ready`: it can be closed. `closed`: it is booked. `sealed`: it cannot change any more."
    )
    totals: PeriodTotals
    blockers: int = Field(description="The number of its blockers.")
    closed_at: Instant | None
    closed_by: str | None
    sealed_at: Instant | None
    times_closed: int = Field(description="How often it was closed.")
    digest: str | None = Field(description="The digest of the booked content.")
    receipt: PeriodReceipt | None = Field(description="The receipt of the closing; null while it is open.")


class PeriodList(ResponseModel):
    """The months of a tenant, the newest first."""

    items: list[PeriodItem]
    currency: str = Field(examples=["USD"])
    by: list[str] = Field(description="The groupings of the stored statements.", examples=[["category:cost_center"]])
    books_begin: str | None = Field(description="The first month that was closed; null if none is.")
    next_to_close: str | None = Field(description="The only month that can be closed next; null if any can.")


class PostedValue(ResponseModel):
    """The booked amounts of a value."""

    value: str = Field(examples=["payments"])
    name: str | None
    number: str = Field(description="The number of its statement.")
    regular: Sum
    corrections: Sum
    adjustments: Sum
    amount: Sum
    rounded: Cents


class PostedGrouping(ResponseModel):
    """The booked amounts by the values of a grouping."""

    by: str = Field(examples=["category:cost_center"])
    values: list[PostedValue]
    rounded: Cents = Field(description="The sum of all statements.")
    difference: Sum = Field(description="All statements minus the bill, corrections and adjustments: 0.")


class InvoiceTieOut(ResponseModel):
    """The provider's invoices compared with the bill, without voided ones and without taxes."""

    invoices: list[str] = Field(description="Their numbers.")
    total: Sum
    tax: Sum
    difference: Sum | None = Field(description="`total` minus the bill; null without an invoice.")
    by_product_type: dict[str, Sum] | None = left_out("The difference by product type, if all invoices have lines.")


class ClosingPreview(ResponseModel):
    """The amounts that closing a month would book, and its blockers."""

    period_id: str = Field(examples=["2026-10"])
    start: date
    end: date
    state: PeriodState
    currency: str = Field(examples=["USD"])
    totals: PeriodTotals
    corrections: list[CorrectionTotal]
    by: list[PostedGrouping] = Field(description="The booked amounts by each grouping of `closing.by`.")
    adjustments: list[dict[str, Any]]
    invoices: InvoiceTieOut
    opening: list[CorrectionTotal] = Field(
        description="Before the first closing: the costs of the earlier months. Later changes of them are visible, but "
        "never posted."
    )
    blockers: list[Blocker]
    warnings: list[PeriodWarning]
    digest: str = Field(description="The digest of all amounts, for `expected_digest` of the closing.")
    as_of: Instant = Field(
        description="The instant of the last change that it includes, for `looked_at` of the closing: a refusal then "
        "lists the changes since."
    )
    requested_by: str | None = left_out("The actor who requested the closing, which a second person has to confirm.")


@dataclass(frozen=True)
class Prepared:
    """A month as it would be closed: the preview, and its statements by each grouping."""

    answer: ClosingPreview
    statements: Sequence[Statements]


def groupings(tenant: TenantView, reader: PostedReader) -> list[str]:
    """Return the groupings of the stored statements of a tenant: the configured ones whose cost categories exist, or by
    identities if there are none."""
    known = reader.categories.index.by_key
    found = [by for by in tenant.closing.by if not by.startswith("category:") or by.partition(":")[2] in known]
    return found or ["identity_id"]


def prepare(tenant: TenantView, reader: PostedReader, period: AccountingPeriod, now: datetime) -> Prepared:
    """Return the preview of closing a month, at the instant of the books.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
        ValueError: the month is before the books.
    """
    books, known = reader.books, reader.of_days
    statements = [compile_posted(tenant, reader, period, by) for by in groupings(tenant, reader)]
    corrections = reader.corrections_by_month(period)
    with tenant.store.control.read() as connection:
        states = states_seen(known, connection, period.days)
        days = reconcile(known, states, period.days)
        made = adjustments_of(read_adjustments(connection), period, books.closed_at(period))
        invoices = read_invoices(connection, period)
        totals = _totals(days, corrections.values(), made)
        ties = tie_out(invoices, totals.billed, known, period)
        as_of = books.at or last_change(connection) or now
        blockers = list(_blockers(tenant, connection, period, days, now))
        warnings = list(_warnings(tenant, connection, period, statements[0], states, ties))
    opening = {} if books.start is not None else _opening(tenant, known, period)
    groups = [_grouping(each) for each in statements]
    digest = digest_of(
        canonical(
            {
                "period_id": period.id,
                "currency": tenant.currency,
                "totals": totals.model_dump(mode="json"),
                "corrections": {each.id: render(amount) for each, amount in corrections.items()},
                "by": [
                    each.model_dump(mode="json", exclude={"values": {"__all__": {"number", "name"}}}) for each in groups
                ],
                "adjustments": [each.as_json() for each in made],
                "invoices": [dict(each.content) for each in invoices],
            }
        )
    )
    answer = ClosingPreview(
        period_id=period.id,
        start=period.start,
        end=period.last_day,
        state=state_of(books, period, blockers),
        currency=tenant.currency,
        totals=totals,
        corrections=_listed(corrections),
        by=groups,
        adjustments=[each.as_json() for each in made],
        invoices=ties,
        opening=_listed(opening),
        blockers=blockers,
        warnings=warnings,
        digest=digest,
        as_of=as_of,
    )
    return Prepared(answer, statements)


def state_of(books: Books, period: AccountingPeriod, blockers: Sequence[Blocker]) -> PeriodState:
    """Return the state of a month."""
    closed = books.find(period)
    if closed is not None:
        return "closed" if closed.seal is None else "sealed"
    kinds = {each.kind for each in blockers}
    if ACCRUING in kinds:
        return "accruing"
    if SETTLES in kinds:
        return "settling"
    return "blocked" if blockers else "ready"


def list_periods(tenant: TenantView, reader: PostedReader, now: datetime) -> PeriodList:
    """Return all months that have a bill or were closed, and those up to the present one.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    books, present = reader.books, reader.of_days
    with tenant.store.control.read() as connection:
        states = states_seen(present, connection)
        known = [*(AccountingPeriod.of(day) for day in states), *(each.period for each in books.closed)]
        current = AccountingPeriod.of(now.date())
        periods = periods_within(min([*known, current]), max([*known, current]))
        whole = DayRange(periods[0].start, periods[-1].days.end)
        by_period: dict[AccountingPeriod, list[ReconciledDay]] = {each: [] for each in periods}
        for day in reconcile(present, states, whole):
            by_period[AccountingPeriod.of(day.day)].append(day)
        adjustments = read_adjustments(connection)
        items = [
            _item(tenant, reader, connection, period, by_period[period], adjustments, now)
            for period in reversed(periods)
        ]
    return PeriodList(
        items=items,
        currency=tenant.currency,
        by=groupings(tenant, reader),
        books_begin=None if books.start is None else books.start.id,
        next_to_close=None if books.first_open is None else books.first_open.id,
    )


def _item(
    tenant: TenantView,
    reader: PostedReader,
    connection: Connection,
    period: AccountingPeriod,
    days: Sequence[ReconciledDay],
    adjustments: Sequence[Adjustment],
    now: datetime,
) -> PeriodItem:
    books, closed = reader.books, reader.books.find(period)
    if closed is None:
        is_posted = books.start is not None and period > books.start
        corrections = reader.corrections_by_month(period).values() if is_posted else ()
        made = adjustments_of(adjustments, period, books.at)
        totals, receipt = _totals(days, corrections, made), None
        blockers = list(_blockers(tenant, connection, period, days, now))
    else:
        receipt = read_receipt(connection, closed.closing.n)
        totals, blockers = PeriodTotals.model_validate(receipt["totals"]), []
    return PeriodItem(
        period_id=period.id,
        start=period.start,
        end=period.last_day,
        state=state_of(books, period, blockers),
        totals=totals,
        blockers=len(blockers),
        closed_at=None if closed is None else closed.at,
        closed_by=None if receipt is None else receipt["by"],
        sealed_at=None if closed is None else closed.sealed_at,
        times_closed=0 if closed is None else closed.times,
        digest=None if receipt is None else receipt["digest"],
        receipt=None
        if closed is None or receipt is None
        else PeriodReceipt(
            receipt_digest=closed.closing.digest,
            **{name: receipt[name] for name in ("n", "previous", "note", "accepted", "reason")},
        ),
    )


def _totals(days: Sequence[ReconciledDay], corrections: Iterable[Decimal], made: Sequence[Adjustment]) -> PeriodTotals:
    regular = total(each.charged for each in days)
    learned = total(corrections)
    # Reallocations sum to zero.
    adjusted = total(each.made.amount for each in made if each.made.from_value is None)
    return PeriodTotals(
        billed=total(each.billed for each in days),
        regular=regular,
        corrections=learned,
        adjustments=adjusted,
        posted=total([regular, learned, adjusted]),
    )


def _opening(tenant: TenantView, reader: TenantReader, first: AccountingPeriod) -> dict[AccountingPeriod, Decimal]:
    """Return the costs of each month before the first one."""
    with tenant.store.control.read() as connection:
        states = states_seen(reader, connection)
    earlier = [day for day in states if day < first.start]
    if not earlier:
        return {}
    found: dict[AccountingPeriod, list[Decimal]] = {}
    for day in reconcile(reader, states, DayRange(min(earlier), first.start)):
        found.setdefault(AccountingPeriod.of(day.day), []).append(day.charged)
    return {period: total(amounts) for period, amounts in found.items()}


def _listed(amounts: Mapping[AccountingPeriod, Decimal]) -> list[CorrectionTotal]:
    return [CorrectionTotal(period_id=period.id, amount=amount) for period, amount in sorted(amounts.items())]


def _grouping(found: Statements) -> PostedGrouping:
    values = [
        PostedValue(
            value=each.recipient.value,
            name=each.recipient.name,
            number=each.number,
            regular=_ZERO if each.regular is None else each.regular.amount,
            corrections=total(part.amount for part in each.corrections or ()),
            adjustments=total(part.amount for part in each.adjustments or ()),
            amount=each.amount,
            rounded=each.rounded,
        )
        for each in found.items
    ]
    return PostedGrouping(
        by=found.heading.by,
        values=values,
        rounded=found.total.rounded,
        difference=_ZERO if found.tie_out is None else found.tie_out.difference,
    )


def tie_out(
    invoices: Sequence[Invoice], billed: Decimal, reader: TenantReader, period: AccountingPeriod
) -> InvoiceTieOut:
    """Return the invoices of a month compared with the bill.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    counted = [each for each in invoices if not each.is_voided]
    amounts = [_signed(each, Decimal(each.content["total"])) for each in counted]
    taxes = [_signed(each, Decimal(each.content.get("tax") or 0)) for each in counted]
    net = difference(total(amounts), total(taxes))
    lines = [(each, line) for each in counted for line in each.content.get("lines") or ()]
    by_type = None
    if lines and all(each.content.get("lines") for each in counted):
        billed_by_type = sums_by(reader, BILLING_LINES, Selection(period.window), ("product_type",))
        sums = {key or "": [amount.copy_negate()] for (key,), amount in billed_by_type.items()}
        for each, line in lines:
            sums.setdefault(line["product_type"], []).append(_signed(each, Decimal(line["amount"])))
        by_type = {name: total(parts) for name, parts in sorted(sums.items())}
    return InvoiceTieOut(
        invoices=[each.invoice_id for each in counted],
        total=net,
        tax=total(taxes),
        difference=difference(net, billed) if counted else None,
        by_product_type=by_type,
    )


def _signed(invoice: Invoice, amount: Decimal) -> Decimal:
    """Return the signed amount of an invoice: negative for a credit memo."""
    return amount.copy_abs().copy_negate() if invoice.content["kind"] == "credit_memo" else amount


def _blockers(
    tenant: TenantView, connection: Connection, period: AccountingPeriod, days: Sequence[ReconciledDay], now: datetime
) -> Iterator[Blocker]:
    """Yield the blockers of a month."""
    last, end = period.last_day, period.window.end
    if now < end:
        yield Blocker(
            id=ACCRUING,
            kind=ACCRUING,
            date=None,
            detail=f"{period.name} is not over.",
            remedy=f"Close it after {last}.",
            can_be_accepted=False,
        )
        return
    settled = max(end + SETTLING, end + timedelta(days=tenant.closing.cutoff_days))
    if now < settled:
        yield Blocker(
            id=SETTLES,
            kind=SETTLES,
            date=None,
            detail=f"The bill of {period.name} may still change until {settled:%Y-%m-%d %H:%M} UTC.",
            remedy="Wait, or accept that later changes are corrections in the next month.",
            can_be_accepted=True,
        )
    for day in days:
        if day.state == NONE:
            yield _of_day("day-missing", day, "has no bill", "Let a run gather it")
        elif day.state == DIFFERS:
            yield _of_day("day-differs", day, "is charged differently than billed", "Let `chargeback verify` say why")
        elif day.state != EQUAL:
            why = "is not calculated from its present bill" + (f": {day.error}" if day.error else "")
            yield _of_day("day-pending", day, why, "Let a run calculate it")
    state = pipeline_state(connection)
    reaches = now.date() - timedelta(days=tenant.lookback_days) <= last
    if state.is_running and (reaches if state.stage_date is None else state.stage_date in period.days):
        yield Blocker(
            id="run-in-progress",
            kind="run-in-progress",
            date=state.stage_date,
            detail="A run is in progress that may change the month.",
            remedy="Wait until it has ended.",
            can_be_accepted=True,
        )
    if tenant.closing.retention_days < tenant.lookback_days + RETENTION_MARGIN:
        yield Blocker(
            id="retention",
            kind="retention",
            date=None,
            detail=f"retention_days is {tenant.closing.retention_days}: days would be deleted while they can change.",
            remedy=f"Set it to at least {tenant.lookback_days + RETENTION_MARGIN}: lookback_days + {RETENTION_MARGIN}.",
            can_be_accepted=False,
        )


def _of_day(kind: str, day: ReconciledDay, what: str, remedy: str) -> Blocker:
    return Blocker(
        id=f"{kind}:{day.day}",
        kind=kind,
        date=day.day,
        detail=f"{day.day} {what}.",
        remedy=f"{remedy}, or accept it: later changes are corrections.",
        can_be_accepted=True,
    )


def _warnings(
    tenant: TenantView,
    connection: Connection,
    period: AccountingPeriod,
    found: Statements,
    states: Mapping[date, DayState],
    invoices: InvoiceTieOut,
) -> Iterator[PeriodWarning]:
    """Yield the warnings."""
    whole = total(each.regular.amount for each in found.items if each.regular is not None)
    by_value = {each.recipient.value: each for each in found.items}
    for value, kind in ((UNALLOCATED, "unallocated"), (UNASSIGNED, "unassigned"), (UNTAGGED, "unassigned")):
        each = by_value.get(value)
        if each is not None and each.regular is not None and whole > 0:
            percent = each.regular.amount / whole * 100
            if percent > tenant.closing.warn_percent:
                yield PeriodWarning(kind=kind, detail=f"{value} has {percent:.1f} % of the costs.")
    for value, replies in read_replies(connection, period.id, found.heading.by).items():
        if replies and replies[-1].verdict == DISPUTED:
            yield PeriodWarning(kind="dispute", detail=f"{value} disputes its statement: {replies[-1].note}")
    if invoices.difference:
        apart = render(invoices.difference)
        yield PeriodWarning(kind="invoices", detail=f"The invoices differ from the bill by {apart} {tenant.currency}.")
    partly = [day for day, state in states.items() if state.shortcomings]
    if partly:
        yield PeriodWarning(
            kind="measured-in-part", detail=f"{len(partly)} days lack measurements, such as {min(partly)}."
        )
    new = [each for each in used_policies(connection) if period.window.start <= each.first_used_at < period.window.end]
    if new:
        names = sorted({each.product_type for each in new})
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        yield PeriodWarning(kind="new-policy", detail=f"Policies were used for the first time: {shown}.")
