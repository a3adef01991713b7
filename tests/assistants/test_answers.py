"""Responses of tools are short, even for large tenants."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.api.app import create_app
from chargeback.assistants.answers import MOST_CHARACTERS, within_limit
from chargeback.assistants.server import add_mcp
from chargeback.config.settings import McpSettings
from tests.api.conftest import DAYS, LAST
from tests.contract.records import total
from tests.support.assistants import Assistant
from tests.support.facts import Share, tenant_store, write_shares
from tests.support.serving import served, services_for

LONG = "a-name-that-somebody-thought-would-be-unique-in-the-whole-organisation-and-beyond-it"


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    """An assistant of a tenant with many identities, whose ids are long."""
    shares = [
        Share(day, f"sa-{LONG}-{number:04}", f"{number + 1}.123456789012", resource=f"lkc-{LONG}-{number % 40:02}")
        for day in DAYS
        for number in range(400)
    ]
    with tenant_store(tmp_path_factory.mktemp("large")) as store:
        write_shares(store.facts, shares)
        app = create_app(services_for(store))
        add_mcp(app, McpSettings(enabled=True))
        with served(app) as address:
            yield Assistant.over_http(address)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_entities", {"query": "sa-"}),
        ("query_costs", {"group_by": ["identity_id", "resource_id", "product_type"]}),
        ("query_costs", {"group_by": ["identity_id"], "time_bucket": "day"}),
        ("compare_periods", {"group_by": ["identity_id", "resource_id"], "period": "2d"}),
        ("list_findings", {}),
        ("anomalies", {}),
    ],
)
def test_answers_about_much_are_short(assistant: Assistant, tool: str, arguments: dict[str, Any]) -> None:
    """No response is longer than the limit, and `other` has the sum of the rows that are left out."""
    days = {"start_date": str(DAYS[0]), "end_date": str(LAST)} if tool == "query_costs" else {}
    if tool == "compare_periods":
        arguments = {"group_by": arguments["group_by"], "start_date": str(LAST), "end_date": str(LAST)}
    if tool in {"search_entities", "list_findings", "anomalies"}:
        (answer,) = assistant.ask([(tool, {"tenant": "acme", "limit": 50, **arguments})])
        assert len(answer.text) <= MOST_CHARACTERS
        return
    found = assistant.answer(tool, tenant="acme", limit=50, **arguments, **days)
    name = "delta" if tool == "compare_periods" else "amount"
    assert found["other"]["count"] + len(found["rows"]) == 400
    assert total([*found["rows"], found["other"]], name) == Decimal(found["total"][name])


@given(sizes=st.lists(st.integers(0, 4000), max_size=60))
def test_as_many_entries_as_fit(sizes: list[int]) -> None:
    """The response is within the limit for any entries, and has all of them if they fit."""
    texts = ["x" * size for size in sizes]
    found = within_limit(len(texts), lambda count: {"rows": texts[:count]})["rows"]
    length = sum(len(text) + 3 for text in texts) + len('{"rows":[]}')
    assert len(found) == len(texts) if length <= MOST_CHARACTERS else len(found) < len(texts)
    assert sum(len(text) + 3 for text in found) <= MOST_CHARACTERS
