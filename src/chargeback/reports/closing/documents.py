"""The documents of a closed month: its statements by each grouping and their journals, as they were when it was closed.

Each is canonical text: JSON lines of statements, or the JSON of a journal. Everything else, such as pages and CSV, is
rendered from them. A receipt names each document, and each statement, by its SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection

from chargeback.config.journal import JournalProfile
from chargeback.reports.closing.sealing import JOURNAL, STATEMENTS, Document
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
from chargeback.store.control.closings import ClosedPeriod, canonical
from chargeback.store.facts.places import Place
from chargeback.store.queries.pinned import FOCUS, NAMES, digest_of_kept, read_document


def documents_of(found: Iterable[Statements], profile: JournalProfile, names: str, lookups: Lookups) -> list[Document]:
    """Return the documents of a month: its statements by some groupings, their journals, the display names, and what
    its rows of FOCUS show."""
    documents = [Document(NAMES, None, names), Document(FOCUS, None, canonical(lookups))]
    for each in found:
        by = each.heading.by
        first = {
            "heading": each.heading.model_dump(mode="json"),
            "total": each.total.model_dump(mode="json"),
            "tie_out": None if each.tie_out is None else each.tie_out.model_dump(mode="json"),
        }
        # What recipients say comes afterwards.
        later: dict[str, Any] = {"replies": [], "verdict": None}
        lines = [canonical(item.model_copy(update=later).model_dump(mode="json")) for item in each.items]
        documents.append(Document(STATEMENTS, by, "\n".join([canonical(first), *lines])))
        documents.append(Document(JOURNAL, by, canonical(journal_of(each, profile).model_dump(mode="json"))))
    return documents


def kept_statements(place: Place, connection: Connection, closed: ClosedPeriod, by: str) -> Statements | None:
    """Return the statements of a closed month by a grouping as they were kept; None if they were not.

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
    """Return the journal of a closed month by a grouping as it was kept; None if it was not.

    Raises:
        StorageError: the document is missing or cannot be read.
    """
    sha256 = digest_of_kept(connection, closed, JOURNAL, by)
    if sha256 is None:
        return None
    return JournalAnswer.model_validate_json(read_document(place, JOURNAL, sha256))
