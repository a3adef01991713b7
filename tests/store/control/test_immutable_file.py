"""A SQLite file that nobody has open can be read without writing anything beside it, and never half-changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import insert, select

from chargeback.errors import StorageError
from chargeback.model.days import utc_now
from chargeback.store.control import schema
from chargeback.store.control.database import ControlDatabase, ImmutableSqliteFile
from tests.support.databases import control_database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A migrated database that nobody has open."""
    with control_database("sqlite", tmp_path):
        return tmp_path / "control.db"


def write(path: Path) -> ControlDatabase:
    """Change the database, and leave it open."""
    database = ControlDatabase(f"sqlite:///{path}")
    with database.write() as connection:
        connection.execute(
            insert(schema.tags).values(
                tenant_id="acme",
                entity_type="resource",
                entity_id="lkc-1",
                tag_key="team",
                tag_value="red",
                created_by="test",
                created_at=utc_now(),
                known_from=utc_now(),
            )
        )
    return database


def test_everything_is_read_and_nothing_written(path: Path) -> None:
    """What was committed is there, and no file appears beside it."""
    write(path).close()
    resting = ImmutableSqliteFile.at(path)
    assert resting is not None
    with resting.read() as connection:
        assert connection.execute(select(schema.tags.c.tag_value)).scalars().all() == ["red"]
        assert list(path.parent.iterdir()) == [path]


def test_a_file_whose_log_is_ahead_is_not_at_rest(path: Path) -> None:
    """While somebody has it open, what was committed last may lie in the log alone; a missing file is none either."""
    database = write(path)
    assert ImmutableSqliteFile.at(path) is None
    database.close()
    assert ImmutableSqliteFile.at(path) is not None
    assert ImmutableSqliteFile.at(path.with_name("missing.db")) is None


def test_what_changes_while_it_is_read_does_not_count(path: Path) -> None:
    """Whoever reads without locks learns that somebody wrote."""
    resting = ImmutableSqliteFile.at(path)
    assert resting is not None
    with pytest.raises(StorageError, match="changed while it was read"), resting.read():
        write(path).close()
