"""Whose a folder of facts is: as a small file beside the tables says, or, of one that was made before there was such
a file, as all of its bills say."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from chargeback.errors import StorageError
from chargeback.store.facts.commits import translate_delta_errors
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import BILLING_TABLE, FactTables
from chargeback.store.ownership import StorageOwner

#: The file, beside the tables, that names the owner.
OWNER: Final = ".owner"
_COLUMNS: Final = ["tenant_id", "ecosystem"]


def check_owner(facts: FactTables, owner: StorageOwner) -> None:
    """Go on only if the folder is the owner's, or has no owner yet.

    Raises:
        ForeignStorage: it is another tenant's.
        StorageError: the folder cannot be read.
    """
    with translate_delta_errors("owner"):
        recorded = _recorded(facts.place) or _billed(facts)
    owner.check(recorded, f"the storage {facts.place}")


def claim(facts: FactTables, owner: StorageOwner) -> None:
    """Record the owner of a folder that has none. The caller holds the tenant's lease.

    Raises:
        ForeignStorage: it is another tenant's.
        StorageError: the folder cannot be read or written.
    """
    check_owner(facts, owner)
    with translate_delta_errors("owner"):
        if _recorded(facts.place) is None:
            recorded = json.dumps({"tenant_id": owner.tenant_id, "ecosystem": owner.ecosystem}) + "\n"
            facts.place.put(OWNER, recorded.encode())


def _recorded(place: Place) -> StorageOwner | None:
    """What the file says; nothing where it is missing or was cut off."""
    try:
        written = json.loads(place.read(OWNER))
        return StorageOwner(str(written["tenant_id"]), str(written["ecosystem"]))
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def _billed(facts: FactTables) -> StorageOwner | None:
    """Whose the stored bills are, if they are all one tenant's. A table that cannot be read says nothing: the next run
    mends it."""
    try:
        files = facts.snapshot(BILLING_TABLE).files
    except StorageError:
        return None
    owners = {_owner_of(file) for file in files if file.rows} - {None}
    return owners.pop() if len(owners) == 1 else None


def _owner_of(file: DayFile) -> StorageOwner | None:
    """Whose a day's bill is; nothing of a file that cannot be read, which a run repairs."""
    try:
        with file.place.open(file.path) as content, pq.ParquetFile(content) as bill:
            first = next(bill.iter_batches(batch_size=1, columns=_COLUMNS))
    except (OSError, pa.ArrowException, StopIteration):
        return None
    row = first.to_pylist()[0]
    return StorageOwner(row["tenant_id"], row["ecosystem"])
