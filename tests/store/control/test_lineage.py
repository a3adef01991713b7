"""What lies in what, of the whole inventory."""

from __future__ import annotations

from chargeback.model.inventory import Resource
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.inventory_lists import Lineage, read_enclosing, read_lineages
from tests.support.clock import NOW


def test_enclosing_resources(database: ControlDatabase) -> None:
    """By the chain of parents, also of what was deleted."""
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
    """Everything above the resources that are asked for, and nothing beside it; unknown ones are left out."""
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
