"""The command ``chargeback``.

Exit codes: 0 all went well; 1 something could not be done (or not all of it); 2 the configuration or the command line
is wrong; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys

import typer

from chargeback import __version__
from chargeback.cli import backup, check, db, demo, init, run, serve, verify
from chargeback.cli.exits import CONFIGURATION, FAILED, INTERRUPTED
from chargeback.errors import ChargebackError, ConfigurationError

_PRIVATE = 0o077

app = typer.Typer(
    name="chargeback",
    help="Tells every team what it really spent on Kafka, to the last digit, and can prove it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for _command in (
    init.init,
    check.check,
    run.run,
    serve.serve,
    verify.verify,
    backup.backup,
    backup.restore,
    demo.demo,
):
    app.command()(_command)
app.add_typer(db.app, name="db")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Tells every team what it really spent on Kafka, to the last digit, and can prove it."""


def keep_files_private() -> None:
    """Whatever this process and its children create is readable for its own user alone: bills are nobody else's."""
    os.umask(os.umask(_PRIVATE) | _PRIVATE)


def main() -> None:
    """Runs the command line; what was raised on purpose ends in one clear line instead of a traceback."""
    keep_files_private()
    try:
        app()
    except ConfigurationError as error:
        from chargeback.cli.display import print_problems

        print_problems(error.problems)
        sys.exit(CONFIGURATION)
    except ChargebackError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(INTERRUPTED)
