"""Cost categories are stored with every version, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection

from chargeback.errors import EditConflict
from chargeback.model.days import render_instant
from chargeback.store.control import cost_categories as store
from chargeback.store.control.audit import AuditFilter, audit_entries
from chargeback.store.control.catalogue import instant_of_change
from chargeback.store.control.cost_categories import CategoryVersion, CategoryWrite
from chargeback.store.control.database import ControlDatabase
from tests.support.clock import NOW

KEY = "cost_center"
AT = render_instant(NOW)


def write(
    connection: Connection, document: str | None, expected: int | None, when: datetime = NOW, reason: str | None = None
) -> CategoryVersion:
    """Write a version at an instant."""
    wanted = CategoryWrite(KEY, document, reason)
    return store.write_category(connection, wanted, expected=expected, who="ann", clock=lambda: when)


def test_the_life_of_a_category(database: ControlDatabase) -> None:
    """A category is created, changed, removed and created again; version numbers continue, and each version is kept."""
    with database.write() as connection:
        assert store.last_version(connection, KEY) is None
        first = write(connection, "{}", None, reason="CHG-1")
        assert first == CategoryVersion(KEY, 1, "{}", "ann", NOW, "CHG-1")
        second = write(connection, '{"rules": []}', 1)
        gone = write(connection, None, 2)
        assert store.read_category(connection, KEY) is None
        assert store.list_categories(connection) == []
        last = write(connection, "{}", None)
        assert [each.version for each in (first, second, gone, last)] == [1, 2, 3, 4]
    with database.read() as connection:
        assert store.read_category(connection, KEY) == last
        assert store.list_categories(connection) == [last]
        assert store.category_history(connection, KEY, offset=0, limit=3) == ([last, gone, second], 4)
        assert store.category_history(connection, KEY, offset=3, limit=3) == ([first], 4)
        assert store.category_history(connection, "other", offset=0, limit=3) == ([], 0)
        assert store.read_version(connection, KEY, 3) == gone
        assert store.read_version(connection, KEY, 5) is None
        assert store.read_version(connection, "other", 1) is None


def test_categories_as_of_an_instant(database: ControlDatabase) -> None:
    """Each category is returned as in force at the instant; removed and later ones are left out."""
    hours = [NOW + timedelta(hours=n) for n in range(4)]
    with database.write() as connection:
        one = write(connection, "1", None, hours[0])
        two = write(connection, "2", 1, hours[1])
        write(connection, None, 2, hours[2])
        other = store.write_category(
            connection, CategoryWrite("Team", "3"), expected=None, who="bob", clock=lambda: hours[2]
        )
    with database.read() as connection:
        assert store.list_categories(connection, hours[0] - timedelta(microseconds=1)) == []
        assert store.list_categories(connection, hours[0]) == [one]
        assert store.list_categories(connection, hours[2] - timedelta(microseconds=1)) == [two]
        assert store.list_categories(connection, hours[3]) == [other]


def test_a_clock_that_is_set_back(database: ControlDatabase) -> None:
    """Versions stay ordered by time, and results as of an earlier instant do not change."""
    with database.write() as connection:
        write(connection, "1", None, NOW)
        at = write(connection, "2", 1, NOW - timedelta(hours=1)).at
        assert at > NOW
        assert [each.version for each in store.list_categories(connection, NOW)] == [1]
        assert [each.version for each in store.list_categories(connection, at)] == [2]
        of_files = instant_of_change(connection, NOW - timedelta(hours=1))
        assert of_files > at


@pytest.mark.parametrize(
    ("versions", "expected", "message"),
    [
        ([], 1, "there is no cost category cost_center"),
        (["1"], None, f"ann created cost_center at {AT} (version 1, reason: CHG-1)"),
        (["1", "2"], 1, f"ann changed cost_center at {AT} (version 2, reason: CHG-2)"),
        (["1", None], 1, f"ann removed cost_center at {AT} (version 2, reason: CHG-2)"),
    ],
)
def test_someone_was_faster(
    database: ControlDatabase, versions: list[str | None], expected: int | None, message: str
) -> None:
    """A change of a version that was replaced meanwhile is refused with the name of the editor, and nothing is
    written."""
    with database.write() as connection:
        for number, document in enumerate(versions):
            write(connection, document, number or None, reason=f"CHG-{number + 1}")
    with database.read() as connection:
        before = store.categories_revision(connection)
    with pytest.raises(EditConflict) as error, database.write() as connection:
        write(connection, "new", expected)
    assert str(error.value) == message
    with database.read() as connection:
        assert store.category_history(connection, KEY, offset=0, limit=9)[1] == len(versions)
        assert store.categories_revision(connection) == before


def test_of_many_editors_one_wins(database: ControlDatabase) -> None:
    """Of many that replace the same version, one succeeds, and the others get an error."""
    with database.write() as connection:
        write(connection, "{}", None)

    def _edit(number: int) -> bool:
        try:
            with database.write() as connection:
                write(connection, f"{number}", 1)
        except EditConflict:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(_edit, range(6))) == 1


def test_every_write_is_in_the_audit_log(database: ControlDatabase) -> None:
    """The log has version and reason before and after each write, and each write raises the revision."""
    with database.write() as connection:
        before = store.categories_revision(connection)
        write(connection, "1", None, reason="new")
        write(connection, "2", 1)
        write(connection, None, 2, reason="not used")
    with database.read() as connection:
        log, total = audit_entries(connection, AuditFilter(), offset=0, limit=9)
        assert store.categories_revision(connection) == before + 3
    assert total == 3
    assert [(each["who"], each["what"], each["target"], each["before"], each["after"]) for each in reversed(log)] == [
        ("ann", "category.created", "category/cost_center", None, {"version": 1, "reason": "new"}),
        (
            *("ann", "category.changed", "category/cost_center"),
            *({"version": 1, "reason": "new"}, {"version": 2, "reason": None}),
        ),
        ("ann", "category.removed", "category/cost_center", {"version": 2, "reason": None}, None),
    ]
