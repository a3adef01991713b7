"""A file of facts is read as it was written, or raises an error with its name."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chargeback.errors import DamagedFacts
from chargeback.store.facts.files import (
    DayFile,
    Footer,
    check_content,
    check_size,
    damage_named_in,
    read_file,
    read_footer,
    write_file,
)
from chargeback.store.facts.places import DISK, Folder
from chargeback.store.ownership import StorageOwner
from tests.support.damage import DAMAGES

DAY = date(2026, 1, 1)
ROWS = pa.table({"id": pa.array(range(50_000), pa.int64()), "name": [f"sa-{n:x}" for n in range(50_000)]})


@pytest.fixture
def file(tmp_path: Path) -> DayFile:
    """Return a written file."""
    rows = ROWS.append_column("date", pa.array([DAY] * ROWS.num_rows, pa.date32()))
    action = write_file(Folder(tmp_path), "usage", rows, DAY)
    return DayFile(DAY, str(tmp_path / action.path), ROWS.num_rows, action.size)


def test_a_file_is_read_as_it_was_written(file: DayFile) -> None:
    """All columns are returned, or only the requested ones."""
    assert read_file(file).equals(ROWS)
    assert read_file(file, ["id"]).equals(ROWS.select(["id"]))
    check_content(file)


def test_a_file_says_whose_it_is(tmp_path: Path, file: DayFile) -> None:
    """The footer has the tenant, the table, the day, and the version of the columns; the rows have none of these."""
    owner = StorageOwner("acme-id", "test_cloud")
    written = write_file(Folder(tmp_path), "usage", ROWS, None, 3, owner)
    assert read_footer(DayFile(None, str(tmp_path / written.path), 1)) == Footer(owner, "usage", None, 3)
    assert read_footer(file) == Footer(None, "usage", DAY, 0)
    assert not read_file(file).schema.metadata
    Path(file.path).unlink()
    with pytest.raises(DamagedFacts, match="is missing"):
        read_footer(file)


def test_a_file_of_elsewhere_says_nothing(tmp_path: Path) -> None:
    """A file of another origin, such as an earlier version, has no footer."""
    pq.write_table(ROWS, tmp_path / "part.parquet")
    assert read_footer(DayFile(None, str(tmp_path / "part.parquet"), 1)) is None


@pytest.mark.parametrize(("damage", "is_hidden"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named(file: DayFile, damage: Callable[[Path], None], is_hidden: bool) -> None:
    """Reading and a full check find every damage; a quick check finds it unless the size is right."""
    damage(Path(file.path))
    with pytest.raises(DamagedFacts, match=r"the file usage/date=2026-01-01/part-\S+ ") as raised:
        read_file(file)
    assert (raised.value.table, raised.value.day) == ("usage", DAY)
    with pytest.raises(DamagedFacts):
        check_content(file)
    if is_hidden:
        check_size(file, DISK.sizes())
    else:
        with pytest.raises(DamagedFacts):
            check_size(file, DISK.sizes())


def test_what_is_no_parquet_is_damaged(tmp_path: Path) -> None:
    """A file without a digest in its name must still be a table."""
    path = tmp_path / "part.parquet"
    path.write_text("rubbish")
    with pytest.raises(DamagedFacts, match="is no Parquet file"):
        read_file(DayFile(None, str(path), 1))


def test_a_file_that_may_not_be_read_is_not_damaged(tmp_path: Path) -> None:
    """A temporary error is not reported as damage."""
    with pytest.raises(IsADirectoryError):
        read_file(DayFile(None, str(tmp_path), 1))


def test_nothing_is_left_of_what_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that fails removes its unfinished file."""
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
    rows = ROWS.append_column("date", pa.array([DAY] * ROWS.num_rows, pa.date32()))
    with pytest.raises(OSError, match="Input/output error"):
        write_file(Folder(tmp_path), "usage", rows, DAY)
    assert list((tmp_path / "usage" / "date=2026-01-01").iterdir()) == []


@pytest.mark.parametrize(
    ("message", "table", "day"),
    [
        ('IO Error: No files found that match the pattern "/a/usage/date=2026-01-01/part-0.parquet"', "usage", DAY),
        ("No magic bytes found at end of file '/a b/dimensions/part-0.parquet'", "dimensions", None),
    ],
)
def test_somebody_elses_message_names_the_file(message: str, table: str, day: date | None) -> None:
    """The query engine's message about a file is enough to identify the day."""
    named = damage_named_in(message)
    assert named is not None
    assert (named.table, named.day) == (table, day)


def test_a_message_without_a_file_names_nothing() -> None:
    """Other errors are not damage."""
    assert damage_named_in("Out of Range Error: overflow") is None
