"""Comparison with external costs over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from chargeback.reports.external_costs.comparison import ExternalReconciliation
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, parameters_of
from tests.support.facts import catalogue_of

URL = f"{ACME}/reconciliation/external"
MAPPING = {"columns": {"amount": "cost", "entity": "id", "date": "day"}}
HEAD = "day,id,cost\n"


def ask(client: httpx.Client, lines: str, mapping: Any = None, **more: Any) -> httpx.Response:
    """Send a file."""
    return client.post(URL, json={"csv": f"{HEAD}{lines}", "mapping": mapping or MAPPING} | more)


def test_an_invoice(client: httpx.Client) -> None:
    """The response has their cost, ours and the difference, largest first."""
    body = ask(client, f"{DAYS[0]},lkc-1,6.5\n{DAYS[1]},lkc-1,6.5\n{DAYS[1]},lkc-9,0.000000000001\n").json()
    ExternalReconciliation.model_validate(body)
    assert (body["start_date"], body["end_date"], body["compared_with"]) == (str(DAYS[0]), str(DAYS[1]), "billing")
    assert (body["lines"], body["outside"], body["other"]) == (3, 0, None)
    assert body["total"] == {"theirs": "13.000000000001", "ours": "20.00", "delta": "6.999999999999"}
    assert body["only_ours"] == {"count": 1, "amount": "7.00"}
    assert body["only_theirs"] == {"count": 1, "amount": "0.000000000001"}
    assert [(item["entity"], item["theirs"], item["ours"], item["delta"]) for item in body["items"]] == [
        ("lkc-2", None, "7.00", "7.00"),
        ("lkc-9", "0.000000000001", None, "-0.000000000001"),
        ("lkc-1", "13.00", "13.00", "0.00"),
    ]
    long = ask(client, f"{DAYS[0]},lkc-1,6.5000000000001\n").json()
    ExternalReconciliation.model_validate(long)
    assert long["total"] == {"theirs": "6.5000000000001", "ours": "10.00", "delta": "3.4999999999999"}
    short = ask(client, f"{DAYS[0]},lkc-1,6.5\n", end_date=str(LAST), limit=1).json()
    assert (len(short["items"]), short["other"]["count"]) == (1, 1)
    assert short["other"]["delta"] == "17.50"


def test_a_cost_allocation_with_a_mapping_in_yaml(client: httpx.Client) -> None:
    """Identities are compared with the chargebacks; ``${NAME}`` in the mapping is literal text."""
    mapping = """
        entity: identity_id
        entities: {Nobody: UNALLOCATED, $HOME: "${HOME}"}
        columns: {amount: cost, entity: id}
    """
    days = {"start_date": str(LAST), "end_date": str(LAST)}
    body = ask(client, "x,sa-1,5.25\nx,sa-2,1.25\nx,Nobody,3.5\nx,$HOME,0\n", mapping, **days).json()
    assert body["compared_with"] == "chargebacks"
    assert [item["delta"] for item in body["items"]] == ["0.00"] * 4
    assert {item["entity"] for item in body["items"]} == {"sa-1", "sa-2", "UNALLOCATED", "${HOME}"}
    past = ask(client, "x,sa-1,5.25\n", mapping, **days, as_of="2001-01-01T00:00:00Z").json()
    assert past["total"]["ours"] == "0.00"


def test_mistakes(client: httpx.Client) -> None:
    """Mistakes are reported together, with line and column, or with the path in the mapping."""
    wrong = ask(client, f"{DAYS[0]},lkc-1,a lot\nsometime,lkc-1,1\n")
    assert parameters_of(wrong) == ["csv", "csv"]
    assert "line 2, column 'cost': 'a lot' is not an amount" in wrong.text
    assert "line 3, column 'day'" in wrong.text
    assert parameters_of(ask(client, "", {"columns": {"amount": "cost"}})) == ["start_date"]
    both = {"columns": {"amount": "cost", "entity": "cost"}}
    assert "amount and entity should not be the same column" in ask(client, "", both).text
    foreign = ask(client, f"{DAYS[0]},lkc-1,€6.50\n")
    assert parameters_of(foreign) == ["csv"]
    assert "line 2, column 'cost': '€6.50' is in EUR, and the costs here are in USD" in foreign.text
    late = {"start_date": str(LAST), "end_date": str(DAYS[0])}
    assert parameters_of(ask(client, "", **late)) == ["start_date"]
    assert parameters_of(ask(client, "", {"columns": {}, "decimal": "x"})) == [
        "mapping.columns.amount",
        "mapping.decimal",
    ]
    for text in ("columns: [", "- a", "x" * 30_000, "a: &a [*a]", "a: 1\na: 2"):
        assert parameters_of(ask(client, "", text)) == ["mapping"]
    assert parameters_of(ask(client, "", **{"limit": 0, "colour": "red"})) == ["colour", "limit"]
    assert ask(client, f"{DAYS[0]},lkc-\x00,1\n").status_code == 200
    assert client.post(f"{URL}?limit=1", json={"csv": HEAD, "mapping": MAPPING}).status_code == 400


def test_guards(client: httpx.Client) -> None:
    """Requests of other origins, bodies that are not JSON and bodies that are too large are refused."""
    sent = {"csv": HEAD, "mapping": MAPPING}
    assert client.post(URL, json=sent, headers={"Origin": "https://elsewhere.example"}).status_code == 403
    plain = client.post(URL, content=b"{}", headers={"Content-Type": "text/plain"})
    assert "Content-Type" in parameters_of(plain)
    assert client.post(URL, json=sent | {"csv": "x" * (9 * 2**20)}).status_code == 413


@pytest.mark.parametrize("day", ["1969-12-31", "9999-12-31", "0001-01-01"])
def test_days_at_the_ends_of_the_calendar(client: httpx.Client, day: str) -> None:
    """The first and last days of the calendar are no error of the service."""
    assert ask(client, f"{day},lkc-1,1\n").status_code in {200, 400}
    assert ask(client, "", start_date="0001-01-01", end_date=day).status_code in {200, 400}


def test_nothing_is_stored(own_client: httpx.Client, own_store: TenantStore) -> None:
    """The request changes no table."""
    before = catalogue_of(own_store.facts)
    assert ask(own_client, f"{DAYS[0]},lkc-1,6.5\n").status_code == 200
    assert catalogue_of(own_store.facts) == before
