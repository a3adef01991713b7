"""Tags over HTTP, on both databases; they show on chargebacks at once."""

from __future__ import annotations

from urllib.parse import quote

import httpx
import pytest

from chargeback.api.parameters import MAX_ID_LENGTH
from chargeback.api.schemas.common import PageOf
from chargeback.api.schemas.tags import TagItem
from chargeback.store.control import schema
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, known, parameters_of


def _tags(client: httpx.Client, kind: str, entity: str) -> dict[str, str]:
    response = client.get(f"{ACME}/entities/{kind}/{quote(entity, safe='')}/tags")
    assert response.status_code == 200
    return {tag["tag_key"]: tag["tag_value"] for tag in response.json()}


@pytest.mark.parametrize("entity", ["sa-1", "a/b", "crn://x.y/kafka=lkc-1/topic=a:b", "100%", "a/tags/b", "ü &?#"])
def test_the_life_of_a_tag(own_client: httpx.Client, own_store: TenantStore, entity: str) -> None:
    """Create, refuse to create again, change both ways, remove; whatever the entity is called."""
    known(own_store, resources=[entity], identities=[entity])
    url = f"{ACME}/entities/resource/{quote(entity, safe='')}/tags"
    created = own_client.post(url, json={"tag_key": "team", "tag_value": "a", "created_by": "ann"})
    assert created.status_code == 201
    TagItem.model_validate(created.json())
    assert created.json()["entity_id"] == entity
    assert created.json()["created_by"] == "ann"
    again = own_client.post(url, json={"tag_key": "team", "tag_value": "b"})
    assert (again.status_code, again.headers["content-type"]) == (409, "application/problem+json")
    assert own_client.put(f"{url}/team", json={"tag_value": "b"}).json()["tag_value"] == "b"
    assert own_client.patch(f"{url}/team", json={"tag_value": "c"}).json()["tag_value"] == "c"
    assert _tags(own_client, "resource", entity) == {"team": "c"}
    assert _tags(own_client, "identity", entity) == {}
    removed = own_client.delete(f"{url}/team")
    assert (removed.status_code, removed.content) == (204, b"")
    assert own_client.delete(f"{url}/team").status_code == 404
    assert own_client.put(f"{url}/team", json={"tag_value": "b"}).status_code == 404
    assert own_client.put(f"{url}/{'x' * 64}", json={"tag_value": "b"}).status_code == 404


TOPIC = f"{'c' * 256}:topic:{'t' * 249}"


@pytest.mark.parametrize("entity", [TOPIC, "🙂" * 512])
def test_the_longest_id(own_client: httpx.Client, own_store: TenantStore, entity: str) -> None:
    """The id of a topic with the longest name can be tagged, one by one and in bulk, and found; nothing longer can."""
    assert len(entity) == MAX_ID_LENGTH
    known(own_store, resources=[entity])
    url = f"{ACME}/entities/resource/{quote(entity, safe='')}/tags"
    assert own_client.post(url, json={"tag_key": "k" * 63, "tag_value": "v" * 255}).status_code == 201
    item = {"entity_type": "resource", "entity_id": entity, "tag_key": "team", "tag_value": "a"}
    assert own_client.post(f"{ACME}/tags/bulk", json={"items": [item]}).json()["created_count"] == 1
    assert _tags(own_client, "resource", entity) == {"k" * 63: "v" * 255, "team": "a"}
    found = own_client.get(f"{ACME}/resources", params={"search": entity}).json()["items"]
    assert [each["resource_id"] for each in found] == [entity]
    for path in ("billing", "chargebacks", "chargebacks/aggregate"):
        assert own_client.get(f"{ACME}/{path}", params={"resource_id": entity}).status_code == 200
    filters = {"filters": {"resource_id": entity}}
    assert len(own_client.post(f"{ACME}/export", json=filters).text.splitlines()) == 1
    longer = own_client.post(f"{ACME}/tags/bulk", json={"items": [item | {"entity_id": f"{entity}x"}]})
    assert parameters_of(longer) == ["items[0].entity_id"]
    assert own_client.get(f"{ACME}/entities/resource/{quote(entity, safe='')}x/tags").status_code == 404


def test_the_database_has_room_for_the_longest_id() -> None:
    """What the API takes is what the columns hold."""
    columns = (schema.tags.c.entity_id, schema.resources.c.resource_id)
    assert [column.type.length for column in columns] == [MAX_ID_LENGTH, MAX_ID_LENGTH]  # type: ignore[attr-defined]


def test_an_unknown_entity_has_no_tags(own_client: httpx.Client, own_store: TenantStore) -> None:
    """What the inventory does not have cannot be tagged, alone or among others; then nothing at all is written."""
    known(own_store, identities=["sa-1"])
    url = f"{ACME}/entities/resource/sa-1/tags"
    for response in (own_client.get(url), own_client.post(url, json={"tag_key": "k", "tag_value": "v"})):
        assert response.status_code == 404
        assert "resource sa-1" in response.json()["detail"]
    items = [{"entity_type": "identity", "entity_id": name, "tag_key": "k", "tag_value": "v"} for name in ("sa-1", "x")]
    refused = own_client.post(f"{ACME}/tags/bulk", json={"items": items})
    assert (refused.status_code, "identity x" in refused.json()["detail"]) == (404, True)
    assert _tags(own_client, "identity", "sa-1") == {}


def test_created_by_has_a_default(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Who does not say who they are is the API."""
    known(own_store, identities=["x"])
    body = {"tag_key": "k", "tag_value": "v"}
    assert own_client.post(f"{ACME}/entities/identity/x/tags", json=body).json()["created_by"] == "api"


def test_bulk(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Counts are exact; with override existing keys are updated, without they are skipped."""
    known(own_store, identities=[f"sa-{n}" for n in range(3)])
    items = [{"entity_type": "identity", "entity_id": f"sa-{n}", "tag_key": "team", "tag_value": "x"} for n in range(3)]
    url = f"{ACME}/tags/bulk"
    assert own_client.post(url, json={"items": items[:2]}).json() == {
        "created_count": 2,
        "updated_count": 0,
        "skipped_count": 0,
    }
    skipped = own_client.post(url, json={"items": items}).json()
    assert skipped == {"created_count": 1, "updated_count": 0, "skipped_count": 2}
    updated = own_client.post(url, json={"items": items, "override_existing": True, "created_by": "b"}).json()
    assert updated == {"created_count": 0, "updated_count": 3, "skipped_count": 0}


def test_bulk_by_filter(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Every resource and identity of the matching rows is tagged, and the rows show it at once."""
    known(own_store, resources=["lkc-1", "lkc-2"], identities=["sa-1", "sa-2"])
    url = f"{ACME}/tags/bulk-by-filter"
    one = own_client.post(url, json={"tag_key": "team", "display_name": "one", "identity_id": "sa-1"}).json()
    assert one == {"created_count": 2, "updated_count": 0, "skipped_count": 0}
    rest = own_client.post(url, json={"tag_key": "team", "display_name": "all"}).json()
    assert rest == {"created_count": 3, "updated_count": 0, "skipped_count": 2}
    rows = own_client.get(f"{ACME}/chargebacks", params={"tag_key": "team", "tag_value": "all"}).json()
    assert {row["identity_id"] for row in rows["items"]} == {"sa-2", "UNALLOCATED"}
    assert all(row["tags"] == {"team": "all"} for row in rows["items"])
    nothing = own_client.post(url, json={"tag_key": "x", "display_name": "y", "end_date": "2001-01-01"}).json()
    assert nothing == {"created_count": 0, "updated_count": 0, "skipped_count": 0}


def test_lists_keys_and_values(own_client: httpx.Client, own_store: TenantStore) -> None:
    """All tags with their filters; the keys and values in use."""
    known(own_store, identities=["Payments", "Platform", "prod"])
    for key, value in (("team", "Payments"), ("team", "Platform"), ("env", "prod")):
        body = {"tag_key": key, "tag_value": value}
        assert own_client.post(f"{ACME}/entities/identity/{value}/tags", json=body).status_code == 201
    page = own_client.get(f"{ACME}/tags", params={"tag_key": "team", "page_size": 1}).json()
    PageOf[TagItem].model_validate(page)
    assert (page["total"], page["pages"], page["items"][0]["tag_value"]) == (2, 2, "Payments")
    assert own_client.get(f"{ACME}/tags", params={"entity_type": "resource"}).json()["total"] == 0
    assert own_client.get(f"{ACME}/tags/keys").json() == {"keys": ["env", "team"]}
    values = own_client.get(f"{ACME}/tags/keys/team/values", params={"q": "pLAT"}).json()
    assert values == {"values": ["Platform"]}
    assert own_client.get(f"{ACME}/tags/keys/none/values").json() == {"values": []}
