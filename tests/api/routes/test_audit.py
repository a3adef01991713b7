"""The audit log over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from chargeback.api.routes.audit import AuditItem
from chargeback.model.run_request import RunRequest
from chargeback.store.control.audit import KINDS
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, known, parameters_of
from tests.support.serving import client_of, services_for

TAG = {"tag_key": "team", "tag_value": "a", "created_by": "alice"}
PLACE = {"entity_type": "identity", "entity_id": "UNALLOCATED", "tag_key": "env"}


def log_of(client: httpx.Client, **params: str) -> list[dict[str, Any]]:
    """Return the entries, newest first."""
    answer = client.get(f"{ACME}/audit", params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    for item in items:
        AuditItem.model_validate(item)
    return items


def test_every_change_is_recorded(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Changes of tags and views are recorded, in bulk too, with before and after; dry runs and failed requests are
    not."""
    known(own_store)
    tags = f"{ACME}/entities/identity/UNALLOCATED/tags"
    assert own_client.post(tags, json=TAG).status_code == 201
    assert own_client.post(tags, json=TAG).status_code == 409
    assert own_client.put(f"{tags}/team", json={"tag_value": "b"}).status_code == 200
    assert own_client.patch(f"{tags}/team", json={"tag_value": "b"}).status_code == 200
    bulk = {"items": [PLACE | {"tag_value": "prod"}]}
    for dry_run in (True, False):
        assert own_client.post(f"{ACME}/tags/bulk", json=bulk | {"dry_run": dry_run}).status_code == 200
        body = {"items": [PLACE], "dry_run": dry_run}
        assert own_client.post(f"{ACME}/tags/bulk-delete", json=body).status_code == 200
    assert own_client.delete(f"{tags}/team").status_code == 204
    view = {"name": "One", "page": "costs", "query": ""}
    number = own_client.post(f"{ACME}/views", json=view).json()["id"]
    assert own_client.put(f"{ACME}/views/{number}", json=view | {"name": "Two"}).status_code == 200
    assert own_client.delete(f"{ACME}/views/{number}").status_code == 204
    team, env, saved = "identity/UNALLOCATED/team", "identity/UNALLOCATED/env", f"view/{number}"
    log = log_of(own_client)
    assert [(each["what"], each["target"], each["before"], each["after"]) for each in reversed(log)] == [
        ("tag.created", team, None, {"tag_value": "a"}),
        ("tag.changed", team, {"tag_value": "a"}, {"tag_value": "b"}),
        ("tag.created", env, None, {"tag_value": "prod"}),
        ("tag.removed", env, {"tag_value": "prod"}, None),
        ("tag.removed", team, {"tag_value": "b"}, None),
        ("view.created", saved, None, view),
        ("view.changed", saved, view, view | {"name": "Two"}),
        ("view.removed", saved, view | {"name": "Two"}, None),
    ]
    assert {each["who"] for each in log} == {"api"}
    assert [each["what"] for each in log_of(own_client, what="tag.removed")] == ["tag.removed"] * 2
    assert log_of(own_client, who="bob") == log_of(own_client, end_date="2001-01-01") == []
    assert log_of(own_client, start_date="2001-01-01", who="api", page_size="2", page="2") == log[2:4]


def test_what_is_refused(client: httpx.Client) -> None:
    """Unknown kinds and unknown parameters are refused."""
    wrong = {"what": "tag", "who": "", "x": "1", "page_size": "0"}
    assert parameters_of(client.get(f"{ACME}/audit", params=wrong)) == sorted(wrong)
    assert set(KINDS) == set(AuditItem.model_json_schema()["properties"]["what"]["enum"])


def test_a_run_knows_who_asked(own_store: TenantStore) -> None:
    """The request to start a run names the caller, whom the run records."""
    asked: list[RunRequest] = []

    class Pipeline:
        """A pipeline that accepts runs."""

        def trigger(self, tenant_name: str, request: RunRequest, begin: Callable[[], object]) -> None:
            """Keep the request."""
            asked.append(request)

    with client_of(services_for(own_store, pipeline=Pipeline())) as client:
        assert client.post(f"{ACME}/pipeline/run").status_code == 202
    assert [request.requested_by for request in asked] == ["api"]
