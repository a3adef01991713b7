"""The bill: ``GET /billing/v1/costs``, in windows, or day by day if the rows of a window are not daily.

Facts: a window is at most a month and starts at most a year back (docs: Invoices and costs); a page has at most
10,000 rows (OpenAPI). Under load, the API sometimes refuses dates in range as "too far in the past".
"""

from __future__ import annotations

import calendar
import logging
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from chargeback.ecosystems.confluent_cloud.api import ControlPlane, ListRequest, classify_cloud_response
from chargeback.ecosystems.confluent_cloud.cost_rows import CostRow, LineContext, read_row, to_line
from chargeback.ecosystems.contract import GatheredDay, TenantContext
from chargeback.errors import SourceDataError, SourceError, SourceTooLarge, SourceUnavailable
from chargeback.model.billing import BillingLine
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.sources.replies import Reply

logger = logging.getLogger(__name__)

COSTS: Final = "/billing/v1/costs"
HISTORY_DAYS: Final = 364
_PAGE_SIZE = 10_000


class Costs:
    """Fetches the bill of one tenant."""

    def __init__(self, control_plane: ControlPlane, context: TenantContext, days_per_query: int) -> None:
        self._control_plane = control_plane
        self._context = context
        self._days_per_query = days_per_query

    def gather(self, days: DayRange) -> Iterator[GatheredDay]:
        """Yield every day of the range once, oldest first.

        If the rows of a window cannot be used (a row spans several days or is not valid, or the pages repeat), it is
        fetched again day by day; a remaining problem is that day's error.

        Raises:
            SourceUnavailable: the provider does not respond.
            SourceRejected: it refuses the request.
        """
        earliest = self._context.today - timedelta(days=HISTORY_DAYS)
        reachable = DayRange(max(days.start, earliest), max(days.end, earliest))
        for day in DayRange(days.start, min(days.end, reachable.start)):
            yield GatheredDay(day, error=f"the provider keeps costs for {HISTORY_DAYS} days only")
        if not len(reachable):
            return
        organization = self._control_plane.organization_id() or self._context.tenant_id
        context = LineContext(self._context.currency, organization)
        for window in windows(reachable, self._days_per_query):
            yield from self._window(window, context)

    def _window(self, window: DayRange, context: LineContext) -> Iterator[GatheredDay]:
        try:
            rows = self._rows(window)
            alone = {day for row in rows if len(row.days) > 1 for day in row.days}
            lines = _lines_by_day([row for row in rows if row.days.start not in alone], window, context)
        except (SourceDataError, SourceTooLarge) as problem:
            logger.warning("costs of %s to %s: %s; fetching day by day", window.start, window.end, problem.message)
            alone, lines = set(window), {}
        else:
            if alone:
                logger.info(
                    "costs of %s to %s contain rows of several days; fetching day by day", window.start, window.end
                )
        for day in window:
            yield self._day(day, context) if day in alone else GatheredDay(day, lines.get(day, []))

    def _day(self, day: date, context: LineContext) -> GatheredDay:
        window = DayRange(day, day + ONE_DAY)
        try:
            rows = self._rows(window)
            lines = _lines_by_day(rows, window, context)
        except (SourceDataError, SourceTooLarge) as problem:
            return GatheredDay(day, error=f"costs: {problem}")
        spanning = next((row.days for row in rows if len(row.days) > 1), None)
        if spanning is not None:
            return GatheredDay(day, error=f"costs: a row spans {spanning.start} to {spanning.end} (exclusive)")
        return GatheredDay(day, lines.get(day, []))

    def _rows(self, window: DayRange) -> list[CostRow]:
        params = {"start_date": window.start.isoformat(), "end_date": window.end.isoformat()}
        listing = ListRequest(COSTS, params, page_size=_PAGE_SIZE, classify=_classify, bucket="costs")
        return [read_row(fields) for page in self._control_plane.pages(listing) for fields in page]


def windows(days: DayRange, days_per_query: int) -> Iterator[DayRange]:
    """Yield the range in pieces of at most ``days_per_query`` days, and never more than a calendar month: from 1
    February the provider returns 28 days."""
    start = days.start
    while start < days.end:
        end = min(start + timedelta(days=days_per_query), _month_later(start), days.end)
        yield DayRange(start, end)
        start = end


def _month_later(day: date) -> date:
    year, month = divmod(day.year * 12 + day.month, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _lines_by_day(rows: list[CostRow], window: DayRange, context: LineContext) -> dict[date, list[BillingLine]]:
    lines: dict[date, list[BillingLine]] = {}
    stray = 0
    for row in rows:
        if row.days.start in window:
            lines.setdefault(row.days.start, []).append(to_line(row, context))
        else:
            stray += 1
    if stray:
        # They are on the bill of their own days, and would be counted twice here.
        logger.warning("costs of %s to %s: ignored %s rows of other days", window.start, window.end, stray)
    return lines


def _classify(reply: Reply) -> SourceError | None:
    """Classify a response; a refusal of dates that are well in range may be retried."""
    error = classify_cloud_response(reply)
    if reply.status == 400 and error is not None and "too far in the past" in error.message.lower():
        return SourceUnavailable(error.message)
    return error
