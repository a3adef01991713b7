"""Tags are resolved as of now, and loaded only when they have changed."""

from __future__ import annotations

from pathlib import Path

from chargeback.store.control.tags import TagWrite, create
from chargeback.store.queries.tag_index import TagCache, TagIndex
from tests.support.databases import control_database


def test_the_identity_wins() -> None:
    """On the same key the one that pays decides; keys come sorted."""
    tags = TagIndex({"sa": {"team": "payer"}}, {"lkc": {"team": "operator", "env": "prod"}})
    assert list(tags.resolve("sa", "lkc").items()) == [("env", "prod"), ("team", "payer")]
    assert tags.resolve("sa", "other") == {"team": "payer"}
    assert tags.resolve("other", "other") == {}
    assert (tags.holders("identity", "env"), tags.holders("resource", "env")) == ({}, {"lkc": "prod"})


def test_tags_are_loaded_again_only_after_a_write(tmp_path: Path) -> None:
    """The same revision gives the same index; a new tag gives a new one."""
    cache = TagCache()
    with control_database("sqlite", tmp_path) as database:
        with database.read() as connection:
            empty = cache.load("acme", connection)
            assert cache.load("acme", connection) is empty
        with database.write() as connection:
            create(connection, "acme", TagWrite("identity", "sa", "team", "x"), "me")
        with database.read() as connection:
            assert cache.load("acme", connection).identities == {"sa": {"team": "x"}}
