"""Metadata of a cluster over the Kafka protocol: librdkafka's mock cluster listens on real sockets."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chargeback import how_to_install
from chargeback.errors import SourceRejected, SourceUnavailable, Stopped
from chargeback.sources.kafka_admin import Broker, KafkaAdmin, KafkaConnection, Topic
from tests.support.kafka import Guard, MockCluster, closed_port


@pytest.fixture(scope="module")
def cluster() -> MockCluster:
    """A cluster with two topics."""
    return MockCluster("orders", "payments")


def admin(bootstrap_servers: str, *, stop: threading.Event | None = None, **more: Any) -> KafkaAdmin:
    """Return a client with a short timeout."""
    timeout = more.pop("timeout_seconds", 5)
    connection = KafkaConnection(bootstrap_servers, **more)
    return KafkaAdmin(connection, stop=stop or threading.Event(), timeout_seconds=timeout)


def test_brokers_and_topics(cluster: MockCluster) -> None:
    """Brokers have ids and addresses, topics have partitions and replicas; both are ordered."""
    described = admin(cluster.bootstrap_servers).describe()
    assert described.cluster_id
    assert described.brokers == tuple(
        Broker(number, host, port) for number, (host, port) in enumerate(cluster.addresses, start=1)
    )
    assert described.topics == (Topic("orders", 4, 3), Topic("payments", 4, 3))


def test_one_living_address_is_enough(cluster: MockCluster) -> None:
    """One available bootstrap server is enough."""
    dead = f"127.0.0.1:{closed_port()}"
    assert len(admin(f"{dead},{cluster.bootstrap_servers}").describe().brokers) == 3


def test_a_dead_cluster_is_unavailable() -> None:
    """If no server listens, this is a temporary error after the timeout, with the library's message."""
    with pytest.raises(SourceUnavailable, match=r"no response within 1 s: .*Connection refused") as caught:
        admin(f"127.0.0.1:{closed_port()}", timeout_seconds=1).describe()
    assert caught.value.source == "kafka"


def test_waiting_ends_with_the_run() -> None:
    """A stop ends the wait for a cluster that does not respond."""
    stop = threading.Event()
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        threading.Timer(0.3, stop.set).start()
        began = time.monotonic()
        with pytest.raises(Stopped):
            admin(f"127.0.0.1:{silent.getsockname()[1]}", stop=stop, timeout_seconds=60).describe()
    assert time.monotonic() - began < 20


@pytest.mark.extensive
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_cluster_without_sasl_does_not_learn_the_password(
    cluster: MockCluster, mechanism: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Credentials for a listener without authentication are an error, and no text shows the password."""
    with pytest.raises((SourceUnavailable, SourceRejected)) as caught:
        admin(
            cluster.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_username="reader",
            sasl_password="hush-hush",
            timeout_seconds=1,
        ).describe()
    assert "SASL" in str(caught.value)
    said = capfd.readouterr()
    assert "hush-hush" not in f"{caught.value}{caplog.text}{said.out}{said.err}"
    assert said.err == ""


def test_the_password_is_in_no_repr() -> None:
    """The repr of a connection shows no secret."""
    connection = KafkaConnection("k:9092", sasl_password="hush-hush", ssl_key_password="be-quiet")
    assert "hush" not in repr(connection)
    assert "quiet" not in repr(connection)


def test_wrong_settings_are_refused_at_once() -> None:
    """Settings that the library rejects are an error with the reason."""
    with pytest.raises(SourceRejected, match=r"ssl\.ca\.location"):
        admin("k:9092", security_protocol="SSL", ssl_ca_location="/no/such/file.pem").describe()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    """The server's side of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.mark.usefixtures("process")
def test_tls(cluster: MockCluster, tls: ssl.SSLContext, certificate: tuple[Path, Path]) -> None:
    """With TLS and the configured authority, the metadata is the same."""
    with Guard(cluster, tls=tls) as guard:
        described = admin(
            guard.bootstrap_servers, security_protocol="SSL", ssl_ca_location=str(certificate[0])
        ).describe()
    assert [topic.name for topic in described.topics] == ["orders", "payments"]


@pytest.mark.usefixtures("process")
def test_tls_with_an_unknown_authority_is_refused(cluster: MockCluster, tls: ssl.SSLContext) -> None:
    """A certificate of an unknown authority is an error."""
    with (
        Guard(cluster, tls=tls) as guard,
        pytest.raises((SourceUnavailable, SourceRejected), match=r"(?i)ssl|certificate"),
    ):
        admin(guard.bootstrap_servers, security_protocol="SSL", timeout_seconds=2).describe()


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_credentials(cluster: MockCluster, tls: ssl.SSLContext, certificate: tuple[Path, Path], protocol: str) -> None:
    """With valid credentials, the metadata is the same, with and without TLS."""
    encrypted = protocol == "SASL_SSL"
    with Guard(cluster, tls=tls if encrypted else None, users={"reader": "hush-hush"}) as guard:
        described = admin(
            guard.bootstrap_servers,
            security_protocol=protocol,
            sasl_mechanism="PLAIN",
            sasl_username="reader",
            sasl_password="hush-hush",
            ssl_ca_location=str(certificate[0]) if encrypted else None,
        ).describe()
    assert len(described.brokers) == 3


def test_wrong_credentials_are_refused_without_delay(cluster: MockCluster) -> None:
    """A wrong password fails before the timeout, and is not shown."""
    began = time.monotonic()
    with (
        Guard(cluster, users={"reader": "hush-hush"}) as guard,
        pytest.raises(SourceRejected, match=r"the cluster rejects the request: .*[Aa]uthentication") as caught,
    ):
        admin(
            guard.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username="reader",
            sasl_password="wrong-wrong",
            timeout_seconds=60,
        ).describe()
    assert time.monotonic() - began < 30
    assert "wrong-wrong" not in str(caught.value)


@pytest.mark.usefixtures("process")
def test_without_the_package_the_message_says_what_to_install() -> None:
    """Without the optional package, a request is an error that names the extra; the module can be imported."""
    program = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from threading import Event\n"
        "from chargeback.errors import ConfigurationError\n"
        "from chargeback.sources.kafka_admin import KafkaAdmin, KafkaConnection\n"
        "try: KafkaAdmin(KafkaConnection('k:9092'), stop=Event()).describe()\n"
        "except ConfigurationError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"the admin API needs the extra kafka: {how_to_install('kafka')}" in said.stdout
