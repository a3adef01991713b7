"""Sealing a month, and what all entries of the books share: their documents and their events.

Workers seal months, too, so this module does not depend on the modules of statements and files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from chargeback.errors import PeriodRefused, StorageError
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import Clock, render_instant
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control import events
from chargeback.store.control.audit import PERIOD_SEALED, AuditEntry, record
from chargeback.store.control.catalogue import NewFile, add, every_file, lock_tenant
from chargeback.store.control.closings import (
    SEALED,
    Closing,
    add_closing,
    canonical,
    digest_of,
    instant_of_closing,
    read_books,
)
from chargeback.store.control.events import Event, add_events
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, every_name
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.places import Place
from chargeback.store.queries.pinned import DOCUMENTS, NAMES, document_path

#: How many more days must be kept than are gathered again, so that retention never deletes days that may still change.
RETENTION_MARGIN: Final = 31

#: Opens a connection that writes in one durable transaction.
Writing = Callable[[], AbstractContextManager[Connection]]

STATEMENTS: Final = "statements"
JOURNAL: Final = "journal"
#: One line of the statements.
STATEMENT: Final = "statement"


@dataclass(frozen=True, slots=True)
class PeriodDocument:
    """A document: its kind, the grouping of its statements, and its text."""

    kind: str
    by: str | None
    text: str

    @property
    def sha256(self) -> str:
        """Return its digest."""
        return digest_of(self.text)

    @property
    def path(self) -> str:
        """Return its path among the facts."""
        return document_path(self.kind, self.sha256)

    def named(self) -> list[dict[str, Any]]:
        """Return its entries in the receipt: its own, and those of each of its statements."""
        found = [{"kind": self.kind, "by": self.by, "value": None, "sha256": self.sha256}]
        if self.kind == STATEMENTS:
            for line in self.text.split("\n")[1:]:
                value = json.loads(line)["recipient"]["value"]
                found.append({"kind": STATEMENT, "by": self.by, "value": value, "sha256": digest_of(line)})
        return found


def names_of_everything(connection: Connection) -> str:
    """Return the display names of all identities and resources."""
    return canonical({each.entity_type: every_name(connection, each) for each in (IDENTITIES, RESOURCES)})


class Documents:
    """The documents that a transaction writes among the facts."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._written: list[str] = []

    def write(self, connection: Connection, documents: Sequence[PeriodDocument], at: datetime) -> None:
        """Write documents, and add them to the catalogue from an instant on.

        Raises:
            StorageError: one cannot be written.
        """
        files = []
        known = {each.path for each in every_file(connection, kept_only=True)}
        for each in documents:
            content = each.text.encode()
            if each.path not in known:
                with translate_file_errors(DOCUMENTS):
                    self._place.put(each.path, content)
                self._written.append(each.path)
            files.append(NewFile(each.path, 0, len(content)))
        add(connection, [(DOCUMENTS, None, file) for file in files], at)

    def discard(self, connection: Connection) -> None:
        """Delete written documents that are not in the catalogue, in a transaction in which no one else writes. Upkeep
        removes the rest."""
        named = {each.path for each in every_file(connection)} if self._written else set()
        for path in set(self._written) - named:
            with suppress(OSError):
                self._place.delete(path)


@contextmanager
def writing_documents(tenant: TenantView) -> Iterator[Documents]:
    """Yield a writer of documents for a transaction; if that fails, delete the documents."""
    documents = Documents(tenant.whole_store.facts.place)
    try:
        yield documents
    except BaseException:
        with suppress(StorageError), tenant.store.control.write() as connection:
            lock_tenant(connection)
            documents.discard(connection)
        raise


def event_of(kind: str, entry: Closing, **more: object) -> Event:
    """Return the event about a new entry."""
    subject = f"period/{entry.period.id}"
    body = {"period_id": entry.period.id, "n": entry.n, "receipt_digest": entry.digest, **more}
    return Event(kind, subject, body, f"{kind}/{entry.n}")


def seal(tenant: TenantView, writing: Writing, period: AccountingPeriod, who: str, reason: str, now: Clock) -> Closing:
    """Seal a closed month: it cannot be reopened any more, and later changes of it are not posted.

    Raises:
        PeriodRefused: it is not closed, or sealed already.
        StorageError: the tenant's storage cannot be written.
    """
    with tenant.store.control.read() as connection:
        names = names_of_everything(connection)
    with writing_documents(tenant) as documents, writing() as connection:
        lock_tenant(connection)
        found = read_books(connection).find(period)
        if found is None:
            raise PeriodRefused(f"{period.id} is not closed: close it first")
        if found.seal is not None:
            raise PeriodRefused(f"{period.id} is sealed already")
        key = tenant.closing.signing_key
        entry = seal_in(connection, documents, period, names, who=who, reason=reason, now=now(), signing_key=key)
    tenant.whole_store.facts.changed()
    return entry


def seal_in(
    connection: Connection,
    documents: Documents,
    period: AccountingPeriod,
    names: str,
    *,
    who: str,
    reason: str,
    now: datetime,
    signing_key: bytes | None,
) -> Closing:
    """Seal a closed month in a transaction; ``names`` are the display names, which the document of the seal has.

    Raises:
        StorageError: the document cannot be written.
    """
    document = PeriodDocument(NAMES, None, names)
    at = instant_of_closing(connection, now)
    documents.write(connection, [document], at)
    content = {"at": render_instant(at), "by": who, "reason": reason, "documents": document.named(), "digest": None}
    digest = document.sha256
    entry = add_closing(connection, period, SEALED, at, content, names_digest=digest, signing_key=signing_key)
    add_events(connection, [event_of(events.PERIOD_SEALED, entry)], at)
    record(connection, who, [AuditEntry(PERIOD_SEALED, f"period/{period.id}", None, {"n": entry.n, "reason": reason})])
    return entry
