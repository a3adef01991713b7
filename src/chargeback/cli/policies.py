"""``chargeback policies``: put simulated policies in force, in addition to those of the configuration."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from chargeback.cli.options import (
    DAY,
    DAY_FORMATS,
    DEFAULT_CONFIG,
    FAILED,
    STALE,
    ConfigOption,
    TenantName,
    failed,
    invalid_file,
    one_tenant,
    opened_storage,
    to_day,
)
from chargeback.cli.statements import opened
from chargeback.errors import ConfigurationError, PlanRefused, PlanStale, ReachesIntoClosed

if TYPE_CHECKING:
    from chargeback.reports.plan import Plan, PlanOrder

app = typer.Typer(
    help="Show policies, and put others in force.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_MOST_SHOWN: Final = 5


@app.command()
def show(tenant: TenantName, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Print the tenant's own policies. As the configuration would have them, with the versions that were applied."""
    import yaml

    from chargeback.recompute.rules import present_tenant

    with opened_storage(tenant, config) as store:
        own: Any = present_tenant(one_tenant(config, tenant), store.control).plugin_settings.allocation_policies
    shown = json.loads(json.dumps(own, default=str))  # a day is a text in either
    typer.echo(yaml.safe_dump({"allocation_policies": shown}, sort_keys=False, allow_unicode=True), nl=False)


@app.command()
def apply(
    tenant: TenantName,
    plan: Annotated[
        Path,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False, help="What `chargeback simulate --plan` has written."
        ),
    ],
    effective_from: Annotated[
        datetime | None,
        typer.Option(
            metavar=DAY,
            formats=DAY_FORMATS,
            help="The first UTC day of the policies; needed where they have no dates themselves.",
        ),
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="REASON", help="Why they change; kept with them.")] = None,
    restate_closed: Annotated[
        bool, typer.Option("--restate-closed", help="Days of closed months may be calculated again.")
    ] = False,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Put policies in force that were tried. Exactly those, and only while nothing has changed of what they were tried
    on; exit with 3 if something has."""
    from chargeback.reports.plan import PlanOrder
    from chargeback.store.control.audit import COMMAND_LINE

    if effective_from is not None and not (reason and reason.strip()):
        raise typer.BadParameter("is needed with --effective-from: say in a sentence why", param_hint="--reason")
    found = _read(plan)
    order = PlanOrder(found.answer.digest, to_day(effective_from), reason, restate_closed, COMMAND_LINE)
    _apply(tenant, config, found, order)


@app.command()
def withdraw(
    tenant: TenantName,
    effective_from: Annotated[
        datetime, typer.Option(metavar=DAY, formats=DAY_FORMATS, help="The first day of the version.")
    ],
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Withdraw a version that was applied. It has calculated no day yet."""
    from chargeback.reports.plan import withdraw as withdraw_version
    from chargeback.store.control.audit import COMMAND_LINE

    with opened(one_tenant(config, tenant)) as (view, _, _), view.store.control.write(durable=True) as connection:
        try:
            withdraw_version(connection, view, effective_from.date(), COMMAND_LINE)
        except (LookupError, PlanRefused) as error:
            failed(error)
    typer.echo(f"The version from {effective_from.date()} is not in force any more.")


def _read(file: Path) -> Plan:
    """Return the plan of a file, or end with what is wrong with it."""
    from pydantic import ValidationError

    from chargeback.reports.plan import Plan

    try:
        return Plan.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        mistakes = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:_MOST_SHOWN]]
        raise invalid_file(file, mistakes) from None
    except ValueError as error:
        raise invalid_file(file, [f"is no JSON: {error}"]) from None


def _apply(tenant: str, config: Path, plan: Plan, order: PlanOrder) -> None:
    """Apply a plan and say what follows, or end with what is in the way."""
    from chargeback.model.days import ONE_DAY, DayRange, utc_now
    from chargeback.recompute.simulate import Trial
    from chargeback.reports.plan import apply_plan

    chosen, answer = one_tenant(config, tenant), plan.answer
    try:
        days = DayRange(answer.start_date, answer.end_date + ONE_DAY)
        candidate = Trial.of(chosen, plan.asked.get("policies"), days).candidate
        with opened(chosen) as (view, _, _), view.store.control.write(durable=True) as connection:
            done = apply_plan(connection, view, candidate, plan, order, utc_now())
    except ConfigurationError as error:
        for each in error.problems:
            typer.echo(f"error: the policies of the plan: {each}", err=True)
        raise typer.Exit(FAILED) from None
    except PlanStale as error:
        typer.echo(f"error: {error}", err=True)
        for moved in error.days[:_MOST_SHOWN]:
            typer.echo(
                f"  {moved['date']}: revision {moved['then']}, now {moved['now'] or 'to be calculated'}", err=True
            )
        raise typer.Exit(STALE) from None
    except ReachesIntoClosed as error:
        text = error.message.replace("send restate_closed with a reason", "say --restate-closed and --reason")
        failed(text)
    except PlanRefused as error:
        failed(error)
    for version in done.versions:
        typer.echo(f"In force from {version.effective_from} on: {version.reason}")
    if done.recalculated:
        first, last = done.recalculated[0], done.recalculated[-1]
        again = "1 day" if first == last else f"{len(done.recalculated)} days"
        typer.echo(f"The next run calculates {again} again ({first} to {last}).")
