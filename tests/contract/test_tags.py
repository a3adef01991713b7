"""SPEC §4 «Tags»: single tags, bulk requests, and tags on chargebacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.deployment import Deployment
from tests.contract.problems import complaints, detail_of, kind_of
from tests.contract.records import Client, Everything, Record, shown, those, total

BASE = "/api/v1/tenants/scratch"
IDS = [
    "lkc-1",
    "User:CN=app,OU=ops/eu",
    "50%",
    "%2F",
    "a b",
    "a/b/tags/c",
    "/slashes/",
    "münchen-東京-🙂",
    "..x",
    "a?b#c&d=e;f",
    "x" * 255,
]
PLAIN = ["a", "b", "e0", "e1", "e2", "i", "r", "lkc-x", "crn:/a/b", *(f"many-{number}" for number in range(500))]


@pytest.fixture(scope="module", autouse=True)
def known(deployment: Deployment) -> None:
    """Add the ids of these tests to the inventory, because only known entities can be tagged."""
    deployment.know("scratch", [*IDS, *PLAIN])


def put_tags(client: Client, *tags: tuple[str, str, str, str], **more: Any) -> Record:
    """Write tags (entity type, id, key, value) in bulk, and return the counts."""
    names = ("entity_type", "entity_id", "tag_key", "tag_value")
    response = client.post(
        f"{BASE}/tags/bulk", json={"items": [dict(zip(names, tag, strict=True)) for tag in tags]} | more
    )
    assert response.status_code == 200, response.text
    counts: Record = response.json()
    return counts


def counts(created: int = 0, updated: int = 0, skipped: int = 0) -> Record:
    """Return the counts of a bulk write."""
    return {"created_count": created, "updated_count": updated, "skipped_count": skipped}


@pytest.mark.parametrize("entity_type", ["resource", "identity"])
@pytest.mark.parametrize("entity_id", IDS)
def test_the_life_of_a_tag(scratch: Client, entity_type: str, entity_id: str) -> None:
    """Tags are created, listed, changed by PUT and PATCH, and deleted, with any characters in the entity's id."""
    path = scratch.tag_path("scratch", entity_type, entity_id)
    created = scratch.post(path, json={"tag_key": "team", "tag_value": "paÿments", "created_by": "alice"})
    assert created.status_code == 201, created.text
    tag = created.json()
    expected = {
        "tenant_id": "scratch",
        "entity_type": entity_type,
        "entity_id": entity_id,
        "tag_key": "team",
        "tag_value": "paÿments",
        "created_by": "alice",
    }
    assert {name: tag[name] for name in expected} == expected
    assert scratch.answer(path) == [tag]
    assert scratch.all_items(f"{BASE}/tags") == [tag]
    one = scratch.tag_path("scratch", entity_type, entity_id, "team")
    for method, value in (("PUT", "b"), ("PATCH", "c"), ("PUT", "c")):
        changed = scratch.request(method, one, json={"tag_value": value})
        assert (changed.status_code, changed.json()) == (200, tag | {"tag_value": value})
    deleted = scratch.delete(one)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert scratch.answer(path) == []
    for again in (
        scratch.delete(one),
        scratch.put(one, json={"tag_value": "x"}),
        scratch.patch(one, json={"tag_value": "x"}),
    ):
        assert kind_of(again, 404) == "not-found"


def test_slashes_need_not_be_encoded(scratch: Client) -> None:
    """An id with slashes may be in the path without encoding."""
    path = f"{BASE}/entities/resource/crn:/a/b/tags"
    assert scratch.post(path, json={"tag_key": "k", "tag_value": "v"}).json()["entity_id"] == "crn:/a/b"
    assert scratch.answer(scratch.tag_path("scratch", "resource", "crn:/a/b"))[0]["tag_value"] == "v"


def test_a_key_is_unique_per_entity(scratch: Client) -> None:
    """A second tag with the same key is a 409, whatever its value; other keys and entities are not affected."""
    body = {"tag_key": "team", "tag_value": "a"}
    path = scratch.tag_path("scratch", "resource", "r")
    assert scratch.post(path, json=body).status_code == 201
    for again in (body, body | {"tag_value": "b"}):
        assert kind_of(scratch.post(path, json=again), 409) == "conflict"
    assert scratch.answer(path)[0]["tag_value"] == "a"
    assert scratch.post(path, json=body | {"tag_key": "Team"}).status_code == 201
    assert scratch.post(scratch.tag_path("scratch", "identity", "r"), json=body).status_code == 201
    assert [tag["tag_key"] for tag in scratch.answer(path)] == ["Team", "team"]


def test_created_by_has_a_default(scratch: Client) -> None:
    """``created_by`` is ``api`` for a caller without an identity."""
    path = scratch.tag_path("scratch", "resource", "r")
    assert scratch.post(path, json={"tag_key": "k", "tag_value": "v"}).json()["created_by"] == "api"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, ["tag_key", "tag_value"]),
        ({"tag_key": "k"}, ["tag_value"]),
        ({"tag_key": "", "tag_value": ""}, ["tag_key", "tag_value"]),
        ({"tag_key": "a b", "tag_value": "v"}, ["tag_key"]),
        ({"tag_key": "-k", "tag_value": "v"}, ["tag_key"]),
        ({"tag_key": "k" * 64, "tag_value": "v"}, ["tag_key"]),
        ({"tag_key": "k\n", "tag_value": "v"}, ["tag_key"]),
        ({"tag_key": "k", "tag_value": "v" * 256}, ["tag_value"]),
        ({"tag_key": "k", "tag_value": "a\x00b"}, ["tag_value"]),
        ({"tag_key": "k", "tag_value": 7}, ["tag_value"]),
        ({"tag_key": "k", "tag_value": None}, ["tag_value"]),
        ({"tag_key": "k", "tag_value": "v", "created_by": ""}, ["created_by"]),
        ({"tag_key": "k", "tag_value": "v", "tag_id": 1}, ["tag_id"]),
        ([], ["body"]),
        ("text", ["body"]),
        (None, ["body"]),
    ],
)
def test_what_is_no_tag(scratch: Client, body: Any, named: list[str]) -> None:
    """A 400 names every invalid field; nothing is written."""
    path = scratch.tag_path("scratch", "resource", "r")
    assert complaints(scratch.post(path, json=body)) == named
    assert scratch.answer(path) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b'{"tag_key": "k", "tag_value": "\xff"}', b'{"tag_key": "k", "tag_value": "\\ud800"}'],
)
def test_what_is_no_json(scratch: Client, content: bytes) -> None:
    """Malformed JSON is a 400 that names the body."""
    headers = {"content-type": "application/json"}
    response = scratch.post(scratch.tag_path("scratch", "resource", "r"), content=content, headers=headers)
    assert complaints(response) == ["body"]


@pytest.mark.parametrize("key", ["k", "K9_.:-", "k" * 63, "0"])
def test_every_possible_key(scratch: Client, key: str) -> None:
    """A key has up to 63 letters, digits and ``_.:-``, and starts with a letter or digit."""
    path = scratch.tag_path("scratch", "identity", "i")
    assert scratch.post(path, json={"tag_key": key, "tag_value": "v"}).status_code == 201
    assert scratch.put(scratch.tag_path("scratch", "identity", "i", key), json={"tag_value": "w"}).status_code == 200


def test_other_entity_types_do_not_exist(client: Client) -> None:
    """Entity types other than ``resource`` and ``identity`` are a 404."""
    for entity_type in ("resources", "topic", "Resource"):
        assert kind_of(client.get(client.tag_path("scratch", entity_type, "r")), 404) == "not-found"
        assert (
            kind_of(
                client.post(client.tag_path("scratch", entity_type, "r"), json={"tag_key": "k", "tag_value": "v"}), 404
            )
            == "not-found"
        )


def test_what_the_inventory_does_not_have(scratch: Client) -> None:
    """An unknown entity is a 404, also in bulk; then nothing is written."""
    path = scratch.tag_path("scratch", "resource", "nobody")
    for response in (scratch.get(path), scratch.post(path, json={"tag_key": "k", "tag_value": "v"})):
        assert "nobody" in detail_of(response, 404)
    items = [
        {"entity_type": "identity", "entity_id": name, "tag_key": "k", "tag_value": "v"} for name in ("a", "nobody")
    ]
    assert "nobody" in detail_of(scratch.post(f"{BASE}/tags/bulk", json={"items": items}), 404)
    assert scratch.all_items(f"{BASE}/tags") == []


def test_the_list_of_tags(scratch: Client) -> None:
    """Tags are ordered by entity and key; ``entity_type`` and ``tag_key`` filter them, alone and together."""
    tags = [(kind, f"e{n}", key, "v") for kind in ("identity", "resource") for n in range(3) for key in ("env", "team")]
    assert put_tags(scratch, *reversed(tags)) == counts(created=12)
    everything = scratch.all_items(f"{BASE}/tags", page_size=5)
    names = ("entity_type", "entity_id", "tag_key", "tag_value")
    assert [tuple(tag[name] for name in names) for tag in everything] == tags
    for asked in ({"entity_type": "resource"}, {"tag_key": "env"}, {"entity_type": "identity", "tag_key": "team"}):
        assert scratch.all_items(f"{BASE}/tags", page_size=2, **asked) == those(everything, **asked) != []
    assert scratch.all_items(f"{BASE}/tags", tag_key="nothing") == []


def test_what_the_list_of_tags_refuses(client: Client) -> None:
    """Unknown entity types and invalid keys are refused."""
    response = client.get(f"{BASE}/tags", params={"entity_type": "topic", "tag_key": "a b", "tag_value": "x"})
    assert complaints(response) == ["entity_type", "tag_key", "tag_value"]


def test_keys_and_values_in_use(scratch: Client) -> None:
    """An addition to the contract: the keys in use, and the values of a key; ``q`` is a case-insensitive substring."""
    put_tags(
        scratch,
        ("resource", "a", "team", "Payments"),
        ("identity", "b", "team", "platform"),
        ("identity", "b", "env", "prod"),
    )
    keys = scratch.answer(f"{BASE}/tags/keys")
    assert keys == {"keys": ["env", "team"]}
    values = scratch.answer(f"{BASE}/tags/keys/team/values")
    assert values == {"values": ["Payments", "platform"]}
    assert scratch.answer(f"{BASE}/tags/keys/team/values", q="PAY") == {"values": ["Payments"]}
    assert scratch.answer(f"{BASE}/tags/keys/none/values") == {"values": []}
    assert kind_of(scratch.get(f"{BASE}/tags/keys/a%20b/values"), 404) == "not-found"


def test_bulk_counts(scratch: Client) -> None:
    """Each entry is created, updated (with ``override_existing``) or skipped (without), as if sent one after the
    other."""
    first = [("resource", "a", "k", "1"), ("identity", "a", "k", "1"), ("resource", "a", "k", "2")]
    assert put_tags(scratch, *first, created_by="bob") == counts(created=2, skipped=1)
    assert {tag["created_by"] for tag in scratch.all_items(f"{BASE}/tags")} == {"bob"}
    assert scratch.answer(scratch.tag_path("scratch", "resource", "a"))[0]["tag_value"] == "1"
    second = [("resource", "a", "k", "3"), ("resource", "b", "k", "3"), ("resource", "b", "k", "4")]
    assert put_tags(scratch, *second, override_existing=True) == counts(created=1, updated=2)
    assert scratch.answer(scratch.tag_path("scratch", "resource", "a"))[0]["tag_value"] == "3"
    assert scratch.answer(scratch.tag_path("scratch", "resource", "b"))[0]["tag_value"] == "4"
    assert put_tags(scratch, *second, override_existing=False) == counts(skipped=3)


@pytest.mark.extensive
def test_bulk_of_many(scratch: Client) -> None:
    """Hundreds of tags are counted exactly."""
    many = [("resource", f"many-{number}", "batch", str(number)) for number in range(500)]
    assert put_tags(scratch, *many) == counts(created=500)
    assert put_tags(scratch, *many[:100], ("identity", "i", "batch", "x")) == counts(created=1, skipped=100)
    assert put_tags(scratch, *many, override_existing=True) == counts(updated=500)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, ["items"]),
        ({"items": []}, ["items"]),
        ({"items": [{}]}, ["items[0].entity_id", "items[0].entity_type", "items[0].tag_key", "items[0].tag_value"]),
        (
            {"items": [{"entity_type": "topic", "entity_id": "x", "tag_key": "k", "tag_value": "v"}]},
            ["items[0].entity_type"],
        ),
        ({"items": {}, "override_existing": "yes"}, ["items", "override_existing"]),
        ({"items": [1], "more": 1}, ["items[0]", "more"]),
    ],
)
def test_what_bulk_refuses(scratch: Client, body: Any, named: list[str]) -> None:
    """A 400 names the path in the body."""
    assert complaints(scratch.post(f"{BASE}/tags/bulk", json=body)) == named


def test_bulk_is_all_or_nothing(scratch: Client) -> None:
    """If one entry is invalid, nothing is written."""
    good = {"entity_type": "resource", "entity_id": "a", "tag_key": "k", "tag_value": "v"}
    response = scratch.post(f"{BASE}/tags/bulk", json={"items": [good, good | {"tag_key": "a b"}]})
    assert complaints(response) == ["items[1].tag_key"]
    assert scratch.all_items(f"{BASE}/tags") == []


@pytest.fixture
def rows(client: Client) -> list[Record]:
    """The chargebacks of ``scratch``."""
    return client.all_items(f"{BASE}/chargebacks")


def test_bulk_by_filter(scratch: Client, rows: list[Record]) -> None:
    """Every resource and identity in the matching chargebacks is tagged once, including ``UNALLOCATED``."""
    entities = {("resource", row["resource_id"]) for row in rows} | {("identity", row["identity_id"]) for row in rows}
    body = {"tag_key": "seen", "display_name": "yes"}

    def write(**more: Any) -> Record:
        response = scratch.post(f"{BASE}/tags/bulk-by-filter", json=body | more)
        assert response.status_code == 200, response.text
        result: Record = response.json()
        return result

    assert write(created_by="carol") == counts(created=len(entities))
    tags = scratch.all_items(f"{BASE}/tags")
    assert {(tag["entity_type"], tag["entity_id"]) for tag in tags} == entities
    assert ("identity", "UNALLOCATED") in entities
    assert {(tag["tag_value"], tag["created_by"]) for tag in tags} == {("yes", "carol")}
    assert write() == counts(skipped=len(entities))
    identity = rows[-1]["identity_id"]
    some = {row["resource_id"] for row in those(rows, identity_id=identity)}
    assert write(identity_id=identity, override_existing=True) == counts(updated=len(some) + 1)
    day = rows[-1]["timestamp"][:10]
    of_day = those(rows, timestamp=rows[-1]["timestamp"])
    expected = len({row["resource_id"] for row in of_day}) + len({row["identity_id"] for row in of_day})
    assert write(tag_key="day", start_date=day, end_date=day, timezone="UTC") == counts(created=expected)
    assert write(start_date="2001-01-01", end_date="2001-01-02") == counts()
    assert write(identity_id="nobody") == counts()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, ["display_name", "tag_key"]),
        ({"tag_key": "k", "tag_value": "v"}, ["display_name", "tag_value"]),
        ({"tag_key": "k", "display_name": ""}, ["display_name"]),
        ({"tag_key": "k", "display_name": "v", "start_date": "2026-02-02", "end_date": "2026-02-01"}, ["start_date"]),
        ({"tag_key": "k", "display_name": "v", "timezone": "x", "start_date": 1}, ["start_date", "timezone"]),
        ({"tag_key": "k", "display_name": "v", "override_existing": 1}, ["override_existing"]),
    ],
)
def test_what_bulk_by_filter_refuses(client: Client, body: Any, named: list[str]) -> None:
    """A 400 names every invalid field."""
    assert complaints(client.post(f"{BASE}/tags/bulk-by-filter", json=body)) == named


@pytest.fixture
def tagged(scratch: Client, rows: list[Record]) -> Callable[[Record], str | None]:
    """Tag two resources and two identities; return a function that resolves the tag of a row, where the identity has
    priority."""
    resources = sorted({row["resource_id"] for row in rows})[:3]
    identities = sorted({row["identity_id"] for row in those(rows, resource_id=resources[0])} | {"UNALLOCATED"})[:2]
    of_resource = dict(zip(resources, ("red", "blue", "UNTAGGED?"), strict=False))
    of_identity = dict(zip(identities, ("green", "blue"), strict=False))
    tags = [("resource", entity, "team", value) for entity, value in of_resource.items()]
    tags += [("identity", entity, "team", value) for entity, value in of_identity.items()]
    assert put_tags(scratch, *tags) == counts(created=len(tags))
    return lambda row: of_identity.get(row["identity_id"]) or of_resource.get(row["resource_id"])


def test_tags_show_on_rows(scratch: Client, rows: list[Record], tagged: Callable[[Record], str | None]) -> None:
    """Rows show the current tags; for the same key, the tag of the identity has priority."""
    shown_now = scratch.all_items(f"{BASE}/chargebacks")
    expected = [row | {"tags": {"team": team} if (team := tagged(row)) else {}} for row in rows]
    assert shown_now == expected
    assert {"red", "green", "blue"} <= {row["tags"].get("team") for row in shown_now}


@pytest.mark.parametrize(
    "asked", [{"tag_key": "team"}, {"tag_key": "team", "tag_value": "blue"}, {"tag_key": "team", "tag_value": "red"}]
)
def test_rows_by_tag(
    scratch: Client, rows: list[Record], tagged: Callable[[Record], str | None], asked: dict[str, str]
) -> None:
    """``tag_key`` and ``tag_value`` filter by the resolved value and combine with other filters, also for issues."""
    wanted = asked.get("tag_value")
    expected = [row for row in rows if (team := tagged(row)) and wanted in (None, team)]
    found = scratch.all_items(f"{BASE}/chargebacks", page_size=50, **asked)
    assert [row | {"tags": {}} for row in found] == expected != []
    shared = scratch.all_items(f"{BASE}/chargebacks", cost_type="shared", **asked)
    assert [row | {"tags": {}} for row in shared] == those(expected, cost_type="shared")
    issues = scratch.all_items(f"{BASE}/chargebacks/allocation-issues", **asked)
    assert sum(issue["row_count"] for issue in issues) <= len(expected)
    unlike = [row for row in expected if row["allocation_detail"].startswith("NO_")]
    assert total(issues, "total_cost") == total(unlike)


@pytest.mark.parametrize("by", ["tag:team", "tag:other"])
def test_sums_by_tag(scratch: Client, rows: list[Record], tagged: Callable[[Record], str | None], by: str) -> None:
    """``group_by=tag:<key>`` sums by the resolved value; rows without the tag are ``UNTAGGED``."""
    answer = scratch.answer(f"{BASE}/chargebacks/aggregate", group_by=by, time_bucket="month")
    sums: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        team = (tagged(row) if by == "tag:team" else None) or "UNTAGGED"
        sums.setdefault((row["timestamp"][:8] + "01", team), []).append(row)
    found = {(each["time_bucket"], each["dimensions"][by]): each["total_amount"] for each in answer["buckets"]}
    assert found == {key: shown(total(group)) for key, group in sums.items()}
    assert answer["total_amount"] == shown(total(rows))


@pytest.mark.parametrize("wanted", ["blue", "blue,red", "UNTAGGED", "green,UNTAGGED", "nothing"])
def test_sums_of_rows_with_tags(
    scratch: Client, rows: list[Record], tagged: Callable[[Record], str | None], wanted: str
) -> None:
    """``tag:<key>=v1,v2`` selects rows whose resolved tag has one of the values; ``UNTAGGED`` selects rows without
    it."""
    values = wanted.split(",")
    expected = [row for row in rows if (tagged(row) or "UNTAGGED") in values]
    answer = scratch.answer(f"{BASE}/chargebacks/aggregate", **{"tag:team": wanted}, group_by=["tag:team", "cost_type"])
    assert (answer["total_amount"], answer["total_rows"]) == (shown(total(expected)), len(expected))
    twice = scratch.answer(f"{BASE}/chargebacks/aggregate", **{"tag:team": wanted, "tag:other": "UNTAGGED"})
    assert twice["total_amount"] == answer["total_amount"]


def test_tags_are_not_part_of_a_dimension(
    scratch: Client, rows: list[Record], tagged: Callable[[Record], str | None]
) -> None:
    """A single dimension is returned without tags."""
    row = next(row for row in rows if tagged(row))
    assert "tags" not in scratch.answer(f"{BASE}/chargebacks/{row['dimension_id']}")


def test_conflicts_say_what_to_do(scratch: Client, everything: Everything) -> None:
    """The detail of a 409 names the entity and the key."""
    path = scratch.tag_path("scratch", "resource", "lkc-x")
    scratch.post(path, json={"tag_key": "team", "tag_value": "a"})
    detail = detail_of(scratch.post(path, json={"tag_key": "team", "tag_value": "a"}), 409)
    assert "lkc-x" in detail
    assert "team" in detail
