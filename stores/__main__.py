"""``python -m stores PYTHON``: the tests of object storage with other servers than the usual one.

moto stands for S3 and Azurite for Azure Blob Storage; s3rver knows no conditional writes, which are not needed. In
each, tables live their whole life. moto, and the client that makes Azurite's container, run in the environment of the
interpreter ``PYTHON``. Exits with 1 unless every test passes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx
from tests.support.processes import free_port

_HERE: Final = Path(__file__).parent
_MODULES: Final = _HERE / "node_modules"
_NODE: Final = str(Path(sys.executable).with_name("node"))
_BUCKET: Final = "facts"
_START_SECONDS: Final = 60
#: What Azurite's documentation says that its account is.
_ACCOUNT: Final = "devstoreaccount1"
_ACCOUNT_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#: The tests of a store, but for those that need the words of S3.
_TESTS: Final = ("tests/store/facts", "tests/pipeline/test_object_storage.py", "-m", "not drill", "-k", "not told_so")


@dataclass(frozen=True)
class Store:
    """A server: how it is started on a port of the loopback and given a bucket, how tests are told of it, and which
    these are."""

    name: str
    command: Sequence[str]
    port: int
    make_bucket: Callable[[], object]
    variables: dict[str, str]
    tests: Sequence[str]

    @contextmanager
    def running(self, log: Path) -> Iterator[None]:
        """Start it and wait until it answers; end it in the end."""
        with log.open("wb") as output, subprocess.Popen(self.command, stdout=output, stderr=output) as process:
            try:
                until = time.monotonic() + _START_SECONDS
                while not _answers(self.port):
                    if process.poll() is not None or time.monotonic() > until:
                        sys.exit(f"{self.name} does not start:\n{log.read_text(errors='replace')[-2000:]}")
                    time.sleep(0.1)
                self.make_bucket()
                yield
            finally:
                process.kill()

    def passes(self) -> bool:
        """Run the tests; return whether all pass."""
        print(f"== {self.name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *self.tests]
        return subprocess.run(command, env=os.environ | self.variables, check=False).returncode == 0


def _answers(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/")
    except httpx.TransportError:
        return False
    return True


def _moto(python: str) -> Store:
    port = free_port()
    return Store(
        "moto",
        [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        port,
        lambda: httpx.put(f"http://127.0.0.1:{port}/{_BUCKET}").raise_for_status(),
        {"CHARGEBACK_TEST_OBJECTS": f"s3://key:secret@127.0.0.1:{port}/{_BUCKET}"},
        _TESTS,
    )


def _azurite(python: str, folder: Path) -> Store:
    port = free_port()
    options = ["--blobPort", str(port), "--location", str(folder), "--disableTelemetry", "--silent"]
    # The client that makes the container may be newer than what the server knows.
    options.append("--skipApiVersionCheck")
    client = [python, str(_HERE / "container.py"), f"http://127.0.0.1:{port}/{_ACCOUNT}", _ACCOUNT_KEY, _BUCKET]
    named = f"az://{_ACCOUNT}:{quote(_ACCOUNT_KEY, safe='')}@127.0.0.1:{port}/{_BUCKET}"
    return Store(
        "Azurite",
        [_NODE, str(_MODULES / "azurite/dist/src/blob/main.js"), *options],
        port,
        lambda: subprocess.run(client, check=True),
        {"CHARGEBACK_TEST_OBJECTS": named},
        _TESTS,
    )


def _s3rver(folder: Path) -> Store:
    port = free_port()
    options = ["--directory", str(folder), "--port", str(port), "--configure-bucket", _BUCKET]
    return Store(
        "s3rver",
        [_NODE, str(_MODULES / "s3rver/bin/s3rver.js"), *options],
        port,
        lambda: None,
        {"CHARGEBACK_TEST_OBJECTS": f"s3://S3RVER:S3RVER@127.0.0.1:{port}/{_BUCKET}"},
        _TESTS,
    )


def main(python: str) -> int:
    """Run the tests with every store; return the exit code."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        stores = (_moto(python), _azurite(python, Path(folder) / "azurite"), _s3rver(Path(folder) / "s3rver"))
        for store in stores:
            with store.running(Path(folder) / f"{store.name}.log"):
                good = store.passes() and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
