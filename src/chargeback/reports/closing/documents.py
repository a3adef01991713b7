"""The documents of a closed month: its statements by each grouping and their journals, as they were when it was closed.

Each is canonical text: JSON lines of statements, or the JSON of a journal. Everything else, such as pages and CSV, is
rendered from them. A receipt names each document, and each statement, by its SHA-256.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from chargeback.config.journal import JournalProfile
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
from chargeback.store.control.closings import ClosedPeriod, canonical, digest_of
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.control.names import every_name
from chargeback.store.facts.places import Place
from chargeback.store.queries.pinned import FOCUS, NAMES, digest_of_kept, document_path, read_document

STATEMENTS: Final = "statements"
JOURNAL: Final = "journal"
#: One line of the statements.
STATEMENT: Final = "statement"


@dataclass(frozen=True, slots=True)
class Document:
    """A document: what it is, by what its statements are made, and its text."""

    kind: str
    by: str | None
    text: str

    @property
    def sha256(self) -> str:
        """Its digest."""
        return digest_of(self.text)

    @property
    def path(self) -> str:
        """Where it lies among the facts."""
        return document_path(self.kind, self.sha256)

    def named(self) -> list[dict[str, Any]]:
        """Return what the receipt says of it, and of each of its statements."""
        found = [{"kind": self.kind, "by": self.by, "value": None, "sha256": self.sha256}]
        if self.kind == STATEMENTS:
            for line in self.text.split("\n")[1:]:
                value = json.loads(line)["recipient"]["value"]
                found.append({"kind": STATEMENT, "by": self.by, "value": value, "sha256": digest_of(line)})
        return found


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


def names_of_everything(connection: Connection) -> str:
    """Return the display names of all identities and resources."""
    return canonical({each.entity_type: every_name(connection, each) for each in (IDENTITIES, RESOURCES)})


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
