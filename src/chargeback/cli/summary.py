"""The demo's summary of a tenant, on the terminal."""

from __future__ import annotations

from decimal import Decimal

import typer

from chargeback.cli.display import aligned, money_table, print_table
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import total
from chargeback.reports.summary import Summary

#: How many identities and product types are shown; the others are summed in one line.
SHOWN = 10


def print_summary(summary: Summary) -> None:
    """Print the largest identities and product types, and both totals, with all digits."""
    if not summary.days:
        typer.echo(f"tenant {summary.tenant}: no day is calculated yet")
        return
    period = f"{summary.days[0].day} to {summary.days[-1].day}"
    identities = _largest(summary.by_identity)
    rows = zip(
        [identity for identity, _ in identities],
        [summary.names.get(identity, "") for identity, _ in identities],
        aligned([amount for _, amount in identities]),
        strict=True,
    )
    print_table(f"Cost by identity, {period}", ("identity", "name", summary.currency), rows)
    money_table(f"Cost by product type, {period}", "product type", _largest(summary.by_product), summary.currency)
    same = "the same to the last digit" if summary.billed == summary.charged else "NOT THE SAME"
    owned = total([amount for identity, amount in summary.by_identity if identity != UNALLOCATED])
    totals = (("billed", summary.billed), ("charged", summary.charged), ("of it with an owner", owned))
    money_table(f"{len(summary.days)} days: {same}", "total", totals, summary.currency)


def _largest(amounts: tuple[tuple[str, Decimal], ...]) -> list[tuple[str, Decimal]]:
    shown, rest = list(amounts[:SHOWN]), amounts[SHOWN:]
    if rest:
        shown.append((f"{len(rest)} others", total([amount for _, amount in rest])))
    return shown
