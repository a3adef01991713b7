"""A listing that is not as the contract asks is refused as a whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from chargeback.errors import PluginError
from chargeback.model.inventory import Grant, Identity, Inventory, ListedInventory, Resource
from tests.ecosystems.plugins import DAY, listing

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is what is wrong


WRONG_LISTINGS = [
    (lambda: None, "the answer should be a ListedInventory, not None"),
    (Inventory, "the answer should be a ListedInventory, not Inventory"),
    (lambda: ListedInventory(None, frozenset()), "inventory should be an Inventory, not None"),  # type: ignore[arg-type]
    (lambda: listing(resources="thing-1"), "inventory.resources should be a list or a tuple, not str 'thing-1'"),
    (lambda: listing(resources=[Identity("web", "team")]), "resource 1 should be a Resource, not Identity"),
    (lambda: listing(resources=[Resource("", "thing")]), "resource 1: resource_id should not be empty"),
    (lambda: listing(resources=[Resource("a", "")]), "resource 1 (a): resource_type should not be empty"),
    (lambda: listing(resources=[Resource("*", "thing")]), "resource 1 (*): resource_id should not be '*', which is"),
    (
        lambda: listing(resources=[Resource("a", "thing"), Resource("a", "thing", "other")]),
        "resource 2 (a): its resource_id was listed before; list each resource once",
    ),
    (
        lambda: listing(identities=[Identity("web", "team"), Identity("web", "team")]),
        "identity 2 (web): its identity_id was listed before",
    ),
    (
        lambda: listing(grants=[Grant("k", "thing-1", "web"), Grant("k", "thing-1", "ops")]),
        "grant 2 (k, thing-1): its grant_id and resource_id was listed before",
    ),
    (
        lambda: listing(identities=[Identity("me", "system")]),
        "identity 1 (me): identity_type should not be 'system', which is reserved",
    ),
    (lambda: listing(identities=[Identity("UNALLOCATED", "team")]), "identity_id should not be 'UNALLOCATED'"),
    (lambda: listing(identities=[Identity("web", "thing")]), "'thing' is both a resource type and an identity type"),
    (lambda: listing(identities=[Identity("web", "grant")], complete={"thing", "grant"}), "'grant' is reserved"),
    (
        lambda: listing(resources=[Resource("a", "thing", created_at=NAIVE)]),
        "resource 1 (a): created_at should have a time zone",
    ),
    (
        lambda: listing(identities=[Identity("web", "team", deleted_at=DAY)]),  # type: ignore[arg-type]
        "identity 1 (web): deleted_at should be a datetime, not date",
    ),
    (lambda: listing(resources=[Resource("a", "thing", owner_id=5)]), "resource 1 (a): owner_id should be a str"),  # type: ignore[arg-type]
    (
        lambda: listing(resources=[Resource("a", "thing", metadata={"tags": ["x"]})]),  # type: ignore[dict-item]
        "resource 1 (a): metadata['tags'] should be a str, an int, a bool or None, not list",
    ),
    (lambda: listing(complete="thing"), "complete should be a set of names, not str 'thing'"),
    (lambda: listing(complete=frozenset({"thing"})), "'team' was listed, but is in none of complete, partial and"),
    (
        lambda: listing(more={"partial": frozenset({"team"})}),
        "'team' is in both complete and partial; it should be in one of them",
    ),
    (lambda: listing(more={"failures": {"team": "no"}}), "'team' is in both complete and failures"),
    (lambda: listing(more={"failures": ["role"]}), "failures should be a dict, not list"),
    (lambda: listing(more={"failures": {"role": None}}), "failures['role'] should be a str, not None"),
    (lambda: listing(more={"required": "team"}), "required should be a set of names, not str 'team'"),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_LISTINGS)
def test_a_wrong_listing_is_an_error(ask: Callable[..., Any], answer: Callable[[], Any], expected: str) -> None:
    """Nothing of it is taken: half an inventory would charge the wrong people."""
    with pytest.raises(PluginError) as caught:
        ask(lambda gatherer: gatherer.inventory(), on_inventory=answer)
    assert caught.value.message.startswith("plugin tiny: inventory: ")
    assert expected in caught.value.message
