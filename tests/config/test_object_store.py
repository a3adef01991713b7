"""Facts in object storage, as a configuration names them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from chargeback.config.settings import CacheSettings, StorageSettings
from chargeback.config.storage import ObjectLocation, StorageLocation, StorageSettingError, locate

POSTGRESQL = "postgresql://me@db/acme"


def at(url: str, connection_string: str = POSTGRESQL, **store: Any) -> StorageLocation:
    """The location that a configuration names."""
    written = {"connection_string": connection_string, "facts_path": url, "object_store": store}
    return locate(StorageSettings.model_validate(written), Path("/etc"), CacheSettings(path=Path("/cache")))


def objects(url: str, **store: Any) -> ObjectLocation:
    """The place of the facts."""
    found = at(url, **store).facts_path
    assert isinstance(found, ObjectLocation)
    return found


@pytest.mark.parametrize("url", ["s3://bucket/a/b", "az://container/a", "gs://bucket/a", "s3://bucket"])
def test_a_place_is_shown_as_it_is_written(url: str) -> None:
    """Slashes at its end mean nothing; copies are where the features say."""
    assert str(objects(url)) == str(objects(f"{url}/")) == url
    assert objects(url).cache.path == Path("/cache")


def test_secrets_are_masked() -> None:
    """The secret is in no text, and is known to whoever masks texts."""
    location = at("s3://bucket/a", access_key_id="id", secret_access_key="s3cr3t-key")
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
    """A mistake is named by its key, without the value."""
    with pytest.raises(StorageSettingError) as raised:
        at(url, connection_string, **store)
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
    """Half a pair of credentials, or an unencrypted address that nobody asked for."""
    with pytest.raises(ValidationError, match=message):
        at("s3://bucket/a", **store)


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
    """The same prefix of one bucket of one server, or one in the other."""
    first, second = at(one), at(other, **store)
    assert first.shares_facts_with(second) is second.shares_facts_with(first) is is_shared


def test_an_endpoint_has_several_spellings() -> None:
    """Letter case and the usual port make no other server."""
    first = at("s3://bucket/a", endpoint="https://s3.example.com")
    for endpoint in ("https://S3.Example.com:443", "https://s3.example.com/"):
        assert first.shares_facts_with(at("s3://bucket/a/b", endpoint=endpoint))
    assert not first.shares_facts_with(at("s3://bucket/a", endpoint="https://s3.example.com:8443"))


def test_a_place_is_sent_to_other_processes() -> None:
    """Each run is a process of its own."""
    location = at("s3://bucket/a", access_key_id="id", secret_access_key="s3cr3t-key")
    assert pickle.loads(pickle.dumps(location)) == location


def test_trying_again_is_limited() -> None:
    """Who cannot wait so long tries for a shorter time, and never for a longer one."""
    place = objects("s3://bucket/a", retry_seconds=30)
    assert [place.tried_for(seconds).settings.retry_seconds for seconds in (None, 3.5, 0.1, 90)] == [30, 3, 1, 30]
