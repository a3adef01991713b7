"""The command ``chargeback``.

Exit codes: 0 success; 1 failed or incomplete; 2 the configuration or the command line is invalid; 130 stopped by
Ctrl-C.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import sys
import threading
import time

import typer
from typer.core import TyperArgument

from chargeback import __version__
from chargeback.cli import (
    access,
    anomalies,
    backup,
    categories,
    check,
    closing,
    db,
    demo,
    explain,
    export,
    forecast,
    init,
    journal,
    mcp,
    policies,
    publish,
    reconcile,
    run,
    serve,
    simulate,
    statements,
    token,
    verify,
)
from chargeback.cli.options import CONFIGURATION, FAILED, INTERRUPTED, OK
from chargeback.errors import ChargebackError, ConfigurationError

# Helps name an argument, as in TENANT; its type, such as <str>, would come behind it.
TyperArgument.display_type_rich = lambda *_, **__: None  # type: ignore[method-assign]

_PRIVATE = 0o077
_LAST_OUTPUT_SECONDS = 0.5
#: The number of new objects before the garbage collector runs, and of its runs before it examines older objects as
#: well. At Python's usual 700 and 10, collections were a tenth of a response that makes fifty thousand objects; at
#: 10,000 and 50 still a twentieth.
_COLLECTIONS = (50_000, 20)

app = typer.Typer(
    name="chargeback",
    help="Show every team what it really spent on Kafka, to the last digit, and prove it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": shutil.get_terminal_size().columns},  # helps are as wide as the terminal
)

for _command in (
    init.init,
    check.check,
    run.run,
    serve.serve,
    verify.verify,
    reconcile.reconcile,
    explain.explain,
    simulate.simulate,
    export.export,
    statements.statements,
    journal.journal,
    closing.periods,
    closing.close,
    closing.reopen,
    closing.seal,
    closing.adjust,
    mcp.mcp,
    backup.backup,
    backup.restore,
    publish.publish,
    demo.demo,
):
    app.command()(_command)
app.add_typer(access.app, name="access")
app.add_typer(anomalies.app, name="anomalies")
app.add_typer(forecast.app, name="forecast")
app.add_typer(categories.app, name="categories")
app.add_typer(db.app, name="db")
app.add_typer(policies.app, name="policies")
app.add_typer(token.app, name="token")


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
    """Show every team what it really spent on Kafka, to the last digit, and prove it."""


def keep_files_private() -> None:
    """Make all files that this process and its children create readable only by its own user."""
    os.umask(os.umask(_PRIVATE) | _PRIVATE)


def main() -> None:
    """Run the command line and exit, even if threads still wait for a server that does not respond."""
    keep_files_private()
    gc.set_threshold(*_COLLECTIONS)
    code = run_command_line()
    if _wait_for_threads():
        sys.exit(code)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def _wait_for_threads() -> bool:
    """Wait briefly for other threads; return whether all have ended. The interpreter would wait without a limit."""
    deadline = time.monotonic() + _LAST_OUTPUT_SECONDS
    others = [each for each in threading.enumerate() if not each.daemon and each is not threading.current_thread()]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in others)


def run_command_line() -> int:
    """Run the command line and return its exit code; print expected errors as one line instead of a traceback."""
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OK if end.code is None else FAILED
    except ConfigurationError as error:
        from chargeback.cli.display import print_problems

        print_problems(error.problems)
        return CONFIGURATION
    except ChargebackError as error:
        typer.echo(f"error: {error}", err=True)
        return FAILED
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        return INTERRUPTED
    return OK
