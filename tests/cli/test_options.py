"""Options that several commands share."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, environment
from tests.config.conftest import CLOUD, tenant


@pytest.mark.parametrize("command", ["run", "verify"])
def test_an_unknown_tenant(chargeback: Run, tmp_path: Path, command: str) -> None:
    """An unknown tenant exits with code 2, and the message lists the known ones."""
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
    """An invalid date is a usage error."""
    assert chargeback("run", "--config", "c.yaml", "--from", "2026-13-01").returncode == 2


def test_the_file_that_init_writes_is_the_default(chargeback: Run, tmp_path: Path) -> None:
    """Without --config, the file is that of CHARGEBACK_CONFIG, or chargeback.yaml in the working directory."""
    missing = chargeback("check")
    assert missing.returncode == 2
    assert "chargeback.yaml does not exist; `chargeback init" in missing.stderr
    (tmp_path / "chargeback.yaml").write_text(tenant())
    assert "chargeback.yaml is valid" in chargeback("check").stdout
    (tmp_path / "other.yaml").write_text(tenant(tenant_id="other"))
    assert "other.yaml is valid" in chargeback("check", CHARGEBACK_CONFIG="other.yaml").stdout
    assert "chargeback.yaml is valid" in chargeback("check", "-c", "chargeback.yaml", CHARGEBACK_CONFIG="x").stdout


def test_a_policy_for_an_unknown_product_type(chargeback: Run, tmp_path: Path) -> None:
    """The check succeeds, with a warning that suggests a similar type."""
    policy = "{KAFKA_STORAG: {portions: [{share: '1', try: [even(active)]}]}}"
    (tmp_path / "chargeback.yaml").write_text(tenant(plugin_settings=f"{{{CLOUD}, allocation_policies: {policy}}}"))
    said = chargeback("check")
    assert said.returncode == 0
    assert "did you mean KAFKA_STORAGE?" in said.stderr


COMMANDS = [
    "init", "check", "run", "serve", "verify", "backup", "restore", "demo", "db upgrade", "db current", "db check",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_a_value_is(chargeback: Run, command: str) -> None:
    """The help names files, folders, days and numbers, not data types."""
    said = chargeback(*command.split(), "--help").stdout
    assert "--help" in said
    assert not re.search(r"\b(PATH|TEXT|INTEGER|DIRECTORY)\b|\[%Y|RANGE", said)


@pytest.mark.usefixtures("process")
def test_shell_completion(chargeback: Run) -> None:
    """A shell gets the list of commands as completions, and --show-completion prints the script for its
    configuration."""
    asked = {"_CHARGEBACK_COMPLETE": "complete_bash", "COMP_WORDS": "chargeback ve", "COMP_CWORD": "1"}
    program = Path(sys.executable).with_name("chargeback")
    said = subprocess.run([program], env=environment(**asked), capture_output=True, text=True, check=False)
    assert said.stdout.split() == ["verify", "version"]
    # A test has no parent shell to detect, so it names one.
    by_name = environment(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    command = [str(program), "--show-completion", "bash"]
    shown = subprocess.run(command, env=by_name, capture_output=True, text=True, check=False)
    assert "complete" in shown.stdout
