"""Lists, counts, names and lineages of the inventory are the same on both databases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert, update

from chargeback.model.inventory import Identity, Resource
from chargeback.store.control import inventory_lists as lists
from chargeback.store.control import tags
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.inventory_lists import (
    IDENTITIES,
    RESOURCES,
    EntityKind,
    InventoryFilter,
    Lineage,
    Named,
    names_of,
    read_enclosing,
    read_lineages,
)
from chargeback.store.control.schema import identities, resources
from tests.support.clock import NOW

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)


def _at(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=UTC)


RESOURCE_ROWS: list[dict[str, Any]] = [
    {"resource_id": "lkc-1", "resource_type": "cluster", "display_name": "Orders", "created_at": _at(5)},
    {"resource_id": "lkc-2", "resource_type": "cluster", "display_name": "ÄRGER 50%", "deleted_at": _at(10)},
    {"resource_id": "Lkc-3", "resource_type": "cluster", "display_name": None, "created_at": _at(10)},
    {"resource_id": "env_1", "resource_type": "environment", "display_name": "alpha"},
]


@pytest.fixture
def filled(database: ControlDatabase) -> ControlDatabase:
    """Return a database with four resources and two identities, some of them tagged."""
    common = {"created_at": None, "deleted_at": None, "last_seen_at": NOON, "metadata": {"a": 1}}
    with database.write() as connection:
        connection.execute(insert(resources), [common | row for row in RESOURCE_ROWS])
        people = [{"identity_id": name, "identity_type": "user", "display_name": name.upper()} for name in ("u2", "u1")]
        connection.execute(insert(identities), [common | row for row in people])
        for entity in ("lkc-1", "lkc-2"):
            tags.create(connection, "acme", tags.TagWrite("resource", entity, "team", entity), "me")
    return database


def _ids(database: ControlDatabase, kind: EntityKind = RESOURCES, **inventory_filter: Any) -> list[str]:
    with database.read() as connection:
        rows, total = lists.listed(connection, kind, InventoryFilter(**inventory_filter), offset=0, limit=100)
        assert list(lists.every_listed(connection, kind, InventoryFilter(**inventory_filter))) == rows
    assert total == len(rows)
    return [row[f"{kind.entity_type}_id"] for row in rows]


@pytest.mark.parametrize(
    ("inventory_filter", "expected"),
    [
        ({}, ["Lkc-3", "env_1", "lkc-1", "lkc-2"]),
        ({"descending": True}, ["lkc-2", "lkc-1", "env_1", "Lkc-3"]),
        ({"sort_by": "nonsense"}, ["Lkc-3", "env_1", "lkc-1", "lkc-2"]),
        ({"sort_by": "display_name"}, ["lkc-1", "env_1", "lkc-2", "Lkc-3"]),
        ({"sort_by": "display_name", "descending": True}, ["lkc-2", "env_1", "lkc-1", "Lkc-3"]),
        ({"sort_by": "status", "descending": True}, ["lkc-2", "Lkc-3", "env_1", "lkc-1"]),
        ({"sort_by": "resource_type", "descending": True}, ["env_1", "Lkc-3", "lkc-1", "lkc-2"]),
        ({"type": "environment"}, ["env_1"]),
        ({"type": "unknown"}, []),
        ({"status": "deleted"}, ["lkc-2"]),
        ({"search": "LKC"}, ["Lkc-3", "lkc-1", "lkc-2"]),
        ({"search": "ärger"}, ["lkc-2"]),
        ({"search": "%"}, ["lkc-2"]),
        ({"search": "_"}, ["env_1"]),
        ({"tag_key": "team"}, ["lkc-1", "lkc-2"]),
        ({"tag_key": "team", "tag_value": "lkc-2"}, ["lkc-2"]),
        ({"ids": ["lkc-1", "lkc-2", "none"]}, ["lkc-1", "lkc-2"]),
        ({"ids": []}, []),
        ({"ids": ["lkc-1", "lkc-2"], "status": "deleted"}, ["lkc-2"]),
        ({"ids": ["lkc-2"], "period": (_at(5), _at(5))}, ["lkc-2"]),
        ({"period": (_at(4), _at(4))}, ["env_1", "lkc-2"]),
        ({"period": (_at(5), _at(5))}, ["env_1", "lkc-1", "lkc-2"]),
        ({"period": (_at(10), _at(10))}, ["Lkc-3", "env_1", "lkc-1"]),
        ({"period": (_at(4), _at(5))}, ["env_1", "lkc-2"]),
        ({"period": (_at(9), _at(11))}, ["Lkc-3", "env_1", "lkc-1", "lkc-2"]),
        (
            {"period": (_at(9), _at(11)), "search": "alpha", "tag_key": "team", "descending": True, "type": "cluster"},
            ["Lkc-3", "lkc-1", "lkc-2"],
        ),
    ],
    ids=str,
)
def test_resources(filled: ControlDatabase, inventory_filter: dict[str, Any], expected: list[str]) -> None:
    """Lists have filters, an order and a period; with a period, search, order and tags are ignored."""
    assert _ids(filled, **inventory_filter) == expected


def test_identities_have_no_status_to_sort_by(filled: ControlDatabase) -> None:
    """An unknown sort column falls back to the id."""
    assert _ids(filled, IDENTITIES, sort_by="status", descending=True) == ["u2", "u1"]
    assert _ids(filled, IDENTITIES, search="U1") == ["u1"]


def test_pages(filled: ControlDatabase) -> None:
    """A page past the end is empty, at any offset, and has the total."""
    with filled.read() as connection:
        rows, total = lists.listed(connection, RESOURCES, InventoryFilter(), offset=3, limit=2)
        assert ([row["resource_id"] for row in rows], total) == (["lkc-2"], 4)
        assert rows[0]["status"] == "deleted"
        assert lists.listed(connection, RESOURCES, InventoryFilter(), offset=10**30, limit=2) == ([], 4)


def test_counts_by_type(filled: ControlDatabase) -> None:
    """Active and deleted entities sum to the total."""
    with filled.read() as connection:
        assert lists.counts(connection, RESOURCES) == {
            "cluster": {"total": 3, "active": 2, "deleted": 1},
            "environment": {"total": 1, "active": 1, "deleted": 0},
        }
        assert lists.counts(connection, RESOURCES, ["lkc-2"]) == {"cluster": {"total": 1, "active": 0, "deleted": 1}}


def test_names_of_some(database: ControlDatabase) -> None:
    """Known entities have a name or None, others are left out, for any number of ids."""
    billed = [Resource(f"lkc-{n}", "cluster", f"name {n}", deleted_at=NOW if n else None) for n in range(1200)]
    with database.write() as connection:
        ensure_known(connection, NOW, billed=billed, charged=[Identity("sa-1", "user")])
    with database.read() as connection:
        found = names_of(connection, RESOURCES, {*(each.resource_id for each in billed), "nobody"})
        assert len(found) == 1200
        assert (found["lkc-0"], found["lkc-7"]) == (Named("name 0", "cluster", None), Named("name 7", "cluster", NOW))
        assert names_of(connection, IDENTITIES, ["sa-1", "lkc-1"]) == {"sa-1": Named(None, "user", None)}
        assert names_of(connection, IDENTITIES, []) == {}


def test_names_have_an_order(database: ControlDatabase) -> None:
    """Names are ordered by id, independent of the database and of the order of writes."""
    ids = ["lkc-b", "LKC-c", "lkc-a", "lkc_a", "lkc-B"]
    with database.write() as connection:
        ensure_known(connection, NOW, billed=[Resource(each, "cluster") for each in ids], charged=[])
        connection.execute(update(resources).where(resources.c.resource_id == "LKC-c").values(display_name="new"))
    with database.read() as connection:
        assert list(names_of(connection, RESOURCES, ids)) == sorted(ids)


def test_enclosing_resources(database: ControlDatabase) -> None:
    """The enclosing resource follows from the chain of parents, also for deleted ones."""
    resources = [
        Resource("env-1", "environment"),
        Resource("lkc-1", "kafka_cluster", parent_id="env-1", deleted_at=NOW),
        Resource("lcc-1", "connector", parent_id="lkc-1"),
    ]
    with database.write() as connection:
        ensure_known(connection, NOW, billed=resources)
    with database.read() as connection:
        assert read_enclosing(connection, "kafka_cluster") == {"lkc-1": "lkc-1", "lcc-1": "lkc-1"}
        assert set(read_enclosing(connection, "environment")) == {"env-1", "lkc-1", "lcc-1"}
        assert read_enclosing(connection, "topic") == {}


def test_resources_and_what_contains_them(database: ControlDatabase) -> None:
    """Only the requested resources and their ancestors are returned; unknown ones are left out."""
    resources = [
        Resource("env-1", "environment", "prod"),
        Resource("lkc-1", "kafka_cluster", parent_id="env-1"),
        Resource("lcc-1", "connector", parent_id="lkc-1"),
        Resource("lcc-2", "connector", parent_id="gone"),
    ]
    with database.write() as connection:
        ensure_known(connection, NOW, billed=resources)
    with database.read() as connection:
        assert read_lineages(connection, {"lcc-1", "none"}) == {
            "env-1": Lineage("environment", None, "prod"),
            "lkc-1": Lineage("kafka_cluster", "env-1", None),
            "lcc-1": Lineage("connector", "lkc-1", None),
        }
        assert set(read_lineages(connection, {"lcc-2"})) == {"lcc-2"}
