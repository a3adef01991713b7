"""A Dask scheduler and its workers as separate processes that use TLS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from distributed.security import Security

from chargeback.config.compute import ComputeSettings
from tests.support.processes import free_port

# The scheduler's web server cannot be disabled; it gets a free port.
_NO_DASHBOARD: Final = ("--no-dashboard", "--dashboard-address=127.0.0.1:0")


@dataclass
class Cluster:
    """A running cluster: its address and its processes."""

    settings: ComputeSettings
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def document(self) -> dict[str, Any]:
        """Return the settings as in a configuration file."""
        return self.settings.model_dump(mode="json", exclude_none=True)


def certificates(folder: Path) -> dict[str, str]:
    """Write a new authority, a certificate and its key; return the files by their keys in the configuration."""
    made = Security.temporary()
    texts = {"tls_ca": made.tls_ca_file, "tls_cert": made.tls_client_cert, "tls_key": made.tls_client_key}
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.pem").write_text(str(text))
    return {name: str(folder / f"{name}.pem") for name in texts}


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Run a scheduler with a number of workers of one thread each."""
    files = certificates(folder)
    options = [
        f"--{name.replace('_', '-')}{'-file' if name == 'tls_ca' else ''}={path}" for name, path in files.items()
    ]
    address = f"tls://127.0.0.1:{free_port()}"
    settings = ComputeSettings.model_validate({"type": "dask", "address": address, **files})
    cluster = Cluster(settings, _start("scheduler", "--host", address, *_NO_DASHBOARD, *options))
    of_worker = ["--nthreads=1", "--no-nanny", "--no-dashboard", f"--local-directory={folder}", *options]
    try:
        cluster.workers += [_start("worker", address, *of_worker) for _ in range(workers)]
        yield cluster
    finally:
        for process in (*cluster.workers, cluster.scheduler):
            process.kill()
            process.wait()


def _start(kind: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
