"""``plugin_settings`` of a self-managed Kafka cluster."""

from importlib.util import find_spec
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from chargeback import how_to_install
from chargeback.ecosystems.constructed.settings import (
    PRESENCE,
    ConstructedSettings,
    LabelName,
    Matchers,
    Rate,
    SeriesName,
    Text,
    check_known_measures,
)
from chargeback.settings import LocalPath, Settings
from chargeback.sources.settings import MetricsSettings

#: The measures that a policy's ``usage(…)`` may name.
MEASURES = frozenset({"bytes_in", "bytes_out", PRESENCE})


class Names(NamedTuple):
    """The metrics of a rule file of the JMX exporter.

    ``quota_in`` and ``quota_out`` are gauges of bytes per second and user, which exist only if a quota is configured.
    """

    bytes_in: str
    bytes_out: str
    log_size: str
    quota_in: str
    quota_out: str


#: prometheus/jmx_exporter ``examples/kafka-2_0_0.yml``; confluentinc/jmx-monitoring-stacks ``kafka_broker.yml``.
PRESETS = {
    "jmx_exporter": Names(
        bytes_in="kafka_server_brokertopicmetrics_bytesin_total",
        bytes_out="kafka_server_brokertopicmetrics_bytesout_total",
        log_size="kafka_log_log_size",
        quota_in='kafka_server_quota_byte_rate{resource="Produce"}',
        quota_out='kafka_server_quota_byte_rate{resource="Fetch"}',
    ),
    "confluent_jmx": Names(
        bytes_in="kafka_server_brokertopicmetrics_bytesinpersec",
        bytes_out="kafka_server_brokertopicmetrics_bytesoutpersec",
        log_size="kafka_log_log_size",
        quota_in="kafka_server_produce_byte_rate",
        quota_out="kafka_server_fetch_byte_rate",
    ),
}


class RegionRates(Settings):
    """The rates that differ in a region."""

    compute_hourly_rate: Rate | None = None
    storage_per_gib_hourly: Rate | None = None
    network_ingress_per_gib: Rate | None = None
    network_egress_per_gib: Rate | None = None


class CostModel(Settings):
    """Rates: a broker per hour, a GiB on disk per hour, a GiB in, a GiB out. Written in quotes, to be exact."""

    compute_hourly_rate: Rate
    storage_per_gib_hourly: Rate
    network_ingress_per_gib: Rate
    network_egress_per_gib: Rate
    region_overrides: dict[str, RegionRates] = Field(default_factory=dict)

    def of_region(self, region: str | None) -> "CostModel":
        """Return the rates of a region."""
        own = self.region_overrides.get(region or "")
        return self if own is None else self.model_copy(update=own.model_dump(exclude_none=True))


class MetricNames(Settings):
    """The names of the brokers' metrics in the metrics source; each may have matchers.

    ``preset`` names a rule file of the JMX exporter; a configured name replaces the preset's. ``matchers`` restrict
    every metric to this cluster, if the metrics source has several. ``principals`` says which metrics have the
    principals: the byte counters (``counters``) or the gauges per user of brokers with configured quotas (``quotas``).
    """

    preset: Literal["jmx_exporter", "confluent_jmx"] = "jmx_exporter"
    matchers: Matchers | None = None
    bytes_in: SeriesName | None = None
    bytes_out: SeriesName | None = None
    log_size: SeriesName | None = None
    principals: Literal["counters", "quotas"] = "counters"
    quota_in: SeriesName | None = None
    quota_out: SeriesName | None = None

    def name(self, metric: str) -> str:
        """Return the configured name of a metric, else the preset's."""
        own: str | None = getattr(self, metric)
        return own or str(getattr(PRESETS[self.preset], metric))


class LabelNames(Settings):
    """The names of the labels of topics and brokers in the metrics source."""

    topic: LabelName = "topic"
    broker: LabelName = "instance"


class ResourceSource(Settings):
    """The source of the lists of brokers and topics: the metrics, or the cluster itself (``admin_api``)."""

    source: Literal["prometheus", "admin_api"] = "prometheus"
    bootstrap_servers: Text | None = None
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: Text | None = None
    sasl_password: SecretStr | None = None
    ssl_ca_location: LocalPath | None = None
    ssl_certificate_location: LocalPath | None = None
    ssl_key_location: LocalPath | None = None
    ssl_key_password: SecretStr | None = None

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        if self.source == "prometheus":
            return self
        if not self.bootstrap_servers:
            raise ValueError(
                "bootstrap servers required when resource source is the admin API: bootstrap_servers is missing"
            )
        uses_sasl = self.security_protocol.startswith("SASL_")
        if uses_sasl and not (self.sasl_mechanism and self.sasl_username and self.sasl_password):
            raise ValueError(f"sasl_mechanism, sasl_username and sasl_password required with {self.security_protocol}")
        if not uses_sasl and (self.sasl_mechanism or self.sasl_username or self.sasl_password):
            raise ValueError(
                f"the sasl_ keys have no effect with {self.security_protocol}; write SASL_PLAINTEXT or SASL_SSL"
            )
        if find_spec("confluent_kafka") is None:
            raise ValueError(f"the admin API needs the extra kafka: {how_to_install('kafka')}")
        return self


class SelfManagedKafkaSettings(ConstructedSettings):
    """Everything under ``plugin_settings``."""

    metrics: MetricsSettings
    broker_count: Annotated[int, Field(ge=1, le=10_000)]
    region: Text | None = None
    cost_model: CostModel
    resource_source: ResourceSource = ResourceSource()
    metric_names: MetricNames = MetricNames()
    label_names: LabelNames = LabelNames()

    @field_validator("allocation_policies")
    @classmethod
    def _known_measures(cls, value: dict[str, Any]) -> dict[str, Any]:
        check_known_measures(value, MEASURES)
        return value

    @property
    def rates(self) -> CostModel:
        """The rates of this cluster's region."""
        return self.cost_model.of_region(self.region)

    @property
    def principal_label(self) -> str:
        """The label that names a principal."""
        usual = "user" if self.metric_names.principals == "quotas" else "principal"
        return self.identity_source.label or usual
