"""Queries over object storage read copies on this machine, which equal the written files and have a limited size."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from chargeback.errors import DamagedFacts, QueryTimeout, StorageError
from chargeback.store.facts.buckets import Bucket
from chargeback.store.facts.copies import Copies
from chargeback.store.facts.files import DayFile, write_file
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.scan import SOURCE
from tests.store.facts.test_tables import rows
from tests.support.damage import DAMAGES
from tests.support.objects import damage_object, new_bucket, object_server

pytestmark = pytest.mark.usefixtures("object_storage")

DAYS = [date(2026, 1, day) for day in range(1, 6)]


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    """Return an empty place in a bucket, with enough room for copies."""
    return new_bucket(tmp_path)


def written(bucket: Bucket, *days: date) -> list[DayFile]:
    """Write files of days, which are only in the bucket."""
    files = []
    for day in days:
        members = rows(day, *(f"{day}-{number}" for number in range(100)))
        action = write_file(bucket, "members", members, day)
        files.append(DayFile(day, f"{bucket.root}/{action.path}", members.num_rows, action.size, bucket))
    return files


def with_room_for(files: list[DayFile], count: int, folder: Path) -> tuple[Copies, list[DayFile]]:
    """Return other copies of the same files, with room for ``count`` of them."""
    bucket = files[0].place
    assert isinstance(bucket, Bucket)
    copies = Copies(folder / "few", count * max(file.size for file in files))
    paths = (Path(file.path).relative_to(bucket.root) for file in files)
    place = Bucket(object_server().location(str(bucket).rpartition("/")[2]), copies)
    return copies, [
        DayFile(file.day, f"{place.root}/{path}", file.rows, file.size, place)
        for file, path in zip(files, paths, strict=True)
    ]


def count(files: list[DayFile], token: CancellationToken | None = None) -> int:
    """Return the number of rows that the query engine finds in files."""
    with QueryEngine(memory=2**28, threads=1) as engine, engine.cursor(token or CancellationToken()) as cursor:
        return int(cursor.rows(f"SELECT count(*) FROM {SOURCE} WHERE date IS NOT NULL", {"files": files})[0][0])


def in_use(copies: Path) -> list[Path]:
    """Return the copies that are being read."""
    return list((copies / "in-use").rglob("*.parquet"))


def test_a_file_is_fetched_once(bucket: Bucket) -> None:
    """A second query makes no request to the bucket; the day of a row is still that of its folder."""
    files = written(bucket, *DAYS)
    assert count(files) == 500
    for file in files:
        bucket.delete(file.path)
    assert count(files) == 500
    assert all(Path(file.path).stat().st_size == file.size for file in files)
    assert in_use(bucket.root.parent.parent) == []


def test_questions_at_the_same_time(bucket: Bucket) -> None:
    """Simultaneous queries of the same files share the copies that are being fetched."""
    files = written(bucket, *DAYS)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: count(files), range(8))) == [500] * 8


@pytest.mark.parametrize(("damage", "is_hidden"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_download_reaches_no_query(
    bucket: Bucket, tmp_path: Path, damage: Callable[[Path], None], is_hidden: bool
) -> None:
    """A file with other content than was written raises an error with its name, and is not kept."""
    (file,) = written(bucket, DAYS[0])
    damage_object(bucket, file.path, damage, tmp_path)
    with pytest.raises(DamagedFacts, match=r"the file members/date=2026-01-01/\S+ "):
        count([file])
    assert not Path(file.path).exists()


def test_a_copy_that_was_cut_off_is_fetched_again(bucket: Bucket) -> None:
    """A copy of the wrong size, as after a power cut, is not used."""
    (file,) = written(bucket, DAYS[0])
    count([file])
    os.truncate(file.path, 10)
    assert count([file]) == 100


def test_a_copy_that_cannot_be_read_is_removed(bucket: Bucket) -> None:
    """A query of a corrupted copy fails, and the next one fetches the file again."""
    (file,) = written(bucket, DAYS[0])
    count([file])
    Path(file.path).write_bytes(b"x" * file.size)
    with pytest.raises(DamagedFacts):
        count([file])
    assert count([file]) == 100


def test_what_was_not_used_for_long_makes_room(bucket: Bucket, tmp_path: Path) -> None:
    """All copies together stay below the limit, and the most recently read ones are kept."""
    copies, files = with_room_for(written(bucket, *DAYS), 3, tmp_path)
    for file in (*files[:3], files[0], files[3]):
        with copies.lent([file]):
            pass
    kept = [file.day for file in files if Path(file.path).exists()]
    assert DAYS[0] in kept
    assert DAYS[3] in kept
    assert DAYS[1] not in kept
    assert sum(file.size for file in files if file.day in kept) <= 3 * files[0].size


def test_what_is_read_stays_while_it_is_read(bucket: Bucket, tmp_path: Path) -> None:
    """A file is available until the query ends, even if there is never room for all files."""
    copies, files = with_room_for(written(bucket, *DAYS), 1, tmp_path)
    with copies.lent(files) as paths:
        with copies.lent(files[:2]) as others:
            assert others == paths[:2]
        assert [Path(path).stat().st_size for path in paths] == [file.size for file in files]
    assert sum(Path(file.path).exists() for file in files) <= 1
    assert in_use(tmp_path / "few") == []


def test_a_file_without_room_is_read_and_not_kept(bucket: Bucket, tmp_path: Path) -> None:
    """A file that is larger than the limit is not kept."""
    _, files = with_room_for(written(bucket, *DAYS), 0, tmp_path)
    assert count(files) == 500
    assert not any(Path(file.path).exists() for file in files)


def test_a_killed_process_leaves_nothing(bucket: Bucket, tmp_path: Path) -> None:
    """Copies in use by a killed process are removed by the next fetch; those of a living process stay."""
    folder = tmp_path / "copies" / "in-use" / "killed"
    folder.mkdir(parents=True)
    (folder / "part.parquet").write_bytes(b"x")
    (folder / "lock").touch()
    hold = "import fcntl, sys; lock = open(sys.argv[1]); fcntl.flock(lock, 2); print(flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(folder / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        count(written(bucket, DAYS[0]))
        assert folder.exists()
        holder.kill()
    bucket.copies._allowance = 0
    count(written(bucket, DAYS[1]))
    assert not folder.exists()


def test_a_cancelled_question_fetches_nothing(bucket: Bucket) -> None:
    """A cancelled query fetches no files."""
    files, token = written(bucket, *DAYS), CancellationToken()
    token.cancel()
    with pytest.raises(QueryTimeout):
        count(files, token)
    assert not Path(files[0].path).exists()


def test_a_store_that_is_away_is_no_damage(bucket: Bucket) -> None:
    """A file that cannot be fetched now is not reported as damaged."""
    (file,) = written(bucket, DAYS[0])
    location = object_server().location().tried_for(1)
    away = Bucket(
        type(location)(
            location.scheme,
            location.bucket,
            location.prefix,
            location.settings.model_copy(update={"endpoint": "http://127.0.0.1:9"}),
        ),
        bucket.copies,
    )
    path = f"{away.root}/{Path(file.path).relative_to(bucket.root)}"
    with pytest.raises(StorageError, match="the table members cannot be used") as raised:
        count([DayFile(file.day, path, file.rows, file.size, away)])
    assert not isinstance(raised.value, DamagedFacts)


def test_rows_are_equal(bucket: Bucket) -> None:
    """The query engine reads the rows that were written."""
    (file,) = written(bucket, DAYS[0])
    with QueryEngine(memory=2**28, threads=1) as engine, engine.cursor(CancellationToken()) as cursor:
        found: pa.Table = cursor.table(f"SELECT identity_id FROM {SOURCE}", {"files": [file]})
    assert found["identity_id"].to_pylist() == [f"{DAYS[0]}-{number}" for number in range(100)]
