"""Closing and reopening months: each is one transaction, and creates a receipt.

The amounts are calculated before the transaction, which then checks that nothing has changed since. The names of
documents contain their digests: if the transaction fails, no record refers to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import Connection

from chargeback.errors import HistoryGone, PeriodBlocked, PeriodRefused, PreviewStale
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import Clock, render_instant
from chargeback.model.money import render
from chargeback.recompute.verify import verify
from chargeback.reports.closing.documents import documents_of
from chargeback.reports.closing.preview import Blocker, ClosingPreview, PostedGrouping, Prepared, prepare
from chargeback.reports.closing.reach import MovedAmount, moved_between
from chargeback.reports.closing.sealing import PeriodDocument, Writing, event_of, names_of_everything, writing_documents
from chargeback.reports.focus.file import FocusSource, focus_lookups
from chargeback.reports.statements.posted import as_closed
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control import events
from chargeback.store.control.audit import (
    PERIOD_CLOSED,
    PERIOD_REOPENED,
    PERIOD_REQUESTED,
    AuditEntry,
    record,
)
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.closings import (
    CLOSED,
    REOPENED,
    Books,
    Closing,
    ClosingRequest,
    add_closing,
    find_by_key,
    instant_of_closing,
    read_books,
    read_request,
    save_request,
    state_of_books,
    times_closed,
)
from chargeback.store.control.events import Event, add_events
from chargeback.store.queries.posted import PostedReader

#: How long a second person can confirm a request.
REQUEST_LASTS: Final = timedelta(days=7)
#: How often a closing is calculated again because the data has changed meanwhile.
_TRIES: Final = 3

#: Opens a reader of posted costs, as of now.
OpenPosted = Callable[[], AbstractContextManager[PostedReader]]


@dataclass(frozen=True)
class ClosingOrder:
    """The month to close, the actor and the options.

    Attributes:
        expected_digest: the digest of the reviewed preview; None closes the present amounts.
        looked_at: the instant of the reviewed preview, so that a refusal can list the changes since.
        accept: the accepted blockers, by their ids or kinds.
        reason: why they are accepted.
        idempotency_key: a repeated key returns the same entry.
    """

    period: AccountingPeriod
    who: str
    note: str | None = None
    expected_digest: str | None = None
    looked_at: datetime | None = None
    accept: Sequence[str] = ()
    reason: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True)
class Closed:
    """The result of an order: the entry, or the request that a second person has to confirm."""

    closing: Closing | None
    request: ClosingRequest | None = None


def close(tenant: TenantView, open_posted: OpenPosted, writing: Writing, order: ClosingOrder, now: Clock) -> Closed:
    """Close a month.

    Raises:
        PeriodBlocked: there is a blocker that is not accepted.
        PeriodRefused: it is not the month to close next, or is closed already.
        PreviewStale: the amounts differ from those of the reviewed preview.
        StorageError: the tenant's storage cannot be read or written.
    """
    for _ in range(_TRIES):
        with tenant.store.control.read() as connection:
            if (known := _same_order(connection, order)) is not None:
                return Closed(known)
            before = state_of_books(connection)
            check_turn(read_books(connection), order.period)
            names = names_of_everything(connection)
        with open_posted() as reader:
            prepared = prepare(tenant, reader, order.period, now())
            _check(tenant, reader, prepared.answer, order)
            lookups = focus_lookups(FocusSource.of(tenant, reader), reader, order.period)
        with writing_documents(tenant) as documents, writing() as connection:
            lock_tenant(connection)
            if (known := _same_order(connection, order)) is not None:
                return Closed(known)
            if state_of_books(connection) != before:
                continue
            if tenant.closing.needs_two and (waits := _request(connection, prepared.answer, order, now())) is not None:
                return Closed(None, waits)
            at = instant_of_closing(connection, now())
            closed = [as_closed(each, at, 1 + times_closed(connection, order.period)) for each in prepared.statements]
            made = documents_of(closed, tenant.journal, names, lookups)
            documents.write(connection, made, at)
            content = _receipt(tenant, prepared, made, order, at)
            closing = add_closing(
                connection,
                order.period,
                CLOSED,
                at,
                content,
                names_digest=made[0].sha256,
                idempotency_key=order.idempotency_key,
                signing_key=tenant.closing.signing_key,
            )
            add_events(connection, _events_of(closing, prepared.answer), at)
            after = {"n": closing.n, "digest": prepared.answer.digest, "note": order.note}
            record(connection, order.who, [AuditEntry(PERIOD_CLOSED, f"period/{order.period.id}", None, after)])
        tenant.whole_store.facts.changed()
        return Closed(closing)
    raise PreviewStale(f"{order.period.id} changes while it is closed; look at it again when no run is in progress", "")


def reopen(
    tenant: TenantView, writing: Writing, period: AccountingPeriod, who: str, reason: str, now: Clock
) -> Closing:
    """Open the latest closed month again.

    Raises:
        PeriodRefused: it is not the latest closed month, or is sealed.
        StorageError: the control database cannot be written.
    """
    with writing() as connection:
        lock_tenant(connection)
        books = read_books(connection)
        found = books.find(period)
        if found is None:
            raise PeriodRefused(f"{period.id} is not closed")
        if found.seal is not None:
            raise PeriodRefused(f"{period.id} is sealed, and stays closed")
        if books.closed[-1] != found:
            latest = books.closed[-1].period.id
            raise PeriodRefused(f"only the latest closed month can be reopened: reopen {latest} first")
        at = instant_of_closing(connection, now())
        content = {"at": render_instant(at), "by": who, "reason": reason, "digest": None}
        key = tenant.closing.signing_key
        entry = add_closing(connection, period, REOPENED, at, content, signing_key=key)
        add_events(connection, [event_of(events.PERIOD_REOPENED, entry)], at)
        after = {"n": entry.n, "reason": reason}
        record(connection, who, [AuditEntry(PERIOD_REOPENED, f"period/{period.id}", None, after)])
    tenant.whole_store.facts.changed()
    return entry


def check_turn(books: Books, period: AccountingPeriod) -> None:
    """Check that a month is the one to close next.

    Raises:
        PeriodRefused: it is not.
    """
    if books.find(period) is not None:
        raise PeriodRefused(f"{period.id} is closed already")
    if books.start is not None and period < books.start:
        raise PeriodRefused(f"{period.id} is before the books, which begin with {books.start.id}")
    if books.first_open is not None and period != books.first_open:
        raise PeriodRefused(f"months are closed in order: close {books.first_open.id} first")


def _check(tenant: TenantView, reader: PostedReader, preview: ClosingPreview, order: ClosingOrder) -> None:
    """Check that there are no blockers, and that the month has not changed since the reviewed preview."""
    damage = [
        Blocker(
            id=f"verify:{each.day}",
            kind="verify",
            date=each.day,
            detail=f"{each.day} is {each.state}: {'; '.join(each.damage) or render(each.difference)}.",
            remedy="Let a run repair it, or restore a backup.",
            can_be_accepted=False,
        )
        for each in verify(tenant.whole_store, within=order.period.days)
        if each.is_wrong
    ]
    accepted = set(order.accept)
    taken = {each.id for each in preview.blockers if each.can_be_accepted and accepted & {each.id, each.kind}}
    left = [each for each in preview.blockers if each.id not in taken] + damage
    if left:
        named = ", ".join(each.id for each in left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
        shown = [each.model_dump(mode="json") for each in left]
        raise PeriodBlocked(f"{order.period.id} cannot be closed: {named}", shown)
    if order.accept and not order.reason:
        raise PeriodRefused("say in `reason` why the blockers are accepted")
    if order.expected_digest not in {None, preview.digest}:
        moved = [] if order.looked_at is None else _moved_since(tenant, reader, preview, order.looked_at)
        raise PreviewStale(
            f"{order.period.id} would be booked with other amounts than in the reviewed preview{_such_as(moved)}; "
            "look at the preview again",
            preview.digest,
            [each.model_dump(mode="json") for each in moved],
            preview.currency,
        )


#: The grouping of changed sums of a whole month.
TOTALS: Final = "totals"
_Sums = Mapping[str | None, Decimal]


def _moved_since(
    tenant: TenantView, reader: PostedReader, preview: ClosingPreview, looked_at: datetime
) -> list[MovedAmount]:
    """Return the changes of a preview since an earlier instant: of the sums of the month, and of values. Invoices have
    no history, so their changes are not included."""
    period = AccountingPeriod.named(preview.period_id)
    try:
        before = prepare(tenant, reader.earlier(looked_at), period, looked_at).answer
    except HistoryGone:
        return []
    sums: list[tuple[str, _Sums, _Sums]] = [(TOTALS, dict(before.totals), dict(preview.totals))]
    sums += [
        (new.by, _by_value(old), _by_value(new))
        for old, new in zip(before.by, preview.by, strict=False)
        if old.by == new.by
    ]
    return [moved for by, old, new in sums for moved in moved_between(period.id, by, old, new)]


def _by_value(found: PostedGrouping) -> _Sums:
    return {each.value: each.amount for each in found.values}


def _such_as(moved: Sequence[MovedAmount]) -> str:
    values = [each for each in moved if each.by != TOTALS]
    if not values:
        return "" if moved else ": its invoices, adjustments or statements have changed"
    largest = max(values, key=lambda each: each.delta.copy_abs())
    return f", such as {render(largest.after)} instead of {render(largest.before)} of {largest.value}"


def _request(
    connection: Connection, preview: ClosingPreview, order: ClosingOrder, now: datetime
) -> ClosingRequest | None:
    """Record a request to close; return None if the order confirms another person's."""
    found = read_request(connection, order.period)
    if (
        found is not None
        and found.requested_by != order.who
        and found.digest == preview.digest
        and now < found.requested_at + REQUEST_LASTS
    ):
        return None
    new = ClosingRequest(order.period, preview.digest, order.who, now)
    save_request(connection, new)
    entry = AuditEntry(PERIOD_REQUESTED, f"period/{order.period.id}", None, {"digest": preview.digest})
    record(connection, order.who, [entry])
    return new


def _events_of(entry: Closing, booked: ClosingPreview) -> Iterator[Event]:
    """Yield the events of a closing: the month, the corrections of earlier months that it makes final, and its
    statements."""
    amount, currency = render(booked.totals.posted), booked.currency
    yield event_of(events.PERIOD_CLOSED, entry, posted=amount, currency=currency)
    for each in booked.corrections:
        more = {"charge_period": each.period_id, "amount": render(each.amount), "currency": currency}
        event = event_of(events.CORRECTION_POSTED, entry, **more)
        yield replace(event, dedupe_key=f"{event.dedupe_key}/{each.period_id}")
    # Owners get this event, too: it has neither numbers nor digests.
    body = {"period_id": entry.period.id, events.OWNERS: [events.EVERY_OWNER]}
    issued = events.STATEMENT_ISSUED
    yield Event(issued, f"statement/{entry.period.id}", body, f"{issued}/{entry.n}")


def _same_order(connection: Connection, order: ClosingOrder) -> Closing | None:
    """Return the entry that an earlier order with the same key has created, or None.

    Raises:
        PeriodRefused: its key was used for another month.
    """
    if order.idempotency_key is None:
        return None
    known = find_by_key(connection, order.idempotency_key)
    if known is not None and known.period != order.period:
        raise PeriodRefused(f"this idempotency_key has closed {known.period.id}; use another one")
    return known


def _receipt(
    tenant: TenantView, prepared: Prepared, documents: Sequence[PeriodDocument], order: ClosingOrder, at: datetime
) -> Mapping[str, Any]:
    """Return the content of the receipt of a closing, without its links to other receipts."""
    preview = prepared.answer
    rates = {code: rates.get(order.period.start) for code, rates in tenant.currencies.items()}
    content = {
        "tenant_name": tenant.tenant_name,
        "at": render_instant(at),
        "by": order.who,
        "note": order.note,
        "digest": preview.digest,
        "currency": preview.currency,
        "totals": preview.totals.model_dump(mode="json"),
        "corrections": [each.model_dump(mode="json") for each in preview.corrections],
        "adjustments": preview.adjustments,
        "invoices": preview.invoices.model_dump(mode="json"),
        "accepted": sorted(each.id for each in preview.blockers),
        "reason": order.reason,
        "rates": {code: f"{rate:f}" for code, rate in sorted(rates.items()) if rate is not None},
        "documents": [named for each in documents for named in each.named()],
    }
    return content | (
        {"opening": [each.model_dump(mode="json") for each in preview.opening]} if preview.opening else {}
    )
