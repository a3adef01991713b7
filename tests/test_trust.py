"""The example of docs/trust.md: a bill that changes on the third day, and the responses to its requests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

import httpx
import pytest

from chargeback.api.services import ApiLimits, Services
from chargeback.model.billing import BillingLine
from chargeback.model.inventory import Identity, Inventory, Resource
from chargeback.recompute.rules import AllocationRules
from chargeback.reports.tenant_view import TenantView
from tests.support.clock import FixedClock
from tests.support.documented import questions, shown_of
from tests.support.serving import client_of
from tests.support.sources import Laboratory, line

PAGE: Final = Path(__file__).parents[1] / "docs" / "trust.md"
DAYS: Final = [date(2026, 1, day) for day in (23, 24, 25)]
CLUSTER: Final = "lkc-orders"
FIRST, SECOND = (datetime(2026, *day, 12, tzinfo=UTC) for day in ((1, 31), (2, 3)))


def bill(day: date, gigabytes: int) -> list[BillingLine]:
    """Return a line for the bytes written to the cluster, at a dollar per gigabyte."""
    amount = Decimal(gigabytes)
    return [line(f"{amount}", resource=CLUSTER, day=day, quantity=amount, unit_price=Decimal(1), unit="GB")]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of the example: three days are calculated; three days later, the provider corrects the last one."""
    with Laboratory(tmp_path_factory.mktemp("trust"), days=len(DAYS)) as laboratory:
        sources = laboratory.sources
        sources.listed = Inventory(
            [Resource(CLUSTER, "kafka_cluster", "orders-prod")],
            [Identity("sa-pay", "service_account", "payments"), Identity("sa-web", "service_account", "webshop")],
        )
        sources.totals = {"bytes_in": {(CLUSTER, "sa-pay"): 72 * 10**9, (CLUSTER, "sa-web"): 28 * 10**9}}
        sources.lines = {day: bill(day, 100) for day in DAYS}
        laboratory.clock = FixedClock(FIRST)
        laboratory.run()
        sources.lines[DAYS[-1]] = bill(DAYS[-1], 120)
        laboratory.clock = FixedClock(SECOND)
        laboratory.configure(lookback_days=11)
        laboratory.run()
        store = laboratory.store
        rules = AllocationRules.of(laboratory.tenant)
        tenant = TenantView(store.tenant_name, store.tenant_id, store.ecosystem, 11, store, None, rules=rules)
        services = Services("1.2.3", "both", ApiLimits(), {store.tenant_name: tenant}, clock=FixedClock(SECOND))
        with client_of(services) as opened:
            yield opened


@pytest.mark.extensive
@pytest.mark.parametrize(("path", "shown"), [pytest.param(*each, id=each[0][:80]) for each in questions(PAGE)])
def test_the_page_shows_what_is_answered(client: httpx.Client, path: str, shown: object) -> None:
    """The responses on the page are those of the service, in the shown parts."""
    response = client.get(path)
    assert response.status_code == 200, response.text
    assert shown_of(response.json(), shown) == shown


def test_the_page_asks_every_question() -> None:
    """The page has requests for revisions, restatements, an earlier instant, differences, changes, reasons and
    reconciliation."""
    asked = " ".join(path for path, _ in questions(PAGE))
    for question in ("/revisions", "/restatements", "as_of=", "/diff", "/changes", "/explain", "/reconciliation"):
        assert question in asked, question
