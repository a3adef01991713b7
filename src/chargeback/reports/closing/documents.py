"""The documents of a closed month: its statements by each grouping and their journals, as they were when it was closed.

Each is canonical text: JSON lines of statements, or the JSON of a journal. Everything else, such as pages and CSV, is
rendered from them. A receipt has the SHA-256 of each document and of each statement, so that closed months can be
verified later: the chain of receipts, their documents, and the sums of the books.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection

from chargeback.config.journal import JournalProfile
from chargeback.errors import HistoryGone, StorageError
from chargeback.model.money import render
from chargeback.reports.closing.sealing import JOURNAL, STATEMENT, STATEMENTS, PeriodDocument
from chargeback.reports.focus.lookups import Lookups
from chargeback.reports.statements.content import (
    JournalAnswer,
    StatedAmount,
    StatementAnswer,
    StatementHeading,
    Statements,
    StatementTieOut,
)
from chargeback.reports.statements.journal import journal_of
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.closings import ClosedPeriod, canonical, digest_of, read_receipts, read_signatures
from chargeback.store.facts.places import Place
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.pinned import FOCUS, NAMES, digest_of_kept, read_document
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by


def documents_of(
    found: Iterable[Statements], profile: JournalProfile, names: str, lookups: Lookups
) -> list[PeriodDocument]:
    """Return the documents of a month: its statements by some groupings, their journals, the display names, and the
    lookups of its rows in FOCUS."""
    documents = [PeriodDocument(NAMES, None, names), PeriodDocument(FOCUS, None, canonical(lookups))]
    for each in found:
        by = each.heading.by
        first = {
            "heading": each.heading.model_dump(mode="json"),
            "total": each.total.model_dump(mode="json"),
            "tie_out": None if each.tie_out is None else each.tie_out.model_dump(mode="json"),
        }
        # Replies of recipients follow after the closing.
        later: dict[str, Any] = {"replies": [], "verdict": None}
        lines = [canonical(item.model_copy(update=later).model_dump(mode="json")) for item in each.items]
        documents.append(PeriodDocument(STATEMENTS, by, "\n".join([canonical(first), *lines])))
        documents.append(PeriodDocument(JOURNAL, by, canonical(journal_of(each, profile).model_dump(mode="json"))))
    return documents


def kept_statements(place: Place, connection: Connection, closed: ClosedPeriod, by: str) -> Statements | None:
    """Return the stored statements of a closed month by a grouping; None if they were not stored.

    Raises:
        StorageError: the document is missing or cannot be read.
    """
    sha256 = digest_of_kept(connection, closed, STATEMENTS, by)
    if sha256 is None:
        return None
    first, *lines = read_document(place, STATEMENTS, sha256).decode().split("\n")
    head = json.loads(first)
    tie_out = None if head["tie_out"] is None else StatementTieOut.model_validate(head["tie_out"])
    items = [StatementAnswer.model_validate_json(line) for line in lines]
    heading = StatementHeading.model_validate(head["heading"])
    return Statements(heading, items, StatedAmount.model_validate(head["total"]), tie_out)


def kept_journal(place: Place, connection: Connection, closed: ClosedPeriod, by: str) -> JournalAnswer | None:
    """Return the stored journal of a closed month by a grouping; None if it was not stored.

    Raises:
        StorageError: the document is missing or cannot be read.
    """
    sha256 = digest_of_kept(connection, closed, JOURNAL, by)
    if sha256 is None:
        return None
    return JournalAnswer.model_validate_json(read_document(place, JOURNAL, sha256))


def check_closings(tenant: TenantView, reader: PostedReader) -> Iterator[str]:
    """Yield the problems of the closings of a tenant, a sentence for each.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the control database cannot be read.
    """
    with tenant.store.control.read() as connection:
        texts, signatures = read_receipts(connection), read_signatures(connection)
    for before, after in pairwise(texts):
        receipt = json.loads(after)
        if receipt["previous"] != digest_of(before):
            yield f"receipt {receipt['n']} does not follow from the one before it"
    for number, signature in signatures.items():
        if not signature.is_of(texts[number - 1]):
            yield f"receipt {number} is not what was signed"
    receipts = {receipt["n"]: receipt for receipt in map(json.loads, texts)}
    for receipt in receipts.values():
        yield from _documents(tenant, receipt)
    for closed in reader.books.closed:
        yield from _sums(reader, closed, receipts[closed.closing.n])


def _documents(tenant: TenantView, receipt: dict[str, Any]) -> Iterator[str]:
    place, lines = tenant.whole_store.facts.place, set[str]()
    named = receipt.get("documents", [])
    for each in named:
        if each["kind"] == STATEMENT:
            continue
        try:
            text = read_document(place, each["kind"], each["sha256"]).decode()
        except StorageError as error:
            yield f"receipt {receipt['n']}: {error.message}"
            continue
        if digest_of(text) != each["sha256"]:
            yield f"receipt {receipt['n']}: the {each['kind']} {each['by'] or ''} are not what was closed"
        if each["kind"] == STATEMENTS:
            lines |= {digest_of(line) for line in text.split("\n")}
    for each in named:
        if each["kind"] == STATEMENT and each["sha256"] not in lines:
            yield f"receipt {receipt['n']}: the statement of {each['value']} is not what was closed"


def _sums(reader: PostedReader, closed: ClosedPeriod, receipt: dict[str, Any]) -> Iterator[str]:
    """Compare the sums of a month in the books with its receipt."""
    period, totals = closed.period, receipt["totals"]
    try:
        known = reader.known(reader.books.regular(period).at)
        regular = sums_by(known, CHARGEBACKS, Selection(period.window), ()).get((), Decimal(0))
        corrections = reader.corrections_by_month(period)
    except HistoryGone:
        yield f"{period.id}: rows that were booked are no longer kept"
        return
    found = {"regular": regular, "corrections": sum(corrections.values(), Decimal(0))}
    for name, amount in found.items():
        if render(amount) != totals[name]:
            yield f"{period.id}: {name} are {render(amount)}, and {totals[name]} were booked"
