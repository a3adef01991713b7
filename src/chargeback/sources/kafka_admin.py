"""The brokers and topics of a Kafka cluster, read from the cluster over the Kafka protocol.

The package ``confluent-kafka`` (librdkafka) is an optional extra; it is imported on first use.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from chargeback import how_to_install
from chargeback.errors import (
    REJECTS,
    ConfigProblem,
    ConfigurationError,
    SourceRejected,
    SourceUnavailable,
    Stopped,
)

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_SOURCE: Final = "kafka"
#: librdkafka logs every refused connection; the relevant messages are in our errors.
_library_log = logging.getLogger(f"{__name__}.librdkafka")
_library_log.setLevel(logging.CRITICAL)

#: Waits are split into slices, so that a run can stop.
_SLICE_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.1
#: The timeout for a cluster that does not respond, and the timeout if a person waits.
TIMEOUT_SECONDS: Final = 30.0
INTERACTIVE_TIMEOUT_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """Connection settings with librdkafka's names; files are PEM. Secrets are not in the repr."""

    bootstrap_servers: str
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)

    def properties(self) -> dict[str, str]:
        """librdkafka's configuration properties; missing settings have librdkafka's defaults."""
        given = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": self.sasl_password,
            "ssl.ca.location": self.ssl_ca_location,
            "ssl.certificate.location": self.ssl_certificate_location,
            "ssl.key.location": self.ssl_key_location,
            "ssl.key.password": self.ssl_key_password,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True, order=True)
class Broker:
    """A broker: its id, and its advertised address."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, order=True)
class Topic:
    """A topic, its number of partitions, and the largest number of replicas of a partition."""

    name: str
    partitions: int
    replicas: int


@dataclass(frozen=True, slots=True)
class DescribedCluster:
    """The description of a cluster, ordered by id and name. ``cluster_id`` is None with very old brokers."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]


class KafkaAdmin:
    """Describes one cluster. Connects only when called."""

    def __init__(self, connection: KafkaConnection, *, stop: Event, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._connection = connection
        self._stop = stop
        self._timeout_seconds = timeout_seconds

    def describe(self) -> DescribedCluster:
        """Return brokers and topics, including internal topics.

        Raises:
            ConfigurationError: the package is missing.
            SourceUnavailable: the cluster did not respond in time.
            SourceRejected: it refused the credentials, or the connection's settings are not valid.
            Stopped: ``stop`` was set.
        """
        complaints: list[Any] = []
        client = self._client(complaints)
        until = time.monotonic() + self._timeout_seconds
        while not self._stop.is_set():
            metadata = self._metadata(client)
            if metadata is not None:
                return _described(metadata)
            client.poll(0)  # calls the error callback for the library's messages
            if refusal := next((error for error in complaints if _is_refusal(error)), None):
                raise self._rejected(refusal)
            if time.monotonic() >= until:
                raise SourceUnavailable(
                    f"{self._connection.bootstrap_servers}: no response within {self._timeout_seconds:g} s: "
                    f"{_last_complaint(complaints)}",
                    source=_SOURCE,
                )
            self._stop.wait(_PAUSE_SECONDS)  # some failures are reported at once
        raise Stopped("the run was told to stop")

    def _client(self, complaints: list[Any]) -> AdminClient:
        try:
            from confluent_kafka import KafkaException
            from confluent_kafka.admin import AdminClient
        except ImportError as error:
            message = f"the admin API needs the extra kafka: {how_to_install('kafka')} ({error})"
            raise ConfigurationError([ConfigProblem("resource_source", message)]) from None
        options: Mapping[str, Any] = {
            "client.id": "chargeback",
            "error_cb": complaints.append,
            "logger": _library_log,
            "reconnect.backoff.max.ms": 1000,
        }
        try:
            return AdminClient({**self._connection.properties(), **options})
        except KafkaException as error:
            message = f"the settings of the connection cannot be used: {error.args[0].str()}"
            raise SourceRejected(message, source=_SOURCE) from None

    def _metadata(self, client: AdminClient) -> Any:
        """Return the cluster's metadata, or None if it does not arrive within one slice."""
        from confluent_kafka import KafkaException

        try:
            return client.list_topics(timeout=min(_SLICE_SECONDS, self._timeout_seconds))
        except KafkaException as error:
            if _is_refusal(error.args[0]):
                raise self._rejected(error.args[0]) from None
            return None

    def _rejected(self, error: Any) -> SourceRejected:
        return SourceRejected(f"{self._connection.bootstrap_servers}: {REJECTS}: {error.str()}", source=_SOURCE)


def _described(metadata: Any) -> DescribedCluster:
    brokers = sorted(Broker(each.id, each.host, each.port) for each in metadata.brokers.values())
    topics = sorted(
        Topic(
            name,
            len(each.partitions),
            max((len(partition.replicas) for partition in each.partitions.values()), default=0),
        )
        for name, each in metadata.topics.items()
    )
    return DescribedCluster(metadata.cluster_id, tuple(brokers), tuple(topics))


def _is_refusal(error: Any) -> bool:
    from confluent_kafka import KafkaError

    return error.code() in {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }


def _last_complaint(complaints: list[Any]) -> str:
    """Return the last message about one connection rather than about all of them."""
    from confluent_kafka import KafkaError

    telling = [error.str() for error in complaints if error.code() != KafkaError._ALL_BROKERS_DOWN]
    return telling[-1] if telling else "it could not be reached"
