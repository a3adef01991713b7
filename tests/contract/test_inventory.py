"""SPEC §4 «Resources», «Identities» and «Inventory», compared with the whole lists."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, those, typical, when

KINDS = ("resource", "identity")
PLURAL = {"resource": "resources", "identity": "identities"}


def whole(everything: Everything, kind: str) -> list[Record]:
    """Return all resources or identities."""
    return everything.resources if kind == "resource" else everything.identities


def path_of(kind: str, tenant: str = "acme") -> str:
    """Return the path of the list of resources or identities."""
    return f"/api/v1/tenants/{tenant}/{PLURAL[kind]}"


def existed(entity: Record, start: datetime, end: datetime) -> bool:
    """Return whether an entity existed at some moment from ``start`` to ``end`` (exclusive), or at ``start`` if both
    are the same."""
    created = entity["created_at"] and when(entity, "created_at")
    deleted = entity["deleted_at"] and when(entity, "deleted_at")
    begun = created is None or (created <= start if start == end else created < end)
    return begun and (deleted is None or deleted > start)


def deletion(everything: Everything) -> datetime:
    """Return when a resource was deleted."""
    return when(those(everything.resources, status="deleted")[0], "deleted_at")


def test_resources(everything: Everything) -> None:
    """All resources, including deleted ones, have exactly the fields of the contract and are ordered by id."""
    assert {resource["status"] for resource in everything.resources} == {"active", "deleted"}
    ids = [resource["resource_id"] for resource in everything.resources]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    for resource in everything.resources:
        assert (resource["status"] == "deleted") == (resource["deleted_at"] is not None)


def test_identities(everything: Everything) -> None:
    """All identities have exactly the fields of the contract and are ordered by id."""
    ids = [identity["identity_id"] for identity in everything.identities]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_everybody_and_everything_charged_is_there(everything: Everything) -> None:
    """Every billed resource and every charged identity is in the inventory, including ``UNALLOCATED``."""
    resources = {resource["resource_id"] for resource in everything.resources}
    identities = {identity["identity_id"] for identity in everything.identities}
    assert {line["resource_id"] for line in everything.billing} <= resources
    assert {row["identity_id"] for row in everything.chargebacks} <= identities
    assert those(everything.identities, identity_id="UNALLOCATED")[0]["identity_type"] == "system"


@pytest.mark.parametrize("kind", KINDS)
def test_by_type(client: Client, everything: Everything, kind: str) -> None:
    """``resource_type`` and ``identity_type`` filter the lists; an unknown type returns nothing."""
    name = f"{kind}_type"
    for value in {entity[name] for entity in whole(everything, kind)}:
        assert client.all_items(path_of(kind), page_size=9, **{name: value}) == those(
            whole(everything, kind), **{name: value}
        )
    assert client.all_items(path_of(kind), **{name: "nonsense"}) == []


@pytest.mark.parametrize("status", ["active", "deleted"])
def test_by_status(client: Client, everything: Everything, status: str) -> None:
    """``status`` can be used alone, and combined with a type and a search."""
    expected = those(everything.resources, status=status)
    assert client.all_items(path_of("resource"), status=status) == expected
    clusters = those(expected, resource_type="kafka_cluster")
    assert client.all_items(path_of("resource"), status=status, resource_type="kafka_cluster") == clusters
    found = [cluster for cluster in clusters if "lkc-" in cluster["resource_id"]]
    asked = {"status": status, "resource_type": "kafka_cluster", "search": "LKC-"}
    assert client.all_items(path_of("resource"), **asked) == found != []


@pytest.mark.parametrize("kind", KINDS)
def test_active_at(client: Client, everything: Everything, kind: str) -> None:
    """``active_at`` returns the entities that existed at an instant, from creation until before deletion."""
    entities = whole(everything, kind)
    created = when(sorted(entities, key=lambda entity: entity["created_at"] or "")[-1], "created_at")
    gone = deletion(everything)
    second = timedelta(seconds=1)
    for moment in (created - second, created, gone - second, gone, datetime.fromisoformat("2001-01-01T00:00:00Z")):
        expected = [entity for entity in entities if existed(entity, moment, moment)]
        assert client.all_items(path_of(kind), active_at=moment.isoformat()) == expected
    plain = gone.replace(tzinfo=None).isoformat()
    assert client.all_items(path_of(kind), active_at=plain) == client.all_items(
        path_of(kind), active_at=gone.isoformat()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_active_in_a_period(client: Client, everything: Everything, kind: str) -> None:
    """The list has the entities that existed at some moment of a period, whose end is exclusive."""
    entities = whole(everything, kind)
    gone = deletion(everything)
    day = timedelta(days=1)
    for start, end in (
        (gone - day, gone),
        (gone, gone + day),
        (gone - day, gone + day),
        (gone - 900 * day, gone - 300 * day),
    ):
        expected = [entity for entity in entities if existed(entity, start, end)]
        asked = {"period_start": start.isoformat(), "period_end": end.isoformat()}
        assert client.all_items(path_of(kind), **asked) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "time", [{"active_at": "2026-01-01T00:00:00Z"}, {"period_start": "2026-01-01", "period_end": "2027-01-01"}], ids=str
)
def test_beside_a_time_search_order_and_tags_are_ignored(
    client: Client, everything: Everything, kind: str, time: dict[str, str]
) -> None:
    """With a temporal parameter, search, order and tags are ignored; the type still applies."""
    alone = client.all_items(path_of(kind), **time)
    ignored = {
        "search": "nothing has this",
        "sort_by": "display_name",
        "sort_order": "desc",
        "tag_key": "k",
        "tag_value": "v",
    }
    assert client.all_items(path_of(kind), **time, **ignored) == alone != []
    name = f"{kind}_type"
    value = typical(alone, name)
    assert client.all_items(path_of(kind), **time, **{name: value}) == those(alone, **{name: value})


@pytest.mark.parametrize("kind", KINDS)
def test_search(client: Client, everything: Everything, kind: str) -> None:
    """The search finds a case-insensitive substring of the id or the display name; special characters are literal."""
    entities = whole(everything, kind)
    a_name = next(entity["display_name"] for entity in entities if entity["display_name"])
    for text in (entities[0][f"{kind}_id"][:6], a_name[1:5], a_name.upper(), "SA-", "-", "%", "_", "'", "\\", "é"):
        expected = [
            entity
            for entity in entities
            if text.lower() in entity[f"{kind}_id"].lower() or text.lower() in (entity["display_name"] or "").lower()
        ]
        assert client.all_items(path_of(kind), page_size=13, search=text) == expected
    assert client.all_items(path_of(kind), search="") == entities


@pytest.mark.parametrize("order", [None, "asc", "desc"])
@pytest.mark.parametrize(
    ("kind", "column"),
    [
        *(("resource", name) for name in ("resource_id", "display_name", "resource_type", "status")),
        *(("identity", name) for name in ("identity_id", "display_name", "identity_type")),
    ],
)
def test_order(client: Client, everything: Everything, kind: str, column: str, order: str | None) -> None:
    """Every column can be ordered both ways, by default ``asc``; missing values come last, ties are by id."""
    entities = whole(everything, kind)
    valued = sorted(
        [entity for entity in entities if entity[column] is not None], key=lambda entity: entity[f"{kind}_id"]
    )
    valued.sort(key=lambda entity: entity[column], reverse=order == "desc")
    expected = valued + [entity for entity in entities if entity[column] is None]
    asked = {"sort_by": column} | ({"sort_order": order} if order else {})
    assert client.all_items(path_of(kind), page_size=17, **asked) == expected


@pytest.mark.parametrize(("kind", "column"), [("resource", "created_at"), ("resource", ""), ("identity", "status")])
def test_an_invalid_order_falls_back_to_the_id(client: Client, everything: Everything, kind: str, column: str) -> None:
    """An invalid ``sort_by`` is not an error."""
    entities = whole(everything, kind)
    assert client.all_items(path_of(kind), sort_by=column) == entities
    assert client.all_items(path_of(kind), sort_by=column, sort_order="desc") == entities[::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_by_tag(scratch: Client, kind: str) -> None:
    """``tag_key`` selects entities with the tag, and ``tag_value`` restricts it; both combine with type and search."""
    entities = scratch.all_items(path_of(kind, "scratch"))
    some = [entity[f"{kind}_id"] for entity in entities[:6]]
    for number, entity_id in enumerate(some):
        body = {"tag_key": "team", "tag_value": f"team-{number % 2}"}
        assert scratch.post(scratch.tag_path("scratch", kind, entity_id), json=body).status_code == 201
    other = {"resource": "identity", "identity": "resource"}[kind]
    path = scratch.tag_path("scratch", other, scratch.all_items(path_of(other, "scratch"))[0][f"{other}_id"])
    assert scratch.post(path, json={"tag_key": "team", "tag_value": "team-0"}).status_code == 201

    def found(**asked: str) -> list[str]:
        return [entity[f"{kind}_id"] for entity in scratch.all_items(path_of(kind, "scratch"), **asked)]

    assert found(tag_key="team") == some
    assert found(tag_key="team", tag_value="team-1") == some[1::2]
    assert found(tag_key="team", tag_value="team-1", sort_order="desc") == some[1::2][::-1]
    assert found(tag_key="team", search=some[2]) == [some[2]]
    assert found(tag_key="team", tag_value="TEAM-1") == []
    assert found(tag_key="Team") == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (
            {"active_at": "2026-01-01T00:00:00Z", "period_start": "2026-01-01", "period_end": "2026-01-02"},
            ["active_at"],
        ),
        ({"active_at": "2026-01-01T00:00:00Z", "period_start": "2026-01-01"}, ["active_at", "period_start"]),
        ({"period_start": "2026-01-01T00:00:00Z"}, ["period_start"]),
        ({"period_end": "2026-01-01T00:00:00Z"}, ["period_end"]),
        ({"period_start": "2026-01-02", "period_end": "2026-01-01"}, ["period_start"]),
        ({"active_at": "yesterday"}, ["active_at"]),
        ({"active_at": ""}, ["active_at"]),
        ({"active_at": "0001-01-01T00:00:00+14:00"}, ["active_at"]),
        ({"sort_order": "up"}, ["sort_order"]),
        ({"tag_value": "x"}, ["tag_value"]),
        ({"tag_key": "a b"}, ["tag_key"]),
        ({"active_at": "2026-01-01", "tag_key": "a b", "sort_order": "x"}, ["sort_order", "tag_key"]),
        ({"search": "x" * 513}, ["search"]),
        ({"search": "\x00"}, ["search"]),
        ({"product_type": "x"}, ["product_type"]),
    ],
)
def test_what_is_refused(client: Client, kind: str, asked: dict[str, Any], named: list[str]) -> None:
    """Incomplete periods, a period with an instant, a value without its key, and invalid values are a 400."""
    assert complaints(client.get(path_of(kind), params=asked)) == named


def test_parameters_of_the_other_half(client: Client) -> None:
    """Resources have ``status`` and ``resource_type``, identities have ``identity_type``; others are refused."""
    assert complaints(client.get(path_of("identity"), params={"status": "active", "resource_type": "x"})) == [
        "resource_type",
        "status",
    ]
    assert complaints(client.get(path_of("resource"), params={"identity_type": "x"})) == ["identity_type"]
    assert complaints(client.get(path_of("resource"), params={"status": "gone"})) == ["status"]


def test_summary(client: Client, everything: Everything) -> None:
    """The summary has the number of entities of each type, and how many are active and deleted."""
    answer = client.answer(f"{everything.base}/inventory/summary")
    for kind in KINDS:
        counted = Counter(
            (entity[f"{kind}_type"], entity["deleted_at"] is not None) for entity in whole(everything, kind)
        )
        expected = {
            name: {
                "total": counted[name, False] + counted[name, True],
                "active": counted[name, False],
                "deleted": counted[name, True],
            }
            for name, _ in counted
        }
        assert answer[f"{kind}_counts"] == expected
