"""``chargeback backup`` and ``chargeback restore``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import psycopg
import pytest
import yaml
from sqlalchemy import make_url

from chargeback.config import load_configuration
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.tenant import open_store
from tests.cli.conftest import Demo, Run
from tests.support.databases import KINDS, SCHEMA, own_postgres_server, scratch_database


def configure(demo: Demo, connection_string: str, facts: Path) -> None:
    """Configure this storage for the tenant."""
    written = yaml.safe_load(demo.file.read_text())
    written["tenants"]["acme"]["storage"] = {"connection_string": connection_string, "facts_path": str(facts)}
    demo.file.write_text(yaml.safe_dump(written))


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(KINDS[0], marks=pytest.mark.drill),
        SCHEMA,
        pytest.param(KINDS[1], marks=pytest.mark.drill),
    ],
)
def test_there_and_back(chargeback: Run, demo: Demo, tmp_path: Path, kind: str) -> None:
    """A backup that is restored into an empty place is exact, and the next run has nothing to do."""
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
    with scratch_database(kind, before) as old, scratch_database(kind, after) as new:
        configure(demo, old, before / "facts")
        assert chargeback("run", "--config", "chargeback.yaml").returncode == 0
        verified = chargeback("verify", "--config", "chargeback.yaml").stdout
        said = chargeback("backup", "--config", "chargeback.yaml", "--to", "backups")
        assert said.returncode == 0, said.stderr
        (made,) = (tmp_path / "backups").iterdir()
        assert said.stdout == f"tenant acme: {made}\n"
        configure(demo, new, after / "facts")
        said = chargeback("restore", "--config", "chargeback.yaml", "--from", str(made), "--tenant", "acme")
        assert said.returncode == 0, said.stderr
        shutil.rmtree(before)
        assert chargeback("verify", "--config", "chargeback.yaml").stdout == verified
        words = chargeback("run", "--config", "chargeback.yaml").stdout.split()
        assert words[words.index("acme") :][:5] == ["acme", "completed", "3", "0", "0"]
        said = chargeback("restore", "--config", "chargeback.yaml", "--from", str(made), "--tenant", "acme")
        assert said.returncode == 1
        assert "is not empty; move it away first" in said.stderr


@pytest.mark.usefixtures("process")
def test_a_server_that_asks_for_a_password(chargeback: Run, demo: Demo, tmp_path: Path) -> None:
    """Backup and restore pass the password of the connection string to PostgreSQL's programs."""
    with own_postgres_server("s3cret/with@signs") as server:
        configure(demo, server.address, tmp_path / "facts")
        assert chargeback("db", "upgrade", "--config", "chargeback.yaml").returncode == 0
        said = chargeback("backup", "--config", "chargeback.yaml", "--to", "backups")
        assert said.returncode == 0, said.stderr
        (made,) = (tmp_path / "backups").iterdir()
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute("CREATE DATABASE restored")
        url = make_url(server.address).set(database="restored").render_as_string(hide_password=False)
        configure(demo, url, tmp_path / "facts")
        said = chargeback("restore", "--config", "chargeback.yaml", "--from", str(made), "--tenant", "acme")
        assert said.returncode == 0, said.stderr
        assert chargeback("db", "check", "--config", "chargeback.yaml").returncode == 0


@pytest.mark.extensive
def test_a_run_in_progress_is_not_waited_for(chargeback: Run, demo: Demo) -> None:
    """A backup does not wait for a run; the former option for waiting is still accepted."""
    assert chargeback("db", "upgrade", "--config", "chargeback.yaml").returncode == 0
    store = open_store(load_configuration(demo.file).tenants["acme"])
    lease = acquire(store.control, LeaseOwner.this_process())
    with lease.heartbeat():
        said = chargeback("backup", "--config", "chargeback.yaml", "--to", "backups", "--wait", "1")
    assert (said.returncode, said.stderr) == (0, "")
    lease.release()
    store.close()


def test_what_is_no_backup(chargeback: Run, demo: Demo, tmp_path: Path) -> None:
    """A folder without a label and the backup of another tenant are refused; nothing is created."""
    (tmp_path / "other").mkdir()
    said = chargeback("restore", "--config", "chargeback.yaml", "--from", "other", "--tenant", "acme")
    assert (said.returncode, "is not a backup" in said.stderr) == (1, True)
    label = {"tenant_name": "acme", "tenant_id": "x", "ecosystem": "y", "made_at": "", "revision": "0001"}
    (tmp_path / "other" / "backup.json").write_text(json.dumps(label))
    said = chargeback("restore", "--config", "chargeback.yaml", "--from", "other", "--tenant", "acme")
    assert (said.returncode, "not of this tenant" in said.stderr) == (1, True)
    assert not (tmp_path / "acme.db").exists()


def test_nothing_to_back_up(chargeback: Run, demo: Demo, tmp_path: Path) -> None:
    """For a tenant without data, the output says so."""
    said = chargeback("backup", "--config", "chargeback.yaml", "--to", "backups")
    assert (said.returncode, said.stdout) == (0, "tenant acme: no data has been gathered yet\n")
    assert not (tmp_path / "backups").exists()
