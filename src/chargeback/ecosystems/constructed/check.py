"""Findings that every ecosystem with constructed costs reports."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from chargeback.ecosystems.constructed.promql import foreign_ranges
from chargeback.ecosystems.contract import Finding
from chargeback.errors import SourceDataError, SourceError
from chargeback.model.days import utc_now
from chargeback.sources.prometheus import PrometheusClient


def attempt(subject: str, question: Callable[[], str]) -> Finding:
    """One finding: what the question answered, or why it could not be."""
    try:
        return Finding(subject, ok=True, detail=question())
    except SourceError as error:
        return Finding(subject, ok=False, detail=str(error))


def series_of(client: PrometheusClient, query: str) -> str:
    """How many series a query gives now.

    Raises:
        SourceDataError: none.
    """
    found = len(client.instant(query, utc_now()))
    if not found:
        raise SourceDataError("the query gives no series now", source="metrics")
    return f"{found} series now"


def range_warning(subject: str, query: str, step: timedelta) -> Finding | None:
    """A warning for a query that is summed over steps and has a range of another length, or none."""
    foreign = foreign_ranges(query, step)
    if not foreign:
        return None
    seconds = step // timedelta(seconds=1)
    return Finding(
        subject,
        ok=False,
        detail=f"its range [{foreign[0]}] differs from metrics_step_seconds ({seconds}): every step is added up, so"
        " something is counted twice or not at all; write [{step}]",
    )
