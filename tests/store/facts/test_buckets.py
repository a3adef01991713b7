"""Facts in object storage: what only a bucket does."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import SecretStr

from chargeback.config.object_store import ObjectLocation
from chargeback.errors import StorageError
from chargeback.store.facts.buckets import Bucket
from chargeback.store.facts.copies import Copies
from chargeback.store.facts.owner import check_owner
from chargeback.store.facts.places import Folder, LogState, Place
from chargeback.store.facts.tables import MEMBERS_TABLE, FactTables, read_day
from chargeback.store.ownership import StorageOwner
from tests.store.facts.test_tables import DAY, rows
from tests.support.careless import careless_store
from tests.support.network import Fault, network
from tests.support.objects import new_bucket, object_server

pytestmark = pytest.mark.usefixtures("object_storage")


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    """An empty place in a bucket."""
    return new_bucket(tmp_path)


def at(location: ObjectLocation, folder: Path) -> Bucket:
    """A place, whose copies are in a folder."""
    return Bucket(location, Copies(folder / "copies", 10**9))


def test_an_object_is_what_was_written(bucket: Bucket) -> None:
    """It is read whole, in part, or for its digest, and is listed with its size, under a name with its digest."""

    def fill(sink: Path | pa.NativeFile) -> None:
        assert isinstance(sink, pa.NativeFile)
        sink.write(b"content")

    written = bucket.write("usage/date=2026-01-01", "part", ".parquet", fill)
    digest = "ed7002b439e9ac845f22357d822bac14"
    assert (written.path, written.size) == (f"usage/date=2026-01-01/part-{digest}.parquet", 7)
    seen = str(bucket.root / written.path)
    for path in (written.path, seen):
        assert bucket.read(path) == b"content"
        assert bucket.open(path).read(4) == b"cont"
        assert bucket.digest(path).startswith(digest)
        assert bucket.sizes("usage")(path) == 7
    assert bucket.copy(seen, "usage_history/date=2026-01-01/copied.parquet") == 7
    bucket.put("usage/_delta_log/00000000000000000003.json", b"{}")
    bucket.put("usage/_delta_log/00000000000000000002.checkpoint.parquet", b"")
    assert bucket.data_files("usage") == [written.path]
    assert (bucket.newest_version("usage"), bucket.newest_version("usage_history")) == (3, -1)
    bucket.delete(seen)
    assert bucket.data_files("usage") == []


def test_another_process_can_write_there(bucket: Bucket) -> None:
    """The workers of a cluster are sent the place, and write where the run looks."""
    sent: Bucket = pickle.loads(pickle.dumps(bucket))
    sent.put("usage/one", b"1")
    assert (bucket.read("usage/one"), sent.root, str(sent)) == (b"1", bucket.root, str(bucket))
    assert sent.options == bucket.options


@pytest.mark.parametrize(
    "ask",
    [
        lambda bucket: bucket.read("usage/missing"),
        lambda bucket: bucket.digest("usage/missing"),
        lambda bucket: bucket.sizes("usage")("usage/missing"),
        lambda bucket: bucket.copy("usage/missing", "usage/copied"),
    ],
)
def test_what_is_missing_is_named(bucket: Bucket, ask: Callable[[Place], object]) -> None:
    """A missing object is a missing file."""
    with pytest.raises(FileNotFoundError, match=rf"{bucket}/usage/missing does not exist"):
        ask(bucket)


def test_the_log_is_looked_at_in_one_listing(bucket: Bucket) -> None:
    """A reader learns of the next entry, and of a new checkpoint."""
    tables = FactTables(bucket)
    tables.create()
    assert bucket.log_state(MEMBERS_TABLE, 0) == LogState(0, 0, has_next=False)
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
    assert bucket.log_state(MEMBERS_TABLE, 0) == LogState(0, 0, has_next=True)
    tables.open(MEMBERS_TABLE).create_checkpoint()
    state = bucket.log_state(MEMBERS_TABLE, 1)
    assert state.checkpoint
    assert not state.has_next


def test_a_store_that_is_away_is_an_error_in_one_line(tmp_path: Path) -> None:
    """A server that does not answer is waited for as long as configured."""
    server = object_server()
    away = replace(server, endpoint="http://127.0.0.1:9").location().tried_for(1)
    with pytest.raises(StorageError, match=rf"the table members cannot be used: {away}/members\S* cannot be used: \S+"):
        FactTables(at(away, tmp_path)).snapshot(MEMBERS_TABLE)
    with pytest.raises(OSError, match=rf"^{away}/x cannot be used: .*error sending request$") as raised:
        at(away, tmp_path).read("x")
    assert not isinstance(raised.value, FileNotFoundError)


def test_who_may_not_read_is_told_so(tmp_path: Path) -> None:
    """Wrong credentials are not taken for a loss."""
    server = object_server()
    settings = server.settings.model_copy(update={"secret_access_key": SecretStr("another")})
    with pytest.raises(OSError, match="signature") as raised:
        at(replace(server.location(), settings=settings), tmp_path).read("usage/missing")
    assert not isinstance(raised.value, FileNotFoundError)


def test_a_bucket_that_does_not_exist_is_named_first(tmp_path: Path) -> None:
    """The error begins with its cause, not with the table that is read first."""
    nowhere = replace(object_server().location(), bucket="no-such-bucket")
    with pytest.raises(StorageError, match=r"^the bucket `no-such-bucket` does not exist: create it, or correct"):
        check_owner(FactTables(at(nowhere, tmp_path)), StorageOwner("acme", None))


@pytest.mark.parametrize(("first", "second"), [("folder", "s3"), ("s3", "folder")])
def test_facts_move_between_places(first: str, second: str, tmp_path: Path) -> None:
    """What was saved from one kind of place is loaded into another."""

    def place(kind: str) -> Place:
        return Folder(tmp_path / "facts") if kind == "folder" else new_bucket(tmp_path)

    tables = FactTables(place(first))
    tables.create()
    tables.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "a"), epoch=1)
    tables.place.put(".partials", b"made again")
    tables.place.save(tmp_path / "saved", [".partials"])
    other = place(second)
    assert other.is_empty()
    other.load(tmp_path / "saved")
    assert not other.is_empty()
    loaded = FactTables(other)
    assert read_day(loaded, MEMBERS_TABLE, DAY)["identity_id"].to_pylist() == ["a"]
    loaded.replace_day(MEMBERS_TABLE, DAY, rows(DAY, "b"), epoch=1)
    assert not (tmp_path / "saved" / ".partials").exists()


def test_a_table_is_created_although_the_store_refuses_at_first(tmp_path: Path) -> None:
    """A conflict with a request of nobody's (409) is no table that is there."""
    with network(object_server(), fault=Fault(2, 409, before=True)) as seen:
        tables = FactTables(at(seen.server.location(), tmp_path))
        tables.create()
        assert seen.disturbed
        assert tables.newest_versions()[MEMBERS_TABLE] == 0


def test_a_store_that_creates_once_is_good(bucket: Bucket) -> None:
    """Nothing is left of trying it out."""
    bucket.try_out()
    assert bucket.is_empty()


@pytest.fixture
def careless(tmp_path: Path) -> Iterator[Bucket]:
    """A place in a store that ignores conditions."""
    with careless_store() as server:
        yield at(server.location(), tmp_path)


def test_a_store_that_ignores_conditions_is_refused(careless: Bucket) -> None:
    """Two writers at once would both succeed there, and a commit would be lost."""
    with pytest.raises(OSError, match=r"ignores conditional writes \(If-None-Match\)"):
        careless.try_out()
    assert careless.is_empty()
