"""The service needs no special rights: it does not run as root, and writes only to its data and a folder for temporary
files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
import yaml

from tests.cli.conftest import COMMAND, Demo, demo, environment
from tests.cli.test_serve import wait_for
from tests.support.processes import free_port

pytestmark = pytest.mark.usefixtures("process")

__all__ = ["demo"]

ROOT = Path(__file__).parents[2]


def read_only_root(*writable: Path) -> list[str]:
    """Return a command prefix with which only these folders can be written; skip the test if the kernel forbids
    this."""
    flags = "-m" if os.getuid() == 0 else "-rm"
    binds = " && ".join(f"mount --bind '{folder}' '{folder}'" for folder in writable)
    script = f'{binds} && mount -o remount,bind,ro / && ! touch "{ROOT}/x" 2>/dev/null && exec "$@"'
    words = ["unshare", flags, "sh", "-c", script, "sh"]
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine does not let us make a mount namespace")
    return words


def test_a_read_only_root(demo: Demo, tmp_path: Path) -> None:
    """With a read-only root file system the service gathers, calculates, responds and stops."""
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    for folder in (data, temporary):
        folder.mkdir()
    port = free_port()
    written = yaml.safe_load(demo.file.read_text())
    written["api"]["port"] = port
    written["tenants"]["acme"]["storage"] = {"connection_string": f"sqlite:///{data}/acme.db"}
    demo.file.write_text(yaml.safe_dump(written))
    variables = environment(TMPDIR=str(temporary), CHARGEBACK_STATE_DIR=str(data / "state"), HOME="/nonexistent")
    log = temporary / "log"
    with log.open("wb") as output:
        command = [*read_only_root(data, temporary), *COMMAND, "serve", "--config", str(demo.file)]
        process = subprocess.Popen(command, env=variables, stdout=output, stderr=output, cwd="/")
    try:
        tenant = f"http://127.0.0.1:{port}/api/v1/tenants/acme"
        wait_for(process, f"{tenant}/pipeline/status")
        until = time.monotonic() + 60
        while (status := httpx.get(f"{tenant}/pipeline/status", timeout=30).json()).get("last_result") is None:
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        assert status["last_result"]["errors"] == []
        assert status["last_result"]["chargeback_rows_written"] > 0
        assert httpx.post(f"{tenant}/export", timeout=30).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    assert "Read-only" not in log.read_text()


def test_the_image_is_not_root() -> None:
    """The container runs under a numeric user, which Kubernetes can distinguish from root, and its data is in a
    volume."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    (user,) = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert re.search(r"^VOLUME /var/lib/chargeback$", text, re.MULTILINE)
    assert "--require-hashes" in text
