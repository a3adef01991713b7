"""Facts in object storage: behaviour of buckets only."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from chargeback.config.storage import ObjectLocation
from chargeback.errors import StorageError
from chargeback.store.facts.buckets import Bucket
from chargeback.store.facts.copies import Copies
from chargeback.store.facts.owner import check_owner
from chargeback.store.facts.places import Folder, Place
from chargeback.store.facts.tables import MEMBERS_TABLE, prepare_day
from chargeback.store.ownership import StorageOwner
from tests.store.facts.test_tables import DAY, rows
from tests.support.careless import careless_store
from tests.support.objects import new_bucket, object_server

pytestmark = pytest.mark.usefixtures("object_storage")


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    """Return an empty place in a bucket."""
    return new_bucket(tmp_path)


def at(location: ObjectLocation, folder: Path) -> Bucket:
    """Return a place whose copies are in a folder."""
    return Bucket(location, Copies(folder / "copies", 10**9))


def test_an_object_is_what_was_written(bucket: Bucket) -> None:
    """An object can be read whole, in part, or by digest, and is listed with its size under a name with its digest."""
    path = bucket.write("usage/date=2026-01-01", "part", ".parquet", b"content")
    digest = "ed7002b439e9ac845f22357d822bac14"
    assert path == f"usage/date=2026-01-01/part-{digest}.parquet"
    seen = str(bucket.root / path)
    for each in (path, seen):
        assert bucket.read(each) == b"content"
        assert bucket.open(each).read(4) == b"cont"
        assert bucket.digest(each).startswith(digest)
        assert bucket.sizes("usage")(each) == bucket.sizes()(each) == 7
    bucket.copy(seen, "usage_history/date=2026-01-01/copied.parquet")
    assert [found.path for found in bucket.files("usage")] == [path]
    bucket.delete(seen)
    assert [found.path for found in bucket.files()] == ["usage_history/date=2026-01-01/copied.parquet"]


def test_what_the_server_does_not_copy_is_read_and_written(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the server cannot copy an object, it is read and written instead."""
    bucket.put("usage/date=2026-01-01/one.parquet", b"content")

    def refuse(*_: object) -> None:
        raise FileNotFoundError("usage/date%3D2026-01-01/one.parquet")

    monkeypatch.setattr("obstore.copy", refuse)
    bucket.copy("usage/date=2026-01-01/one.parquet", "usage_history/date=2026-01-01/one.parquet")
    assert bucket.read("usage_history/date=2026-01-01/one.parquet") == b"content"


def test_another_process_can_write_there(bucket: Bucket) -> None:
    """The workers of a cluster receive the place, and write to the same bucket."""
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
    """A missing object is a missing file, with its name in the error."""
    with pytest.raises(FileNotFoundError, match=rf"{bucket}/usage/missing does not exist"):
        ask(bucket)


def test_a_store_that_is_away_is_an_error_in_one_line(tmp_path: Path) -> None:
    """A server that does not respond is retried for the configured time."""
    server = object_server()
    away = replace(server, endpoint="http://127.0.0.1:9").location().tried_for(1)
    with pytest.raises(StorageError, match=rf"the table members cannot be used: {away}/members\S* cannot be used: \S+"):
        prepare_day(at(away, tmp_path), MEMBERS_TABLE, DAY, rows(DAY, "a"))
    with pytest.raises(OSError, match=rf"^{away}/x cannot be used: .*error sending request$") as raised:
        at(away, tmp_path).read("x")
    assert not isinstance(raised.value, FileNotFoundError)


def test_who_may_not_read_is_told_so(tmp_path: Path) -> None:
    """Wrong credentials are not reported as a missing file."""
    server = object_server()
    settings = server.settings.model_copy(update={"secret_access_key": SecretStr("another")})
    with pytest.raises(OSError, match="signature") as raised:
        at(replace(server.location(), settings=settings), tmp_path).read("usage/missing")
    assert not isinstance(raised.value, FileNotFoundError)


def test_a_bucket_that_does_not_exist_is_named_first(tmp_path: Path) -> None:
    """The error has the missing bucket first, not the table that is read first."""
    nowhere = replace(object_server().location(), bucket="no-such-bucket")
    with pytest.raises(StorageError, match=r"^the (bucket|container) `no-such-bucket` does not exist: create it"):
        check_owner(at(nowhere, tmp_path), StorageOwner("acme", None))


@pytest.mark.parametrize(("first", "second"), [("folder", "s3"), ("s3", "folder")])
def test_facts_move_between_places(first: str, second: str, tmp_path: Path) -> None:
    """Facts saved from one kind of storage can be loaded into the other."""

    bucket = new_bucket(tmp_path)

    def place(kind: str) -> Place:
        return Folder(tmp_path / "facts") if kind == "folder" else bucket

    written = prepare_day(place(first), MEMBERS_TABLE, DAY, rows(DAY, "a"))
    assert written.file is not None
    place(first).put(".partials", b"made again")
    place(first).save(tmp_path / "saved", [written.file.path])
    other = place(second)
    assert other.is_empty()
    other.load(tmp_path / "saved")
    assert [found.path for found in other.files()] == [written.file.path]
    assert other.read(written.file.path) == place(first).read(written.file.path)


def test_a_store_that_keeps_what_is_written_is_good(bucket: Bucket) -> None:
    """Trying out a store leaves nothing in it."""
    bucket.try_out()
    assert bucket.is_empty()


def test_a_store_without_conditional_writes_is_good(tmp_path: Path) -> None:
    """Two writers never write the same object, because the database orders them."""
    with careless_store() as server:
        careless = at(server.location(), tmp_path)
        careless.try_out()
        assert careless.is_empty()
