"""``chargeback anomalies``: which anomalies other settings would have reported on past days."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FirstDay,
    LastDay,
    TenantName,
    days_gone_through,
    one_tenant,
    opened_storage,
)

if TYPE_CHECKING:
    from chargeback.reports.backtest import BackTest

app = typer.Typer(help="What stands out.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _anomalies() -> None:
    """What stands out."""


@app.command()
def backtest(
    tenant: TenantName,
    start: FirstDay,
    through: LastDay,
    min_amount: Annotated[
        float | None,
        typer.Option(metavar="AMOUNT", min=0, help="By how much a day has to differ at least, instead of the setting."),
    ] = None,
    min_percent: Annotated[
        float | None, typer.Option(metavar="PERCENT", min=0, help="And in percent of what is usual.")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Show which anomalies would have been reported on past days. On the evening of each day, with the data as it was
    known then, and whether they still are anomalies by what is known now."""
    from chargeback.model.anomalies import Floors
    from chargeback.reports.backtest import back_test
    from chargeback.store.queries.engine import QueryEngine

    days = days_gone_through(start, through)
    settings = one_tenant(config, tenant).settings
    usual = settings.anomalies.criteria
    floors = Floors(
        usual.floors.amount if min_amount is None else min_amount,
        usual.floors.part if min_percent is None else min_percent / 100,
    )
    with opened_storage(tenant, config) as store, closing(QueryEngine()) as engine:
        found = back_test(store, engine, days, replace(usual, floors=floors), settings.currency)
    _show(found)


def _show(found: BackTest) -> None:
    if len(found.unknown) == len(found.days):
        typer.echo("Of none of these days is it known what was known: too few days were calculated by then.")
        return
    for each in found.alarms:
        gone = "" if each.outcome == "stands" else " (withdrawn: by what is known now it does not stand out)"
        typer.echo(f"{each.raised}  {each.story.impact:>12,.2f}  {each.story.sentence}{gone}")
    known = len(found.days) - len(found.unknown)
    withdrawn = sum(each.outcome == "withdrawn" for each in found.alarms)
    count = len(found.alarms)
    typer.echo(f"{count} {'story' if count == 1 else 'stories'} on {known} days, {withdrawn} of them withdrawn since;")
    if found.alarms:
        late = median(each.days_late for each in found.alarms)
        typer.echo(f"reported {late:g} days after the first day, by the median.")
    if found.unknown:
        typer.echo(f"Of {len(found.unknown)} days it is not known what was known.")
