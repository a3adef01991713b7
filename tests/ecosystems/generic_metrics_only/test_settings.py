"""``plugin_settings`` of a system that is known by its metrics only."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from chargeback.ecosystems.generic_metrics_only.settings import CostType
from tests.ecosystems.generic_metrics_only.conftest import NETWORK, SERVER, STATIC, STORAGE, settings_for


def refused(**more: Any) -> str:
    """Return the error for invalid settings."""
    with pytest.raises(ValidationError) as caught:
        settings_for(more.pop("url", "http://p"), **more)
    return str(caught.value)


def test_a_discovery_query_is_required() -> None:
    """A discovery query is required if identities come from the metrics, because there is no built-in one."""
    message = "discovery_query required when an identity source is the metrics source"
    assert message in refused(identity_source={})
    both = {"source": "both", "static_identities": [{"identity_id": "a"}]}
    assert message in refused(identity_source=both)
    assert settings_for("http://p", identity_source=STATIC)


def test_metrics_are_required_where_something_is_measured() -> None:
    """Only fixed costs of static identities need no metrics source; the error says what needs one."""
    assert settings_for(None, identity_source=STATIC, cost_types=[SERVER]).metrics is None
    assert "PG_STORAGE is measured" in refused(url=None, identity_source=STATIC, cost_types=[SERVER, STORAGE])
    assert "identity_source takes identities from it" in refused(url=None, cost_types=[SERVER])


@pytest.mark.parametrize(
    ("cost_type", "message"),
    [
        (NETWORK | {"allocation_query": None}, "allocation_query required when allocation_strategy is usage_ratio"),
        (STORAGE | {"allocation_query": "x"}, "require allocation_strategy usage_ratio"),
        (STORAGE | {"allocation_label": "x"}, "require allocation_strategy usage_ratio"),
        (STORAGE | {"rate": 0.5}, "quote the number"),
        (STORAGE | {"name": "PG STORAGE"}, "pattern"),
        (STORAGE | {"cost_quantity": {"type": "storage_gib"}}, "query"),
        (STORAGE | {"cost_quantity": {"type": "fixed", "count": 0}}, "greater than or equal to 1"),
        (STORAGE | {"cost_quantity": {"type": "compute"}}, "fixed"),
    ],
)
def test_cost_types_that_cannot_work(cost_type: dict[str, Any], message: str) -> None:
    """The error describes each mistake."""
    assert message in refused(cost_types=[cost_type])


def test_names_differ() -> None:
    """Two cost types cannot share a name or have the name of a built-in measure; at least one is required."""
    assert "same name" in refused(cost_types=[SERVER, SERVER | {"name": "pg_server"}])
    assert "choose another" in refused(cost_types=[SERVER | {"name": "PRESENCE"}])
    assert "cost_types" in refused(cost_types=[])


def test_measures() -> None:
    """Each cost type with an allocation query is a measure, and so is presence."""
    settings = settings_for("http://p")
    assert settings.measures == {"pg_network", "presence"}
    policy = {"PG_STORAGE": {"portions": [{"share": "1", "try": ["usage(pg_network)"]}]}}
    assert settings_for("http://p", allocation_policies=policy)
    policy["PG_STORAGE"]["portions"][0]["try"] = ["usage(bytes_in)"]
    assert "no such measure: bytes_in" in refused(allocation_policies=policy)


def test_labels() -> None:
    """The label of identities is ``principal`` unless configured otherwise."""
    assert settings_for("http://p").identity_label == "datname"
    assert settings_for("http://p", identity_source={"discovery_query": "x"}).identity_label == "principal"
    assert CostType.model_validate(NETWORK | {"allocation_label": "usename"}).allocation_label == "usename"


def test_which_queries_are_summed() -> None:
    """Queries for traffic and usage are summed; those for gauges are not."""
    assert settings_for("http://p").summed_queries == [
        "PG_NETWORK cost_quantity",
        "PG_NETWORK allocation_query",
    ]
