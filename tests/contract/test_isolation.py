"""Every endpoint, requested for another tenant: tenants neither see nor change each other's data."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.contract.endpoints import ENDPOINTS, Endpoint
from tests.contract.records import Client, Everything, needed_of
from tests.contract.test_errors import body_of

#: Two tenants of the same organisation, which have only ids in common.
OTHER = "scratch"
READ = [
    endpoint
    for endpoint in ENDPOINTS
    if "{tenant_name}" in endpoint.path
    and (endpoint.method == "GET" or endpoint.path.endswith("/export"))
    and not {"{dimension_id}", "{simulation_id}"} & {*endpoint.path.split("/")}
]


#: The value of a tag that only tenant acme has.
MARK = "only-acme-knows"


@pytest.mark.parametrize("endpoint", READ, ids=lambda endpoint: endpoint.name)
def test_answers_are_about_the_tenant_of_the_path(client: Client, everything: Everything, endpoint: Endpoint) -> None:
    """Responses about another tenant contain neither the name nor the tags of this one."""
    entity = everything.resources[0]["resource_id"]
    path = client.tag_path("acme", "resource", entity)
    assert client.post(path, json={"tag_key": "secret", "tag_value": MARK}).status_code == 201
    try:
        asked = endpoint.of(OTHER, entity_id=entity, tag_key="secret")
        theirs = needed_of(endpoint, Everything(client, OTHER))
        response = client.request(endpoint.method, asked, params=theirs)
        assert response.status_code == 200, response.text
        assert not re.search(r'"acme"|\bacme,', response.text)
        assert MARK not in response.text
        ours = needed_of(endpoint, everything)
        own = client.request(endpoint.method, endpoint.of("acme", entity_id=entity, tag_key="secret"), params=ours)
        assert own.status_code == 200
        if "tags" in endpoint.path:
            assert MARK in own.text or endpoint.path.endswith("/keys")
    finally:
        assert client.delete(client.tag_path("acme", "resource", entity, "secret")).status_code == 204


def test_dimensions_of_one_are_unknown_to_the_other(client: Client, everything: Everything) -> None:
    """A dimension id of acme is a 404 for other tenants, because it depends on the tenant."""
    identifier = everything.chargebacks[-1]["dimension_id"]
    assert client.get(f"/api/v1/tenants/{OTHER}/chargebacks/{identifier}").status_code == 404


WRITES = [endpoint for endpoint in ENDPOINTS if endpoint.method != "GET" and "/tags" in endpoint.path]


@pytest.mark.parametrize("endpoint", WRITES, ids=lambda endpoint: endpoint.name)
def test_writes_change_the_tenant_of_the_path(scratch: Client, everything: Everything, endpoint: Endpoint) -> None:
    """Writing and removing tags of one tenant does not change the tags of another."""
    entity = everything.resources[0]["resource_id"]
    ours = scratch.tag_path("acme", "resource", entity)
    theirs = scratch.tag_path(OTHER, "resource", entity)
    body = {"tag_key": "team", "tag_value": "ours"}
    assert scratch.post(ours, json=body).status_code == 201
    if "{tag_key}" in endpoint.path:
        assert scratch.post(theirs, json=body).status_code == 201
    try:
        wanted: dict[str, Any] = body_of(endpoint)
        if "items" in wanted:
            place = {"entity_type": "resource", "entity_id": entity, "tag_key": "team"}
            wanted["items"][0] |= place | {key: "theirs" for key in wanted["items"][0] if key == "tag_value"}
        path = endpoint.of(OTHER, entity_id=entity, tag_key="team")
        if "override_existing" in endpoint.body:
            wanted["override_existing"] = True
        response = scratch.request(endpoint.method, path, json=wanted or None)
        assert response.status_code == endpoint.success, response.text
        assert [tag["tag_value"] for tag in scratch.all_items("/api/v1/tenants/acme/tags")] == ["ours"]
        assert not [
            row
            for row in scratch.all_items("/api/v1/tenants/acme/chargebacks")
            if row["tags"].get("team") not in (None, "ours")
        ]
    finally:
        assert scratch.delete(scratch.tag_path("acme", "resource", entity, "team")).status_code == 204
