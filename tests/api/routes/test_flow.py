"""The flow over HTTP."""

from __future__ import annotations

import httpx

from chargeback.reports.flow import FlowAnswer
from tests.api.conftest import ACME, parameters_of

URL = f"{ACME}/flow"


def test_nodes_and_links(client: httpx.Client) -> None:
    """Links refer to nodes by index; the other values of a column are one node with their count."""
    params = {"by": ["resource_id", "identity_id"], "top": "5,1", "compare": "none", "period": "5d"}
    body = client.get(URL, params=params).json()
    FlowAnswer.model_validate(body)
    assert [(node["column"], node["value"], node["amount"], node["other"]) for node in body["nodes"]] == [
        (0, "lkc-1", "32.50", None),
        (0, "lkc-2", "17.50", None),
        (1, "sa-1", "26.25", None),
        (1, None, "23.75", 2),
    ]
    assert [(link["source"], link["target"], link["amount"], link["previous"]) for link in body["links"]] == [
        (0, 2, "26.25", None),
        (0, 3, "6.25", None),
        (1, 3, "17.50", None),
    ]


def test_what_is_wrong_is_refused(client: httpx.Client) -> None:
    """A 400 names the invalid parameter."""
    assert parameters_of(client.get(URL, params={"by": "resource_id", "top": "51"})) == ["by", "top"]
