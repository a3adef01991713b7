"""Real object storage for tests: a separate prefix in a bucket of a real server.

``CHARGEBACK_TEST_OBJECTS`` names a server and a bucket: ``s3://key:secret@host:port/bucket``, or
``az://account:key@host:port/container`` for Azure Blob Storage. Without it, SeaweedFS is started once for the whole
test session, however many processes share it; it ends with the last of them.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, ObjectStore, S3Store

from chargeback.config.storage import AZURE, S3, ObjectLocation
from chargeback.settings import ObjectStoreSettings
from chargeback.store.facts.buckets import Bucket
from chargeback.store.facts.copies import Copies
from chargeback.store.facts.places import Folder, Place
from tests.support.hosts import THIS_HOST, Host
from tests.support.outside import declared

#: The kinds of locations for facts.
PLACES: Final = ("folder", "s3")
REGION: Final = "us-east-1"
_BUCKET: Final = "facts"
_KEY, _SECRET = "test-key", "test-secret-of-the-tests"
_START_SECONDS: Final = 60
# SeaweedFS also listens 10,000 above each of its ports. Both are below the ephemeral ports of Linux: while a server
# is down, no other process gets its ports.
_PORTS: Final = range(12_000, 22_000)
_GRPC: Final = 10_000
#: Stops the server when all processes that use it have ended.
_GUARD: Final = """
import fcntl, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
fcntl.flock(os.open(folder / "users", os.O_RDONLY), fcntl.LOCK_EX)
from tests.support.objects import OwnObjectServer
OwnObjectServer(folder).remove()
"""
# References to processes avoid warnings about forgotten ones; these are ended by their ids.
_STARTED: Final[list[subprocess.Popen[bytes]]] = []


@dataclass(frozen=True)
class ObjectServer:
    """A server and a bucket of it. Its clients give up after ``retry_seconds``, which is short, so that errors appear
    soon."""

    endpoint: str
    access_key_id: str
    secret_access_key: str
    bucket: str
    retry_seconds: int = 5
    scheme: str = S3

    @property
    def settings(self) -> ObjectStoreSettings:
        """Return the settings of the server in a configuration."""
        return ObjectStoreSettings.model_validate(self.written)

    @property
    def written(self) -> dict[str, object]:
        """Return the settings as written in a configuration."""
        return {
            "endpoint": self.endpoint,
            "region": REGION,
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "allow_http": True,
            "retry_seconds": self.retry_seconds,
        }

    def raw(self, prefix: str | None = None) -> ObjectStore:
        """Return a client without this project's code."""
        if self.scheme == AZURE:
            return AzureStore(
                self.bucket,
                prefix=prefix,
                endpoint=self.endpoint,
                account_name=self.access_key_id,
                account_key=self.secret_access_key,
                client_options={"allow_http": True},
            )
        return S3Store(
            self.bucket,
            prefix=prefix,
            endpoint=self.endpoint,
            region=REGION,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
        )

    def responds(self) -> bool:
        """Return whether the bucket, which SeaweedFS creates itself, accepts an object."""
        with suppress(BaseError):
            obstore.put(self.raw(), "there", b"", use_multipart=False)
            return True
        return False

    def location(self, prefix: str | None = None) -> ObjectLocation:
        """Return a location for facts that no other test uses."""
        return ObjectLocation.of(f"{self.scheme}://{self.bucket}/{prefix or uuid.uuid4().hex}", self.settings)


def new_place(kind: str, folder: Path) -> Place:
    """Return an empty location for facts; its local files are in ``folder``."""
    return Folder(folder / "facts with spaces") if kind == "folder" else new_bucket(folder)


def new_bucket(folder: Path, prefix: str | None = None, max_bytes: int = 10**9) -> Bucket:
    """Return a location in the bucket of the tests, whose copies are in ``folder``."""
    return Bucket(object_server().location(prefix), Copies(folder / "copies", max_bytes))


def damage_object(bucket: Bucket, path: str, damage: Callable[[Path], None], folder: Path) -> None:
    """Apply ``damage``, which changes a file, to an object; ``folder`` is for the file."""
    file = folder / "damaged"
    file.write_bytes(bucket.read(path))
    damage(file)
    if file.exists():
        bucket.put(path.removeprefix(f"{bucket.root}/"), file.read_bytes())
    else:
        bucket.delete(path)


def object_server() -> ObjectServer:
    """Return the server of the tests; start it if none runs."""
    declared("object storage")
    return _object_server()


@cache
def _object_server() -> ObjectServer:
    """Return the server of the tests."""
    named = os.environ.get("CHARGEBACK_TEST_OBJECTS")
    if named:
        return parsed(named)
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    shared = Path(tempfile.gettempdir()) / f"chargeback-objects-{session}"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The lock is held until this process ends in any way, which the guard notices.
        fcntl.flock(os.open(shared / "users", os.O_WRONLY | os.O_CREAT), fcntl.LOCK_SH)
        if not (shared / "server").exists():
            OwnObjectServer(shared).start()
            _start([sys.executable, "-c", _GUARD, str(shared)], Path(__file__).parents[2], subprocess.DEVNULL)
        return parsed((shared / "server").read_text())


def _start(command: list[str], folder: Path, log: IO[bytes] | int) -> subprocess.Popen[bytes]:
    """Start a process that may outlive this process."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True
    )
    _STARTED.append(process)
    return process


@contextmanager
def own_object_server(folder: Path) -> Iterator[tuple[ObjectServer, OwnObjectServer]]:
    """Start a server for one test, which may be killed; its data is in ``folder``, which is deleted with it."""
    folder.mkdir()
    own = OwnObjectServer(folder)
    try:
        yield own.start(), own
    finally:
        own.remove()


class OwnObjectServer:
    """A SeaweedFS whose data is in a folder."""

    def __init__(self, folder: Path, host: Host = THIS_HOST) -> None:
        self._folder = folder
        self._host = host

    def start(self) -> ObjectServer:
        """Start the server for the first time with an empty bucket; return it, with its address for the test process,
        when it responds."""
        master, volume, filer, s3 = free_ports(4)
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": _KEY, "secretKey": _SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (self._folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        (self._folder / "data").mkdir()
        # Without space for more volumes, requests return status 500. Its ports for gRPC must not be set.
        options = {
            "dir": self._folder / "data",
            "ip": self._host.address,
            "ip.bind": self._host.address,
            "master.port": master,
            "master.volumeSizeLimitMB": 256,
            "volume.port": volume,
            "volume.max": 200,
            "filer.port": filer,
            "s3.port": s3,
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "s3.config": self._folder / "s3.json",
        }
        (self._folder / "ports").write_text(f"{master} {volume} {filer} {s3}")
        given = [f"-{name}={value}" for name, value in options.items()]
        (self._folder / "command.json").write_text(json.dumps(["server", "-s3", "-filer", *given]))
        self.port = s3
        seen = f"127.0.0.1:{self._host.seen(s3)}"
        server = ObjectServer(f"http://{seen}", _KEY, _SECRET, _BUCKET)
        self.resume(server)
        (self._folder / "server").write_text(f"{S3}://{_KEY}:{_SECRET}@{seen}/{_BUCKET}")
        return server

    def resume(self, server: ObjectServer) -> None:
        """Start the server again; return when it responds."""
        weed = Path(sys.executable).with_name("weed")
        with (self._folder / "log").open("ab") as log:
            given = json.loads((self._folder / "command.json").read_text())
            process = _start([*self._host.within, str(weed), *given], self._folder, log)
        (self._folder / "pid").write_text(str(process.pid))
        until = time.monotonic() + _START_SECONDS
        while not server.responds():
            assert process.poll() is None, (self._folder / "log").read_text(errors="replace")[-2000:]
            assert time.monotonic() < until, "SeaweedFS does not respond"
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the server as in a crash; its data remains."""
        pid = int((self._folder / "pid").read_text())
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def remove(self) -> None:
        """Stop the server, and delete its data and its sockets."""
        self.kill()
        remove_sockets(map(int, (self._folder / "ports").read_text().split()))
        shutil.rmtree(self._folder, ignore_errors=True)


def remove_sockets(ports: Iterable[int]) -> None:
    """Remove the sockets of a SeaweedFS that has ended and used these ports."""
    for port in ports:
        for number in (port, port + _GRPC):
            for file in Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):
                file.unlink(missing_ok=True)


def parsed(address: str) -> ObjectServer:
    """Return the server and the bucket of an address."""
    parts = urlsplit(address)
    key, secret = unquote(parts.username or ""), unquote(parts.password or "")
    # Azure emulators have the account in the path.
    account = f"/{key}" if parts.scheme == AZURE else ""
    endpoint = f"http://{parts.hostname}:{parts.port}{account}"
    return ObjectServer(endpoint, key, secret, parts.path.strip("/"), scheme=parts.scheme)


def free_ports(count: int) -> list[int]:
    """Return free loopback ports for which the ports 10,000 above, where SeaweedFS also listens, are free as well."""
    found: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if _is_free(port) and _is_free(port + _GRPC):
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no ports are free")


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as listener:
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
