"""An assistant sees what its token sees, over both transports."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.assistants.conftest import Organisation
from tests.contract.records import Client, total
from tests.contract.seen import Scoped, Seen, scopes_of
from tests.support.assistants import Call
from tests.support.laws import first_of

ACME = "/api/v1/tenants/acme"


def calls(row: dict[str, Any]) -> list[Call]:
    """Return calls of every tool about a visible row, with large responses."""
    day = row["timestamp"][:10]
    everything = {"tenant": "acme", "limit": 50}
    return [
        ("describe", {}),
        ("search_entities", {**everything, "query": "a"}),
        ("query_costs", {**everything, "group_by": ["identity_id", "resource_id", "product_type"]}),
        ("query_costs", {**everything, "group_by": ["environment_id"], "time_bucket": "day"}),
        ("query_costs", {**everything, "group_by": ["topic_name", "cluster_resource_id"], "dataset": "topics"}),
        ("compare_periods", {**everything, "period": "5d", "group_by": ["resource_id"]}),
        ("explain_charge", {"tenant": "acme", "date": day, "identity_id": row["identity_id"]}),
        ("list_findings", everything),
        ("anomalies", everything),
        ("budget_status", everything),
        ("forecast", {"tenant": "acme"}),
        ("get_statement", {"tenant": "acme", "period": day[:7], "by": "identity_id"}),
        ("get_statement", {"tenant": "acme", "period": day[:7], "by": "identity_id", "value": row["identity_id"]}),
    ]


@pytest.fixture(scope="session")
def scopes(rest: Client) -> dict[str, Scoped]:
    """Scopes of an identity, of an environment, and of a category value that splits rows."""
    return scopes_of(rest.all_items(f"{ACME}/chargebacks"), rest.all_items(f"{ACME}/topic-attributions"))


@pytest.mark.extensive
@pytest.mark.parametrize(
    ("transport", "name"),
    [
        *first_of(("http", "category"), ("http", "identity"), ("http", "environment")),
        pytest.param("stdio", "category", marks=pytest.mark.drill),
    ],
)
def test_no_tool_tells_of_the_outside(
    organisation: Organisation, rest: Client, scopes: dict[str, Scoped], transport: str, name: str
) -> None:
    """No response has an id or a name from outside the scope; totals are the sums of the visible rows, and the
    reconciliation of the whole bill is left out."""
    seen = Seen(rest, "acme", scopes[name])
    assert seen.outside
    assistant = organisation.assistant(transport, organisation.token(f"{transport}-{name}", dict(scopes[name].scope)))
    asked = calls(seen.chargebacks[-1])
    answers = assistant.ask(asked)
    for (tool, arguments), answer in zip(asked, answers, strict=True):
        assert not answer.failed, (tool, arguments, answer.text)
        assert seen.told(answer.text) == [], (tool, arguments)
        assert answer.content["reconciled"] is None
    days = {name: answers[2].content[name] for name in ("start_date", "end_date")}
    filters = scopes[name].chargebacks
    visible = rest.answer(f"{ACME}/chargebacks/aggregate", time_bucket="all", **days, **filters)
    for answer in answers[2:4]:
        assert answer.content["total"]["amount"] == visible["total_amount"]
    if name != "category":  # without a scope, lists have whole rows
        rows = rest.all_items(f"{ACME}/chargebacks", **days, **filters)
        assert Decimal(visible["total_amount"]) == total(rows)


def test_the_same_calls_without_a_scope_tell_of_it(
    organisation: Organisation, rest: Client, scopes: dict[str, Scoped], whole: str
) -> None:
    """Without a scope, outside names are found."""
    seen = Seen(rest, "acme", scopes["identity"])
    answers = organisation.assistant("http", whole).ask(calls(seen.chargebacks[-1]))
    assert all(answer.content["reconciled"] == "equal" for answer in answers)
    assert sum(bool(seen.told(answer.text)) for answer in answers) >= 6


@pytest.mark.parametrize("transport", ["http", pytest.param("stdio", marks=pytest.mark.drill)])
def test_other_tenants_are_not_there(organisation: Organisation, whole: str, transport: str) -> None:
    """A token is valid for one tenant; any other one does not exist for it, however it is written."""
    assistant = organisation.assistant(transport, whole)
    for name in ("globex", "acme/../globex", "acme%2Fcosts"):
        (answer,) = assistant.ask([("query_costs", {"tenant": name})])
        assert answer.failed
