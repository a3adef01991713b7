"""``chargeback verify``: check that every day's allocation sums to its bill, and its topics to the cost of clusters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import DEFAULT_CONFIG, FAILED, ConfigOption, TenantOption, chosen_tenants

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.recompute.verify import TopicCheck


FilesOption = Annotated[
    bool, typer.Option("--files", help="Also check every file of facts: its digest, whose it is, and that it is named.")
]


def verify(
    config: ConfigOption = DEFAULT_CONFIG,
    tenant: TenantOption = None,
    files: FilesOption = False,
    closings: Annotated[
        bool, typer.Option("--closings", help="Check the receipts of closed months instead, and what they name.")
    ] = False,
) -> None:
    """Compare each day's chargebacks with its bill. And its topic rows with the lines of clusters, digit by digit."""
    from chargeback.cli.display import print_days
    from chargeback.config import load_configuration
    from chargeback.model.days import utc_now, utc_today
    from chargeback.pipeline.retain import oldest_kept
    from chargeback.recompute.rules import topic_plan
    from chargeback.recompute.verify import verify as verify_tenant
    from chargeback.recompute.verify import verify_files, verify_topics
    from chargeback.store.tenant import open_store

    configuration = load_configuration(config)
    if closings:
        _verify_closings(chosen_tenants(configuration, tenant))
        return
    today, right = utc_today(), True
    for each in chosen_tenants(configuration, tenant):
        database = each.storage.database_file
        if database is not None and not database.exists():
            typer.echo(f"tenant {each.name}: no data has been gathered yet, so there is nothing to compare")
            continue
        store = open_store(each)
        try:
            oldest = oldest_kept(today, each.settings.retention_days)
            right = print_days(each.name, verify_tenant(store, oldest)) and right
            if plan := topic_plan(each):
                right = _print_topics(each.name, verify_topics(store, plan, today)) and right
            if files:
                right = _print_files(each.name, verify_files(store, utc_now())) and right
        finally:
            store.close()
    if not right:
        raise typer.Exit(FAILED)


def _verify_closings(tenants: Iterable[Tenant]) -> None:
    """Check the closed months of some tenants; end with an error if something is wrong with one."""
    from chargeback.cli.statements import opened
    from chargeback.reports.closing.documents import check_closings

    right = True
    for each in tenants:
        with opened(each) as (view, _, posted):
            problems = list(check_closings(view, posted))
            months = len(posted.books.closed)
        for problem in problems:
            typer.echo(f"error: tenant {each.name}: {problem}", err=True)
        if not problems:
            typer.echo(f"tenant {each.name}: {months} closed months are what their receipts say")
        right = right and not problems
    if not right:
        raise typer.Exit(FAILED)


def _print_files(tenant: str, found: Iterable[str]) -> bool:
    """Print what is wrong with files; return whether nothing is."""
    troubles = list(found)
    for trouble in troubles:
        typer.echo(f"error: tenant {tenant}: {trouble}", err=True)
    if not troubles:
        typer.echo(f"tenant {tenant}: every file is named, and what was written")
    return not troubles


def _print_topics(tenant: str, days: Iterable[TopicCheck]) -> bool:
    """Print each day's cost of clusters attributed to topics; return whether every attributed day is correct."""
    from chargeback.cli.display import aligned, print_damage, print_table
    from chargeback.recompute.verify import ATTRIBUTED

    checks = list(days)
    if not checks:
        typer.echo(f"tenant {tenant}: no topics are attributed yet, so there is nothing to compare")
        return True
    columns = (
        [str(check.day) for check in checks],
        [check.state for check in checks],
        aligned([check.billed for check in checks]),
        aligned([check.attributed for check in checks]),
        aligned([check.left_out for check in checks]),
    )
    names = ("day", "topics", "clusters", "attributed", "left out")
    print_table(f"tenant {tenant}: topics", names, zip(*columns, strict=True))
    print_damage(tenant, checks)
    for check in checks:
        if check.damage or not check.is_wrong:
            continue
        typer.echo(
            f"error: tenant {tenant}: {check.day}: {check.wrong_lines} lines differ from their topics, "
            f"{check.lost_rows} topic rows are missing",
            err=True,
        )
    right = not any(check.is_wrong for check in checks)
    if right and any(check.state == ATTRIBUTED for check in checks):
        typer.echo(f"tenant {tenant}: the topics of every attributed day sum to their lines exactly")
    return right
