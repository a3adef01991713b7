"""``plugin_settings`` of a Confluent Cloud tenant."""

import re
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)

from chargeback.allocation.policies import parse_policies
from chargeback.ecosystems.settings import LabelName, PluginSettings
from chargeback.settings import ExactDecimal, Settings, Url

_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^{}\[\]()]*\})?")


def _metric(value: str) -> str:
    if not _METRIC.fullmatch(value):
        raise ValueError('should be the name of a metric, optionally with matchers: name or name{job="x"}')
    return value


def _printable_secret(value: SecretStr) -> SecretStr:
    if not value.get_secret_value() or not value.get_secret_value().isprintable():
        raise ValueError("it is empty or contains a line break or a control character")
    return value


def _strip(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


#: The name of a metric, optionally with label matchers: ``name`` or ``name{job="x"}``.
MetricName = Annotated[str, AfterValidator(_metric)]
Key = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^[!-~]+$")]
Secret = Annotated[SecretStr, BeforeValidator(_strip), AfterValidator(_printable_secret)]


class CloudApi(Settings):
    """The control plane: a Cloud API key of a service account with the role OrganizationAdmin.

    ``requests_per_second`` limits the requests of all tenants of the host to one organization; the provider publishes
    no limit.
    """

    key: Key
    secret: Secret
    url: Url = "https://api.confluent.cloud"
    requests_per_second: Annotated[float, Field(gt=0, le=1000)] = 10


class BillingApi(Settings):
    """How costs are fetched. ``requests_per_second`` is a separate limit for these requests."""

    days_per_query: Annotated[int, Field(ge=1, le=30)] = 15
    requests_per_second: Annotated[float, Field(gt=0, le=1000)] = 1


class FlinkRegion(Settings):
    """A Flink key of one region. A key that is scoped to one environment needs an entry per environment.

    ``region_id`` is the region's name (``us-east-1``) or its id (``aws.us-east-1``); ``url`` is its address if it
    differs from the one that the provider lists (a private network).
    """

    region_id: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    key: Key
    secret: Secret
    url: Url | None = None


class AllocatorParams(Settings):
    """The short form for CKUs: the part split by usage and the part shared evenly."""

    kafka_cku_usage_ratio: ExactDecimal = Decimal("0.70")
    kafka_cku_shared_ratio: ExactDecimal = Decimal("0.30")

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        ratios = (self.kafka_cku_usage_ratio, self.kafka_cku_shared_ratio)
        if sum(ratios) != 1 or any(not 0 <= ratio <= 1 or ratio != round(ratio, 12) for ratio in ratios):
            raise ValueError(
                "kafka_cku_usage_ratio and kafka_cku_shared_ratio must sum to 1,"
                " each from 0 to 1 with at most 12 decimals"
            )
        return self


class MetricNames(Settings):
    """The names of the provider's metrics in the metrics source."""

    bytes_in: MetricName = "confluent_kafka_server_request_bytes"
    bytes_out: MetricName = "confluent_kafka_server_response_bytes"
    flink_cfu_minutes: MetricName = "confluent_flink_statement_utilization_cfu_minutes_consumed"


class LabelNames(Settings):
    """The names of the provider's labels in the metrics source."""

    kafka_id: LabelName = "kafka_id"
    principal_id: LabelName = "principal_id"
    topic: LabelName = "topic"
    compute_pool_id: LabelName = "compute_pool_id"
    flink_statement_name: LabelName = "flink_statement_name"


#: The measures that a policy's ``usage(…)`` may name.
MEASURES = frozenset(MetricNames.model_fields)


class ConfluentCloudSettings(PluginSettings):
    """Everything under ``plugin_settings``.

    ``topic_attribution`` is kept as written: a mistake in it must not prevent the tenant's other work; see
    :func:`.topics.topic_settings`. With ``organization_id``, the id is not fetched.
    """

    ccloud_api: CloudApi
    billing_api: BillingApi = BillingApi()
    flink: tuple[FlinkRegion, ...] = ()
    organization_id: str | None = None
    allocator_params: AllocatorParams = AllocatorParams()
    metric_names: MetricNames = MetricNames()
    label_names: LabelNames = LabelNames()
    topic_attribution: Any = None

    @field_validator("allocation_policies")
    @classmethod
    def _known_measures(cls, value: dict[str, Any]) -> dict[str, Any]:
        asked = {measure for policy in parse_policies(value, "").values() for measure in policy.measures}
        if unknown := sorted(asked - MEASURES):
            raise ValueError(f"no such measure: {', '.join(unknown)}; there are {', '.join(sorted(MEASURES))}")
        return value
