"""The commands in the README."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main

from chargeback.cli.main import app
from tests.cli.conftest import Run, chargeback

pytestmark = pytest.mark.usefixtures("process")

__all__ = ["chargeback"]

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.+)$", README, re.MULTILINE)
GROUP: Any = typer.main.get_command(app)
VARIABLES = {
    "CONFLUENT_CLOUD_API_KEY": "KEY",
    "CONFLUENT_CLOUD_API_SECRET": "secret",
    "METRICS_URL": "http://localhost:9090",
}


def words(line: str) -> list[str]:
    """Return the arguments of a command line without the program."""
    return shlex.split(line, comments=True)[1:]


def options(name: str) -> set[str]:
    """Return the options of a command and of its subcommands."""
    command: Any = GROUP.commands[name]
    commands = command.commands.values() if hasattr(command, "commands") else (command,)
    return {option for each in commands for parameter in each.params for option in parameter.opts}


@pytest.mark.parametrize("line", [line for line in COMMANDS if line.startswith("chargeback ")])
def test_commands_have_these_options(line: str) -> None:
    """Each ``chargeback`` command in the README exists with the shown options."""
    name, *rest = words(line)
    assert {word for word in rest if word.startswith("-")} <= options(name)


def test_the_table_of_commands_is_whole() -> None:
    """The table has a row for exactly the existing commands."""
    assert set(re.findall(r"^\| `chargeback (\w+)` \|", README, re.MULTILINE)) == set(GROUP.commands)


def test_the_variables_of_a_new_configuration_are_named() -> None:
    """Before the command that reads `.env`, the README lists the variables that it must define."""
    template = (ROOT / "src" / "chargeback" / "config" / "template.yaml").read_text(encoding="utf-8")
    active = "\n".join(line.partition("#")[0] for line in template.splitlines())
    before = README.partition("alias chargeback=")[0]
    assert VARIABLES.keys() == set(re.findall(r"\$\{(\w+)\}", active))
    assert all(f"`{name}`" in before for name in VARIABLES)


def test_the_first_steps_work(chargeback: Run, tmp_path: Path) -> None:
    """The commands under «Your own bill» work, up to the first one that needs an account."""
    _, _, section = README.partition("## Your own bill")
    init, check, run, _ = (words(line) for line in re.findall(r"^\$ (chargeback .+)$", section, re.MULTILINE)[:4])
    assert chargeback(*init).returncode == 0
    assert (tmp_path / "chargeback.yaml").is_file()
    said = chargeback(*(word for word in check if word != "--online"), **VARIABLES)
    assert (said.returncode, said.stderr) == (0, "")
    assert chargeback(*run).returncode == 2  # without the variables, it reports them and starts nothing


def test_make_demo_installs_what_runs_and_says_so() -> None:
    """Without an environment, ``make demo`` creates one with only the runtime's packages, and prints a line for every
    step."""
    done = subprocess.run(
        ["make", "--dry-run", "demo", "VENV=/nonexistent/development", "RUN=/nonexistent/run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "requirements/runtime.lock" in done.stdout
    assert "dev.lock" not in done.stdout
    assert re.findall(r'echo "(\d)/3', done.stdout) == ["1", "2", "3"]


@pytest.mark.parametrize("word", ["pipx install .", "uv tool install .", "pip wheel --no-deps -w dist ."])
def test_the_package_can_be_installed_as_described(word: str) -> None:
    """The documented ways to install the package lead to a package with a command."""
    assert f"`{word}`" in README
    assert 'chargeback = "chargeback.cli.main:main"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_python_is_new_enough() -> None:
    """The README, the package and the Makefile require the same oldest Python."""
    assert "Python 3.11 or newer" in README
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert sys.version_info >= (3, 11)
