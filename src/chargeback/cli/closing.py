"""``chargeback periods``, ``close``, ``reopen``, ``seal`` and ``adjust``: the months of a tenant, and closing them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import (
    BLOCKED,
    DEFAULT_CONFIG,
    INSTANT,
    INSTANT_FORMATS,
    STALE,
    ConfigOption,
    failed,
    one_tenant,
)
from chargeback.cli.statements import opened, to_grouping, to_month
from chargeback.errors import AdjustmentInvalid, PeriodBlocked, PreviewStale
from chargeback.model.accounting import AccountingPeriod, periods_within

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.model.days import Clock
    from chargeback.reports.closing.close import Closed, ClosingOrder
    from chargeback.reports.closing.preview import ClosingPreview
    from chargeback.reports.tenant_view import TenantView
    from chargeback.store.queries.posted import PostedReader

OneTenant = Annotated[str, typer.Option("--tenant", "-t", metavar="NAME", help="The tenant.")]
_Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; kept in the receipt.")]
_Period = Annotated[str, typer.Option(metavar="YYYY-MM", callback=to_month, help="The month, of UTC days.")]


def periods(tenant: OneTenant, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """List the months. Their states, what is billed, and what is or would be booked."""
    from chargeback.cli.display import aligned, print_table
    from chargeback.model.days import utc_now
    from chargeback.reports.closing.preview import list_periods

    with opened(one_tenant(config, tenant)) as (view, _, posted):
        found = list_periods(view, posted, utc_now())
    items = list(reversed(found.items))
    columns = (
        [each.period_id for each in items],
        [each.state for each in items],
        aligned([each.totals.billed for each in items]),
        aligned([each.totals.regular for each in items]),
        aligned([each.totals.corrections for each in items]),
        aligned([each.totals.adjustments for each in items]),
        aligned([each.totals.posted for each in items]),
    )
    names = ("month", "state", "billed", "regular", "corrections", "adjustments", f"posted {found.currency}")
    print_table(f"tenant {tenant}: months", names, zip(*columns, strict=True), numbers=5)


def close(  # noqa: PLR0913, PLR0917 - the options of a command
    tenant: OneTenant,
    period: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="The month to close; months are closed in order.")
    ] = None,
    through: Annotated[
        str | None, typer.Option(metavar="YYYY-MM", help="Or close all months up to this one, one after the other.")
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show what would be booked, and what is in the way.")
    ] = False,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Kept in the receipt.")] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Accept a blocker, by its id or kind; can be given several times."),
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why blockers are accepted.")] = None,
    digest: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="That of the preview that was looked at.")
    ] = None,
    looked_at: Annotated[
        datetime | None,
        typer.Option(
            metavar=INSTANT,
            formats=INSTANT_FORMATS,
            help="When it was, in UTC; then it says what has changed since.",
        ),
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Close a month. What is booked never changes; exit with 2 if something is in the way, with 3 if the month has
    changed since it was looked at."""
    from chargeback.reports.closing.close import ClosingOrder
    from chargeback.store.control.audit import COMMAND_LINE

    if (period is None) == (through is None):
        raise typer.BadParameter("name either a month or the last one", param_hint="--period / --through")
    chosen, last = one_tenant(config, tenant), AccountingPeriod.named(to_month(period or through or ""))
    with opened(chosen) as (view, _, posted):
        first = posted.books.first_open if period is None else last
        if first is None:
            raise typer.BadParameter("the first closing chooses the first month of the books: name it with --period")
        if preview:
            _show(_preview(view, posted, first))
            return
    instant = None if looked_at is None else looked_at.replace(tzinfo=UTC)
    for each in periods_within(first, last):
        order = ClosingOrder(each, COMMAND_LINE, note, digest, instant, tuple(accept or ()), reason)
        _close(chosen, order)


def _close(tenant: Tenant, order: ClosingOrder) -> None:
    """Close one month, or end with an error."""
    from chargeback.model.days import utc_now

    try:
        done = close_month(tenant, order, utc_now)
    except PeriodBlocked as error:
        typer.echo(f"error: {error.message}", err=True)
        for each in error.blockers:
            typer.echo(f"  {each['id']}: {each['detail']} {each['remedy']}", err=True)
        raise typer.Exit(BLOCKED) from None
    except PreviewStale as error:
        typer.echo(f"error: {error.message}", err=True)
        for each in error.moved:
            amounts = f"{each['after']} instead of {each['before']} {error.currency}"
            typer.echo(f"  {each['by']} {each['value']}: {amounts}", err=True)
        raise typer.Exit(STALE) from None
    if done.closing is None:
        typer.echo(f"{order.period.id}: a second person has to confirm the closing")
        return
    typer.echo(f"{order.period.id} is closed: entry {done.closing.n}, receipt {done.closing.digest}")


def close_month(tenant: Tenant, order: ClosingOrder, now: Clock) -> Closed:
    """Close one month of a tenant.

    Raises:
        PeriodBlocked: something is in the way that is not accepted.
        PeriodRefused: it is not the month to close next, or is closed already.
        PreviewStale: it would book something else than was looked at.
        StorageError: the tenant's storage cannot be read or written.
    """
    from chargeback.reports.closing.close import close as close_in

    @contextmanager
    def _again() -> Iterator[PostedReader]:
        with opened(tenant) as (_, _, posted):
            yield posted

    with opened(tenant) as (view, _, _):
        return close_in(view, _again, partial(view.store.control.write, durable=True), order, now)


def reopen(tenant: OneTenant, period: _Period, reason: _Reason, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Open the latest closed month again. Its receipt stays, and the next closing supersedes it."""
    from chargeback.model.days import utc_now
    from chargeback.reports.closing.close import reopen as reopen_month
    from chargeback.store.control.audit import COMMAND_LINE

    with opened(one_tenant(config, tenant)) as (view, _, _):
        writing = partial(view.store.control.write, durable=True)
        done = reopen_month(view, writing, AccountingPeriod.named(period), COMMAND_LINE, reason, utc_now)
    typer.echo(f"{period} is open again: entry {done.n}, receipt {done.digest}")


def seal(tenant: OneTenant, period: _Period, reason: _Reason, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Seal a closed month. It cannot be reopened, and what is learned of it later is not posted."""
    from chargeback.model.days import utc_now
    from chargeback.reports.closing.sealing import seal as seal_month
    from chargeback.store.control.audit import COMMAND_LINE

    with opened(one_tenant(config, tenant)) as (view, _, _):
        writing = partial(view.store.control.write, durable=True)
        done = seal_month(view, writing, AccountingPeriod.named(period), COMMAND_LINE, reason, utc_now)
    typer.echo(f"{period} is sealed: entry {done.n}, receipt {done.digest}")


def adjust(  # noqa: PLR0913, PLR0917 - the options of a command
    tenant: OneTenant,
    period: _Period,
    value: Annotated[str, typer.Option(metavar="VALUE", help="Who gets the amount.")],
    amount: Annotated[str, typer.Option(metavar="AMOUNT", help="In the currency of the bill.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; shown in the statement.")],
    kind: Annotated[str, typer.Option(metavar="KIND", help="reallocation, fee, credit or rounding.")] = "reallocation",
    from_value: Annotated[
        str | None, typer.Option("--from", metavar="VALUE", help="Who gives it; needed for a reallocation.")
    ] = None,
    category: Annotated[str | None, typer.Option(metavar="KEY", help="The values are those of this category.")] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="DIMENSION", callback=to_grouping, help="Or of identity_id, or tag:KEY. Default: journal.by."
        ),
    ] = None,
    reference: Annotated[str | None, typer.Option(metavar="TEXT", help="Such as a ticket.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="The amount may have parts of a cent.")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Add an amount to a value by hand. Or move it from one value to another, in an open month."""
    from chargeback.model.days import utc_now
    from chargeback.model.money import parse_decimal, to_amount
    from chargeback.reports.closing.adjusting import adjust as make
    from chargeback.reports.closing.adjusting import check_adjustment
    from chargeback.store.control.adjustments import KINDS, NewAdjustment
    from chargeback.store.control.audit import COMMAND_LINE

    if kind not in KINDS:
        raise typer.BadParameter(f"should be one of {', '.join(KINDS)}", param_hint="--kind")
    try:
        size = to_amount(parse_decimal(amount))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--amount") from None
    chosen, month = one_tenant(config, tenant), AccountingPeriod.named(period)
    grouping = by or (chosen.journal.by if category is None else f"category:{category}")
    new = NewAdjustment(month, month, grouping, value, from_value, size, kind, None, reason, reference)  # type: ignore[arg-type]
    try:
        check_adjustment(new, chosen.settings.currency, exact=exact)
    except AdjustmentInvalid as error:
        failed(error.message)
    with opened(chosen) as (view, _, _):
        made = make(partial(view.store.control.write, durable=True), new, COMMAND_LINE, utc_now)
    typer.echo(f"adjustment {made.id}: {amount} {chosen.settings.currency} in {period}")


def _preview(view: TenantView, posted: PostedReader, period: AccountingPeriod) -> ClosingPreview:
    from chargeback.model.days import utc_now
    from chargeback.reports.closing.preview import prepare

    return prepare(view, posted, period, utc_now()).answer


def _show(preview: ClosingPreview) -> None:
    """Print what a closing would book."""
    from chargeback.cli.display import aligned, money_table, print_table
    from chargeback.model.days import render_instant

    totals = preview.totals
    amounts = [("billed", totals.billed), ("regular", totals.regular), ("corrections", totals.corrections)]
    amounts += [("adjustments", totals.adjustments), ("posted", totals.posted)]
    money_table(f"{preview.period_id} ({preview.state})", "sum", amounts, preview.currency)
    for group in preview.by:
        columns = (
            [each.value for each in group.values],
            aligned([each.regular for each in group.values]),
            aligned([each.corrections for each in group.values]),
            aligned([each.adjustments for each in group.values]),
            [f"{each.rounded:f}" for each in group.values],
        )
        names = ("value", "regular", "corrections", "adjustments", "booked")
        print_table(f"by {group.by}", names, zip(*columns, strict=True), numbers=4)
    for blocker in preview.blockers:
        typer.echo(f"in the way: {blocker.id}: {blocker.detail} {blocker.remedy}")
    for warning in preview.warnings:
        typer.echo(f"warning: {warning.detail}")
    typer.echo(f"digest {preview.digest}")
    typer.echo(f"looked at {render_instant(preview.as_of)}")
