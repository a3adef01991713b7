"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.config.conftest import tenant


@pytest.mark.parametrize("command", ["run", "verify"])
def test_an_unknown_tenant(chargeback: Run, tmp_path: Path, command: str) -> None:
    """Naming a tenant that the configuration does not have exits 2 and names those it has."""
    (tmp_path / "c.yaml").write_text(tenant())
    said = chargeback(command, "--config", "c.yaml", "--tenant", "acne")
    assert said.returncode == 2
    assert "there is no tenant acne; there are acme" in said.stderr


@pytest.mark.parametrize("command", ["run", "verify", "serve", "check"])
def test_a_missing_file(chargeback: Run, command: str) -> None:
    """Every command says that the file is not there, and exits 2."""
    said = chargeback(command, "--config", "nothing.yaml")
    assert said.returncode == 2
    assert "does not exist" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_malformed_day(chargeback: Run) -> None:
    """A date that is none is a usage error."""
    assert chargeback("run", "--config", "c.yaml", "--from", "2026-13-01").returncode == 2
