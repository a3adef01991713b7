"""The closings of months: a list of receipts, to which entries are only added.

Each entry says that a month was closed, reopened or sealed, and when that took effect among the changes of the
catalogue. A closed month *is* what the catalogue said at that instant: no copy of rows is made. The receipt of an entry
is a canonical JSON document with the digest of the receipt before it. It may be signed (Ed25519, RFC 8032): the public
key proves that the holder of the private key wrote it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from sqlalchemy import Connection, delete, insert, select, update

from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import DayRange
from chargeback.store.control.catalogue import instant_of_change, touch
from chargeback.store.control.schema import closing_requests, closings, tenant

CLOSED: Final = "closed"
REOPENED: Final = "reopened"
SEALED: Final = "sealed"
_ONE_STEP: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Closing:
    """One entry: its number, month and kind, the instant at which it took effect, and the digests of its receipt and of
    the display names of then."""

    n: int
    period: AccountingPeriod
    kind: str
    at: datetime
    digest: str
    names_digest: str | None


@dataclass(frozen=True, slots=True)
class ClosedPeriod:
    """A month that is closed: its latest closing, how often it was closed, and the entry that sealed it, if there is
    one."""

    closing: Closing
    times: int = 1
    seal: Closing | None = None

    @property
    def period(self) -> AccountingPeriod:
        """The month."""
        return self.closing.period

    @property
    def at(self) -> datetime:
        """When it was closed."""
        return self.closing.at

    @property
    def sealed_at(self) -> datetime | None:
        """Since when it is sealed; None if it is not."""
        return None if self.seal is None else self.seal.at


@dataclass(frozen=True, slots=True)
class KnownMonth:
    """A month as it was known ``at`` an instant (None: as it is known at the end of the books)."""

    period: AccountingPeriod
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Books:
    """The closed months, contiguous and ascending, at one instant ``at``; None means now."""

    closed: tuple[ClosedPeriod, ...] = ()
    at: datetime | None = None

    @property
    def start(self) -> AccountingPeriod | None:
        """The first month; None while none is closed."""
        return self.closed[0].period if self.closed else None

    @property
    def first_open(self) -> AccountingPeriod | None:
        """The month after the last closed one; None while none is closed."""
        return self.closed[-1].period.next if self.closed else None

    def has(self, day: date) -> bool:
        """Return whether a day is not before the books."""
        return self.start is None or self.start.start <= day

    def find(self, period: AccountingPeriod) -> ClosedPeriod | None:
        """Return a closed month; None if it is open."""
        return next((each for each in self.closed if each.period == period), None)

    def unsealed(self, first: date = date.min, last: date = date.max) -> list[AccountingPeriod]:
        """Return the closed months that are not sealed, whose corrections may be posted; with days (both inclusive)
        those that have some of them."""
        return [
            each.period
            for each in self.closed
            if each.seal is None and first <= each.period.last_day and each.period.start <= last
        ]

    def closed_at(self, period: AccountingPeriod) -> datetime | None:
        """Return the instant at which a month was closed; of an open one that of the books."""
        found = self.find(period)
        return self.at if found is None else found.at

    def regular(self, posted: AccountingPeriod) -> KnownMonth:
        """Return which knowledge of a month is posted to itself.

        Raises:
            ValueError: it is before the first month of the books.
        """
        if self.start is not None and posted < self.start:
            raise ValueError(f"should not be before {self.start.id}, the first month of the books")
        return self._known(posted, self.closed_at(posted))

    def corrections(self, posted: AccountingPeriod) -> Iterator[tuple[KnownMonth, KnownMonth]]:
        """Yield for each earlier month the new and the replaced data in the sum of a month: (after, before). Months
        without a possible change are left out."""
        if self.start is None:
            return
        until, since = self.closed_at(posted), self.closed_at(posted.previous)
        period = self.start
        while period < posted:
            after, before = self._known(period, until), self._known(period, since)
            if after.at != before.at:
                yield after, before
            period = period.next

    def _known(self, period: AccountingPeriod, at: datetime | None) -> KnownMonth:
        """Return a month as it was known at an instant; a sealed month does not change any more."""
        found = self.find(period)
        if found is not None and found.sealed_at is not None and (at is None or found.sealed_at < at):
            at = found.sealed_at
        return KnownMonth(period, at)

    def names_at(self, at: datetime) -> str | None:
        """Return the digest of the display names that an entry of an instant pinned; None if there is none."""
        entries = [each for found in self.closed for each in (found.closing, found.seal) if each is not None]
        return next((each.names_digest for each in entries if each.at == at), None)

    def pins(self) -> list[tuple[DayRange, datetime]]:
        """Return the days whose content at some instants must be kept, with these instants."""
        if self.start is None:
            return []
        found = [(DayRange(self.start.start, each.period.days.end), each.at) for each in self.closed]
        return found + [(each.period.days, each.sealed_at) for each in self.closed if each.sealed_at is not None]


def read_closings(connection: Connection) -> list[Closing]:
    """Return all entries, the first one first."""
    its = closings.c
    rows = connection.execute(select(its.n, its.period, its.kind, its.at, its.digest, its.names_digest).order_by(its.n))
    return [Closing(row[0], AccountingPeriod.named(row[1]), *row[2:]) for row in rows]


def read_receipts(connection: Connection) -> list[str]:
    """Return the receipts of all entries as they are stored, the first one first."""
    return list(connection.execute(select(closings.c.receipt).order_by(closings.c.n)).scalars())


def read_signatures(connection: Connection) -> dict[int, Signature]:
    """Return the signatures of receipts by their numbers."""
    its = closings.c
    rows = connection.execute(select(its.n, its.public_key, its.signature).order_by(its.n))
    return {row.n: Signature(row.public_key, row.signature) for row in rows if row.signature is not None}


def read_receipt(connection: Connection, n: int) -> dict[str, Any]:
    """Return the receipt of an entry.

    Raises:
        LookupError: there is none with this number.
    """
    text = connection.execute(select(closings.c.receipt).where(closings.c.n == n)).scalar()
    if text is None:
        raise LookupError(f"there is no entry {n}")
    found: dict[str, Any] = json.loads(text)
    return found


def read_books(connection: Connection, as_of: datetime | None = None) -> Books:
    """Return the books, now or as they were at an instant."""
    return books_of(read_closings(connection), as_of)


def books_of(entries: Sequence[Closing], as_of: datetime | None = None) -> Books:
    """Return the books that some entries make, up to an instant."""
    closed: dict[AccountingPeriod, ClosedPeriod] = {}
    times: dict[AccountingPeriod, int] = {}
    for each in entries:
        if as_of is not None and each.at > as_of:
            break
        if each.kind == CLOSED:
            times[each.period] = times.get(each.period, 0) + 1
            closed[each.period] = ClosedPeriod(each, times[each.period])
        elif each.kind == REOPENED:
            closed.pop(each.period, None)
        else:
            found = closed[each.period]
            closed[each.period] = ClosedPeriod(found.closing, found.times, each)
    return Books(tuple(closed[period] for period in sorted(closed)), as_of)


def pinned_rates(connection: Connection, currency: str) -> dict[date, Decimal]:
    """Return the rates of another currency that closed months have kept, by their first days."""
    found = {}
    for each in read_books(connection).closed:
        rate = read_receipt(connection, each.closing.n)["rates"].get(currency)
        if rate is not None:
            found[each.period.start] = Decimal(rate)
    return found


def times_closed(connection: Connection, period: AccountingPeriod) -> int:
    """Return how often a month was closed."""
    return sum(each.kind == CLOSED and each.period == period for each in read_closings(connection))


def state_of_books(connection: Connection) -> tuple[object, ...]:
    """Return what is the same for as long as nothing that books are made of is changed."""
    its = tenant.c
    row = connection.execute(select(its.facts_revision, its.tags_revision, its.categories_revision)).first()
    return tuple(row or ())


def find_by_key(connection: Connection, idempotency_key: str) -> Closing | None:
    """Return the entry that a request with this key has made."""
    number = connection.execute(select(closings.c.n).where(closings.c.idempotency_key == idempotency_key)).scalar()
    return None if number is None else next(each for each in read_closings(connection) if each.n == number)


def instant_of_closing(connection: Connection, now: datetime) -> datetime:
    """Return the instant at which an entry takes effect: after every change before, and before every later one."""
    at = instant_of_change(connection, now)
    connection.execute(update(tenant).values(facts_changed_at=at + _ONE_STEP))
    return at


def add_closing(
    connection: Connection,
    period: AccountingPeriod,
    kind: str,
    at: datetime,
    content: Mapping[str, Any],
    names_digest: str | None = None,
    idempotency_key: str | None = None,
    signing_key: bytes | None = None,
) -> Closing:
    """Add an entry, whose receipt has its number, its month and the digest of the receipt before it as well; it is
    signed by the private key, if there is one."""
    entries = read_closings(connection)
    last = entries[-1] if entries else None
    number = 1 if last is None else last.n + 1
    receipt = canonical(
        {
            "n": number,
            "kind": kind,
            "period_id": period.id,
            "start": period.start.isoformat(),
            "end": period.last_day.isoformat(),
            "previous": None if last is None else last.digest,
            **content,
        }
    )
    added = Closing(number, period, kind, at, digest_of(receipt), names_digest)
    signed = None if signing_key is None else sign(signing_key, receipt)
    connection.execute(
        insert(closings).values(
            n=added.n,
            period=period.id,
            kind=kind,
            at=at,
            receipt=receipt,
            digest=added.digest,
            names_digest=names_digest,
            idempotency_key=idempotency_key,
            public_key=None if signed is None else signed.public_key,
            signature=None if signed is None else signed.signature,
        )
    )
    connection.execute(delete(closing_requests).where(closing_requests.c.period == period.id))
    touch(connection)
    return added


def canonical(content: object) -> str:
    """Return JSON with one text for each content: keys in order, no spaces, UTF-8."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Signature:
    """A signature, and the public key that it is checked with, both in base64."""

    public_key: str
    signature: str

    def is_of(self, text: str) -> bool:
        """Return whether this is the signature of a text, in UTF-8."""
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(self.public_key))
        try:
            key.verify(base64.b64decode(self.signature), text.encode())
        except InvalidSignature:
            return False
        return True


def sign(private_key: bytes, text: str) -> Signature:
    """Return the signature of a text by the private key of 32 bytes."""
    key = Ed25519PrivateKey.from_private_bytes(private_key)
    public = key.public_key().public_bytes_raw()
    return Signature(base64.b64encode(public).decode(), base64.b64encode(key.sign(text.encode())).decode())


@dataclass(frozen=True, slots=True)
class ClosingRequest:
    """A request to close a month with the content of a ``digest``, which a second person has to confirm."""

    period: AccountingPeriod
    digest: str
    requested_by: str
    requested_at: datetime


def read_request(connection: Connection, period: AccountingPeriod) -> ClosingRequest | None:
    """Return the request to close a month; None if there is none."""
    row = connection.execute(select(closing_requests).where(closing_requests.c.period == period.id)).first()
    return None if row is None else ClosingRequest(period, row.digest, row.requested_by, row.requested_at)


def save_request(connection: Connection, request: ClosingRequest) -> None:
    """Record a request to close a month, instead of the one that there may be."""
    connection.execute(delete(closing_requests).where(closing_requests.c.period == request.period.id))
    connection.execute(
        insert(closing_requests).values(
            period=request.period.id,
            digest=request.digest,
            requested_by=request.requested_by,
            requested_at=request.requested_at,
        )
    )
