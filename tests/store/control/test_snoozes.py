"""Findings are snoozed with a reason, and every change is in the audit log, on both databases."""

from __future__ import annotations

from datetime import date

from chargeback.store.control.audit import AuditFilter, audit_entries
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.snoozes import put_snooze, read_snoozes, remove_snooze

DAY = date(2026, 2, 1)


def test_the_life_of_a_snooze(database: ControlDatabase) -> None:
    """A snooze is set, replaced and removed; the log has the user, and the reasons before and after."""
    with database.write() as connection:
        first = put_snooze(connection, "f1", "Kept for the audit", DAY, "ann", who="ann@example.com")
        put_snooze(connection, "f2", "A standby", None, "bob")
        assert read_snoozes(connection)["f1"] == first
        second = put_snooze(connection, "f1", "Kept for good", None, "bob", who="bob@example.com")
        assert read_snoozes(connection)["f1"] == second
        assert remove_snooze(connection, "f1", who="ann@example.com")
        assert not remove_snooze(connection, "f1")
        assert list(read_snoozes(connection)) == ["f2"]
        entries, _ = audit_entries(connection, AuditFilter(), offset=0, limit=10)
    found = {(each["who"], each["what"], each["target"]) for each in entries if each["target"] == "finding/f1"}
    assert found == {
        ("ann@example.com", "finding.snoozed", "finding/f1"),
        ("bob@example.com", "finding.snoozed", "finding/f1"),
        ("ann@example.com", "finding.woken", "finding/f1"),
    }
    (changed,) = (each for each in entries if each["who"] == "bob@example.com")
    assert (changed["before"]["reason"], changed["after"]["reason"]) == ("Kept for the audit", "Kept for good")
    assert (changed["before"]["until"], changed["after"]["until"]) == ("2026-02-01", None)


def test_how_long_it_holds(database: ControlDatabase) -> None:
    """A snooze holds until its day, on which the finding is open again; without a day it holds for ever."""
    with database.write() as connection:
        dated = put_snooze(connection, "f1", "Until February", DAY, "ann")
        for_good = put_snooze(connection, "f2", "For good", None, "ann")
    assert [dated.holds_on(day) for day in (date(2026, 1, 31), DAY)] == [True, False]
    assert for_good.holds_on(date(2999, 1, 1))
