"""``chargeback token``."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from chargeback.access.caller import Right
from chargeback.access.scope import RowScope
from chargeback.config import load_configuration
from chargeback.store.control.access_tokens import AccessToken, find_token, list_tokens
from chargeback.store.tenant import open_store
from tests.cli.conftest import Run, Said
from tests.config.conftest import tenant


@pytest.fixture
def file(chargeback: Run, tmp_path: Path) -> Path:
    """A configuration with tenant acme, whose storage is set up."""
    file = tmp_path / "chargeback.yaml"
    file.write_text(tenant())
    assert chargeback("db", "upgrade").returncode == 0
    return file


def token_of(said: Said) -> str:
    """Return the printed token; standard output must have nothing else."""
    assert said.returncode == 0, said.stderr
    assert re.fullmatch(r"cb_acme_[0-9a-f]{64}\n", said.stdout)
    return said.stdout.strip()


def stored(file: Path, token: str) -> AccessToken:
    """Return the stored token."""
    with closing(open_store(load_configuration(file).tenants["acme"])) as store, store.control.read() as connection:
        found = find_token(connection, token)
        assert found in list_tokens(connection)
    assert found is not None
    return found


def test_the_life_of_a_token(chargeback: Run, file: Path) -> None:
    """A token is shown once, listed without its secret, and revoked."""
    words = ("--allow", "read,export", "--scope", "category:cost_center=a, b", "--scope", "environment_id=env-1")
    said = chargeback("token", "create", "--tenant", "acme", "--name", "ci", *words)
    token = token_of(said)
    described = "token ci: export, read on rows with category:cost_center=a,b and environment_id=env-1, until "
    assert said.stderr.startswith(described)
    found = stored(file, token)
    assert found.rights == {Right.READ, Right.EXPORT}
    assert found.scope == RowScope.of({"category:cost_center": ["a", "b"], "environment_id": ["env-1"]})
    assert found.expires_at == found.created_at + timedelta(days=90)
    assert found.created_by == "command line"
    listed = chargeback("token", "list", "--tenant", "acme")
    assert re.search(r"ci +export,read +category:cost_center=a,b and environment_id=env-1 .* valid", listed.stdout)
    assert token.rpartition("_")[2] not in listed.stdout
    assert chargeback("token", "revoke", "--tenant", "acme", "ci").stdout == "token ci of tenant acme is revoked\n"
    assert stored(file, token).revoked_at is not None
    assert chargeback("token", "list", "--tenant", "acme").stdout == "tenant acme: no token\n"
    assert re.search(r"ci .* revoked", chargeback("token", "list", "--tenant", "acme", "--all").stdout)
    again = chargeback("token", "revoke", "--tenant", "acme", "ci")
    assert (again.returncode, again.stderr) == (1, "error: tenant acme: there is no token ci to revoke\n")


def test_two_tokens_of_one_name(chargeback: Run, file: Path) -> None:
    """A second token with the same name is refused, and the first one remains valid."""
    words = ("token", "create", "--tenant", "acme", "--name", "ci", "--allow", "read", "--expires", "never")
    token = token_of(chargeback(*words))
    said = chargeback(*words)
    assert (said.returncode, said.stdout) == (1, "")
    assert "there is a token ci; revoke it" in said.stderr
    found = stored(file, token)
    assert (found.expires_at, found.scope, found.revoked_at) == (None, None, None)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--name", "ci", "--allow", "raed,read"), "there is no right 'raed'; there are read, export, tag, run"),
        (("--name", "ci", "--allow", ""), "there is no right ''"),
        (("--name", "a b", "--allow", "read"), "at most 64 letters, digits"),
        (("--name", "ci", "--allow", "read", "--expires", "tomorrow"), "such as 90d or 12h, or never"),
        (("--name", "ci", "--allow", "read", "--expires", "0d"), "such as 90d or 12h, or never"),
        (("--name", "ci", "--allow", "read", "--scope", "team=a"), "rows cannot be chosen by team"),
        (("--name", "ci", "--allow", "read", "--scope", "tag:team"), "'tag:team' has no value"),
        (("--name", "ci", "--allow", "read", "--scope", "tag:team=,"), "'tag:team=,' has no value"),
        (("--name", "ci", "--allow", "read", *(("--scope", "tag:team=a") * 2)), "tag:team occurs twice"),
        (("--name", "ci", "--allow", "read", "--tenant", "acne"), "there is no tenant acne"),
    ],
)
def test_what_cannot_be_meant(chargeback: Run, tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    """The message says what to change, before any storage is opened."""
    (tmp_path / "chargeback.yaml").write_text(tenant())
    said = chargeback("token", "create", "--tenant", "acme", *words)
    assert (said.returncode, said.stdout) == (2, "")
    assert complaint in " ".join(said.stderr.split())


def test_storage_that_is_not_set_up(chargeback: Run, tmp_path: Path) -> None:
    """The message says what to do."""
    (tmp_path / "chargeback.yaml").write_text(tenant())
    said = chargeback("token", "list", "--tenant", "acme")
    assert said.returncode == 1
    assert "`chargeback db upgrade` does it" in said.stderr
