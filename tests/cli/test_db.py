"""``chargeback db``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from chargeback.store.control.database import ControlDatabase, newest_revision
from tests.cli.conftest import Run
from tests.config.conftest import tenant
from tests.support.databases import KINDS, scratch_database

NEWEST = newest_revision()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with one tenant, whose database does not exist yet."""
    file = tmp_path / "c.yaml"
    file.write_text(tenant(), encoding="utf-8")
    return file


def execute(config: Path, statement: str) -> None:
    """Change the tenant's database directly."""
    with closing(connect(config.parent / "acme.db")) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_database_is_upgraded_by_hand(chargeback: Run, config: Path) -> None:
    """`upgrade` creates the database and prints both revisions; the second time it changes nothing."""
    said = chargeback("db", "upgrade", "--config", "c.yaml")
    assert (said.returncode, said.stdout) == (0, f"tenant acme: upgraded from not set up to revision {NEWEST}\n")
    said = chargeback("db", "upgrade", "--config", "c.yaml")
    assert (said.returncode, said.stdout) == (0, f"tenant acme: is already at revision {NEWEST}\n")


def test_looking_changes_nothing(chargeback: Run, config: Path) -> None:
    """`current` and `check` create no database; only `check` fails if there is none."""
    said = chargeback("db", "current", "--config", "c.yaml")
    assert (said.returncode, said.stdout) == (
        0,
        f"tenant acme: not set up (this version needs revision {NEWEST})\n",
    )
    said = chargeback("db", "check", "--config", "c.yaml")
    assert said.returncode == 1
    assert "error: tenant acme: not set up" in said.stderr
    assert not (config.parent / "acme.db").exists()


def test_a_database_behind_is_upgraded(chargeback: Run, config: Path) -> None:
    """A database of an earlier version fails the check, is upgraded, and passes."""
    with ControlDatabase(f"sqlite:///{config.parent / 'acme.db'}") as database:
        database.upgrade("0001")
    said = chargeback("db", "check", "--config", "c.yaml")
    assert said.returncode == 1
    assert f"revision 0001, this version needs revision {NEWEST}" in said.stderr
    assert chargeback("db", "upgrade", "--config", "c.yaml").stdout == (
        f"tenant acme: upgraded from revision 0001 to revision {NEWEST}\n"
    )
    said = chargeback("db", "check", "--config", "c.yaml")
    assert (said.returncode, said.stdout) == (0, f"tenant acme: revision {NEWEST} (current)\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE alembic_version SET version_num = '9999'", "written by a newer version of the service"),
        ("INSERT INTO alembic_version VALUES ('0001')", "the migration history is broken: it has 2 heads"),
        ("DELETE FROM alembic_version", "no recorded revision; restore the database from a backup"),
    ],
)
def test_what_cannot_be_migrated(chargeback: Run, config: Path, change: str, words: str) -> None:
    """A database with a newer schema or a broken history is an error of every command."""
    with ControlDatabase(f"sqlite:///{config.parent / 'acme.db'}") as database:
        database.upgrade()
    execute(config, change)
    for command in ("upgrade", "current", "check"):
        said = chargeback("db", command, "--config", "c.yaml")
        assert said.returncode == 1
        assert words in said.stderr
        assert "Traceback" not in said.stderr


def test_one_bad_database_does_not_keep_the_others(chargeback: Run, config: Path) -> None:
    """An error of one tenant, such as a file that is no database, does not affect the others."""
    other = tenant(tenant_id="globex", storage='{connection_string: "sqlite:///globex.db"}')
    both = tenant() + other.partition("tenants:\n")[2].replace("acme:", "globex:")
    config.write_text(both, encoding="utf-8")
    (config.parent / "acme.db").write_text(
        "this is no database, it is far too long a text to be taken for an empty one"
    )
    said = chargeback("db", "upgrade", "--config", "c.yaml")
    assert said.returncode == 1
    assert "error: tenant acme: the control database cannot be used: file is not a database" in said.stderr
    assert said.stdout == f"tenant globex: upgraded from not set up to revision {NEWEST}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_database(chargeback: Run, tmp_path: Path, kind: str) -> None:
    """The commands work with SQLite and PostgreSQL."""
    with scratch_database(kind, tmp_path) as address:
        storage = f'{{connection_string: "{address}", facts_path: facts}}'
        (tmp_path / "c.yaml").write_text(tenant(storage=storage), encoding="utf-8")
        assert chargeback("db", "check", "--config", "c.yaml").returncode == 1
        assert chargeback("db", "upgrade", "--config", "c.yaml").returncode == 0
        assert chargeback("db", "check", "--config", "c.yaml").returncode == 0
