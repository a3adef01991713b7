"""A tenant of some whole months, whose days a test changes, with its posted amounts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from chargeback.config.closing import ClosingProfile
from chargeback.model.accounting import AccountingPeriod, periods_of, periods_within
from chargeback.model.billing import BillingLine, line_ids
from chargeback.model.currency import Rates
from chargeback.model.days import utc_now
from chargeback.model.inventory import Identity, Resource
from chargeback.reports.closing.close import Closed, ClosingOrder, close, reopen
from chargeback.reports.closing.sealing import seal
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control import tags
from chargeback.store.control.catalogue import instant_of_change
from chargeback.store.control.closings import Closing
from chargeback.store.control.day_revisions import (
    BILL_CHANGED,
    FIRST,
    Revision,
    latest_revision,
    record_revision,
)
from chargeback.store.control.days import DayDataset, save_day
from chargeback.store.control.inventory import ensure_known
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.posted import PostedReader, open_posted
from chargeback.store.queries.reader import open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import KeyValues, sums_by
from chargeback.store.tenant import TenantStore
from tests.support.days import set_chargebacks
from tests.support.facts import Share, line, tenant_store, write_lines, write_shares

AUGUST, SEPTEMBER, OCTOBER = (AccountingPeriod(date(2026, month, 1)) for month in (8, 9, 10))
IDENTITIES = ("sa-1", "sa-2")

_engine = cache(QueryEngine)


@dataclass
class Months:
    """A tenant with a few billed and calculated days in each month; closing a month accepts that the other days are
    missing."""

    store: TenantStore
    days: tuple[date, ...]
    by: tuple[str, ...] = ("identity_id",)
    rates: Mapping[str, Rates] = field(default_factory=dict)
    now: datetime = datetime(2026, 11, 10, tzinfo=UTC)
    caches: LookupCaches = field(default_factory=LookupCaches)

    @property
    def view(self) -> TenantView:
        """Return the tenant as the front ends see it."""
        profile = ClosingProfile(by=self.by)
        known = (self.store.tenant_id, self.store.ecosystem, 200, self.store)
        return TenantView("acme", *known, closing=profile, currencies=self.rates)

    @contextmanager
    def books(self, as_of: datetime | None = None) -> Iterator[PostedReader]:
        """Open a reader of posted amounts, now or as of an instant."""
        token = CancellationToken()
        with open_reader(_engine(), self.store, token, self.caches, as_of=as_of) as reader:
            yield open_posted(reader, self.store, token, self.caches, as_of)

    def writing(self) -> object:
        """Open a connection for writing."""
        return self.store.control.write(durable=True)

    def clock(self) -> datetime:
        """Return the time, which advances with every call."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def charge(self, day: date, **amounts: str) -> None:
        """Set the cost of a day by identity (``sa_1``)."""
        total = sum((Decimal(amount) for amount in amounts.values()), Decimal(0))
        self.bill([line(day, f"{total:f}")], {name.replace("_", "-"): amount for name, amount in amounts.items()})

    def bill(self, lines: Sequence[BillingLine], *amounts: Mapping[str, str]) -> None:
        """Set the lines of a day, each with the ``amounts`` of identities."""
        day = lines[0].day
        write_lines(self.store.facts, lines)
        write_shares(self.store.facts, list(_shares(lines, amounts)))
        with self.store.control.write() as connection:
            _calculated(connection, day)

    def tag(self, identity: str, team: str) -> None:
        """Tag an identity with a team."""
        write = tags.TagWrite("identity", identity, "team", team)
        with self.store.control.write() as connection:
            tags.write_many(connection, self.store.tenant_id, [write], created_by="test", override=True)

    def close(self, period: AccountingPeriod, **more: Any) -> Closed:
        """Close a month; days without a bill are accepted."""
        order = ClosingOrder(period, "ann", accept=["day-missing"], reason="A short month", **more)
        return close(self.view, self.books, partial(self.store.control.write, durable=True), order, self.clock)

    def close_as(self, who: str, *, needs_two: bool) -> Closed:
        """Close August as a user; with ``needs_two``, another user has to confirm."""
        view = replace(self.view, closing=ClosingProfile(by=self.by, needs_two=needs_two))
        order = ClosingOrder(AUGUST, who, accept=["day-missing"], reason="A short month")
        return close(view, self.books, partial(self.store.control.write, durable=True), order, self.clock)

    def reopen(self, period: AccountingPeriod) -> Closing:
        """Reopen a month."""
        writing = partial(self.store.control.write, durable=True)
        return reopen(self.view, writing, period, "ann", "Again", self.clock)

    def seal(self, period: AccountingPeriod) -> Closing:
        """Seal a month."""
        return seal(self.view, partial(self.store.control.write, durable=True), period, "ann", "Done", self.clock)


@contextmanager
def months(
    folder: Path, first: AccountingPeriod = AUGUST, last: AccountingPeriod = OCTOBER, *, days: int = 2
) -> Iterator[Months]:
    """Open a tenant with the first days of each month, each with 6.00 for one identity and 4.00 for another."""
    known = tuple(
        period.start + timedelta(days=number) for period in periods_within(first, last) for number in range(days)
    )
    with tenant_store(folder, fill=_FILLED.setdefault(known, partial(_fill, known))) as store:
        yield Months(store, known)


def learned(reader: PostedReader, selection: Selection, by: str) -> dict[KeyValues, Decimal]:
    """Return the current figures of each month or, if it is sealed, those as of the sealing."""
    found: defaultdict[KeyValues, Decimal] = defaultdict(Decimal)
    for period in periods_of(selection.window):
        closed = reader.books.find(period)
        known = reader.known(None if closed is None else closed.sealed_at)
        for key, amount in sums_by(known, CHARGEBACKS, replace(selection, window=period.window), (by,)).items():
            found[key] += amount
    return amounts(found)


_FILLED: dict[tuple[date, ...], partial[None]] = {}


def _shares(lines: Sequence[BillingLine], amounts: Sequence[Mapping[str, str]]) -> Iterator[Share]:
    for each, line_id, its in zip(lines, line_ids(lines), amounts, strict=True):
        for identity, amount in its.items():
            yield Share(each.day, identity, amount, product=each.product_type, line=line_id)


def _calculated(connection: Connection, day: date) -> None:
    """Add a revision of a day."""
    save_day(connection, day, billing_gathered=True, resources_gathered=True)
    latest = latest_revision(connection, DayDataset.CHARGEBACKS, day)
    number, cause = (1, FIRST) if latest is None else (latest.revision + 1, BILL_CHANGED)
    at = instant_of_change(connection, utc_now())
    fingerprint = f"bill {number}"
    record_revision(connection, Revision(DayDataset.CHARGEBACKS, day, number, at, cause, None, fingerprint))
    set_chargebacks(connection, day, revision=number)


def _fill(days: tuple[date, ...], store: TenantStore) -> None:
    write_lines(store.facts, [line(day, "10") for day in days])
    shares = [share for day in days for share in _shares([line(day, "10")], [{"sa-1": "6", "sa-2": "4"}])]
    write_shares(store.facts, shares)
    with store.control.write() as connection:
        for day in days:
            _calculated(connection, day)
        ensure_known(
            connection,
            datetime(2026, 8, 1, tzinfo=UTC),
            billed=[Resource("lkc-1", "kafka_cluster")],
            charged=[Identity(name, "service_account") for name in IDENTITIES],
        )


def amounts(found: Mapping[tuple[str | None, ...], Decimal]) -> dict[tuple[str | None, ...], Decimal]:
    """Return sums without zeros."""
    return {key: amount.normalize() for key, amount in found.items() if amount}
