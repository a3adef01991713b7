"""Changes are in the audit log, with the values before and after, in the same transaction."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

from sqlalchemy import select, update

from chargeback.errors import TagConflict
from chargeback.model.dated import DatedValue, Period
from chargeback.model.days import utc_now
from chargeback.store.control import schema, tags, views
from chargeback.store.control.audit import (
    KEPT,
    KINDS,
    AuditEntry,
    AuditFilter,
    audit_entries,
    delete_expired,
    has_expired,
    record,
)
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.tags import TagWrite
from chargeback.store.control.views import ViewWrite

ALL = AuditFilter()
MARCH, OCTOBER = date(2026, 3, 1), date(2026, 10, 1)
DATES = ("valid_from", "valid_to")


def entries(database: ControlDatabase, wanted: AuditFilter = ALL) -> list[Any]:
    """Return the log, the newest first."""
    with database.read() as connection:
        return audit_entries(connection, wanted, offset=0, limit=10_000)[0]


def replayed(log: list[Any], prefix: str) -> dict[str, Any]:
    """Return the state after replaying a log, each entry of which must match the state before it."""
    state: dict[str, Any] = {}
    for entry in reversed(log):
        if entry["what"].startswith(prefix):
            assert state.get(entry["target"]) == entry["before"]
            state[entry["target"]] = entry["after"]
    return {target: values for target, values in state.items() if values is not None}


def replayed_tags(log: list[Any]) -> list[tuple[str, DatedValue]]:
    """Return the same for tags; a target may have several, with dates."""
    state: list[tuple[str, DatedValue]] = []
    for entry in reversed(log):
        if entry["what"].startswith("tag."):
            if entry["before"] is not None:
                state.remove((entry["target"], dated(entry["before"])))
            if entry["after"] is not None:
                state.append((entry["target"], dated(entry["after"])))
    return sorted(state, key=repr)


def dated(values: dict[str, str]) -> DatedValue:
    """Return a tag from its values in the log."""
    first, end = (None if (day := values.get(name)) is None else date.fromisoformat(day) for name in DATES)
    return DatedValue(values["tag_value"], Period(first, end))


def fail_if(condition: bool) -> None:
    """Fail, as if the process had ended before its transaction."""
    if condition:
        raise LookupError


def test_the_log_explains_the_state(database: ControlDatabase) -> None:
    """After 500 random changes of tags and views, single and in bulk, replaying the log gives the stored state; it has
    no entry that changes nothing, and none of a failed transaction."""
    random_ = random.Random(23)

    def tag() -> TagWrite:
        return TagWrite(
            random_.choice(["resource", "identity"]),
            random_.choice("ab"),
            random_.choice(["team", "env"]),
            random_.choice("xy"),
            random_.choice([Period(), Period(), Period(MARCH), Period(MARCH, OCTOBER), Period(None, MARCH)]),
        )

    def view() -> ViewWrite:
        return ViewWrite(f"v{random_.randrange(10**9)}", "costs", random_.choice(["", "period=7d"]))

    for number in range(500):
        who = random_.choice(["api", "alice"])
        with suppress(LookupError, TagConflict), database.write() as connection:
            match random_.randrange(8):
                case 0:
                    tags.create(connection, "acme", tag(), "me", who=who)
                case 1:
                    tags.change(connection, "acme", tag(), who=who)
                case 2:
                    tags.remove(connection, tag().entity_key, who=who)
                case 3:
                    some = [tag() for _ in range(random_.randrange(5))]
                    override = random_.random() < 0.5
                    tags.write_many(connection, "acme", some, created_by="me", override=override, who=who)
                case 4:
                    tags.remove_many(connection, [tag().entity_key, tag().entity_key], who=who)
                case 5:
                    views.create_view(connection, view(), "me", who=who)
                case 6:
                    views.change_view(connection, random_.randrange(1, 60), view(), who=who)
                case _:
                    views.remove_view(connection, random_.randrange(1, 60), who=who)
            fail_if(number % 7 == 0)
    log = entries(database)
    with database.read() as connection:
        found = [(f"{kind}/{entity}/{key}", held) for kind, entity, key, held in tags.every_tag(connection)]
        saved = {
            f"view/{row.id}": {"name": row.name, "page": row.page, "query": row.query}
            for row in connection.execute(select(schema.views))
        }
    assert replayed_tags(log) == sorted(found, key=repr)
    assert replayed(log, "view.") == saved
    assert all(entry["before"] != entry["after"] for entry in log)
    assert {entry["who"] for entry in log} == {"api", "alice"}
    assert {entry["what"] for entry in log} <= set(KINDS)


def test_filters_and_pages(database: ControlDatabase) -> None:
    """The log is filtered by kind, caller and time; a page starts with the newest entries, and has the total."""
    now = utc_now()
    with database.write() as connection:
        for number in range(6):
            record(connection, "ab"[number % 2], [AuditEntry(KINDS[number % 3], f"t{number}")])
            at = now - timedelta(hours=6 - number)
            connection.execute(update(schema.audit).where(schema.audit.c.target == f"t{number}").values(at=at))
    assert [entry["target"] for entry in entries(database)] == ["t5", "t4", "t3", "t2", "t1", "t0"]
    assert [entry["target"] for entry in entries(database, AuditFilter(what=KINDS[0]))] == ["t3", "t0"]
    assert [entry["target"] for entry in entries(database, AuditFilter(who="a"))] == ["t4", "t2", "t0"]
    between = AuditFilter(start=now - timedelta(hours=4), end=now - timedelta(hours=2))
    assert [entry["target"] for entry in entries(database, between)] == ["t3", "t2"]
    with database.read() as connection:
        rows, count = audit_entries(connection, ALL, offset=4, limit=1)
        assert ([row["target"] for row in rows], count) == (["t1"], 6)
        assert audit_entries(connection, ALL, offset=6, limit=1) == ([], 6)


def test_entries_expire(database: ControlDatabase) -> None:
    """Entries are deleted after 400 days."""
    now = utc_now()
    with database.write() as connection:
        record(connection, "api", [AuditEntry(KINDS[0], "old"), AuditEntry(KINDS[0], "new" * 1000)])
        connection.execute(
            update(schema.audit).where(schema.audit.c.target == "old").values(at=now - KEPT - timedelta(seconds=1))
        )
    with database.write() as connection:
        assert has_expired(connection, now)
        delete_expired(connection, now)
        assert not has_expired(connection, now)
    (left,) = entries(database)
    assert len(left["target"]) == 2000
