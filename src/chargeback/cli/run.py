"""``chargeback run``: one run of the pipeline, in the foreground."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import (
    BLOCKED,
    DAY,
    DAY_FORMATS,
    DEFAULT_CONFIG,
    FAILED,
    INTERRUPTED,
    ConfigOption,
    TenantOption,
    chosen_tenants,
    to_day,
)
from chargeback.cli.shutdown import ShutdownHandler

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from chargeback.config import Configuration, Tenant
    from chargeback.model.run_request import RunRequest
    from chargeback.pipeline.run_messages import RunResult


def run(
    config: ConfigOption = DEFAULT_CONFIG,
    tenant: TenantOption = None,
    start: Annotated[
        datetime | None,
        typer.Option("--from", metavar=DAY, formats=DAY_FORMATS, help="The first UTC day to calculate."),
    ] = None,
    end: Annotated[
        datetime | None,
        typer.Option("--through", "--to", metavar=DAY, formats=DAY_FORMATS, help="The last UTC day to calculate."),
    ] = None,
    recalculate: Annotated[
        bool, typer.Option("--recalculate", help="Recalculate the days even if nothing has changed.")
    ] = False,
    accept_less: Annotated[
        bool,
        typer.Option(
            "--accept-less",
            help="With --recalculate: also accept bills and usage that are smaller than the stored ones.",
        ),
    ] = False,
    restate: Annotated[
        bool,
        typer.Option(
            "--restate",
            help="With --recalculate: also days of closed months (with --reason; what moves is posted to the first "
            "open one), and days that policies with dates had calculated otherwise.",
        ),
    ] = False,
    reason: Annotated[
        str | None,
        typer.Option(metavar="WHY", help="Why days of closed months are calculated again; kept in the audit log."),
    ] = None,
) -> None:
    """Run the pipeline once. Gather and calculate what is due, and show the progress."""
    from chargeback.cli.display import print_results
    from chargeback.config import load_configuration
    from chargeback.config.advice import advice_about
    from chargeback.logs import configure_logging
    from chargeback.model.run_request import RunRequest
    from chargeback.pipeline.run_messages import RunOutcome
    from chargeback.store.control.audit import COMMAND_LINE

    if start and end and start > end:
        raise typer.BadParameter("--from is after --through")
    if accept_less and not recalculate:
        raise typer.BadParameter("--accept-less requires --recalculate")
    if restate and not recalculate:
        raise typer.BadParameter("--restate requires --recalculate")
    configuration = load_configuration(config)
    chosen = chosen_tenants(configuration, tenant)
    configure_logging(configuration.logging, configuration.secrets())
    for sentence in advice_about(configuration):
        _log.warning("%s", sentence)
    # A plain run does what a scheduled one does.
    requested_by = COMMAND_LINE if recalculate else None
    request = RunRequest(to_day(start), to_day(end), recalculate, accept_less, requested_by, reason, restate)
    if recalculate and not (restate and reason):
        for each in chosen:
            _check_reach(each, request)
    results = run_in_foreground(configuration, [each.name for each in chosen], request)
    print_results(results)
    if any(result.outcome is not RunOutcome.COMPLETED for result in results):
        raise typer.Exit(FAILED)


def _check_reach(tenant: Tenant, request: RunRequest) -> None:
    """Check that no day of a closed month is calculated again, or end with an error."""
    from chargeback.errors import ReachesIntoClosed, StorageError
    from chargeback.reports.closing.reach import check_recalculation
    from chargeback.store.control.closings import read_books
    from chargeback.store.tenant import open_store

    database = tenant.storage.database_file
    if database is not None and not database.exists():
        return
    try:
        with closing(open_store(tenant)) as store:
            store.prepare()  # as the run does: the storage may be one of an earlier version
            with store.control.read() as connection:
                books = read_books(connection)
        check_recalculation(books, request, tenant.settings.currency)
    except StorageError:
        return  # the run says what is wrong with this one, and does the others
    except ReachesIntoClosed as error:
        text = error.message.replace("send restate_closed with a reason", "say --restate and --reason")
        typer.echo(f"error: tenant {tenant.name}: {text}", err=True)
        raise typer.Exit(BLOCKED) from None


def run_in_foreground(configuration: Configuration, names: Sequence[str], request: RunRequest) -> list[RunResult]:
    """Run each of these tenants once and show the progress; SIGTERM and Ctrl-C stop at the next safe point.

    Raises:
        ChargebackError: the storage of a tenant cannot be used.
    """
    from chargeback.cli.display import ProgressDisplay, print_results
    from chargeback.pipeline.engine import Engine

    with ProgressDisplay() as display:
        engine = Engine(configuration, display)
        stopper = ShutdownHandler(engine.stop)
        stopper.listen()
        try:
            results = engine.run_once(names, request)
        finally:
            stopper.finish()
    if stopper.signalled:
        print_results(results)
        raise typer.Exit(INTERRUPTED)
    return results
