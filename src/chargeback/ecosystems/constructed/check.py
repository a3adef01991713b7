"""Checks of all ecosystems with constructed costs."""

from __future__ import annotations

from datetime import timedelta

from chargeback.ecosystems.constructed.promql import foreign_ranges
from chargeback.ecosystems.contract import Finding
from chargeback.ecosystems.findings import CheckWarning
from chargeback.errors import SourceDataError
from chargeback.model.days import Clock
from chargeback.sources.prometheus import PrometheusClient


def series_of(client: PrometheusClient, query: str, now: Clock) -> str | CheckWarning:
    """Report how many series a query has ``now``; if there are none, warn with those of the last day.

    Raises:
        SourceDataError: there were none during the last day.
    """
    if found := len(client.instant(query, now())):
        return f"{found} series now"
    # The query may end in a comment, which a line break ends.
    if found := len(client.instant(f"last_over_time((\n{query}\n)[1d:15m])", now())):
        return CheckWarning(f"no series now, but {found} within the last day: is a target no longer scraped?")
    raise SourceDataError("the query gives no series, neither now nor within the last day", source="metrics")


def range_warning(subject: str, query: str, step: timedelta) -> Finding | None:
    """Return a warning if a query that is summed over steps has a range of another length, else None."""
    foreign = foreign_ranges(query, step)
    if not foreign:
        return None
    seconds = step // timedelta(seconds=1)
    return Finding(
        subject,
        ok=True,
        detail=f"its range [{foreign[0]}] differs from metrics_step_seconds ({seconds}): the steps are added up, so"
        " something is counted twice or not at all; write [{step}]",
        warning=True,
    )
