"""What lies in what, of the whole inventory."""

from __future__ import annotations

from chargeback.model.inventory import Resource
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.lineage import read_enclosing
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
