"""Search returns matches, the best first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.categories.parsing import parse_category
from chargeback.model.dated import DatedValue, Period
from chargeback.model.days import instants
from chargeback.model.inventory import Identity, Resource
from chargeback.reports.search import EntityCosts, FoundItem, entity_costs, search
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory import ensure_known
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.lookups import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.visible_sums import VisibleEntities
from tests.support.categories import SomeNames
from tests.support.clock import NOW
from tests.support.databases import KINDS
from tests.support.facts import Share, tenant_store, write_shares
from tests.support.readers import Read
from tests.support.topics import TopicShare, write_topic_shares

TAGS = TagIndex.undated({"orders-sa": {"team": "no orders", "cost": "x"}}, {"lkc-1": {"team": "no orders"}})
COSTS = EntityCosts(
    identities={"orders-sa": Decimal(2)},
    resources={"lkc-1": Decimal(5)},
    topics={"lkc-1:topic:orders": Decimal(4)},
    tags={("team", "no orders"): Decimal("0.5")},
)


@pytest.fixture(params=KINDS)
def tenant(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TenantView]:
    """Yield a tenant with a small inventory, on each kind of database."""
    with tenant_store(tmp_path, kind=request.param) as store:
        resources = [
            Resource("lkc-1", "cluster", "Orders"),
            Resource("lkc-2", "cluster", "old ORDERS", parent_id="env-1"),
            Resource("lkc-1:topic:orders", "topic", None, parent_id="lkc-1"),
            Resource("lkc-2:topic:Orders", "topic", "Orders", parent_id="lkc-2"),
            Resource("other", "cluster", "x"),
        ]
        with store.control.write() as connection:
            ensure_known(connection, NOW, billed=resources, charged=[Identity("orders-sa", "user")])
        yield TenantView("acme", "a", "e", 200, store)


def test_the_best_comes_first(tenant: TenantView) -> None:
    """Matches at the beginning of an id or name come first, then the most expensive ones; case is ignored."""
    found = search(tenant, TAGS, COSTS, "ORDERS", 10)
    assert [(each.kind, each.id, each.parent_id, each.amount) for each in found] == [
        ("resource", "lkc-1", None, Decimal(5)),
        ("topic", "orders", "lkc-1", Decimal(4)),
        ("identity", "orders-sa", None, Decimal(2)),
        ("topic", "Orders", "lkc-2", None),
        ("tag", "no orders", None, Decimal("0.5")),
        ("resource", "lkc-2", "env-1", None),
    ]
    assert found[1] == FoundItem(
        kind="topic", id="orders", name="orders", type="topic", parent_id="lkc-1", amount=Decimal(4)
    )
    assert found[4] == FoundItem(
        kind="tag", id="no orders", name="no orders", type="team", parent_id=None, amount=Decimal("0.5")
    )
    assert search(tenant, TAGS, COSTS, "orders", 2) == found[:2]
    assert search(tenant, TAGS, COSTS, "nothing", 2) == []


def test_only_what_is_visible(tenant: TenantView) -> None:
    """A caller with a scope finds only visible entities; a topic is a resource."""
    visible = VisibleEntities(frozenset(["lkc-1"]), frozenset(["lkc-2", "lkc-1:topic:orders"]))
    found = search(tenant, TAGS.among(visible.identities, visible.resources), COSTS, "orders", 10, visible)
    assert [(each.kind, each.id) for each in found] == [("topic", "orders"), ("resource", "lkc-2")]


def test_the_dearest_of_many(tenant: TenantView) -> None:
    """The most expensive of any number of matches are returned; wildcard characters are literal."""
    many = [Identity(f"many_%{number:04}", "user") for number in range(3000)]
    with tenant.store.control.write() as connection:
        ensure_known(connection, NOW, billed=[], charged=many)
    costs = EntityCosts(identities={many[2345].identity_id: Decimal(1), many[2999].identity_id: Decimal(3)})
    found = search(tenant, TagIndex(), costs, "y_%", 3)
    assert [each.id for each in found] == ["many_%2999", "many_%2345", "many_%0000"]


CENTRES = {
    "cost_center": parse_category(
        "cost_center",
        {
            "values": {"cc-1": {"name": "Orders and more", "parent": "cc-9"}, "cc-9": {"name": "Retail"}},
            "rules": [{"match": {"identity": ["sa-2"]}, "assign": "cc-1"}],
        },
    )
}


def test_values_of_cost_categories(tenant: TenantView) -> None:
    """Values are found by name if names are visible; otherwise only values with costs are found, by id."""
    costs = EntityCosts(categories={"cost_center": {"cc-1": Decimal(7), "UNASSIGNED": Decimal(1)}})
    registers = {key: each.register for key, each in CENTRES.items()}
    found = search(tenant, TagIndex(), costs, "orders and", 10, registers=registers)
    assert found == [
        FoundItem(
            kind="category",
            id="cc-1",
            name="Orders and more",
            type="cost_center",
            parent_id="cc-9",
            amount=Decimal(7),
        )
    ]
    assert [each.id for each in search(tenant, TagIndex(), costs, "cc-", 10, registers=registers)] == ["cc-1", "cc-9"]
    unnamed = search(tenant, TagIndex(), costs, "cc-", 10)
    assert [(each.id, each.name, each.parent_id) for each in unnamed] == [("cc-1", None, None)]


def test_what_everything_cost(read: Read, facts: FactTables) -> None:
    """Costs are exact and of the period; tags are those of the day, and tags of the identity take precedence."""
    first, second, after = date(2026, 2, 1), date(2026, 2, 2), date(2026, 2, 3)
    huge = "12345678901234567890.000000000001"
    shares = [
        Share(first, "sa-1", huge),
        Share(second, "sa-1", "3", resource="lkc-2"),
        Share(second, "sa-2", "2", resource="lkc-1", portion=1),
        Share(after, "sa-1", "100"),
    ]
    write_shares(facts, shares)
    write_topic_shares(facts, [TopicShare(first, "orders", "4"), TopicShare(after, "orders", "1")])
    tags = TagIndex(
        {"sa-1": {"team": [DatedValue("a", Period(None, second)), DatedValue("b", Period(second, None))]}},
        {"lkc-1": {"team": [DatedValue("c")]}},
    )
    lookup = CategoryLookup(
        CategoryIndex({key: StoredCategory(each) for key, each in CENTRES.items()}),
        lambda dataset, key: Assignments(CENTRES[key], dataset, tags, SomeNames({})),
    )
    window = instants(first, second)
    found: EntityCosts = read(lambda reader: entity_costs(reader.with_categories(lookup), window), tags)
    assert found == EntityCosts(
        identities={"sa-1": Decimal("12345678901234567893.000000000001"), "sa-2": Decimal(2)},
        resources={"lkc-1": Decimal("12345678901234567892.000000000001"), "lkc-2": Decimal(3)},
        topics={"lkc-1:topic:orders": Decimal(4)},
        tags={("team", "a"): Decimal(huge), ("team", "b"): Decimal(3), ("team", "c"): Decimal(2)},
        categories={"cost_center": {"cc-1": Decimal(2), "UNASSIGNED": Decimal("12345678901234567893.000000000001")}},
    )
    assert read(lambda reader: entity_costs(reader, instants(date(2026, 3, 1), date(2026, 3, 2)))) == EntityCosts()
