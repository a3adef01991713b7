"""Messages made from events."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from chargeback.config.notifications import EventKind
from chargeback.notifications.message import message_of, try_message
from tests.support.clock import NOW

BUDGET: dict[str, Any] = {
    **{"name": "Payments", "period_id": "2026-11", "on": "actual", "percent": "80.0", "amount": "1000"},
    **{"to_date": "812.346", "expected": "1100.00", "currency": "USD"},
}
ANOMALY: dict[str, Any] = {"sentence": "a was charged $17.50, 3.5 times the usual $5.00", "impact": "12.50"} | {
    **{"currency": "USD", "more": 0, "first_date": "2026-11-03", "last_date": "2026-11-04"},
}
COMMITTED: dict[str, Any] = {"commitment": "all", "committed": "1000.00", "drawn": "321.00", "currency": "USD"} | {
    **{"start_date": "2026-11-01", "end_date": "2026-11-30"},
}
SAID: dict[str, tuple[str, dict[str, Any], str]] = {
    "period.closed": ("period/2026-10", {"posted": "1234.567", "currency": "USD"}, "2026-10 was closed; 1,234.57 USD"),
    "period.reopened": ("period/2026-10", {}, "2026-10 was opened again."),
    "period.sealed": ("period/2026-10", {}, "2026-10 was sealed"),
    "correction.posted": (
        "period/2026-11",
        {"amount": "-12.3", "currency": "USD", "charge_period": "2026-10", "period_id": "2026-11"},
        "a correction of -12.30 USD for 2026-10 was posted to 2026-11.",
    ),
    "budget.crossed": (
        "budget/payments",
        BUDGET,
        "the budget Payments has reached 80 % of its amount in 2026-11: 812.35 USD of 1,000.00 USD to date, "
        "1,100.00 USD expected at the end of the month.",
    ),
    "budget.cleared": (
        "budget/payments",
        BUDGET | {"on": "forecast", "expected": None},
        "is below 80 % of its amount by the forecast again in 2026-11: 812.35 USD of 1,000.00 USD to date.",
    ),
    "budget.late": ("budget/payments", BUDGET | {"on": "pace"}, "by costs that came late in 2026-11"),
    "anomaly.opened": ("anomaly/1", ANOMALY | {"more": 7}, "the usual $5.00. 7 more stand out."),
    "anomaly.grew": ("anomaly/1", ANOMALY, "the usual $5.00. It has grown to 12.50 USD."),
    "anomaly.resolved": ("anomaly/1", ANOMALY, "the usual $5.00. It is over: 12.50 USD altogether."),
    "anomaly.withdrawn": ("anomaly/1", {"first_date": "2026-11-03", "currency": "USD"}, "what stood out on 2026-11-03"),
    "shadow.ready": ("shadow/next", {"days": 30}, "the shadow next has 30 complete days."),
    "shadow.ended": ("shadow/next", {"end": "2026-12-01"}, "the shadow next has ended"),
    "sink.dead": ("sink/chat", {"error": "the receiver answered 410"}, "chat any more: the receiver answered 410."),
    "period.ready": ("period/2026-10", {"days": 31}, "all 31 days of 2026-10 are calculated; it can be closed."),
    "statement.issued": ("statement/2026-10", {"period_id": "2026-10"}, "the statements of 2026-10 are issued."),
    "invoice.differs": (
        "invoice/2026-10",
        {"difference": "-12.345", "invoiced": "1000.00", "billed": "1012.345", "currency": "USD"},
        "the invoices of 2026-10 are 12.34 USD less than its bill: 1,000.00 USD instead of 1,012.34 USD.",
    ),
    "statement.disputed": (
        "statement/S-2026-10-payments",
        {"note": "Not ours.", "by": "ann", "period_id": "2026-10", "value": "payments"},
        "ann disputes the statement S-2026-10-payments: Not ours.",
    ),
    "run.failed": (
        "run/7",
        {"error": "the bill is not there", "errors": 2},
        "a run has failed: the bill is not there.",
    ),
    "tenant.suspended": (
        "tenant/acme",
        {"reason": "gathering failed 5 times in a row."},
        "its bill is no longer gathered: gathering failed 5 times in a row.",
    ),
    "contract.pace": (
        "contract/main",
        COMMITTED | {"unit": None, "pace": 0.4567, "shortfall": "123.40"},
        "1,000.00 USD of 2026-11-01 to 2026-11-30 (all of the contract main): 321.00 USD drawn, 46% of what is for "
        "these days; 123.40 USD may be left at the end.",
    ),
    "contract.exhausted": (
        "contract/main",
        COMMITTED | {"unit": "GB"},
        "1,000 GB of 2026-11-01 to 2026-11-30 (all of the contract main) is used up.",
    ),
    "contract.ending": (
        "contract/main",
        {"issuer": "Confluent", "end_date": "2026-12-31"},
        "the contract main with Confluent ends on 2026-12-31.",
    ),
    "digest.weekly": (
        "digest/2026-11-16",
        {
            **{
                "amount": "100.00",
                "before": "100.001",
                "currency": "USD",
                "changes": [],
                "stands_out": [],
                "budgets": [],
            },
            **{
                "start_date": "2026-11-16",
                "end_date": "2026-11-22",
                "unused": [],
                "unused_more": 0,
                "unallocated": "0.00",
            },
        },
        "100.00 USD in the week from 2026-11-16 to 2026-11-22, as much as in the week before.",
    ),
}


def event_of(kind: str, subject: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return an event as stored in the outbox."""
    return {"kind": kind, "subject": subject, "body": body, "at": NOW, "dedupe_key": f"{kind} {subject}"}


@pytest.mark.parametrize("kind", get_args(EventKind))
def test_every_kind_has_a_sentence(kind: str) -> None:
    """Every kind of event has a sentence that names the tenant, and a link."""
    subject, body, said = SAID[kind]
    message = message_of("acme", event_of(kind, subject, body), "https://costs.example.com/ui/")
    assert message.sentence.startswith("acme: ")
    assert said in message.sentence
    assert message.link is not None
    assert message.link.startswith("https://costs.example.com/ui/acme/")


def test_a_message_has_one_id_for_ever() -> None:
    """A message keeps its id; another tenant or another occurrence has a different one."""
    event = event_of("shadow.ready", "shadow/next", {"days": 30})
    first, again = message_of("acme", event, None), message_of("acme", dict(event), "https://x")
    others = [message_of("globex", event, None), message_of("acme", event | {"dedupe_key": "other"}, None)]
    assert first.id == again.id
    assert len({first.id, *(each.id for each in others)}) == 3
    assert first.link is None


def test_a_name_breaks_no_line() -> None:
    """Line breaks in a name are removed, because the sentence is the subject of a mail."""
    message = message_of("acme", event_of("budget.late", "budget/x", BUDGET | {"name": "a\r\nBcc: you"}), None)
    assert "the budget a Bcc: you has" in message.sentence
    assert "\n" not in message.sentence


def test_the_payload_is_thin() -> None:
    """The payload has a type, a time, the tenant, and the event with its subject."""
    payload = try_message("acme", "desk", NOW, "https://x").payload
    assert (payload["type"], payload["data"]["tenant"], payload["data"]["subject"]) == ("test", "acme", "sink/desk")
    assert payload["data"]["sentence"] == "acme: this message says that desk can be reached."
    assert payload["timestamp"].endswith("Z")


def test_a_digest_has_a_line_for_each_thing() -> None:
    """A digest has one line for each item, even if a name has a line break."""
    subject, body, _ = SAID["digest.weekly"]
    body = body | {
        "before": None,
        "changes": [
            {"identity_id": "sa-1", "name": "a\nb", "amount": "12.345", "difference": "-3", "before": "15.345"}
        ],
        "stands_out": ["sa-1 was charged more"],
        "budgets": [{"id": "x", "name": "X", "budget": "10.00", "to_date": "9.00", "state": "warning"}],
        "unused": [{"id": "1", "subject": "orders", "why": "nobody reads it", "monthly_cost": "30.00"}],
        "unused_more": 2,
        "unused_cost": "50.00",
        "unallocated": "1.00",
    }
    message = message_of("acme", event_of("digest.weekly", subject, body), None)
    assert message.sentence == "acme: 100.00 USD in the week from 2026-11-16 to 2026-11-22."
    assert message.text.splitlines()[2:] == [
        "- a b: 12.34 USD, 3.00 USD less",
        "- Stands out: sa-1 was charged more",
        "- The budget X has reached a threshold: 9.00 USD of 10.00 USD to date",
        "- Unused: orders, 30.00 USD a month; nobody reads it",
        "- and 2 more; all together 50.00 USD a month",
        "- Nobody is charged for 1.00 USD of it",
    ]
