"""Tags are written one by one or many at once, with exact counts, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from chargeback.store.control import tags
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.tags import BulkCounts, TagWrite

AWKWARD = ["lkc-1", "a/b:c%d", "ü'\"\\", "crn://x/y=z", "{}", "100%"]


def _write(database: ControlDatabase, wanted: list[TagWrite], *, override: bool = False) -> BulkCounts:
    with database.write() as connection:
        return tags.write_many(connection, "acme", wanted, created_by="me", override=override)


def _values(database: ControlDatabase) -> dict[tuple[str, str, str], str]:
    with database.read() as connection:
        return {(kind, entity, key): value for kind, entity, key, value in tags.every_tag(connection)}


def test_a_key_is_unique_per_entity(database: ControlDatabase) -> None:
    """A second tag with the same key is refused and changes nothing."""
    tag = TagWrite("resource", "a/b:c%d", "team", "x")
    with database.write() as connection:
        first = tags.create(connection, "acme", tag, "me")
        assert first is not None
        assert (first["tag_value"], first["tenant_id"], first["created_by"]) == ("x", "acme", "me")
        assert tags.create(connection, "acme", TagWrite("resource", "a/b:c%d", "team", "y"), "me") is None
        assert tags.create(connection, "acme", TagWrite("identity", "a/b:c%d", "team", "y"), "me") is not None
    assert _values(database)[tag.place] == "x"


def test_change_and_remove(database: ControlDatabase) -> None:
    """Only what is there can be changed or removed."""
    tag = TagWrite("identity", "sa", "team", "x")
    with database.write() as connection:
        assert tags.change(connection, tag) is None
        assert not tags.remove(connection, tag.place)
        tags.create(connection, "acme", tag, "me")
        changed = tags.change(connection, TagWrite("identity", "sa", "team", "y"))
        assert changed is not None
        assert changed["tag_value"] == "y"
        assert tags.remove(connection, tag.place)
        assert tags.of_entity(connection, "identity", "sa") == []


def test_bulk_writes_count_entry_by_entry(database: ControlDatabase) -> None:
    """New, known and repeated keys are counted as if written one after the other."""
    old = [TagWrite("resource", name, "team", "old") for name in AWKWARD]
    assert _write(database, old) == BulkCounts(created=len(AWKWARD))
    new = [TagWrite("resource", name, "team", "new") for name in AWKWARD]
    more = [TagWrite("identity", "sa", "team", "1"), TagWrite("identity", "sa", "team", "2")]
    assert _write(database, new + more) == BulkCounts(created=1, skipped=len(AWKWARD) + 1)
    assert _values(database)[("identity", "sa", "team")] == "1"
    assert _values(database)[("resource", "a/b:c%d", "team")] == "old"
    assert _write(database, new + more, override=True) == BulkCounts(updated=len(AWKWARD) + 2)
    assert _values(database) == {tag.place: tag.tag_value for tag in new} | {("identity", "sa", "team"): "2"}


def test_many_thousands_at_once(database: ControlDatabase) -> None:
    """A bulk write may be larger than the number of values a statement can have."""
    wanted = [TagWrite("resource", f"r-{number}", "k", "v") for number in range(40_000)]
    assert _write(database, wanted) == BulkCounts(created=40_000)
    assert _write(database, wanted, override=True) == BulkCounts(updated=40_000)


def test_writers_at_the_same_time_count_exactly(database: ControlDatabase) -> None:
    """Of several who write the same tags, one creates each; the others find it."""
    wanted = [TagWrite("resource", f"r-{number}", "k", "v") for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: _write(database, wanted), range(4)))
    assert sorted(count.created for count in counts) == [0, 0, 0, 200]
    assert sum(count.skipped for count in counts) == 600


def test_every_write_raises_the_revision(database: ControlDatabase) -> None:
    """Readers can tell that what they remember is old."""
    revisions = []
    for _ in range(3):
        _write(database, [TagWrite("resource", "r", "k", "v")])
        with database.read() as connection:
            revisions.append(tags.revision(connection))
    assert revisions == [1, 2, 3]


def test_lists_keys_and_values(database: ControlDatabase) -> None:
    """Ordered by entity and key in bytes, whatever the collation; values found in whatever case."""
    names = ["b", "a", "B", "Z", "ä"]
    _write(database, [TagWrite("resource", name, "team", f"Team Ä {name}") for name in names])
    _write(database, [TagWrite("identity", "x", "env", "prod")])
    with database.read() as connection:
        rows, total = tags.listed(connection, entity_type="resource", tag_key=None, offset=0, limit=4)
        assert ([row["entity_id"] for row in rows], total) == (["B", "Z", "a", "b"], 5)
        assert tags.listed(connection, entity_type=None, tag_key="env", offset=0, limit=4)[1] == 1
        assert tags.listed(connection, entity_type=None, tag_key=None, offset=10**30, limit=4) == ([], 6)
        whole, _ = tags.listed(connection, entity_type=None, tag_key="team", offset=0, limit=10)
        assert list(tags.every_listed(connection, entity_type=None, tag_key="team")) == whole
        assert tags.keys(connection) == ["env", "team"]
        assert tags.values(connection, "env") == ["prod"]
        assert tags.values(connection, "team", "äM") == []
        assert tags.values(connection, "team", "TEAM ä Z") == ["Team Ä Z"]


def test_a_preview_is_what_a_write_does(database: ControlDatabase) -> None:
    """Its counts by entity sum to those of the write, and it changes nothing, the revision included."""
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
    """Those that there are, with the awkward ones; a dry run only tells which."""
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
