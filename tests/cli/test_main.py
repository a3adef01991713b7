"""The command, its help and its version."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from chargeback import __version__
from chargeback.cli.main import app
from tests.cli.conftest import Run


@pytest.mark.parametrize("word", ["version", "--version"])
def test_the_version(chargeback: Run, word: str) -> None:
    """Both spellings print the installed version and nothing else."""
    said = chargeback(word)
    assert (said.returncode, said.stdout) == (0, f"{__version__}\n")


def test_help_names_every_command(chargeback: Run) -> None:
    """The help lists all commands."""
    said = chargeback("--help")
    assert said.returncode == 0
    for command in ("init", "check", "run", "serve", "verify", "explain", "demo", "version"):
        assert f"  {command} " in said.stdout


def helps(command: Any, parent: Any = None) -> Iterator[str]:
    """Yield the help of each command, at the width of a narrow terminal."""
    context = command.make_context("chargeback", [], parent, resilient_parsing=True, max_content_width=80)
    yield command.get_help(context)
    for below in getattr(command, "commands", {}).values():
        yield from helps(below, context)


def test_helps_are_plain() -> None:
    """No summary is cut off, and placeholders of options are words such as NAME and YYYY-MM-DD."""
    for text in helps(get_command(app)):
        assert "..." not in text.replace("[ARGS]...", "")
        assert not re.findall(r"<[a-z%].*?>", text, re.MULTILINE), text


@pytest.mark.usefixtures("process")
def test_helps_are_as_wide_as_the_terminal() -> None:
    """On a wide terminal, long sentences are on one line."""
    code = "from chargeback.cli.main import app; app(['reconcile', '--help'])"
    wide = {**os.environ, "COLUMNS": "160"}
    said = subprocess.run([sys.executable, "-c", code], env=wide, capture_output=True, text=True, check=True)
    assert max(map(len, said.stdout.splitlines())) > 100


@pytest.mark.parametrize("command", ["run", "reconcile", "export"])
def test_the_last_day_has_one_name(command: str) -> None:
    """Commands that take days name the last one --through; `run` and `reconcile` also accept the former --to."""
    named = get_command(app).commands[command]  # type: ignore[attr-defined]
    (end,) = (each for each in named.params if each.name == "end")
    assert end.opts == (["--through"] if command == "export" else ["--through", "--to"])


def test_an_unknown_option_is_a_usage_error(chargeback: Run) -> None:
    """An unknown option exits with code 2."""
    assert chargeback("run", "--confg", "x").returncode == 2


@pytest.mark.usefixtures("process")
def test_help_is_quick() -> None:
    """`--help` imports no heavy package."""
    code = (
        "import sys, chargeback.cli.main;"
        "print([m for m in ('duckdb', 'deltalake', 'pyarrow', 'sqlalchemy', 'fastapi') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


@pytest.mark.usefixtures("process")
def test_the_driver_of_a_server_is_loaded_where_there_is_one() -> None:
    """The PostgreSQL driver is not loaded for SQLite, by runs or the API."""
    code = "import sys, chargeback.pipeline.child_process, chargeback.api.app; print('psycopg' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@pytest.mark.usefixtures("process")
def test_a_service_imports_what_it_needs_to_answer() -> None:
    """What sends requests, reads files of bills or speaks with PostgreSQL is not imported before it is used."""
    code = (
        "import sys, chargeback.api.app_factory, chargeback.cli.http_server, chargeback.config.configuration as c;"
        "assert c.discover(None).ecosystems;"
        "print([m for m in ('httpx', 'obstore', 'rich', 'sqlalchemy.dialects.postgresql') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
