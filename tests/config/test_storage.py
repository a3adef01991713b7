"""Where data is stored, and when two tenants share it."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from chargeback.config.settings import CacheSettings, StorageSettings
from chargeback.config.storage import ObjectLocation, StorageLocation, StorageSettingError, locate
from chargeback.store.facts.tables import BILLING_TABLE
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.scan import SOURCE
from tests.support.facts import line, new_facts, write_lines


def at(folder: Path, url: str, facts: str | None = None) -> StorageLocation:
    """Return the location of an address, relative to a folder."""
    return locate(StorageSettings(connection_string=SecretStr(url), facts_path=facts), folder)


def meet(one: StorageLocation, other: StorageLocation) -> bool:
    """Return whether two locations are near enough to be compared, among many."""
    (own, around), (others_own, others_around) = one.claims(), other.claims()
    return bool(own & others_around or others_own & around)


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///data/acme.db",
        "sqlite+pysqlite:///data/acme.db",
        "sqlite:///./data/../data//acme.db",
        "sqlite:///{folder}/data/acme.db",
        "sqlite:///{folder}/./data/acme.db",
        "sqlite:///linked/acme.db",
        "sqlite:///alias.db",
        "sqlite:///hard.db",
    ],
)
def test_one_sqlite_file_has_many_spellings(tmp_path: Path, url: str) -> None:
    """Relative and absolute paths, paths with dots, links, and addresses with a driver name are one database."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "acme.db").touch()
    (tmp_path / "linked").symlink_to(tmp_path / "data")
    (tmp_path / "alias.db").symlink_to(tmp_path / "data" / "acme.db")
    (tmp_path / "hard.db").hardlink_to(tmp_path / "data" / "acme.db")
    first = at(tmp_path, "sqlite:///data/acme.db")
    same, another = at(tmp_path, url.format(folder=tmp_path)), at(tmp_path, "sqlite:///data/beta.db")
    assert first.shares_database_with(same)
    assert meet(first, same)
    assert not first.shares_database_with(another)
    assert not meet(first, another)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:pw@db.example.com/acme",
        "postgresql+psycopg://me:pw@db.example.com/acme",
        "postgresql+psycopg2://me:pw@db.example.com/acme",
        "postgresql://me:pw@DB.Example.com:5432/acme",
        "postgresql://me:p%77@db.example.com./acme",
        "postgresql://m%65:pw@db.example.com/acme?sslmode=require",
        "postgresql://other@db.example.com/acme",
        "postgresql:///acme?host=db.example.com",
        "postgresql://db.example.com/?dbname=acme",
    ],
)
def test_one_postgresql_database_has_many_spellings(tmp_path: Path, url: str) -> None:
    """The driver name, the default port, the case of the host and credentials do not make another database."""
    first = at(tmp_path, "postgresql://me:pw@db.example.com/acme", "one")
    same = at(tmp_path, url, "two")
    assert first.shares_database_with(same)
    assert meet(first, same)
    assert same.connection_string.get_secret_value().startswith("postgresql+psycopg://")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", ""])
def test_the_own_machine(tmp_path: Path, host: str) -> None:
    """All addresses of this machine are the same host."""
    first = at(tmp_path, "postgresql://localhost/acme", "one")
    assert first.shares_database_with(at(tmp_path, f"postgresql://{host}/acme", "two"))


@pytest.mark.parametrize("other", ["db/beta", "db:5433/acme", "db2/acme"])
def test_other_postgresql_databases(tmp_path: Path, other: str) -> None:
    """Another name, port or host makes another database."""
    first = at(tmp_path, "postgresql://db/acme", "one")
    assert not first.shares_database_with(at(tmp_path, f"postgresql://{other}", "two"))


def test_credentials_survive_normalising(tmp_path: Path) -> None:
    """A password with special characters reaches the driver unchanged."""
    location = at(tmp_path, "postgresql://me:p%40ss%2Fw@db/acme?sslmode=require", "f")
    assert location.connection_string.get_secret_value() == "postgresql+psycopg://me:p%40ss%2Fw@db/acme?sslmode=require"
    assert "p%40ss" not in repr(location)


@pytest.mark.parametrize("facts", ["acme.facts", "./x/../acme.facts/", "linked", "acme.facts/inside"])
def test_shared_facts(tmp_path: Path, facts: str) -> None:
    """The default folder of facts is shared by other spellings of it, by links to it and by folders in it."""
    (tmp_path / "acme.facts").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "acme.facts")
    first = at(tmp_path, "sqlite:///acme.db")
    assert first.facts_path == tmp_path / "acme.facts"
    sharing, another = at(tmp_path, "sqlite:///beta.db", facts), at(tmp_path, "sqlite:///beta.db")
    assert first.shares_facts_with(sharing)
    assert meet(first, sharing)
    assert meet(sharing, first)
    assert not first.shares_facts_with(another)
    assert not meet(first, another)


@pytest.mark.parametrize(
    ("url", "facts", "key"),
    [
        ("sqlite://", None, "connection_string"),
        ("sqlite:///:memory:", None, "connection_string"),
        ("sqlite:///file:x.db?mode=memory&uri=true", None, "connection_string"),
        ("sqlite:///file:x.db?uri=true", None, "connection_string"),
        ("sqlite+aiosqlite:///x.db", None, "connection_string"),
        ("sqlite:///x.db", "s3://bucket/x", "facts_path"),
        ("sqlite:///.", None, "connection_string"),
        ("mysql://me:pw@host/x", "f", "connection_string"),
        ("postgresql+asyncpg://me:pw@host/x", "f", "connection_string"),
        ("postgresql://me:pw@host", "f", "connection_string"),
        ("postgresql://me:pw@host/x", None, "facts_path"),
        ("postgresql://me:pw@host:port/x", "f", "connection_string"),
        ("data/acme.db", None, "connection_string"),
        ("", None, "connection_string"),
    ],
)
def test_storage_that_cannot_be_used(tmp_path: Path, url: str, facts: str | None, key: str) -> None:
    """In-memory, unknown and unnamed databases are refused, without showing the address."""
    with pytest.raises(StorageSettingError) as caught:
        at(tmp_path, url, facts)
    assert caught.value.key == key
    assert "me:pw" not in str(caught.value)


@pytest.mark.parametrize("name", ["a*b", "a?b", "[prod]", "a%20b", "currency=EUR", "a\\b", "a\tb"])
def test_folders_that_readers_misread_are_refused(tmp_path: Path, name: str) -> None:
    """A special character in the path of a table is refused, wherever it is."""
    sign = next(each for each in name if each in "*?[%=\\\t")
    for folder, facts in ((tmp_path, f"{name}/facts"), (tmp_path / name, "facts")):
        with pytest.raises(StorageSettingError, match=re.escape(repr(sign))) as raised:
            at(folder, "postgresql://db/acme", facts)
        assert raised.value.key == "facts_path"
    with pytest.raises(StorageSettingError) as raised:
        at(tmp_path / name, "sqlite:///acme.db")
    assert raised.value.key == "connection_string"
    if "?" not in name:
        assert at(tmp_path / name, "sqlite:///acme.db", str(tmp_path / "facts")).database_file


@pytest.mark.parametrize("name", ["a b", "ä#&;{x}$~", "a..b", "x+y@z,'w'"])
def test_other_folders_are_read_as_they_are_named(tmp_path: Path, name: str) -> None:
    """Spaces, letters of any language and other characters can be used in paths, for writing and reading."""
    key_path = at(tmp_path / name, "sqlite:///acme.db")
    assert key_path.database_file == tmp_path / name / "acme.db"
    assert isinstance(key_path.facts_path, Path)
    facts = new_facts(key_path.facts_path)
    write_lines(facts, [line(date(2026, 1, 1), "100.00")])
    files = [file.path for file in facts.snapshot(BILLING_TABLE).files]
    engine = QueryEngine()
    with engine.cursor(CancellationToken()) as cursor:
        assert cursor.rows(f"SELECT sum(total_cost) FROM {SOURCE}", {"files": files}) == [(100,)]
    engine.close()


POSTGRESQL = "postgresql://me@db/acme"


def in_object_store(url: str, connection_string: str = POSTGRESQL, **store: Any) -> StorageLocation:
    """Return the location that a configuration names."""
    written = {"connection_string": connection_string, "facts_path": url, "object_store": store}
    return locate(StorageSettings.model_validate(written), Path("/etc"), CacheSettings(path=Path("/cache")))


def objects(url: str, **store: Any) -> ObjectLocation:
    """Return the location of the facts."""
    found = in_object_store(url, **store).facts_path
    assert isinstance(found, ObjectLocation)
    return found


@pytest.mark.parametrize("url", ["s3://bucket/a/b", "az://container/a", "gs://bucket/a", "s3://bucket"])
def test_a_place_is_shown_as_it_is_written(url: str) -> None:
    """Slashes at the end do not matter; the cache is where the features say."""
    assert str(objects(url)) == str(objects(f"{url}/")) == url
    assert objects(url).cache.path == Path("/cache")


def test_secrets_are_masked() -> None:
    """No repr contains the secret, and it is registered for masking."""
    location = in_object_store("s3://bucket/a", access_key_id="id", secret_access_key="s3cr3t-key")
    assert "s3cr3t-key" in location.secrets()
    assert "s3cr3t-key" not in repr(location)


@pytest.mark.parametrize(
    ("url", "connection_string", "store", "key"),
    [
        ("s3://bucket/a", "sqlite:///acme.db", {}, "facts_path"),
        ("s3://Bucket/a", POSTGRESQL, {}, "facts_path"),
        ("s3://key:secret@bucket/a", POSTGRESQL, {}, "facts_path"),
        ("s3://bucket/a=b", POSTGRESQL, {}, "facts_path"),
        ("s3://bucket/../a", POSTGRESQL, {}, "facts_path"),
        ("ftp://bucket/a", POSTGRESQL, {}, "facts_path"),
        ("gs://bucket/a", POSTGRESQL, {"endpoint": "https://gcs"}, "object_store"),
        ("facts", POSTGRESQL, {"region": "eu-central-1"}, "object_store"),
    ],
)
def test_what_cannot_be_used(url: str, connection_string: str, store: dict[str, Any], key: str) -> None:
    """A mistake is reported with its key, without the value."""
    with pytest.raises(StorageSettingError) as raised:
        in_object_store(url, connection_string, **store)
    assert raised.value.key == key
    assert "secret@" not in str(raised.value)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ({"access_key_id": "id"}, "belong together"),
        ({"endpoint": "http://s3"}, "allow_http: true"),
        ({"endpoint": "https://me:pw@s3"}, "credentials"),
        ({"retry_seconds": 0}, "greater than or equal to 1"),
    ],
)
def test_settings_that_contradict_each_other(store: dict[str, Any], message: str) -> None:
    """Incomplete credentials are refused, and so is an unencrypted address unless it is allowed explicitly."""
    with pytest.raises(ValidationError, match=message):
        in_object_store("s3://bucket/a", **store)


@pytest.mark.parametrize(
    ("one", "other", "store", "is_shared"),
    [
        ("s3://bucket/a", "s3://bucket/a/", {}, True),
        ("s3://bucket/a", "s3://bucket/a/b", {}, True),
        ("s3://bucket", "s3://bucket/a", {}, True),
        ("s3://bucket/a", "s3://bucket/ab", {}, False),
        ("s3://bucket/a", "s3://other/a", {}, False),
        ("s3://bucket/a", "gs://bucket/a", {}, False),
        ("s3://bucket/a", "/bucket/a", {}, False),
        ("s3://bucket/a", "s3://bucket/a", {"endpoint": "https://elsewhere"}, False),
    ],
)
def test_two_tenants_share_a_prefix(one: str, other: str, store: dict[str, Any], is_shared: bool) -> None:
    """Equal or nested prefixes of one bucket on one server are shared."""
    first, second = in_object_store(one), in_object_store(other, **store)
    assert first.shares_facts_with(second) is second.shares_facts_with(first) is is_shared
    # Databases that are shared are compared as well.
    first, second = replace(first, database="one"), replace(second, database="two")
    assert meet(first, second) is meet(second, first) is is_shared


def test_an_endpoint_has_several_spellings() -> None:
    """Letter case and the default port do not make another server."""
    first = in_object_store("s3://bucket/a", endpoint="https://s3.example.com")
    for endpoint in ("https://S3.Example.com:443", "https://s3.example.com/"):
        assert first.shares_facts_with(in_object_store("s3://bucket/a/b", endpoint=endpoint))
    assert not first.shares_facts_with(in_object_store("s3://bucket/a", endpoint="https://s3.example.com:8443"))


def test_a_place_is_sent_to_other_processes() -> None:
    """A location can be pickled for the process of a run."""
    location = in_object_store("s3://bucket/a", access_key_id="id", secret_access_key="s3cr3t-key")
    assert pickle.loads(pickle.dumps(location)) == location


def test_trying_again_is_limited() -> None:
    """A caller with less time retries for a shorter time, never for longer."""
    place = objects("s3://bucket/a", retry_seconds=30)
    assert [place.tried_for(seconds).settings.retry_seconds for seconds in (None, 3.5, 0.1, 90)] == [30, 3, 1, 30]
