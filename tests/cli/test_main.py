"""The command itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chargeback import __version__
from tests.cli.conftest import Run


@pytest.mark.parametrize("word", ["version", "--version"])
def test_the_version(chargeback: Run, word: str) -> None:
    """Both spellings print the installed version and nothing else."""
    said = chargeback(word)
    assert (said.returncode, said.stdout) == (0, f"{__version__}\n")


def test_help_names_every_command(chargeback: Run) -> None:
    """The help lists what there is."""
    said = chargeback("--help")
    assert said.returncode == 0
    for command in ("init", "check", "run", "serve", "verify", "explain", "demo", "version"):
        assert f"  {command} " in said.stdout


def test_an_unknown_option_is_a_usage_error(chargeback: Run) -> None:
    """A wrong command line exits 2."""
    assert chargeback("run", "--confg", "x").returncode == 2


def test_help_is_quick() -> None:
    """Asking for help imports none of the heavy rooms."""
    code = (
        "import sys, chargeback.cli.main;"
        "print([m for m in ('duckdb', 'deltalake', 'pyarrow', 'sqlalchemy', 'fastapi') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
