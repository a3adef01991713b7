"""Present tags are resolved for the day of a row, and loaded only when they have changed."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from chargeback.model.dated import DatedValue, Period
from chargeback.store.control.tags import TagWrite, create
from chargeback.store.queries.tag_index import TagCache, TagIndex
from tests.support.databases import control_database

MARCH, OCTOBER = date(2026, 3, 1), date(2026, 10, 1)
DAY = date(2026, 2, 28)


def test_the_identity_wins() -> None:
    """The identity's tag takes precedence over the resource's; keys are sorted."""
    tags = TagIndex.undated({"sa": {"team": "payer"}}, {"lkc": {"team": "operator", "env": "prod"}})
    assert list(tags.resolve("sa", "lkc", DAY).items()) == [("env", "prod"), ("team", "payer")]
    assert tags.resolve("sa", "other", DAY) == {"team": "payer"}
    assert tags.resolve("other", "other", DAY) == {}
    assert (tags.holders("identity", "env"), tags.holders("resource", "env")) == (
        {},
        {"lkc": (DatedValue("prod"),)},
    )
    assert (tags.dated_keys, tags.changes, tags.era(DAY)) == ((), (), 0)


def test_tags_of_some() -> None:
    """Identities and resources are distinct, even with equal ids."""
    tags = TagIndex.undated({"a": {"team": "x"}, "b": {"stage": "y"}}, {"a": {"env": "z"}, "c": {"team": "w"}})
    some = tags.among({"a"}, {"c", "gone"})
    assert (some.keys(), some.pairs()) == (["team"], {("team", "x"), ("team", "w")})


def test_a_value_holds_on_its_days_only() -> None:
    """A value holds from its first day to the day before its end; after the identity's, the resource's applies."""
    team = (DatedValue("a", Period(None, MARCH)), DatedValue("b", Period(MARCH, OCTOBER)))
    tags = TagIndex({"sa": {"team": team}}, {"lkc": {"team": (DatedValue("operator"),), "env": (DatedValue("x"),)}})
    found = {day: tags.resolve("sa", "lkc", day)["team"] for day in (DAY, MARCH, date(2026, 9, 30), OCTOBER)}
    assert list(found.values()) == ["a", "b", "b", "operator"]
    assert tags.holders("identity", "team") == {"sa": team}
    assert (tags.dated_keys, tags.changes) == (("team",), (MARCH, OCTOBER))
    assert [tags.era(day) for day in found] == [0, 1, 1, 2]
    assert tags.pairs() == {("team", "a"), ("team", "b"), ("team", "operator"), ("env", "x")}


def test_tags_are_loaded_again_only_after_a_write(tmp_path: Path) -> None:
    """The same revision returns the same index; a new tag gives a new one."""
    cache = TagCache()
    with control_database("sqlite", tmp_path) as database:
        with database.read() as connection:
            empty = cache.load("acme", connection)
            assert cache.load("acme", connection) is empty
        with database.write() as connection:
            create(connection, "acme", TagWrite("identity", "sa", "team", "y", Period(MARCH)), "me")
            create(connection, "acme", TagWrite("identity", "sa", "team", "x", Period(None, MARCH)), "me")
        with database.read() as connection:
            values = (DatedValue("x", Period(None, MARCH)), DatedValue("y", Period(MARCH)))
            assert cache.load("acme", connection).identities == {"sa": {"team": values}}
