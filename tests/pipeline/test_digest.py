"""The weekly digest, and messages for the owners of a part of the costs, which contain nothing of other parts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.config.notifications import WebhookSettings
from chargeback.model.budgets import Budget, Threshold
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.notifications.message import message_of
from chargeback.pipeline import digest as stage
from chargeback.store.control.anomalies import MarkedDays, add_mark
from chargeback.store.control.budgets import write_budget
from chargeback.store.control.deliveries import add_deliveries, due_deliveries
from chargeback.store.control.events import read_events
from tests.support.clock import NOW, FixedClock
from tests.support.receiver import SECRET
from tests.support.sources import DAY, Laboratory, line

SUNDAY = DAY - timedelta(days=(DAY.weekday() + 1) % 7)
MONDAY = SUNDAY - 6 * ONE_DAY
DAYS = DayRange(SUNDAY - timedelta(days=42), SUNDAY + ONE_DAY)
OWN = {"identity_id": ["sa-a"]}
REACHED = Threshold("actual", Decimal(10))


def sink(scope: dict[str, list[str]] | None = None, **more: Any) -> WebhookSettings:
    """Return a webhook, for an owner or for all costs."""
    settings = {"type": "webhook", "url": "https://x", "secrets": [SECRET], "scope": scope} | more
    return WebhookSettings.model_validate(settings)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant with six weeks of 100 a day on a cluster of each of two identities, until a Sunday."""
    with Laboratory(tmp_path / "laboratory", days=60) as opened:
        opened.sources.totals = {"bytes_in": {(f"lkc-{name}", f"sa-{name}"): 1 for name in "ab"}}
        opened.sources.lines = {day: [bill(day, "a"), bill(day, "b")] for day in DAYS}
        opened.configure(notifications={"all": sink(), "own": sink(OWN)})
        yield opened


def bill(day: date, name: str, amount: str = "100") -> Any:
    """Return a line of an identity's cluster on a day."""
    return line(amount, day=day, resource=f"lkc-{name}")


def run_until(laboratory: Laboratory, day: date = SUNDAY) -> None:
    """Run with ``day`` as the newest known day."""
    laboratory.clock = FixedClock(NOW + (day - DAY))
    laboratory.run()


def told(laboratory: Laboratory, name: str, kind: str = "digest.weekly") -> list[dict[str, Any]]:
    """Return the events of a kind that are due for a sink, which is registered first."""
    settings = laboratory.tenant.settings.notifications[name]
    with laboratory.store.control.write() as connection:
        is_owner = settings.scope is not None
        add_deliveries(connection, name, settings.accepts, laboratory.clock(), is_owner=is_owner)
        due = due_deliveries(connection, name, laboratory.clock() + timedelta(days=9), 99)
    return [dict(each.event) for each in due if each.event["kind"] == kind]


def bodies(laboratory: Laboratory, kind: str = "digest.weekly") -> list[dict[str, Any]]:
    """Return the bodies of the recorded events of a kind."""
    with laboratory.store.control.read() as connection:
        return [each["body"] for each in read_events(connection, after=0, kind=kind, limit=99)]


def test_a_week_is_summed_up_once(laboratory: Laboratory) -> None:
    """A complete week is summed up once: for all costs, and exactly for the owner of a part."""
    for name in ("all", "own"):
        told(laboratory, name)
    laboratory.sources.lines[SUNDAY] = [bill(SUNDAY, "a", "350.5"), bill(SUNDAY, "b", "40")]
    run_until(laboratory, SUNDAY - ONE_DAY)
    before = [each["end_date"] for each in bodies(laboratory)]
    assert before == [f"{MONDAY - ONE_DAY}"] * 2
    run_until(laboratory)
    run_until(laboratory)
    whole, own = (each for each in bodies(laboratory) if each["start_date"] == f"{MONDAY}")
    assert (whole["amount"], whole["before"]) == ("1590.50", "1400.00")
    assert [(each["identity_id"], each["difference"]) for each in whole["changes"]] == [
        ("sa-a", "250.50"),
        ("sa-b", "-60.00"),
    ]
    assert (own["amount"], own["before"]) == ("950.50", "700.00")
    assert [each["identity_id"] for each in own["changes"]] == ["sa-a"]
    assert [len(told(laboratory, name)) for name in ("all", "own")] == [2, 2]
    assert "sa-b" not in str(told(laboratory, "own"))
    (*_, last) = told(laboratory, "own")
    message = message_of("acme", last, "https://x/ui")
    assert message.sentence == (
        f"acme: 950.50 USD in the week from {MONDAY} to {SUNDAY}, 36% more than in the week before."
    )
    assert message.details[0] == "- sa-a: 950.50 USD, 250.50 USD more"
    assert message.details[1].startswith(f"- Stands out: sa-a was charged 350.50 USD for KAFKA on {SUNDAY}, 3.5 times")
    assert message.text.endswith("\n\nhttps://x/ui/acme/costs")


def test_what_else_a_digest_says(laboratory: Laboratory) -> None:
    """The digest has reached budgets and unallocated cost; planned anomalies are left out."""
    found = Budget("all", "All", {}, None, {}, Decimal(700), (Threshold("actual", Decimal(80)),))
    with laboratory.store.control.write() as connection:
        write_budget(connection, "all", found, expected=None, who="test")
        add_mark(connection, MarkedDays("", "sa-a", None, "planned", SUNDAY, SUNDAY, "Load test", "ann"))
    laboratory.sources.lines[SUNDAY] = [
        bill(SUNDAY, "a", "350"),
        bill(SUNDAY, "b"),
        line("7", day=SUNDAY, product="MYSTERY"),
    ]
    run_until(laboratory)
    whole, own = bodies(laboratory)
    assert (whole["unallocated"], own["unallocated"]) == ("7.00", "0.00")
    assert (whole["stands_out"], own["stands_out"]) == ([], [])
    assert [(each["id"], each["state"]) for each in whole["budgets"]] == [("all", "exceeded")]
    assert own["budgets"] == []


def test_a_week_that_was_over_long_ago_is_no_news(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A week that ended long ago has no digest."""
    monkeypatch.setattr(stage, "_NEWS", timedelta(days=1))
    run_until(laboratory)
    assert bodies(laboratory) == []


def test_an_owner_is_told_what_stands_out_within_the_scope(laboratory: Laboratory) -> None:
    """An owner gets separate anomalies with the amounts of the scope, which do not depend on other costs."""
    for name in ("all", "own"):
        told(laboratory, name)
    run_until(laboratory)
    day = SUNDAY + ONE_DAY
    laboratory.sources.lines[day] = [bill(day, "a", "400"), bill(day, "b", "900")]
    run_until(laboratory, day)
    opened = "anomaly.opened"
    whole, own = told(laboratory, "all", opened), told(laboratory, "own", opened)
    assert [each["body"]["identity_id"] for each in whole] == ["sa-b", "sa-a"]
    assert [each["body"]["identity_id"] for each in own] == ["sa-a"]
    assert own[0]["subject"] != whole[1]["subject"]
    laboratory.sources.lines[day + ONE_DAY] = [bill(day + ONE_DAY, name) for name in "ab"]
    run_until(laboratory, day + ONE_DAY)
    ended = bodies(laboratory, "anomaly.resolved")
    assert [(each["identity_id"], each.get("notify")) for each in ended] == [
        ("sa-b", None),
        ("sa-a", None),
        ("sa-a", ["own"]),
    ]


def test_an_owner_is_told_of_budgets_within_the_scope(laboratory: Laboratory) -> None:
    """An owner gets only budgets that lie entirely in the scope, even if another budget names the owner."""
    for name in ("all", "own"):
        told(laboratory, name)
    reached = (REACHED,)
    with laboratory.store.control.write() as connection:
        for number, (scope, notify) in enumerate(
            [(OWN, ()), ({"identity_id": ["sa-b"]}, ("own",)), ({}, ("own", "all")), (OWN, ("all",))]
        ):
            conditions = {key: tuple(values) for key, values in scope.items()}
            found = Budget(f"b{number}", "A", conditions, None, {}, Decimal(100), reached, notify)
            write_budget(connection, f"b{number}", found, expected=None, who="test")
    run_until(laboratory)
    crossed = {name: [each["subject"] for each in told(laboratory, name, "budget.crossed")] for name in ("all", "own")}
    assert crossed == {"all": ["budget/b0", "budget/b2", "budget/b3"], "own": ["budget/b0"]}


def test_what_an_owner_is_told_is_the_same_whatever_happens_elsewhere(tmp_path: Path) -> None:
    """Owners get exactly the same events whatever the other costs are, and no event contains another identity."""
    worlds = []
    for number, elsewhere in enumerate(("100", "777")):
        with Laboratory(tmp_path / f"{number}", days=60) as laboratory:
            laboratory.sources.totals = {"bytes_in": {(f"lkc-{name}", f"sa-{name}"): 1 for name in "ab"}}
            laboratory.sources.lines = {day: [bill(day, "a"), bill(day, "b", elsewhere)] for day in DAYS}
            laboratory.configure(notifications={"own": sink(OWN)})
            told(laboratory, "own")
            found = Budget("own", "Own", {"identity_id": ("sa-a",)}, None, {}, Decimal(100), (REACHED,))
            other = Budget("other", "Other", {"identity_id": ("sa-b",)}, None, {}, Decimal(100), (REACHED,))
            with laboratory.store.control.write() as connection:
                for each in (found, other):
                    write_budget(connection, each.id, each, expected=None, who="test")
            run_until(laboratory)
            day = SUNDAY + ONE_DAY
            surge = "4000" if number else elsewhere
            laboratory.sources.lines[day] = [bill(day, "a", "400"), bill(day, "b", surge)]
            run_until(laboratory, day)
            with laboratory.store.control.read() as connection:
                events = read_events(connection, after=0, kind=None, limit=99)
            worlds.append([(each["kind"], each["subject"], each["body"]) for each in events if "own" in _owners(each)])
    first, second = worlds
    assert first == second
    assert sorted(kind for kind, _, _ in first) == ["anomaly.opened", "budget.crossed", "digest.weekly"]
    assert "sa-b" not in str(first)


def _owners(event: Any) -> list[str]:
    found: list[str] = event["body"].get("owners", [])
    return found
