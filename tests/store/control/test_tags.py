"""Tags are written one by one or in bulk, with exact counts, on both databases."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import date

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from chargeback.errors import TagConflict
from chargeback.model.dated import Period
from chargeback.model.days import utc_now
from chargeback.store.control import schema, tags
from chargeback.store.control.audit import TAG_CHANGED, TAG_CREATED, TAG_REMOVED, AuditFilter, audit_entries
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.tags import BulkCounts, TagMatch, TagWrite

AWKWARD = ["lkc-1", "a/b:c%d", "ü'\"\\", "crn://x/y=z", "{}", "100%"]


def _write(database: ControlDatabase, wanted: list[TagWrite], *, override: bool = False) -> BulkCounts:
    with database.write() as connection:
        return tags.write_many(connection, "acme", wanted, created_by="me", override=override)


def _values(database: ControlDatabase) -> dict[tuple[str, str, str], str]:
    with database.read() as connection:
        return {(kind, entity, key): held.value for kind, entity, key, held in tags.every_tag(connection)}


def test_a_key_is_unique_per_entity(database: ControlDatabase) -> None:
    """A second tag with the same key is refused and changes nothing."""
    tag = TagWrite("resource", "a/b:c%d", "team", "x")
    with database.write() as connection:
        first = tags.create(connection, "acme", tag, "me")
        assert first is not None
        assert (first["tag_value"], first["tenant_id"], first["created_by"]) == ("x", "acme", "me")
        assert tags.create(connection, "acme", TagWrite("resource", "a/b:c%d", "team", "y"), "me") is None
        assert tags.create(connection, "acme", TagWrite("identity", "a/b:c%d", "team", "y"), "me") is not None
    assert _values(database)[tag.entity_key] == "x"


def test_change_and_remove(database: ControlDatabase) -> None:
    """Only existing tags can be changed or removed."""
    tag = TagWrite("identity", "sa", "team", "x")
    with database.write() as connection:
        assert tags.change(connection, "acme", tag) is None
        assert not tags.remove(connection, tag.entity_key)
        tags.create(connection, "acme", tag, "me")
        changed = tags.change(connection, "acme", TagWrite("identity", "sa", "team", "y"))
        assert changed is not None
        assert changed["tag_value"] == "y"
        assert tags.remove(connection, tag.entity_key)
        assert tags.of_entity(connection, "identity", "sa") == []


def test_bulk_writes_count_entry_by_entry(database: ControlDatabase) -> None:
    """New, known and repeated keys are counted as if written one by one."""
    old = [TagWrite("resource", name, "team", "old") for name in AWKWARD]
    assert _write(database, old) == BulkCounts(created=len(AWKWARD))
    new = [TagWrite("resource", name, "team", "new") for name in AWKWARD]
    more = [TagWrite("identity", "sa", "team", "1"), TagWrite("identity", "sa", "team", "2")]
    assert _write(database, new + more) == BulkCounts(created=1, skipped=len(AWKWARD) + 1)
    assert _values(database)[("identity", "sa", "team")] == "1"
    assert _values(database)[("resource", "a/b:c%d", "team")] == "old"
    assert _write(database, new + more, override=True) == BulkCounts(updated=len(AWKWARD) + 2)
    assert _values(database) == {tag.entity_key: tag.tag_value for tag in new} | {("identity", "sa", "team"): "2"}


@pytest.mark.extensive
def test_many_thousands_at_once(database: ControlDatabase) -> None:
    """A bulk write may have more values than a statement can have."""
    wanted = [TagWrite("resource", f"r-{number}", "k", "v") for number in range(15_000)]
    assert _write(database, wanted) == BulkCounts(created=15_000)
    assert _write(database, wanted, override=True) == BulkCounts(updated=15_000)


def test_writers_at_the_same_time_count_exactly(database: ControlDatabase) -> None:
    """Of several processes that write the same tags, one creates each; the others skip it."""
    wanted = [TagWrite("resource", f"r-{number}", "k", "v") for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: _write(database, wanted), range(4)))
    assert sorted(count.created for count in counts) == [0, 0, 0, 200]
    assert sum(count.skipped for count in counts) == 600


def test_every_write_raises_the_revision(database: ControlDatabase) -> None:
    """Every write raises the revision, so that readers notice outdated caches."""
    revisions = []
    for _ in range(3):
        _write(database, [TagWrite("resource", "r", "k", "v")])
        with database.read() as connection:
            revisions.append(tags.revision(connection))
    assert revisions == [1, 2, 3]


def test_lists_keys_and_values(database: ControlDatabase) -> None:
    """Tags are ordered by the bytes of entity and key, for any collation; values are found in any case."""
    names = ["b", "a", "B", "Z", "ä"]
    _write(database, [TagWrite("resource", name, "team", f"Team Ä {name}") for name in names])
    _write(database, [TagWrite("identity", "x", "env", "prod")])
    with database.read() as connection:
        rows, total = tags.listed(connection, TagMatch("resource"), offset=0, limit=4)
        assert ([row["entity_id"] for row in rows], total) == (["B", "Z", "a", "b"], 5)
        assert tags.listed(connection, TagMatch(tag_key="env"), offset=0, limit=4)[1] == 1
        assert tags.listed(connection, TagMatch(), offset=10**30, limit=4) == ([], 6)
        whole, _ = tags.listed(connection, TagMatch(tag_key="team"), offset=0, limit=10)
        assert list(tags.every_listed(connection, TagMatch(tag_key="team"))) == whole
        assert tags.keys(connection) == ["env", "team"]
        assert tags.values(connection, TagMatch(tag_key="env")) == ["prod"]
        assert tags.values(connection, TagMatch(tag_key="team"), "äM") == []
        assert tags.values(connection, TagMatch(tag_key="team"), "TEAM ä Z") == ["Team Ä Z"]


def test_tags_of_some_entities(database: ControlDatabase) -> None:
    """Lists, keys and values have only the tags of the given entities."""
    _write(database, [TagWrite("resource", name, "team", f"of {name}") for name in AWKWARD])
    _write(database, [TagWrite("identity", AWKWARD[0], "env", "prod")])
    some = {"resource": {AWKWARD[0]}, "identity": set[str]()}
    with database.read() as connection:
        rows, total = tags.listed(connection, TagMatch(entities=some), offset=0, limit=100)
        assert ([row["entity_id"] for row in rows], total) == ([AWKWARD[0]], 1)
        assert list(tags.every_listed(connection, TagMatch("identity", entities=some))) == []
        assert tags.keys(connection, some) == ["team"]
        assert tags.values(connection, TagMatch(tag_key="team", entities=some)) == [f"of {AWKWARD[0]}"]
        assert tags.keys(connection, {}) == []


def test_a_preview_is_what_a_write_does(database: ControlDatabase) -> None:
    """The counts of a preview sum to those of the write, and it changes nothing, not even the revision."""
    _write(database, [TagWrite("resource", name, "team", "old") for name in AWKWARD[:2]])
    wanted = [TagWrite("resource", name, "team", value) for name in AWKWARD for value in ("1", "2")]
    before = _values(database)
    for override in (False, True):
        with database.read() as connection:
            revision = tags.revision(connection)
            preview = tags.preview_writes(connection, wanted, override=override)
            assert tags.revision(connection) == revision
        assert _values(database) == before
        assert list(preview) == sorted(("resource", name) for name in AWKWARD)
        assert preview[("resource", AWKWARD[2])] == BulkCounts(1, int(override), int(not override))
        with database.write() as connection:
            done = tags.write_many(connection, "acme", wanted, created_by="me", override=override)
            assert sum(preview.values(), BulkCounts()) == done
            connection.rollback()


def test_many_are_removed_at_once(database: ControlDatabase) -> None:
    """Existing tags are removed, also with special characters; a dry run only lists them."""
    _write(database, [TagWrite("resource", name, key, "x") for name in AWKWARD for key in ("team", "env")])
    places = {("resource", name, "team") for name in [*AWKWARD, "unknown"]}
    with database.read() as connection:
        found = tags.remove_many(connection, places, dry_run=True)
    assert found == {("resource", name, "team") for name in AWKWARD}
    assert len(_values(database)) == 2 * len(AWKWARD)
    with database.write() as connection:
        revision = tags.revision(connection)
        assert tags.remove_many(connection, places) == found
        assert tags.revision(connection) > revision
        assert tags.remove_many(connection, places) == set()
    assert _values(database).keys() == {("resource", name, "env") for name in AWKWARD}


MARCH, OCTOBER = date(2026, 3, 1), date(2026, 10, 1)


def _dated(value: str, first: date | None = None, end: date | None = None, entity: str = "sa") -> TagWrite:
    return TagWrite("identity", entity, "team", value, Period(first, end))


def _periods(database: ControlDatabase, entity: str = "sa") -> list[str]:
    with database.read() as connection:
        rows = tags.of_entity(connection, "identity", entity)
    return [f"{row['tag_value']} {Period(row['valid_from'], row['valid_to'])}" for row in rows]


def test_a_value_ends_where_the_next_one_begins(database: ControlDatabase) -> None:
    """The value before is kept; another change on the same day replaces the value that begins then."""
    with database.write() as connection:
        tags.create(connection, "acme", _dated("x"), "me")
        row = tags.change(connection, "acme", _dated("y", MARCH), who="ann")
        assert row is not None
        assert (row["tag_value"], row["valid_from"], row["valid_to"], row["created_by"]) == ("y", MARCH, None, "ann")
    assert _periods(database) == ["x until 2026-03-01", "y since 2026-03-01"]
    with database.write() as connection:
        row = tags.change(connection, "acme", _dated("z", MARCH, OCTOBER))
        assert row is not None
        assert (row["tag_value"], row["valid_to"], row["created_by"]) == ("z", OCTOBER, "ann")
        assert tags.create(connection, "acme", _dated("late", OCTOBER), "me") is not None
        assert tags.create(connection, "acme", _dated("late", OCTOBER), "me") is None
        assert tags.create(connection, "acme", _dated("late"), "me") is None
    assert _periods(database) == ["x until 2026-03-01", "z 2026-03-01 to 2026-10-01", "late since 2026-10-01"]


def test_overlaps_are_refused_and_change_nothing(database: ControlDatabase) -> None:
    """Overlaps are refused in single and in bulk writes, where one such entry refuses all."""
    with database.write() as connection:
        tags.create(connection, "acme", _dated("x", MARCH, OCTOBER), "me")
    message = re.escape("cannot be 'y' since 2026-01-01: it is 'x' 2026-03-01 to 2026-10-01")
    early = _dated("y", date(2026, 1, 1))
    for attempt in (
        lambda connection: tags.create(connection, "acme", early, "me"),
        lambda connection: tags.change(connection, "acme", early),
        lambda connection: tags.write_many(
            connection, "acme", [_dated("n", entity="other"), early], created_by="me", override=True
        ),
        lambda connection: tags.preview_writes(connection, [early], override=False),
    ):
        with pytest.raises(TagConflict, match=message), database.write() as connection:
            attempt(connection)
    assert (_periods(database), _periods(database, "other")) == (["x 2026-03-01 to 2026-10-01"], [])


def test_without_dates_the_only_value_changes(database: ControlDatabase) -> None:
    """Of several values, only ``replace_periods`` replaces all, by one without dates."""
    with database.write() as connection:
        tags.create(connection, "acme", _dated("x", MARCH), "me")
        tags.change(connection, "acme", _dated("y"))
    assert _periods(database) == ["y since 2026-03-01"]
    with database.write() as connection:
        tags.create(connection, "acme", _dated("x", None, MARCH), "me")
    with pytest.raises(TagConflict), database.write() as connection:
        tags.change(connection, "acme", _dated("z"))
    assert _write(database, [_dated("z")]) == BulkCounts(skipped=1)
    with pytest.raises(TagConflict):
        _write(database, [_dated("z")], override=True)
    assert _periods(database) == ["x until 2026-03-01", "y since 2026-03-01"]
    with database.write() as connection:
        row = tags.change(connection, "acme", _dated("z"), replace_periods=True)
        assert row is not None
        assert row["valid_from"] is None
    assert _periods(database) == ["z for ever"]


def test_bulk_writes_with_dates(database: ControlDatabase) -> None:
    """Bulk writes act as if written one by one, on many entities at once."""
    entities = ["sa", "b", "c"]
    _write(database, [_dated("old", entity=entity) for entity in entities])
    moved = [_dated("new", MARCH, entity=entity) for entity in entities]
    more = [_dated("later", OCTOBER, entity="sa"), _dated("first", MARCH, entity="d")]
    assert _write(database, moved + more, override=True) == BulkCounts(created=1, updated=4)
    assert _periods(database) == [
        "old until 2026-03-01",
        "new 2026-03-01 to 2026-10-01",
        "later since 2026-10-01",
    ]
    assert _periods(database, "b") == ["old until 2026-03-01", "new since 2026-03-01"]
    assert _write(database, moved[1:]) == BulkCounts(skipped=2)
    with database.write() as connection:
        replaced = tags.write_many(
            connection,
            "acme",
            [_dated("all", entity=entity) for entity in entities],
            created_by="me",
            override=True,
            replace_periods=True,
        )
    assert (replaced, _periods(database)) == (BulkCounts(updated=3), ["all for ever"])


def test_one_value_is_removed_or_all(database: ControlDatabase) -> None:
    """A single value is removed by the day on which it begins, if any; in bulk, all values are removed."""
    for entity in ("sa", "b"):
        _write(database, [_dated("x", None, MARCH, entity), _dated("y", MARCH, OCTOBER, entity)])
    place = _dated("").entity_key
    with database.write() as connection:
        assert not tags.remove(connection, place, Period(OCTOBER))
        assert tags.remove(connection, place, Period())
    assert _periods(database) == ["y 2026-03-01 to 2026-10-01"]
    with database.write() as connection:
        assert tags.remove(connection, place, Period(MARCH))
        assert tags.remove_many(connection, [("identity", "b", "team")]) == {("identity", "b", "team")}
    assert (_periods(database), _periods(database, "b")) == ([], [])


def test_the_database_refuses_two_values_that_begin_together(database: ControlDatabase) -> None:
    """Two values may not begin on the same day, nor both without one."""
    row = {"tenant_id": "acme", "entity_type": "identity", "entity_id": "sa", "tag_key": "team", "created_by": "me"}
    for first in (None, MARCH):
        for value in ("x", "y"):
            values = row | {"tag_value": value, "valid_from": first, "created_at": utc_now(), "known_from": utc_now()}
            with nullcontext() if value == "x" else pytest.raises(IntegrityError), database.write() as connection:
                connection.execute(insert(schema.tags).values(values))


def test_the_audit_log_has_the_dates(database: ControlDatabase) -> None:
    """The end of a value is logged as a change, a new period as a new tag; without dates, the log has none."""
    with database.write() as connection:
        tags.create(connection, "acme", _dated("x"), "me")
        tags.change(connection, "acme", _dated("y", MARCH))
        tags.remove(connection, _dated("").entity_key, Period())
    with database.read() as connection:
        found, _ = audit_entries(connection, AuditFilter(), offset=0, limit=10)
    assert [(row["what"], row["target"], row["before"], row["after"]) for row in reversed(found)] == [
        (TAG_CREATED, "identity/sa/team", None, {"tag_value": "x"}),
        (
            TAG_CHANGED,
            "identity/sa/team",
            {"tag_value": "x"},
            {"tag_value": "x", "valid_to": "2026-03-01"},
        ),
        (TAG_CREATED, "identity/sa/team", None, {"tag_value": "y", "valid_from": "2026-03-01"}),
        (TAG_REMOVED, "identity/sa/team", {"tag_value": "x", "valid_to": "2026-03-01"}, None),
    ]
