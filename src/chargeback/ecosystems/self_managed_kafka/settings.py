"""``plugin_settings`` of a self-managed Kafka cluster."""

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from chargeback.ecosystems.constructed.settings import (
    PRESENCE,
    ConstructedSettings,
    Kind,
    Matchers,
    Rate,
    ResourceSource,
    SeriesName,
    Text,
    check_known_measures,
)
from chargeback.ecosystems.settings import LabelName
from chargeback.settings import Settings
from chargeback.sources.credentials import MetricsSettings

#: The measures of traffic.
TRAFFIC = ("bytes_in", "bytes_out")
#: In the names of measures, the topics of none of the configured kinds.
OTHER_KINDS = "other"


class ExporterMetrics(NamedTuple):
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
    "jmx_exporter": ExporterMetrics(
        bytes_in="kafka_server_brokertopicmetrics_bytesin_total",
        bytes_out="kafka_server_brokertopicmetrics_bytesout_total",
        log_size="kafka_log_log_size",
        quota_in='kafka_server_quota_byte_rate{resource="Produce"}',
        quota_out='kafka_server_quota_byte_rate{resource="Fetch"}',
    ),
    "confluent_jmx": ExporterMetrics(
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


class KindRates(Settings):
    """The rates that differ for a kind of topics."""

    storage_per_gib_hourly: Rate | None = None
    network_ingress_per_gib: Rate | None = None
    network_egress_per_gib: Rate | None = None


class TopicKinds(Settings):
    """Kinds of topics with their own rates, by the values of a label of the metrics."""

    label: LabelName
    rates: Annotated[dict[Kind, KindRates], Field(min_length=1, max_length=20)]

    @field_validator("rates")
    @classmethod
    def _others_keep_their_name(cls, value: dict[str, KindRates]) -> dict[str, KindRates]:
        if OTHER_KINDS in value:
            raise ValueError(f"{OTHER_KINDS} are the topics of no listed kind; the rates of the cost model are theirs")
        return value


class CostModel(Settings):
    """Rates: a broker per hour, a GiB on disk per hour, a GiB in, a GiB out. Written in quotes, to be exact."""

    compute_hourly_rate: Rate
    storage_per_gib_hourly: Rate
    network_ingress_per_gib: Rate
    network_egress_per_gib: Rate
    region_overrides: dict[str, RegionRates] = Field(default_factory=dict)
    topic_kinds: TopicKinds | None = None

    def of_region(self, region: str | None) -> "CostModel":
        """Return the rates of a region."""
        own = self.region_overrides.get(region or "")
        return self if own is None else self._with(own)

    def of_kinds(self) -> "tuple[PricedKind, ...]":
        """Return what is billed apart: the topics of each kind, and those of none; without kinds, all topics."""
        kinds = self.topic_kinds
        if kinds is None:
            return (PricedKind(None, "", "", self),)
        every = "|".join(kinds.rates)
        own = (
            PricedKind(name, name, f'{kinds.label}="{name}"', self._with(rates)) for name, rates in kinds.rates.items()
        )
        return (PricedKind(None, OTHER_KINDS, f'{kinds.label}!~"{every}"', self), *own)

    def _with(self, own: RegionRates | KindRates) -> "CostModel":
        return self.model_copy(update=own.model_dump(exclude_none=True))


@dataclass(frozen=True, slots=True)
class PricedKind:
    """Topics that are billed together. ``matcher`` selects their series; ``name`` is None for those of no kind."""

    name: str | None
    of_measures: str
    matcher: str
    rates: CostModel

    def product_type(self, base: str) -> str:
        """Return the product type of their lines."""
        return base if self.name is None else f"{base}_{self.name.upper()}"

    def measure(self, base: str) -> str:
        """Return the measure of their traffic."""
        return f"{base}_{self.of_measures}" if self.of_measures else base


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


class SelfManagedKafkaSettings(ConstructedSettings):
    """Everything under ``plugin_settings``."""

    metrics: MetricsSettings
    broker_count: Annotated[int, Field(ge=1, le=10_000)]
    region: Text | None = None
    cost_model: CostModel
    resource_source: ResourceSource = ResourceSource()
    metric_names: MetricNames = MetricNames()
    label_names: LabelNames = LabelNames()

    @model_validator(mode="after")
    def _can_be_measured(self) -> Self:
        if self.cost_model.topic_kinds is not None and self.metric_names.principals == "quotas":
            raise ValueError(
                "cost_model.topic_kinds: the gauges per user have no topics; write metric_names.principals: counters"
            )
        check_known_measures(self.allocation_policies, frozenset({*self.measures, PRESENCE}))
        return self

    @property
    def rates(self) -> CostModel:
        """The rates of this cluster's region."""
        return self.cost_model.of_region(self.region)

    @property
    def measures(self) -> dict[str, tuple[str, str]]:
        """The measures of traffic that a policy's ``usage(…)`` may name: what each counts, and of which topics (as
        label matchers)."""
        kinds = self.rates.of_kinds()
        parts = {kind.measure(base): (base, kind.matcher) for base in TRAFFIC for kind in kinds}
        return {base: (base, "") for base in TRAFFIC} | parts

    @property
    def principal_label(self) -> str:
        """The label that names a principal."""
        usual = "user" if self.metric_names.principals == "quotas" else "principal"
        return self.identity_source.label or usual
