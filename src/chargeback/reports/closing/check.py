"""Whether what was closed is still what the receipts say: their chain, their documents, and the sums of the books."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Any

from chargeback.errors import HistoryGone, StorageError
from chargeback.model.money import render
from chargeback.reports.closing.sealing import STATEMENT, STATEMENTS
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.closings import ClosedPeriod, digest_of, read_receipts, read_signatures
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.pinned import read_document
from chargeback.store.queries.posted import PostedReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by


def check_closings(tenant: TenantView, reader: PostedReader) -> Iterator[str]:
    """Yield what is wrong with the closings of a tenant, a sentence each.

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
    """Compare what the books say of a month with its receipt."""
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
