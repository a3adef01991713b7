"""Tags over HTTP, on both databases; they show on chargebacks immediately."""

from __future__ import annotations

import csv
from urllib.parse import quote

import httpx
import pytest

from chargeback.api.parameters import MAX_ID_LENGTH
from chargeback.api.routes.tags import TagItem
from chargeback.reports.answers import PageOf
from chargeback.store.control import schema
from chargeback.store.control.tags import TagWrite, create
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, known, parameters_of


def _tags(client: httpx.Client, kind: str, entity: str) -> dict[str, str]:
    response = client.get(f"{ACME}/entities/{kind}/{quote(entity, safe='')}/tags")
    assert response.status_code == 200
    return {tag["tag_key"]: tag["tag_value"] for tag in response.json()}


@pytest.mark.parametrize("entity", ["sa-1", "a/b", "crn://x.y/kafka=lkc-1/topic=a:b", "100%", "a/tags/b", "ü &?#"])
def test_the_life_of_a_tag(own_client: httpx.Client, own_store: TenantStore, entity: str) -> None:
    """A tag can be created once, changed by PUT and PATCH, and removed, whatever characters the entity's id has."""
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
    """The id of a topic with the longest possible name can be tagged and searched; longer ids are refused."""
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
    """Every length that the API accepts fits the columns."""
    columns = (schema.tags.c.entity_id, schema.resources.c.resource_id)
    assert [column.type.length for column in columns] == [MAX_ID_LENGTH, MAX_ID_LENGTH]  # type: ignore[attr-defined]


def test_an_unknown_entity_has_no_tags(own_client: httpx.Client, own_store: TenantStore) -> None:
    """An entity that is not in the inventory cannot be tagged; a bulk request with one such entity writes nothing."""
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
    """A request without an identity is recorded as made by the API."""
    known(own_store, identities=["x"])
    body = {"tag_key": "k", "tag_value": "v"}
    assert own_client.post(f"{ACME}/entities/identity/x/tags", json=body).json()["created_by"] == "api"


def test_bulk(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Counts are exact; existing keys are updated with override and skipped without."""
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
    """Every resource and identity of the matching rows is tagged, and the rows show it immediately."""
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
    """The list of tags can be filtered; keys and values in use are listed."""
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


def test_the_dates_of_a_tag(own_client: httpx.Client, own_store: TenantStore) -> None:
    """A change from a day on keeps the previous value before that day; rows show the value of their day."""
    known(own_store, identities=["sa-1"])
    url = f"{ACME}/entities/identity/sa-1/tags"
    rows = own_client.get(f"{ACME}/chargebacks", params={"identity_id": "sa-1"}).json()["items"]
    days = sorted({row["timestamp"][:10] for row in rows})
    moved = days[len(days) // 2]
    first = own_client.post(url, json={"tag_key": "team", "tag_value": "old"}).json()
    assert (first["valid_from"], first["valid_to"]) == (None, None)
    changed = own_client.put(f"{url}/team", json={"tag_value": "new", "valid_from": moved})
    assert changed.status_code == 200
    TagItem.model_validate(changed.json())
    found = own_client.get(url).json()
    assert [(each["tag_value"], each["valid_from"], each["valid_to"]) for each in found] == [
        ("old", None, moved),
        ("new", moved, None),
    ]
    tagged = own_client.get(f"{ACME}/chargebacks", params={"identity_id": "sa-1"}).json()["items"]
    assert [row["tags"]["team"] for row in tagged] == [
        "old" if row["timestamp"][:10] < moved else "new" for row in rows
    ]
    table = list(csv.DictReader(own_client.get(f"{ACME}/tags.csv").text.splitlines()))
    assert [(row["tag_value"], row["valid_from"], row["valid_to"]) for row in table] == [
        ("old", "", moved),
        ("new", moved, ""),
    ]
    log = own_client.get(f"{ACME}/audit", params={"what": "tag.changed"}).json()["items"]
    assert [(each["before"], each["after"]) for each in log] == [
        ({"tag_value": "old"}, {"tag_value": "old", "valid_to": moved})
    ]


def test_dates_that_overlap_are_a_conflict(own_client: httpx.Client, own_store: TenantStore) -> None:
    """A 409 names both periods; a value without dates is refused if there are several periods to replace."""
    known(own_store, identities=["sa-1"])
    url = f"{ACME}/entities/identity/sa-1/tags"
    dated = {"tag_key": "team", "tag_value": "x", "valid_from": "2026-03-01", "valid_to": "2026-10-01"}
    assert own_client.post(url, json=dated).status_code == 201
    refused = own_client.post(url, json={"tag_key": "team", "tag_value": "y", "valid_from": "2026-09-30"})
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "The tag team of the identity sa-1 cannot be 'y' since 2026-09-30: it is 'x' 2026-03-01 to 2026-10-01; to end "
        "it where the new value begins, use PUT with valid_from, or override_existing.",
    )
    item = {"entity_type": "identity", "entity_id": "sa-1", "tag_key": "team", "tag_value": "z"}
    bulk = own_client.post(f"{ACME}/tags/bulk", json={"items": [item | {"valid_from": "2026-04-01"}], "dry_run": True})
    assert (bulk.status_code, "cannot be 'z' since 2026-04-01" in bulk.json()["detail"]) == (409, True)
    assert own_client.put(f"{url}/team", json={"tag_value": "y", "valid_from": "2026-10-01"}).status_code == 200
    several = own_client.put(f"{url}/team", json={"tag_value": "z"})
    assert (several.status_code, several.json()["type"]) == (409, "urn:chargeback:conflict")
    assert "or set replace_periods to replace all of them" in several.json()["detail"]
    replaced = own_client.put(f"{url}/team", json={"tag_value": "z", "replace_periods": True}).json()
    assert (replaced["tag_value"], replaced["valid_from"], replaced["valid_to"]) == ("z", None, None)
    assert len(own_client.get(url).json()) == 1


def test_bulk_with_dates(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Entries have their own dates; a request by filter has one period."""
    known(own_store, resources=["lkc-1", "lkc-2"], identities=["sa-1", "sa-2"])
    tag = {"tag_key": "team", "display_name": "one"}
    assert own_client.post(f"{ACME}/tags/bulk-by-filter", json=tag).json()["created_count"] == 5
    later = tag | {"display_name": "two", "valid_from": "2026-03-01", "override_existing": True}
    assert own_client.post(f"{ACME}/tags/bulk-by-filter", json=later).json()["updated_count"] == 5
    item = {
        "entity_type": "identity",
        "entity_id": "sa-1",
        "tag_key": "env",
        "tag_value": "x",
        "valid_to": "2026-02-01",
    }
    assert own_client.post(f"{ACME}/tags/bulk", json={"items": [item]}).json()["created_count"] == 1
    found = own_client.get(f"{ACME}/entities/identity/sa-1/tags").json()
    assert [(each["tag_key"], each["tag_value"], each["valid_from"], each["valid_to"]) for each in found] == [
        ("env", "x", None, "2026-02-01"),
        ("team", "one", None, "2026-03-01"),
        ("team", "two", "2026-03-01", None),
    ]


def test_one_period_is_removed(own_client: httpx.Client, own_store: TenantStore) -> None:
    """A period is removed by its first day, or by ``none``; a day on which none begins is a 404."""
    known(own_store, identities=["sa-1"])
    url = f"{ACME}/entities/identity/sa-1/tags"
    own_client.post(url, json={"tag_key": "team", "tag_value": "x"})
    own_client.put(f"{url}/team", json={"tag_value": "y", "valid_from": "2026-03-01"})
    missing = own_client.delete(f"{url}/team", params={"valid_from": "2026-03-02"})
    assert (missing.status_code, missing.json()["detail"]) == (
        404,
        "The identity sa-1 has no tag 'team' with valid_from 2026-03-02.",
    )
    assert own_client.delete(f"{url}/team", params={"valid_from": "none"}).status_code == 204
    assert _tags(own_client, "identity", "sa-1") == {"team": "y"}
    assert own_client.delete(f"{url}/team", params={"valid_from": "2026-03-01"}).status_code == 204
    wrong = own_client.delete(f"{url}/team", params={"valid_from": "soon"})
    assert wrong.json()["errors"] == [
        {"parameter": "valid_from", "message": "should be a date such as 2026-01-31, or none"}
    ]


def test_a_period_ends_after_it_begins(own_client: httpx.Client) -> None:
    """A period that does not end after it begins is refused."""
    dates = {"valid_from": "2026-03-01", "valid_to": "2026-03-01"}
    url = f"{ACME}/entities/identity/sa-1/tags"
    wrong = own_client.post(url, json={"tag_key": "team", "tag_value": "x"} | dates)
    assert wrong.json()["errors"] == [{"parameter": "valid_to", "message": "should be after valid_from, 2026-03-01"}]
    item = {"entity_type": "identity", "entity_id": "sa-1", "tag_key": "team", "tag_value": "z"} | dates
    assert parameters_of(own_client.post(f"{ACME}/tags/bulk", json={"items": [item]})) == ["items[0].valid_to"]


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("UNTAGGED", "UNTAGGED stands for rows without a tag; choose another value"),
        ("UNALLOCATED", "UNALLOCATED stands for costs without an identity; choose another value"),
        (" \u200b", "should not be blank"),
    ],
)
def test_values_that_say_nothing(own_client: httpx.Client, own_store: TenantStore, value: str, wrong: str) -> None:
    """Reserved and blank values are refused wherever a value is written; a stored one is kept and can be changed."""
    url = f"{ACME}/entities/identity/sa-1/tags"
    known(own_store, identities=["sa-1"])
    with own_store.control.write() as connection:
        create(connection, own_store.tenant_id, TagWrite("identity", "sa-1", "team", value), "ann", who="ann")
    item = {"entity_type": "identity", "entity_id": "sa-1", "tag_key": "stage", "tag_value": value}
    for place, answer in (
        ("tag_value", own_client.post(url, json={"tag_key": "stage", "tag_value": value})),
        ("tag_value", own_client.put(f"{url}/team", json={"tag_value": value})),
        ("tag_value", own_client.patch(f"{url}/team", json={"tag_value": value})),
        ("items[0].tag_value", own_client.post(f"{ACME}/tags/bulk", json={"items": [item]})),
        (
            "display_name",
            own_client.post(f"{ACME}/tags/bulk-by-filter", json={"tag_key": "stage", "display_name": value}),
        ),
    ):
        assert (answer.status_code, answer.json()["errors"]) == (400, [{"parameter": place, "message": wrong}])
    assert _tags(own_client, "identity", "sa-1") == {"team": value}
    assert own_client.put(f"{url}/team", json={"tag_value": "a"}).status_code == 200
