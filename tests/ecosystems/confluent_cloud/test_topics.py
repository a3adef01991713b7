"""Settings of the topic overlay."""

from __future__ import annotations

from typing import Any

import pytest

from chargeback.ecosystems.confluent_cloud import ecosystem
from chargeback.ecosystems.confluent_cloud.gatherer import catalogue
from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings
from chargeback.ecosystems.confluent_cloud.topics import TOPIC_METHODS, TopicSettings, topic_settings
from chargeback.ecosystems.contract import TopicEcosystem
from chargeback.errors import ConfigurationError, in_one_line
from chargeback.model.topics import TopicMethod

ALIASES = catalogue().aliases


def judged(topics: object, *, metrics: bool = True) -> TopicSettings | str:
    """Return the topic settings of a tenant, or the error message."""
    fields: dict[str, Any] = {"ccloud_api": {"key": "A", "secret": "B"}, "topic_attribution": topics}
    if metrics:
        fields["metrics"] = {"url": "http://metrics:9090"}
    try:
        return topic_settings(ConfluentCloudSettings.model_validate(fields))
    except ConfigurationError as error:
        return in_one_line(error)


def valid(topics: object) -> TopicSettings:
    """Return the topic settings, which must be valid."""
    settings = judged(topics)
    assert isinstance(settings, TopicSettings), settings
    return settings


@pytest.mark.parametrize("topics", [None, {}, {"enabled": False}, {"enabled": False, "retention_days": -1}])
def test_switched_off(topics: object) -> None:
    """Without `enabled: true` there is no overlay, with any other settings."""
    assert not valid(topics).enabled


def test_enabled_with_defaults() -> None:
    """With only `enabled`, the other settings have the documented defaults."""
    settings = valid({"enabled": True})
    assert (settings.retention_days, settings.missing_metrics_behavior) == (90, "even_split")
    assert settings.methods(ALIASES) == TOPIC_METHODS


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (7, "write a mapping"),
        ({"enabled": "perhaps"}, "topic_attribution.enabled"),
        ({"enabled": True, "retention_days": 0}, "topic_attribution.retention_days"),
        ({"enabled": True, "retention_days": 366}, "topic_attribution.retention_days"),
        ({"enabled": True, "missing_metrics_behavior": "guess"}, "topic_attribution.missing_metrics_behavior"),
        ({"enabled": True, "cost_mapping_overrides": {"X": "by_magic"}}, "topic_attribution.cost_mapping_overrides.X"),
        ({"enabled": True, "metric_name_overrides": {"a": "b"}}, "topic_attribution.metric_name_overrides.a"),
        ({"enabled": True, "typo": 1}, "topic_attribution.typo"),
    ],
)
def test_a_mistake_is_a_message_with_its_path(topics: object, message: str) -> None:
    """An invalid value results in a message with its path."""
    found = judged(topics)
    assert isinstance(found, str)
    assert message in found


def test_a_metrics_source_is_needed() -> None:
    """The overlay without a metrics source is a configuration error."""
    assert "metrics" in str(judged({"enabled": True}, metrics=False))


def test_overrides() -> None:
    """A type can be disabled, changed under any of its names, or added."""
    overrides = {"KAFKA_NUM_CKU": "even_split", "KAFKA_BASE": "disabled", "KAFKA_STREAMS": "bytes_ratio"}
    methods = valid({"enabled": True, "cost_mapping_overrides": overrides}).methods(ALIASES)
    assert methods["KAFKA_NUM_CKUS"] == TopicMethod("even_split")
    assert "KAFKA_BASE" not in methods
    assert methods["KAFKA_STREAMS"].measures == ("topic_bytes_in", "topic_bytes_out")


def test_naming_the_method_a_type_has_changes_nothing() -> None:
    """Naming the default method of a type does not change it: network writes still follow incoming bytes only."""
    overrides = {"KAFKA_NETWORK_WRITE": "bytes_ratio"}
    assert valid({"enabled": True, "cost_mapping_overrides": overrides}).methods(ALIASES) == TOPIC_METHODS


@pytest.mark.parametrize(
    ("topic", "left_out"),
    [
        ("__consumer_offsets", True),
        ("_schemas", True),
        ("_confluent-metrics", True),
        ("orders", False),
        ("_SCHEMAS", False),
    ],
)
def test_patterns(topic: str, left_out: bool) -> None:
    """Internal topics are excluded by default; patterns are case-sensitive."""
    assert valid({"enabled": True}).excludes(topic) is left_out


def test_the_plan_is_what_the_settings_say() -> None:
    """The plan has the methods, patterns, behaviour and retention of the settings, and the types of this ecosystem."""
    plan = valid(
        {
            "enabled": True,
            "missing_metrics_behavior": "skip",
            "exclude_topic_patterns": ["x-*"],
            "retention_days": 30,
            "cost_mapping_overrides": {"KAFKA_BASE": "disabled"},
        }
    ).plan(ALIASES)
    assert (plan.cluster_type, plan.topic_type) == ("kafka_cluster", "kafka_topic")
    assert (plan.spreads_missing, plan.retention_days) == (False, 30)
    assert (plan.excludes("x-1"), plan.excludes("orders")) == (True, False)
    assert plan.method_of("KAFKA_NUM_CKU") == plan.method_of("KAFKA_NUM_CKUS") == TOPIC_METHODS["KAFKA_NUM_CKUS"]
    assert plan.method_of("KAFKA_BASE") is plan.method_of("SUPPORT") is None


@pytest.mark.parametrize("topics", [None, {"enabled": False}, {"enabled": True, "retention_days": 0}])
def test_there_is_no_plan_without_valid_settings(topics: object) -> None:
    """If the overlay is disabled or invalid, there is no plan."""
    fields = {"ccloud_api": {"key": "A", "secret": "B"}, "metrics": {"url": "http://m"}, "topic_attribution": topics}
    assert ecosystem.topic_plan(ConfluentCloudSettings.model_validate(fields)) is None
    assert isinstance(ecosystem, TopicEcosystem)
