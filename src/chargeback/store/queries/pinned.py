"""What closings pin in addition to the facts: documents next to the tables, and the display names of that time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection

from chargeback.categories.compiled import CLUSTER
from chargeback.categories.resolve import Names
from chargeback.errors import StorageError
from chargeback.store.control.closings import Books, ClosedPeriod, read_receipt
from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.places import DIGITS, Place
from chargeback.store.queries.clusters import ClusterLookup
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.tenant import TenantStore

#: The folder of the documents, and their table in the catalogue.
DOCUMENTS: Final = "closings"
#: The kind of the document that has the display names.
NAMES: Final = "names"
#: The kind of that which has what the rows of FOCUS show besides the facts.
FOCUS: Final = "focus"


def document_path(kind: str, sha256: str) -> str:
    """Return where the document with a digest lies."""
    return f"{DOCUMENTS}/{kind}-{sha256[:DIGITS]}.json"


def digest_of_kept(connection: Connection, closed: ClosedPeriod, kind: str, by: str | None) -> str | None:
    """Return the digest of a document of a closed month, by what its statements are made; None if it was not kept."""
    receipt = read_receipt(connection, closed.closing.n)
    found = (each["sha256"] for each in receipt["documents"] if (each["kind"], each["by"]) == (kind, by))
    return next(found, None)


def read_document(place: Place, kind: str, sha256: str) -> bytes:
    """Return a document as it was written.

    Raises:
        StorageError: it is missing, or cannot be read.
    """
    path = document_path(kind, sha256)
    with translate_file_errors(DOCUMENTS):
        try:
            return place.read(path)
        except FileNotFoundError:
            raise StorageError(f"the document {path} of a closed month is missing; restore it from a backup") from None


class PinnedNames:
    """The display names of an instant, with the present clusters; read when first needed."""

    def __init__(self, place: Place, sha256: str, clusters: ClusterLookup) -> None:
        self._place = place
        self._sha256 = sha256
        self._clusters = clusters
        self._names: Mapping[str, Mapping[str, str]] | None = None

    def names(self, entity_type: str) -> Mapping[str, str]:
        """Return the display names of identities or resources, or the clusters of resources, by id.

        Raises:
            StorageError: the document, or the control database, cannot be read.
        """
        if entity_type == CLUSTER:
            return self._clusters()
        if self._names is None:
            self._names = json.loads(read_document(self._place, NAMES, self._sha256))
        return self._names[entity_type]


def pinned_names(store: TenantStore, caches: LookupCaches, books: Books, at: datetime) -> Names | None:
    """Return the display names that the closing of an instant pinned; None if there was none."""
    sha256 = books.names_at(at)
    if sha256 is None:
        return None
    place, clusters = f"{store.tenant_name} {sha256}", partial(caches.clusters.load, store)
    return caches.pinned_names.get(place, sha256, lambda: PinnedNames(store.facts.place, sha256, clusters))
