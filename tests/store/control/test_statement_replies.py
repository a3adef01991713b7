"""Replies of recipients are stored, in order and in the audit log, on both databases."""

from __future__ import annotations

from datetime import date

from chargeback.store.control.audit import AuditFilter, audit_entries
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.events import read_events
from chargeback.store.control.statement_replies import (
    ACKNOWLEDGED,
    DISPUTED,
    StatementKey,
    add_reply,
    last_reply,
    read_replies,
)

OCTOBER = ("2026-10", "category:cost_center")
FIRST = StatementKey("CB-acme-2026-10-cost_center.payments-r1", *OCTOBER, "payments", 1, "one")
OTHER = StatementKey("CB-acme-2026-10-tag.team.payments-r1", "2026-10", "tag:team", "payments", 1, "other")


def test_replies_are_kept_in_order(database: ControlDatabase) -> None:
    """Replies are ordered by month, grouping and value; each changes the revision of the month, and is recorded with
    its author."""
    with database.write() as connection:
        assert last_reply(connection, *OCTOBER) == 0
        first = add_reply(connection, FIRST, DISPUTED, "Too much?", date(2026, 10, 9), "ann", who="ann@example.com")
        mark = last_reply(connection, *OCTOBER)
        second = add_reply(connection, FIRST, ACKNOWLEDGED, "All right", None, "bob", who="bob@example.com")
        assert last_reply(connection, *OCTOBER) > mark > 0
        add_reply(connection, OTHER, ACKNOWLEDGED, "Booked", None, "cid")
        assert read_replies(connection, *OCTOBER) == {"payments": [first, second]}
        assert read_replies(connection, "2026-09", OCTOBER[1]) == {}
        entries, _ = audit_entries(connection, AuditFilter(who="ann@example.com"), offset=0, limit=10)
        (event,) = read_events(connection, after=0, kind=None, limit=9)
    assert (event["kind"], event["subject"]) == ("statement.disputed", f"statement/{FIRST.number}")
    assert event["body"] == {"note": "Too much?", "by": "ann", "period_id": "2026-10", "value": "payments"}
    (entry,) = entries
    assert (entry["what"], entry["target"]) == ("statement.disputed", f"statement/{FIRST.number}")
    assert (entry["before"], entry["after"]) == (None, first.as_json())
