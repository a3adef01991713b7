"""Links of an explanation: relative, encoded, and as of the same instant."""

from __future__ import annotations

from datetime import UTC, date, datetime

from chargeback.reports.explain.links import chargeback_link, links, topic_link

INSTANT = datetime(2026, 2, 1, 12, tzinfo=UTC)


def test_from_rows() -> None:
    """A link has the key of the row and the instant as of which the list was read."""
    row = {
        "timestamp": "2026-01-31T05:00:00Z",
        "identity_id": "User:a&b",
        "topic_name": "orders",
        "metadata": {"line_id": "1f", "portion": 2},
    }
    key = "date=2026-01-31&line_id=1f"
    assert chargeback_link(row, None) == f"chargebacks/explain?{key}&identity_id=User%3Aa%26b&portion=2"
    assert topic_link(row, INSTANT) == (
        f"topic-attributions/explain?{key}&topic_name=orders&as_of=2026-02-01T12%3A00%3A00Z"
    )


def test_from_explanations() -> None:
    """An explanation links to its rows, its policy, and the revisions of the day."""
    found = links(date(2026, 1, 31), "1f", None, rows="chargebacks")
    assert found.rows == "../chargebacks?start_date=2026-01-31&end_date=2026-01-31&line_id=1f"
    assert found.policy is None
    assert links(date(2026, 1, 31), "1f", None, rows="chargebacks", policy="ab").policy == "../policies?hash=ab"
    assert found.revisions == "../days/2026-01-31/revisions"
