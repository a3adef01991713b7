"""The Parquet files of the fact tables: written once, under a name that holds their digest, and never changed.

Each says in its footer to which tenant, table and day it belongs, and which version of the table's columns it has. The
revision of the day is not part of it: the same rows are the same bytes, which shows that a day has not changed.

A file that is missing, has another size than its table recorded, or another digest than its name has, is damaged:
a flipped bit inside a compressed page would otherwise come out as another amount, without any error.
"""

from __future__ import annotations

import errno
import hashlib
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from chargeback.errors import DamagedFacts
from chargeback.store.control.catalogue import NewFile
from chargeback.store.facts.places import DIGITS, DISK, Place
from chargeback.store.ownership import StorageOwner

_MAX_ROW_GROUP: Final = 2**20
_NAME: Final = re.compile(rf"-([0-9a-f]{{{DIGITS}}})\.(zstd\.parquet|json)$")
_KEY: Final = "chargeback."
_PLACE: Final = re.compile(r"(\w+)/(?:date=(\d{4}-\d\d-\d\d)/)?[^/']+\.parquet")


@dataclass(frozen=True, slots=True)
class DayFile:
    """One Parquet file of a table: the UTC day it belongs to, where queries open it, how many rows and bytes it has,
    the place it is read from, and how many columns had been added to its table when it was written."""

    day: date | None
    path: str
    rows: int
    size: int = 0
    place: Place = field(default=DISK, compare=False, repr=False)
    schema_version: int = 0


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself. ``owner`` is None without an owner, as in tests of tables."""

    owner: StorageOwner | None
    table: str
    day: date | None
    schema_version: int

    @classmethod
    def of(cls, parquet: pq.ParquetFile) -> Footer | None:
        """Return the footer of a file; None of one that was written by an earlier version, or elsewhere."""
        written = {key.decode(): value.decode() for key, value in (parquet.metadata.metadata or {}).items()}
        try:
            named, day = written[_KEY + "tenant_id"], written[_KEY + "date"]
            owner = StorageOwner(named, written[_KEY + "ecosystem"]) if named else None
            version = int(written[_KEY + "schema_version"])
            return cls(owner, written[_KEY + "table"], date.fromisoformat(day) if day else None, version)
        except (KeyError, ValueError):
            return None

    def __str__(self) -> str:
        owner = "nobody" if self.owner is None else self.owner
        return f"{owner}, {self.table}, {self.day}, version {self.schema_version}"

    @property
    def metadata(self) -> dict[str, str]:
        """The footer as it is written."""
        fields = {
            "tenant_id": self.owner.tenant_id if self.owner else "",
            "ecosystem": str(self.owner.ecosystem) if self.owner else "",
            "table": self.table,
            "date": self.day.isoformat() if self.day else "",
            "schema_version": str(self.schema_version),
        }
        return {f"{_KEY}{name}": value for name, value in fields.items()}


def write_file(
    place: Place,
    table: str,
    rows: pa.Table,
    day: date | None,
    schema_version: int = 0,
    owner: StorageOwner | None = None,
    *,
    into: str | None = None,
) -> NewFile:
    """Write one Parquet file of all rows, which no reader sees before the catalogue names it. A failed one leaves
    nothing. It lies in the folder of its table, or ``into`` another one.

    Raises:
        OSError: it could not be written.
    """
    sink = pa.BufferOutputStream()
    stored = rows if day is None else rows.drop_columns(["date"])
    with pq.ParquetWriter(sink, stored.schema, compression="zstd", compression_level=1, store_schema=False) as parquet:
        parquet.write_table(stored, row_group_size=_MAX_ROW_GROUP)
        parquet.add_key_value_metadata(Footer(owner, table, day, schema_version).metadata)
    content: bytes = sink.getvalue().to_pybytes()
    root = into or table
    folder = root if day is None else f"{root}/date={day.isoformat()}"
    path = place.write(folder, f"part-00000-{uuid.uuid4()}", ".zstd.parquet", content)
    return NewFile(path, rows.num_rows, len(content), schema_version)


def read_file(file: DayFile, columns: Sequence[str] | None = None, *, encoded: Sequence[str] = ()) -> pa.Table:
    """The rows of a file as they were written, or some of its columns; texts that are ``encoded`` stay dictionaries, as
    they are in the file.

    Raises:
        DamagedFacts: it is missing, or not what was written.
        OSError: it cannot be read, for a reason that may pass.
    """
    content = read_content(file)
    try:
        # Arrow's reading of whole tables first looks for a dataset, which takes longer than reading a day.
        with pq.ParquetFile(pa.BufferReader(content), read_dictionary=list(encoded)) as parquet:
            return parquet.read(columns=None if columns is None else list(columns)).replace_schema_metadata(None)
    except pa.ArrowException as error:
        raise damaged(file, f"is no Parquet file: {error}") from error


def dated(rows: pa.Table, day: date | None) -> pa.Table:
    """Return rows of a file with its day, which the folder of the file says."""
    return rows.append_column(pa.field("date", pa.date32()), pa.repeat(pa.scalar(day, pa.date32()), rows.num_rows))


def read_footer(file: DayFile) -> Footer | None:
    """What a file says of itself; None of one that was written by an earlier version.

    Raises:
        DamagedFacts: it is missing, or no Parquet file.
        OSError: it cannot be read, for a reason that may pass.
    """
    try:
        with file.place.open(file.path) as content, pq.ParquetFile(content) as parquet:
            return Footer.of(parquet)
    except pa.ArrowException as error:
        raise damaged(file, f"is no Parquet file: {error}") from error
    except OSError as error:
        raise _as_damage(file, error) from error


def read_content(file: DayFile) -> bytes:
    """The bytes of a file as they were written.

    Raises:
        DamagedFacts: it is missing, or not what was written.
        OSError: it cannot be read, for a reason that may pass.
    """
    try:
        content = file.place.read(file.path)
    except OSError as error:
        raise _as_damage(file, error) from error
    if trouble := _difference(file, len(content), hashlib.sha256(content).hexdigest()):
        raise damaged(file, trouble)
    return content


def check_size(file: DayFile, size_of: Callable[[str], int]) -> None:
    """Look whether a file is there in its full size; ``size_of`` is what
    :meth:`~chargeback.store.facts.places.Place.sizes` has given, read once for many files.

    Raises:
        DamagedFacts: it is missing, or has another size.
        OSError: it cannot be looked at, for a reason that may pass.
    """
    try:
        size = size_of(file.path)
    except OSError as error:
        raise _as_damage(file, error) from error
    if trouble := _difference(file, size, None):
        raise damaged(file, trouble)


def check_content(file: DayFile) -> None:
    """Look whether a file is there with the content that was written.

    Raises:
        DamagedFacts: it is missing, or not what was written.
        OSError: it cannot be looked at, for a reason that may pass.
    """
    try:
        digest = file.place.digest(file.path)
    except OSError as error:
        raise _as_damage(file, error) from error
    if trouble := _difference(file, file.size, digest):
        raise damaged(file, trouble)


def digest_in_name(path: str) -> str | None:
    """Return the digest of a data file's content from its name; None of a file that was written elsewhere."""
    named = _NAME.search(path)
    return named and named[1]


def content_key(path: str) -> str:
    """Return what names the content of a file: its digest, or its name where it was written elsewhere."""
    return digest_in_name(path) or Path(path).name


def same_content(some: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether two lists of file names name the same contents."""
    return [content_key(name) for name in some] == [content_key(name) for name in others]


def damaged(file: DayFile, trouble: str) -> DamagedFacts:
    """The error about a file, which names its table and its place in it."""
    named = _PLACE.search(file.path)
    place = named[0] if named else file.path
    return DamagedFacts(f"the file {place} {trouble}", table=table_of(file), day=file.day)


def damage_named_in(message: str) -> DamagedFacts | None:
    """The error about the first file of facts that the message of a library names, if it names one."""
    named = _PLACE.search(message)
    if named is None:
        return None
    day = None if named[2] is None else date.fromisoformat(named[2])
    return DamagedFacts(f"the file {named[0]} cannot be read", table=named[1], day=day)


def _as_damage(file: DayFile, error: OSError) -> Exception:
    """A file that is gone, or that its disk cannot give, is damaged; anything else may pass."""
    if isinstance(error, FileNotFoundError):
        return damaged(file, "is missing")
    if error.errno == errno.EIO:
        return damaged(file, "cannot be read from its disk")
    return error


def _difference(file: DayFile, size: int, digest: str | None) -> str | None:
    """Return the difference of a file from its written content."""
    if file.size and size != file.size:
        return f"has {size} bytes, {file.size} were written"
    written = digest_in_name(file.path)
    if written is not None and digest is not None and digest[:DIGITS] != written:
        return "does not have the content that was written"
    return None


def table_of(file: DayFile) -> str:
    """Return the table of a file; none of one that lies elsewhere."""
    named = _PLACE.search(file.path)
    return named[1] if named else ""
