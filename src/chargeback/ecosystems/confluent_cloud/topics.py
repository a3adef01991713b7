"""Settings of the topic overlay: which line types are attributed to topics, and how."""

from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from chargeback.ecosystems.confluent_cloud import objects
from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings, MetricName
from chargeback.errors import ConfigProblem, ConfigurationError
from chargeback.model.topics import BYTES_RATIO, EVEN_SPLIT, RETAINED_BYTES_RATIO, TopicMethod, TopicPlan
from chargeback.settings import Settings

BYTES_IN = "topic_bytes_in"
BYTES_OUT = "topic_bytes_out"
RETAINED_BYTES = "topic_retained_bytes"

DISABLED = "disabled"

_MEASURES_OF: Final = {
    BYTES_RATIO: (BYTES_IN, BYTES_OUT),
    RETAINED_BYTES_RATIO: (RETAINED_BYTES,),
    EVEN_SPLIT: (),
}

TOPIC_METHODS: Final[Mapping[str, TopicMethod]] = {
    "KAFKA_NETWORK_WRITE": TopicMethod(BYTES_RATIO, (BYTES_IN,)),
    "KAFKA_NETWORK_READ": TopicMethod(BYTES_RATIO, (BYTES_OUT,)),
    "KAFKA_NUM_CKUS": TopicMethod(BYTES_RATIO, (BYTES_IN, BYTES_OUT)),
    "KAFKA_STORAGE": TopicMethod(RETAINED_BYTES_RATIO, (RETAINED_BYTES,)),
    "KAFKA_PARTITION": TopicMethod(EVEN_SPLIT),
    "KAFKA_BASE": TopicMethod(EVEN_SPLIT),
}


Way = Literal["bytes_ratio", "retained_bytes_ratio", "even_split", "disabled"]


class TopicMetricNames(Settings):
    """The names of the topics' metrics in the metrics source."""

    topic_bytes_in: MetricName = "confluent_kafka_server_received_bytes"
    topic_bytes_out: MetricName = "confluent_kafka_server_sent_bytes"
    topic_retained_bytes: MetricName = "confluent_kafka_server_retained_bytes"


class TopicSettings(Settings):
    """``topic_attribution``, validated."""

    enabled: bool = False
    exclude_topic_patterns: tuple[str, ...] = ("__consumer_offsets", "_schemas", "_confluent-*")
    missing_metrics_behavior: Literal["even_split", "skip"] = "even_split"
    retention_days: Annotated[int, Field(ge=1, le=365)] = 90
    cost_mapping_overrides: dict[str, Way] = Field(default_factory=dict)
    metric_name_overrides: TopicMetricNames = TopicMetricNames()

    def excludes(self, topic: str) -> bool:
        """Return whether one of the patterns (shell style, case-sensitive) excludes the topic."""
        return any(fnmatchcase(topic, pattern) for pattern in self.exclude_topic_patterns)

    def methods(self, aliases: Mapping[str, str]) -> dict[str, TopicMethod]:
        """Return product type → method, with the tenant's overrides; a disabled type is absent.

        An override with the method that a type has by default changes nothing: network writes by ``bytes_ratio`` still
        use only the bytes in.
        """
        methods = dict(TOPIC_METHODS)
        for text, method in self.cost_mapping_overrides.items():
            name = aliases.get(text, text)
            if method == DISABLED:
                methods.pop(name, None)
            elif name not in methods or methods[name].method != method:
                methods[name] = TopicMethod(method, _MEASURES_OF[method])
        return methods

    def plan(self, aliases: Mapping[str, str]) -> TopicPlan:
        """Return the overlay's plan."""
        return TopicPlan(
            methods=self.methods(aliases),
            aliases=aliases,
            cluster_type=objects.KAFKA_CLUSTER,
            topic_type=objects.KAFKA_TOPIC,
            exclude_patterns=self.exclude_topic_patterns,
            spreads_missing=self.missing_metrics_behavior == EVEN_SPLIT,
            retention_days=self.retention_days,
        )


def topic_settings(settings: ConfluentCloudSettings) -> TopicSettings:
    """Return the validated topic settings.

    Raises:
        ConfigurationError: they are not valid, or there is no metrics source.
    """
    raw = settings.topic_attribution
    if raw is None or (isinstance(raw, dict) and raw.get("enabled", False) is False):
        # If the overlay is disabled, mistakes in its other settings do no harm.
        with suppress(ValidationError):
            return TopicSettings.model_validate(raw or {})
        return TopicSettings()
    if not isinstance(raw, dict):
        raise ConfigurationError([ConfigProblem("topic_attribution", "write a mapping such as {enabled: true}")])
    try:
        validated = TopicSettings.model_validate(raw)
    except ValidationError as error:
        raise ConfigurationError(
            [
                ConfigProblem(".".join(("topic_attribution", *map(str, problem["loc"]))), problem["msg"])
                for problem in error.errors(include_url=False, include_input=False, include_context=False)
            ]
        ) from None
    if validated.enabled and settings.metrics is None:
        raise ConfigurationError([ConfigProblem("", "topic_attribution needs a metrics source: configure `metrics`")])
    return validated


def usable_topic_settings(settings: ConfluentCloudSettings) -> TopicSettings | None:
    """Return the topic settings if the overlay is enabled and can work."""
    with suppress(ConfigurationError):
        topics = topic_settings(settings)
        if topics.enabled:
            return topics
    return None
