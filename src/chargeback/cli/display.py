"""Output: tables on standard output, problems on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from chargeback.cli.progress import ProgressDisplay
from chargeback.model.money import render

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.ecosystems.contract import Finding
    from chargeback.errors import ConfigProblem
    from chargeback.pipeline.run_messages import RunResult
    from chargeback.recompute.verify import DayCheck, TopicCheck

__all__ = [
    "ProgressDisplay",
    "money_table",
    "print_days",
    "print_findings",
    "print_problems",
    "print_results",
    "print_table",
    "print_tenants",
]

#: The width of a table that is not on a terminal: lines must not be folded in a pipe.
PIPE_WIDTH = 200


def console() -> Console:
    """Return standard output; as wide as the terminal, or wide enough not to fold lines in a pipe."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> None:
    """Print a table; the last ``numbers`` columns are numbers and right-aligned."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        right = position >= len(columns) - numbers
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    target = console()
    if title:
        target.print(Text(title, style="bold"))
    target.print(table)


def aligned(amounts: Sequence[Decimal]) -> list[str]:
    """Return amounts in plain notation, padded to align their decimal points.

    >>> aligned([Decimal("1.5"), Decimal("-10.125")])
    ['  1.50 ', '-10.125']
    """
    parts = [render(amount).split(".") for amount in amounts]
    before = max((len(whole) for whole, _ in parts), default=0)
    behind = max((len(fraction) for _, fraction in parts), default=0)
    return [f"{whole:>{before}}.{fraction:<{behind}}" for whole, fraction in parts]


def money_table(title: str, name: str, amounts: Iterable[tuple[str, Decimal]], currency: str) -> None:
    """Print the exact cost of each item."""
    pairs = list(amounts)
    columns = ([label for label, _ in pairs], aligned([amount for _, amount in pairs]))
    print_table(title, (name, currency), zip(*columns, strict=True))


def print_problems(problems: Sequence[ConfigProblem]) -> None:
    """Print every mistake in a configuration as one line on standard error."""
    for problem in problems:
        typer.echo(f"error: {problem}", err=True)
    noun = "problem" if len(problems) == 1 else "problems"
    typer.echo(f"{len(problems)} {noun} in the configuration; nothing was started.", err=True)


def print_tenants(tenants: Iterable[Tenant]) -> None:
    """Print the tenants of a configuration, with errors of their topic overlay."""
    tenants = list(tenants)
    rows = [
        (
            each.name,
            each.ecosystem.name,
            each.storage.database,
            str(each.storage.facts_path),
            str(each.topic_status),
        )
        for each in tenants
    ]
    print_table("", ("tenant", "ecosystem", "database", "facts", "topics"), rows)
    for each in tenants:
        if each.topic_error:
            typer.echo(f"warning: tenant {each.name} works without topic attribution: {each.topic_error}", err=True)


def print_findings(tenant: str, findings: Iterable[Finding]) -> bool:
    """Print the findings for a tenant; return whether all are ok or warnings.

    Each finding is printed immediately, because a server that does not respond delays the next ones.
    """
    typer.echo(f"tenant {tenant}")
    right = True
    for finding in findings:
        level = "FAILED" if not finding.ok else "warning" if finding.warning else "ok"
        typer.echo(f"  {level:<7}  {finding.subject:<24}  {finding.detail}")
        right = right and finding.ok
    return right


def print_results(results: Iterable[RunResult]) -> None:
    """Print the result of each run, and the errors. "Days due" are the days that were due when the run started."""
    results = list(results)
    rows = [
        (
            each.tenant,
            each.outcome.value.replace("_", " "),
            *(
                f"{count:,}"
                for count in (
                    each.dates_gathered,
                    each.dates_pending,
                    each.dates_calculated,
                    each.chargeback_rows_written,
                )
            ),
        )
        for each in results
    ]
    print_table("", ("tenant", "outcome", "days gathered", "days due", "days calculated", "rows"), rows, numbers=4)
    for each in results:
        for error in each.errors:
            typer.echo(f"error: tenant {each.tenant}: {error}", err=True)


def print_days(tenant: str, days: Iterable[DayCheck]) -> bool:
    """Print each day's bill and chargebacks; return whether every calculated day is correct."""
    from chargeback.recompute.verify import CALCULATED

    checks = list(days)
    if not checks:
        typer.echo(f"tenant {tenant}: no data has been gathered yet, so there is nothing to compare")
        return True
    columns = (
        [str(check.day) for check in checks],
        [check.state for check in checks],
        aligned([check.billing for check in checks]),
        aligned([check.chargebacks for check in checks]),
        aligned([check.difference for check in checks]),
    )
    print_table(
        f"tenant {tenant}", ("day", "state", "billing", "chargebacks", "difference"), zip(*columns, strict=True)
    )
    print_damage(tenant, checks)
    _print_incomplete(tenant, checks)
    differing = [check for check in checks if check.is_wrong and not check.damage]
    if differing:
        typer.echo(f"error: tenant {tenant}: {len(differing)} of {len(checks)} days differ from their bill", err=True)
    right = not any(check.is_wrong for check in checks)
    if right and any(check.state == CALCULATED for check in checks):
        typer.echo(f"tenant {tenant}: {len(checks)} days, every calculated day sums exactly to its bill")
    elif right:
        typer.echo(f"tenant {tenant}: {len(checks)} days, none of them calculated yet: there is nothing to compare")
    return right


def _print_incomplete(tenant: str, checks: Iterable[DayCheck]) -> None:
    """Print the missing evidence of days, with the days of one reason in one line."""
    of_reasons: dict[str, list[date]] = {}
    for check in checks:
        for missing in check.incomplete:
            of_reasons.setdefault(missing, []).append(check.day)
    for missing, days in of_reasons.items():
        which = str(days[0]) if len(days) == 1 else f"{len(days)} days, {min(days)} to {max(days)}"
        typer.echo(f"note: tenant {tenant}: {which}: incomplete evidence: {missing}")


def print_damage(tenant: str, checks: Iterable[DayCheck | TopicCheck]) -> None:
    """Print the files that damaged days have lost."""
    for check in checks:
        for damage in check.damage if check.is_wrong else ():
            typer.echo(f"error: tenant {tenant}: {check.day}: {damage}", err=True)
