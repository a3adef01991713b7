"""The descriptions of tools, and their messages about mistakes."""

from __future__ import annotations

import pytest

from chargeback.assistants.tools import TOOLS
from tests.assistants.conftest import Organisation


def test_every_tool_only_reads(organisation: Organisation, whole: str) -> None:
    """Each tool is annotated as read-only, has a title, and describes all its arguments."""
    tools = organisation.assistant("http", whole).tools()
    assert [tool.name for tool in tools] == list(TOOLS)
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.destructive_hint is False
        assert tool.title
        assert all(each.get("description") for each in tool.input_schema["properties"].values()), tool.name


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("query_costs", {}, "tenant: Field required"),
        ("query_costs", {"tenant": "acme", "top": 3}, "top: Extra inputs are not permitted"),
        ("query_costs", {"tenant": "acme", "group_by": ["shoe_size"]}, "group_by: 'shoe_size' should be one of"),
        ("query_costs", {"tenant": "acme", "group_by": ["category:none"]}, "There is no cost category 'none'"),
        ("query_costs", {"tenant": "acme", "filters": {"page": ["2"]}}, "'page' should be one of"),
        ("query_costs", {"tenant": "acme", "start_date": "2026-01-01"}, "should be given together"),
        ("query_costs", {"tenant": "acme", "group_by": ["a", "b"], "time_bucket": "day"}, "should have one column"),
        ("query_costs", {"tenant": "acme", "period": "200d", "time_bucket": "day"}, "choose week or month"),
        ("query_costs", {"tenant": "acme", "currency": "XXX"}, "should be a currency of this tenant"),
        (
            "explain_charge",
            {"tenant": "acme", "date": "2020-01-01", "identity_id": "no-such-id"},
            "There is no identity_id 'no-such-id' that you can see.",
        ),
        ("explain_charge", {"tenant": "acme", "date": "2020-01-01", "identity_id": "UNALLOCATED"}, "no such charge"),
        (
            "explain_charge",
            {"tenant": "acme", "date": "2020-01-01", "identity_id": "UNALLOCATED", "resource_id": "no-such-id"},
            "There is no resource_id 'no-such-id' that you can see.",
        ),
        ("get_statement", {"tenant": "acme", "period": "2026-13", "by": "identity_id"}, "period: "),
        ("drop_tables", {}, "There is no tool 'drop_tables'"),
    ],
)
def test_mistakes_are_explained(
    organisation: Organisation, whole: str, tool: str, arguments: dict[str, object], said: str
) -> None:
    """The error says what to change, in the same words as the API."""
    (answer,) = organisation.assistant("http", whole).ask([(tool, arguments)])
    assert answer.failed
    assert said in answer.text
