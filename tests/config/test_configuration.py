"""The configuration as a whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from chargeback.config.configuration import state_dir
from tests.config.conftest import Load, tenant


def test_secrets_are_known(load: Load) -> None:
    """All secrets are collected for masking in logs: of nested settings, of lists, and of the database."""
    settings = (
        "{ccloud_api: {key: K, secret: s-cloud}, flink: [{region_id: r, key: K, secret: s-flink}], "
        "metrics: {url: 'http://m', auth_type: bearer, bearer_token: s-token}}"
    )
    storage = '{connection_string: "postgresql://me:s-data%40base@db/x", facts_path: f}'
    secrets = load(tenant(plugin_settings=settings, storage=storage)).secrets()
    assert {"s-cloud", "s-flink", "s-token", "s-data@base"} <= secrets
    assert "" not in secrets


def test_secrets_in_the_query_of_a_connection_string(load: Load) -> None:
    """Passwords in the query of a connection string are secrets as well."""
    url = "postgresql://me@db/x?password=q-p%2Bss&sslpassword=q-key&passfile=/etc/q-pgpass&sslmode=require"
    secrets = load(tenant(storage=f'{{connection_string: "{url}", facts_path: f}}')).secrets()
    assert {"q-p+ss", "q-key", "/etc/q-pgpass"} <= secrets
    assert "require" not in secrets


def test_the_folder_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that processes share can be configured, and is created for its user alone."""
    monkeypatch.setenv("CHARGEBACK_STATE_DIR", str(tmp_path / "state"))
    folder = state_dir()
    assert folder == tmp_path / "state"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_the_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, the folder is in the user's cache and accessible to this user alone; a link or a file there is not
    used."""
    monkeypatch.delenv("CHARGEBACK_STATE_DIR", raising=False)
    cache, runtime, temporary = (tmp_path / name for name in ("cache", "runtime", "tmp"))
    for folder in (runtime, temporary):
        folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    first = state_dir()
    assert first.parent == cache / "chargeback"
    assert first.stat().st_mode & 0o777 == 0o700
    first.chmod(0o777)
    assert state_dir().stat().st_mode & 0o777 == 0o700
    first.rmdir()
    first.symlink_to(tmp_path)
    assert state_dir() == runtime / "chargeback"
    (runtime / "chargeback").rmdir()
    (runtime / "chargeback").write_text("")
    assert state_dir() == temporary / f"chargeback-{os.getuid()}"
    (temporary / f"chargeback-{os.getuid()}").rmdir()
    (temporary / f"chargeback-{os.getuid()}").symlink_to(tmp_path)
    assert state_dir().parent == temporary
    assert not state_dir().is_symlink()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make folders of others")
def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that another user created under the expected name is not used."""
    monkeypatch.delenv("CHARGEBACK_STATE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    theirs = state_dir()
    os.chown(theirs, 65534, 65534)
    assert state_dir() == tmp_path / f"chargeback-{os.getuid()}"
