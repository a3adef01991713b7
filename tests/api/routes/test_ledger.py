"""The journals of a year form a ledger: another program books them and arrives at the same balances."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from chargeback.config.closing import ClosingProfile
from chargeback.config.journal import JournalProfile, JournalTemplate
from chargeback.model.accounting import AccountingPeriod, periods_within
from tests.api.conftest import ACME
from tests.support.clock import FixedClock
from tests.support.months import Months, months
from tests.support.serving import client_of, services_for

pytestmark = pytest.mark.usefixtures("process")

BY = "category:units"
ACCOUNTS = {"payments": "Expenses:Payments", "search": "Expenses:Search"}
CATEGORY = {
    "values": {value: {"gl": {"account": account}} for value, account in ACCOUNTS.items()},
    "rules": [
        {"match": {"identity": ["sa-1"]}, "assign": "payments"},
        {"match": {"identity": ["sa-2"]}, "assign": "search"},
    ],
}
FIRST, LAST = AccountingPeriod(date(2025, 10, 1)), AccountingPeriod(date(2026, 9, 1))
OPEN = LAST.next
CLEARING = "Liabilities:Kafka"
TEMPLATE = Path(__file__).parents[3] / "examples" / "journal" / "beancount.txt.j2"


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Months]:
    """A tenant with a year of months, and the month after it."""
    with months(tmp_path, FIRST, OPEN) as opened:
        yield opened


@pytest.fixture
def client(tenant: Months) -> Iterator[httpx.Client]:
    """A client of the API over it, whose journals use the accounts of a cost category and a template."""
    template = JournalTemplate("beancount", "txt", TEMPLATE.read_text(encoding="utf-8"))
    closing = ClosingProfile(by=(BY,))
    profile = JournalProfile(by=BY, clearing_account=CLEARING, templates={"beancount": template})
    services = services_for(tenant.store, clock=FixedClock(datetime(2026, 11, 10, tzinfo=UTC)))
    tenants = {name: replace(each, closing=closing, journal=profile) for name, each in services.tenants.items()}
    with client_of(replace(services, tenants=tenants)) as opened:
        made = opened.put(f"{ACME}/cost-categories/units", json={"document": CATEGORY}, headers={"If-None-Match": "*"})
        assert made.status_code == 201, made.text
        yield opened


def journal(client: httpx.Client, period: AccountingPeriod) -> str:
    """Return the journal of a month, as the template writes it."""
    answer = client.get(f"{ACME}/periods/{period.id}/journal", params={"template": "beancount"})
    assert answer.status_code == 200, answer.text
    return answer.text


def stated(client: httpx.Client, period: AccountingPeriod) -> dict[str, Decimal]:
    """Return the rounded amounts of a month's statements on accrual basis, by value."""
    asked = {"period": period.id, "by": BY, "basis": "accrual"}
    answer = client.get(f"{ACME}/statements", params=asked)
    assert answer.status_code == 200, answer.text
    return {each["recipient"]["value"]: Decimal(each["rounded"]) for each in answer.json()["items"]}


def test_a_year_of_journals_is_a_ledger_that_balances(tmp_path: Path, tenant: Months, client: httpx.Client) -> None:
    """With late bills of fractional cents and adjustments over twelve closings, Beancount finds each entry balanced; at
    the end, each account has the sum of its statements and adjustments."""
    chance = random.Random(8)
    adjusted = dict.fromkeys(ACCOUNTS, Decimal(0))
    for period in periods_within(FIRST, LAST):
        for _ in range(3):
            amount = Decimal(chance.randint(0, 9_000)) / 1000
            known = [day for day in tenant.days if day <= period.last_day]
            tenant.charge(chance.choice(known), sa_1=f"{amount}", sa_2=f"{10 - amount}")
        body = {
            "period": period.id,
            "by": BY,
            "value": "payments",
            "from": "search",
            "amount": "1.01",
            "kind": "reallocation",
            "reason": 'The connector that "both" use; and more',
        }
        assert client.post(f"{ACME}/adjustments", json=body).status_code == 201
        adjusted["payments"] += Decimal("1.01")
        adjusted["search"] -= Decimal("1.01")
        closed = client.post(f"{ACME}/periods/{period.id}/close", json={"accept": ["day-missing"], "reason": "Short"})
        assert closed.status_code == 200, closed.text
    balances = dict(adjusted)
    for period in periods_within(FIRST, OPEN):
        for value, cents in stated(client, period).items():
            balances[value] += cents
    after = OPEN.next.start + timedelta(days=1)
    ledger = [f"{FIRST.start} open {account} USD" for account in (*ACCOUNTS.values(), CLEARING)]
    ledger += [journal(client, period) for period in periods_within(FIRST, OPEN)]
    ledger += [f"{after} balance {ACCOUNTS[value]} {amount} ~ 0 USD" for value, amount in balances.items()]
    ledger += [f"{after} balance {CLEARING} {-sum(balances.values())} ~ 0 USD"]
    assert sum(", correction of " in line for text in ledger for line in text.splitlines()) > 12

    def check(lines: list[str]) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "kafka.beancount"
        file.write_text("\n".join(lines) + "\n")
        program = Path(sys.executable).with_name("bean-check")
        return subprocess.run([program, file], capture_output=True, text=True, timeout=60, check=False)

    done = check(ledger)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    # The program reports a missing cent.
    wrong = [*ledger[:-1], f"{after} balance {CLEARING} {Decimal('0.01') - sum(balances.values())} ~ 0 USD"]
    assert check(wrong).returncode != 0
