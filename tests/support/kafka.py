"""A Kafka cluster for tests: librdkafka's mock brokers, which use the protocol on real sockets, and a proxy that adds
TLS and SASL/PLAIN."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from contextlib import ExitStack, closing, suppress
from types import TracebackType

from confluent_kafka import Producer


class MockCluster:
    """Three brokers with the Kafka protocol, until the object is deleted."""

    def __init__(self, *topics: str) -> None:
        self._producer = Producer({"bootstrap.servers": "unused:1", "test.mock.num.brokers": 3, "log_level": 0})
        for topic in topics:
            self._producer.produce(topic, b"x")
        assert self._producer.flush(10) == 0
        brokers = self._producer.list_topics(timeout=10).brokers.values()
        self.addresses = [(broker.host, broker.port) for broker in brokers]
        self.bootstrap_servers = ",".join(f"{host}:{port}" for host, port in self.addresses)


def closed_port() -> int:
    """Return a port on which no process listens."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


_SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE = 17, 18, 36
_AUTHENTICATION_FAILED = 58
#: Entries of the list of supported requests: key, lowest and highest version.
_SASL_REQUESTS = struct.pack(">hhhhhh", _SASL_HANDSHAKE, 0, 1, _SASL_AUTHENTICATE, 0, 0)


class Guard:
    """A listener in front of each broker of a mock cluster; it replaces the brokers' addresses in responses with the
    listeners'.

    With ``tls`` it uses TLS; with ``users`` (name to password) it requires authentication by SASL/PLAIN. A context
    manager.
    """

    def __init__(
        self, cluster: MockCluster, *, tls: ssl.SSLContext | None = None, users: dict[str, str] | None = None
    ) -> None:
        self._cluster = cluster
        self._tls = tls
        self._users = users
        self._open = ExitStack()
        self._ports: dict[bytes, bytes] = {}
        self.bootstrap_servers = ""

    def __enter__(self) -> Guard:
        """Start listening."""
        listeners = [self._open.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in self._cluster.addresses]
        ports = [listener.getsockname()[1] for listener in listeners]
        for (_, behind), port in zip(self._cluster.addresses, ports, strict=True):
            self._ports[struct.pack(">i", behind)] = struct.pack(">i", port)
        self.bootstrap_servers = f"127.0.0.1:{ports[0]}"
        for listener, broker in zip(listeners, self._cluster.addresses, strict=True):
            threading.Thread(target=self._accept, args=(listener, broker), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        self._open.close()

    def _accept(self, listener: socket.socket, broker: tuple[str, int]) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._converse, args=(client, broker), daemon=True).start()

    def _converse(self, client: socket.socket, broker: tuple[str, int]) -> None:
        """Serve one connection: alternate requests and responses."""
        with suppress(OSError, EOFError), ExitStack() as stack:
            stack.enter_context(closing(client))
            speaker = stack.enter_context(self._tls.wrap_socket(client, server_side=True)) if self._tls else client
            behind = stack.enter_context(closing(socket.create_connection(broker)))
            is_let_in = self._users is None
            while True:
                question = _read_frame(speaker)
                api, _, correlation = struct.unpack(">hhi", question[:8])
                if api == _SASL_HANDSHAKE:
                    answer = struct.pack(">ihih", correlation, 0, 1, 5) + b"PLAIN"
                elif api == _SASL_AUTHENTICATE:
                    is_let_in = self._knows(question)
                    error = 0 if is_let_in else _AUTHENTICATION_FAILED
                    answer = struct.pack(">ihhi", correlation, error, -1, 0)
                elif is_let_in or api == _API_VERSIONS:
                    behind.sendall(struct.pack(">i", len(question)) + question)
                    answer = self._changed(api, _read_frame(behind))
                else:
                    return
                speaker.sendall(struct.pack(">i", len(answer)) + answer)

    def _knows(self, question: bytes) -> bool:
        _, name, password = question.rsplit(b"\0", 2)
        return (self._users or {}).get(name.decode()) == password.decode()

    def _changed(self, api: int, answer: bytes) -> bytes:
        if api == _API_VERSIONS and self._users is not None:
            # The mock brokers use the first version: correlation id, error, number of requests, and the requests.
            correlation, error, count = struct.unpack(">ihi", answer[:10])
            if not error:
                answer = struct.pack(">ihi", correlation, error, count + 2) + _SASL_REQUESTS + answer[10:]
        for behind, listener in self._ports.items():
            answer = answer.replace(behind, listener)
        return answer


def _read_frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _read(connection, 4))
    return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data
