"""The configuration as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.config.configuration import state_dir
from tests.config.conftest import Load, tenant


def test_secrets_are_known(load: Load) -> None:
    """Every secret is known to the logs: in nested settings, in lists, and the database's own."""
    settings = (
        "{ccloud_api: {key: K, secret: s-cloud}, flink: [{region_id: r, key: K, secret: s-flink}], "
        "metrics: {url: 'http://m', auth_type: bearer, bearer_token: s-token}}"
    )
    storage = '{connection_string: "postgresql://me:s-data%40base@db/x", facts_path: f}'
    secrets = load(tenant(plugin_settings=settings, storage=storage)).secrets()
    assert {"s-cloud", "s-flink", "s-token", "s-data@base"} <= secrets
    assert "" not in secrets


def test_the_folder_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that processes share can be moved, and is made for its user alone."""
    monkeypatch.setenv("CHARGEBACK_STATE_DIR", str(tmp_path / "state"))
    folder = state_dir()
    assert folder == tmp_path / "state"
    assert folder.stat().st_mode & 0o777 == 0o700
