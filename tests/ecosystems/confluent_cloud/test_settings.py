"""Settings of a Confluent Cloud tenant."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings

API = {"key": "ABC", "secret": "the-secret"}


def parse(**fields: Any) -> ConfluentCloudSettings:
    """Return settings with a Cloud key and these fields."""
    return ConfluentCloudSettings.model_validate({"ccloud_api": API, **fields})


def test_defaults() -> None:
    """Only a Cloud key is required; all other settings have the documented defaults."""
    settings = parse()
    assert settings.ccloud_api.url == "https://api.confluent.cloud"
    assert settings.billing_api.days_per_query == 15
    assert settings.allocator_params.kafka_cku_usage_ratio == Decimal("0.70")
    assert settings.metric_names.bytes_in == "confluent_kafka_server_request_bytes"


@pytest.mark.parametrize(
    "fields",
    [
        {"billing_api": {"days_per_query": 0}},
        {"billing_api": {"days_per_query": 31}},
        {"allocator_params": {"kafka_cku_usage_ratio": "0.8"}},
        {"allocator_params": {"kafka_cku_usage_ratio": "1.5", "kafka_cku_shared_ratio": "-0.5"}},
        {"allocator_params": {"kafka_cku_usage_ratio": 0.7, "kafka_cku_shared_ratio": 0.3}},
        {"allocator_params": {"kafka_cku_usage_ratio": "0.7000000000001", "kafka_cku_shared_ratio": "0.2999999999999"}},
        {"metric_names": {"bytes_in": "sum(x)"}},
        {"metric_names": {"bytes_in": 'x{a="b"}) or up{'}},
        {"metric_names": {"storage": "x"}},
        {"label_names": {"kafka_id": "a,b"}},
        {"ccloud_api": {"key": "ABC", "secret": "line\nbreak"}},
        {"ccloud_api": {"key": "", "secret": "x"}},
        {"ccloud_api": {"key": "ABC"}},
        {"ccloud_api": {**API, "url": "https://user:pw@api.confluent.cloud"}},
        {"flink": [{"region_id": "", "key": "a", "secret": "b"}]},
        {"allocation_policies": {"X": {"portions": [{"share": "1", "try": ["usage(storage)"]}]}}},
        {"unknown": 1},
    ],
)
def test_mistakes_are_errors(fields: dict[str, Any]) -> None:
    """A value out of range, a query instead of a name, or an unknown key or measure is an error."""
    with pytest.raises(ValidationError):
        parse(**fields)


def test_a_metric_may_have_matchers() -> None:
    """A metric may have matchers, for metrics sources with several exporters."""
    assert parse(metric_names={"bytes_in": 'x{job="cloud"}'}).metric_names.bytes_in == 'x{job="cloud"}'


def test_secrets_are_in_no_repr_and_no_error() -> None:
    """Neither the repr of the settings nor an error message shows a secret."""
    secret = "s3cret-0123"
    fields = {"ccloud_api": {"key": "A", "secret": secret}, "flink": [{"region_id": "r", "key": "k", "secret": secret}]}
    assert secret not in repr(ConfluentCloudSettings.model_validate(fields))
    with pytest.raises(ValidationError) as caught:
        ConfluentCloudSettings.model_validate({"ccloud_api": {"key": "A", "secret": secret, "urll": "x"}})
    assert secret not in str(caught.value)
    with pytest.raises(ValidationError) as caught:
        ConfluentCloudSettings.model_validate({"ccloud_api": {"key": "A", "secret": secret + "\n\0"}})
    assert secret not in str(caught.value)


def test_a_secret_from_a_file_loses_its_line_break() -> None:
    """White space around a secret, as in a file or a copy, is removed."""
    assert parse(ccloud_api={"key": " A ", "secret": " x\n"}).ccloud_api.secret.get_secret_value() == "x"


@pytest.mark.parametrize("topics", [7, [], {"enabled": "perhaps"}, {"enabled": True, "retention_days": 0}, None])
def test_a_mistake_in_the_topic_settings_does_not_stop_the_tenant(topics: object) -> None:
    """Invalid topic settings do not invalidate the tenant; they are checked later."""
    assert parse(topic_attribution=topics).topic_attribution == topics
