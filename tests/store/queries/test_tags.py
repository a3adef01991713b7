"""Tags are resolved as of now, and loaded only when they have changed."""

from __future__ import annotations

from pathlib import Path

from chargeback.store.control.tags import TagWrite, create
from chargeback.store.queries.tags import TagBook, TagBooks
from tests.support.databases import control_database


def test_the_identity_wins() -> None:
    """On the same key the one that pays decides; keys come sorted."""
    book = TagBook({"sa": {"team": "payer"}}, {"lkc": {"team": "operator", "env": "prod"}})
    assert list(book.resolved("sa", "lkc").items()) == [("env", "prod"), ("team", "payer")]
    assert book.resolved("sa", "other") == {"team": "payer"}
    assert book.resolved("other", "other") == {}
    assert book.holders("env") == ({}, {"lkc": "prod"})


def test_a_book_is_loaded_again_only_after_a_write(tmp_path: Path) -> None:
    """The same revision gives the same book; a new tag gives a new one."""
    books = TagBooks()
    with control_database("sqlite", tmp_path) as database:
        with database.read() as connection:
            empty = books.of("acme", connection)
            assert books.of("acme", connection) is empty
        with database.write() as connection:
            create(connection, "acme", TagWrite("identity", "sa", "team", "x"), "me")
        with database.read() as connection:
            assert books.of("acme", connection).identities == {"sa": {"team": "x"}}
