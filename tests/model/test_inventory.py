"""Parents and lifetimes of resources."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chargeback.model.inventory import Resource, alive_during, enclosing, environments

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def test_environment_at_any_depth() -> None:
    """A resource is in the environment above it; with cyclic or unknown parents it is in none."""
    resources = [
        Resource("env-1", "environment"),
        Resource("lkc-1", "kafka_cluster", parent_id="env-1"),
        Resource("lcc-1", "connector", parent_id="lkc-1"),
        Resource("orphan", "connector", parent_id="gone"),
        Resource("a", "x", parent_id="b"),
        Resource("b", "x", parent_id="a"),
    ]
    assert environments(resources) == {"env-1": "env-1", "lkc-1": "env-1", "lcc-1": "env-1"}
    by_id = {each.resource_id: (each.resource_type, each.parent_id) for each in resources}
    assert enclosing(by_id, "kafka_cluster") == {"lkc-1": "lkc-1", "lcc-1": "lkc-1"}
    assert enclosing(by_id, "x") == {"a": "a", "b": "b"}


def test_lifetimes_are_half_open() -> None:
    """A resource created at the end of a range, or deleted at its start, was not alive in it."""
    end = DAY + timedelta(days=1)
    assert alive_during(None, None, DAY, end)
    assert alive_during(DAY + timedelta(hours=23), None, DAY, end)
    assert not alive_during(end, None, DAY, end)
    assert not alive_during(None, DAY, DAY, end)
    assert alive_during(None, DAY + timedelta(seconds=1), DAY, end)
