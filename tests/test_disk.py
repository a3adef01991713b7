"""Messages about permissions when a file cannot be read or written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chargeback.config import load_configuration
from chargeback.config.configuration import state_dir
from chargeback.disk import explain_denial, locate
from chargeback.emitters.files import write_whole
from chargeback.errors import ChargebackError, ConfigurationError, EmitterError, StorageError
from chargeback.store.backup import _reporting as reporting
from chargeback.store.control.database import ControlDatabase
from chargeback.store.facts.places import Folder
from chargeback.store.facts.tables import MEMBERS_TABLE, prepare_day
from tests.store.facts.test_tables import DAY, rows
from tests.support.users import as_nobody


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder with a configuration that cannot be read, in a folder that all users can access."""
    with tempfile.TemporaryDirectory() as made:
        outside = Path(made)
        outside.chmod(0o755)
        folder = outside / "closed"
        folder.mkdir()
        (outside / "chargeback.yaml").write_text("tenants: {}")
        (outside / "chargeback.yaml").chmod(0)
        folder.chmod(0)
        yield folder
        folder.chmod(0o700)


def expected(folder: Path, user: str) -> str:
    """Return the message about a folder of mode 0 of this test's user."""
    owner = f"{os.getuid()}:{os.getgid()}"
    return f"{folder} belongs to {owner} (mode 0000) and this process runs as {user} (user:group)"


def test_what_is_permitted_needs_no_explanation(tmp_path: Path) -> None:
    """If permissions are not the cause, no explanation is added; for a missing path, its folder is checked."""
    assert explain_denial(tmp_path / "no" / "such") == explain_denial(tmp_path) == ""
    (tmp_path / "x").write_text("")
    assert explain_denial(tmp_path / "x", write=False) == ""


@pytest.mark.parametrize("what", ["database", "facts", "state", "emitted", "backup", "configuration"])
def test_whoever_may_not_is_told_who_may(what: str, closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message about an inaccessible folder has its path, owner, this process's user and group, and a remedy."""
    monkeypatch.setenv("CHARGEBACK_STATE_DIR", str(closed / "state"))
    in_the_way = closed.parent / "chargeback.yaml" if what == "configuration" else closed

    def attempt() -> None:
        if what == "database":
            ControlDatabase(f"sqlite:///{closed}/main.db").upgrade()
        elif what == "facts":
            prepare_day(Folder(closed / "main.facts"), MEMBERS_TABLE, DAY, rows(DAY, "a"))
        elif what == "state":
            state_dir()
        elif what == "emitted":
            write_whole(closed / "out" / "x.csv", [b"x"], lambda: None)
        elif what == "backup":
            with reporting("the backup cannot be written"):
                (closed / "acme.partial").mkdir()
        else:
            load_configuration(in_the_way)

    with as_nobody() as user, pytest.raises(ChargebackError) as caught:
        attempt()
    message = str(caught.value)
    assert isinstance(caught.value, StorageError | EmitterError | ConfigurationError)
    assert expected(in_the_way, user) in message
    remedy = f"`chown -R {user} {in_the_way}`" if os.geteuid() == 0 else f"`chmod u+rwX {in_the_way}`"
    assert remedy in message


def test_a_database_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    """The message about a database that cannot be opened has its path, for any reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=f"{tmp_path}/file/main.db: unable to open database file"):
        ControlDatabase(f"sqlite:///{tmp_path}/file/main.db").upgrade()


@pytest.mark.parametrize(
    ("written", "expected"),
    [("data/a.db", "/etc/x/data/a.db"), ("../a", "/etc/a"), ("/a/../b", "/b"), ("./a", "/etc/x/a"), ("ä", "/etc/x/ä")],
)
def test_where_paths_lead(written: str, expected: str) -> None:
    """Relative paths start at the folder."""
    assert locate(written, Path("/etc/x")) == Path(expected)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("", "should be a path"),
        (" ", "should be a path"),
        ("a\0b", "should be a path"),
        ("~nobody-of-this-name/x", "home folder"),
        ("a" * 256, "too long"),
        ("ä" * 128, "too long"),
        ("a/" * 2000, "too long"),
        ("\ud800", "no path can have"),
    ],
)
def test_what_is_no_path(written: str, words: str) -> None:
    """The message explains the error and shows no part of the value."""
    with pytest.raises(ValueError, match=words):
        locate(written, Path("/etc/x"))
