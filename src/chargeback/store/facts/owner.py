"""Whose a folder of facts is: as a small file next to the tables says, or, of one that was made before there was such
a file, as all of its bills say."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from chargeback.store.facts.errors import translate_file_errors
from chargeback.store.facts.places import LOG, Place
from chargeback.store.facts.tables import BILLING_TABLE
from chargeback.store.ownership import StorageOwner

#: The file, next to the tables, that names the owner.
OWNER: Final = ".owner"
_COLUMNS: Final = ["tenant_id", "ecosystem"]


def check_owner(place: Place, owner: StorageOwner) -> None:
    """Go on only if the folder is the owner's, or has no owner yet.

    Raises:
        ForeignStorage: it is another tenant's.
        StorageError: the folder cannot be read.
    """
    _check(place, owner)


def claim(place: Place, owner: StorageOwner) -> None:
    """Record the owner of a folder that has none. The caller holds the tenant's lease.

    Raises:
        ForeignStorage: it is another tenant's.
        StorageError: the folder cannot be read or written.
    """
    if not _check(place, owner):
        with translate_file_errors("owner"):
            recorded = json.dumps({"tenant_id": owner.tenant_id, "ecosystem": owner.ecosystem}) + "\n"
            place.put(OWNER, recorded.encode())


def _check(place: Place, owner: StorageOwner) -> bool:
    """Check whose the folder is; return whether a file says so."""
    with translate_file_errors("owner"):
        recorded = _recorded(place)
        found = recorded or _billed(place)
    owner.check(found, f"the storage {place}")
    return recorded is not None


def _recorded(place: Place) -> StorageOwner | None:
    """Return the owner in the file; None if the file is missing or truncated."""
    try:
        written = json.loads(place.read(OWNER))
        return StorageOwner(str(written["tenant_id"]), str(written["ecosystem"]))
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def _billed(place: Place) -> StorageOwner | None:
    """Whose the stored bills are, if they are all one tenant's."""
    paths = (file.path for file in place.files(BILLING_TABLE))
    bills = (path for path in paths if path.endswith(".parquet") and LOG not in path)
    owners = {_owner_of(place, path) for path in bills} - {None}
    return owners.pop() if len(owners) == 1 else None


def _owner_of(place: Place, path: str) -> StorageOwner | None:
    """Whose a day's bill is; nothing of a file that cannot be read, which a run repairs."""
    try:
        with place.open(path) as content, pq.ParquetFile(content) as bill:
            first = next(bill.iter_batches(batch_size=1, columns=_COLUMNS))
    except (OSError, pa.ArrowException, StopIteration):
        return None
    row = first.to_pylist()[0]
    return StorageOwner(row["tenant_id"], row["ecosystem"])
