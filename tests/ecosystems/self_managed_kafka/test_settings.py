"""``plugin_settings`` of a self-managed cluster."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from chargeback.ecosystems.constructed.settings import ResourceSource
from chargeback.ecosystems.self_managed_kafka.settings import (
    PRESETS,
    CostModel,
    MetricNames,
    SelfManagedKafkaSettings,
)
from tests.ecosystems.self_managed_kafka.conftest import RATES, settings_for

ADMIN = {"source": "admin_api", "bootstrap_servers": "k1:9092"}


def refused(model: type[Any], keys: dict[str, Any]) -> str:
    """Return the error for invalid keys."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(keys)
    return str(caught.value)


def test_a_region_replaces_single_rates() -> None:
    """A region's rates replace only those that it lists; without an entry, the general rates apply."""
    model = CostModel.model_validate({**RATES, "region_overrides": {"eu": {"network_egress_per_gib": "0"}}})
    assert model.of_region("eu").network_egress_per_gib == 0
    assert model.of_region("eu").compute_hourly_rate == Decimal("0.50")
    assert model.of_region("us") == model.of_region(None) == model


def test_rates_are_required_and_exact() -> None:
    """Rates have no defaults and must be exact, not floats."""
    assert "compute_hourly_rate" in refused(CostModel, {})
    assert "quote the number" in refused(CostModel, {**RATES, "compute_hourly_rate": 0.5})


@pytest.mark.parametrize("missing", ["metrics", "cluster_id", "broker_count", "cost_model"])
def test_what_is_required(missing: str) -> None:
    """These settings are required."""
    keys: dict[str, Any] = {"metrics": {"url": "http://p"}, "cluster_id": "c", "broker_count": 1, "cost_model": RATES}
    assert SelfManagedKafkaSettings.model_validate(keys)
    del keys[missing]
    assert missing in refused(SelfManagedKafkaSettings, keys)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_and_names_of_ones_own(preset: str) -> None:
    """A preset names every metric; a configured name replaces one of them."""
    names = MetricNames.model_validate({"preset": preset, "bytes_in": 'my_bytes{tier="a"}'})
    assert names.name("bytes_in") == 'my_bytes{tier="a"}'
    assert names.name("bytes_out") == PRESETS[preset].bytes_out
    assert names.name("quota_in") == PRESETS[preset].quota_in


def test_the_label_of_principals() -> None:
    """The label depends on the chosen metrics, unless the identity source has one."""
    assert settings_for("http://p").principal_label == "principal"
    assert settings_for("http://p", metric_names={"principals": "quotas"}).principal_label == "user"
    own = settings_for("http://p", metric_names={"principals": "quotas"}, identity_source={"label": "who"})
    assert own.principal_label == "who"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"source": "admin_api"}, "bootstrap servers required when resource source is the admin API"),
        (ADMIN | {"security_protocol": "SASL_SSL"}, "sasl_mechanism, sasl_username and sasl_password required"),
        (
            ADMIN | {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "u"},
            "sasl_mechanism, sasl_username and sasl_password required",
        ),
        (ADMIN | {"sasl_username": "u"}, "no effect with PLAINTEXT"),
        (ADMIN | {"security_protocol": "TLS"}, "SASL_PLAINTEXT"),
        (ADMIN | {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "SCRAM-SHA-256"),
    ],
)
def test_resource_sources_that_cannot_work(keys: dict[str, Any], message: str) -> None:
    """The error describes each mistake."""
    assert message in refused(ResourceSource, keys)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        ADMIN,
        ADMIN | {"security_protocol": "SSL", "ssl_ca_location": "/etc/ca.pem"},
        ADMIN
        | {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": "u",
            "sasl_password": "p",
        },
    ],
)
def test_resource_sources_that_work(keys: dict[str, Any]) -> None:
    """Plain, encrypted and authenticated connections are valid."""
    assert ResourceSource.model_validate(keys)


@pytest.mark.parametrize(
    ("kinds", "more", "message"),
    [
        ({"rates": {"tiered": {}}}, {}, "label"),
        ({"label": "kind", "rates": {}}, {}, "at least 1"),
        ({"label": "kind", "rates": {"other": {}}}, {}, "the topics of no listed kind"),
        ({"label": "kind", "rates": {"Tiered Storage": {}}}, {}, "pattern"),
        ({"label": "kind", "rates": {"tiered": {}}}, {"metric_names": {"principals": "quotas"}}, "have no topics"),
    ],
)
def test_kinds_that_cannot_be_billed(kinds: dict[str, Any], more: dict[str, Any], message: str) -> None:
    """The error describes each mistake."""
    keys = {"metrics": {"url": "http://p"}, "cluster_id": "c", "broker_count": 1} | more
    assert message in refused(SelfManagedKafkaSettings, keys | {"cost_model": {**RATES, "topic_kinds": kinds}})


def test_a_policy_may_ask_for_a_kind() -> None:
    """The traffic of each kind, and that of topics without a kind, are measures."""
    model = {**RATES, "topic_kinds": {"label": "kind", "rates": {"tiered": {}}}}
    policy = {"portions": [{"share": "1", "try": ["usage(bytes_in_tiered + bytes_out_other)", "even(active)"]}]}
    assert settings_for("http://p", cost_model=model, allocation_policies={"SELF_KAFKA_COMPUTE": policy})
    with pytest.raises(ValidationError, match="no such measure: bytes_in_tiered, bytes_out_other"):
        settings_for("http://p", allocation_policies={"SELF_KAFKA_COMPUTE": policy})


def test_policies_may_ask_for_what_is_measured() -> None:
    """Bytes in, bytes out and presence are measures; any other name is an error."""

    def policy(way: str) -> dict[str, Any]:
        return {"SELF_KAFKA_COMPUTE": {"portions": [{"share": "1", "try": [way]}]}}

    assert settings_for("http://p", allocation_policies=policy("usage(bytes_in + bytes_out + presence)"))
    with pytest.raises(ValidationError, match="no such measure: cfus"):
        settings_for("http://p", allocation_policies=policy("usage(cfus)"))
