"""``chargeback forecast``: how accurate past forecasts of the month's end would have been."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

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
    from chargeback.reports.backtest import ForecastTest

app = typer.Typer(help="What months will have cost.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _forecast() -> None:
    """What months will have cost."""


@app.command()
def backtest(
    tenant: TenantName,
    start: FirstDay,
    through: LastDay,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Show how accurate forecasts would have been on past days. On the evening of each day, with the data as it was
    known then, compared with what the month has cost and with the mean of the last week."""
    from chargeback.reports.backtest import forecast_back_test
    from chargeback.store.queries.engine import QueryEngine

    days = days_gone_through(start, through)
    settings = one_tenant(config, tenant).settings
    with opened_storage(tenant, config) as store, closing(QueryEngine()) as engine:
        found = forecast_back_test(store, engine, days, settings.currency)
    _show(found)


def _show(found: ForecastTest) -> None:
    for each in found.made:
        inside = "" if each.is_inside else ", outside the interval"
        typer.echo(
            f"{each.evening}  known to {each.known}  {each.expected:>14,.2f} of {each.actual:>14,.2f}  "
            f"{each.off(each.expected):+.1%}{inside}"
        )
    if found.made:
        count = len(found.made)
        ours, naive = (
            sum(abs(each.off(amount)) for each, amount in pairs) / count
            for pairs in (
                [(each, each.expected) for each in found.made],
                [(each, each.last_week) for each in found.made],
            )
        )
        held = sum(each.is_inside for each in found.made) / count
        typer.echo(
            f"{ours:.1%} off on average (the mean of the last week: {naive:.1%}); "
            f"{held:.0%} of {count} inside the interval."
        )
    if found.left_out:
        typer.echo(f"Of {len(found.left_out)} days there is nothing to compare: too few days known, or no whole month.")
