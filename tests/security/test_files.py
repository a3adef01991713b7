"""Files of the service are accessible only to its own user."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Demo, Run, chargeback, demo

__all__ = ["chargeback", "demo"]


@pytest.mark.extensive
def test_files_are_private(chargeback: Run, demo: Demo, tmp_path: Path) -> None:
    """With any umask, every file of the storage is 0600 and every folder 0700, emitted files included."""
    written = yaml.safe_load(demo.file.read_text())
    data = tmp_path / "data"
    acme = written["tenants"]["acme"]
    acme["storage"] = {"connection_string": f"sqlite:///{data}/acme.db"}
    acme["plugin_settings"]["emitters"] = [
        {"type": "csv", "name": "finance", "params": {"output_dir": str(data / "csv")}}
    ]
    demo.file.write_text(yaml.safe_dump(written))
    before = os.umask(0)
    try:
        said = chargeback("run", "--config", str(demo.file), CHARGEBACK_STATE_DIR=str(data / "state"))
    finally:
        os.umask(before)
    assert said.returncode == 0, said.stderr
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in [data, *data.rglob("*")]}
    assert {path.suffix for path in found} >= {".db", ".parquet", ".json", ".csv", ".tat"}
    assert {path: oct(mode) for path, mode in found.items() if mode != (0o700 if path.is_dir() else 0o600)} == {}
