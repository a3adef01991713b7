"""Exact sums over a window of time, even if the window must be split."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Context, Decimal, InvalidOperation
from threading import Lock
from typing import TypeVar

from chargeback.errors import SourceTooLarge
from chargeback.model.days import InstantRange
from chargeback.model.usage import parse_quantity
from chargeback.sources.prometheus import PrometheusClient, Sample, render_duration

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MILLISECOND = timedelta(milliseconds=1)
_SMALLEST = timedelta(minutes=1)
# Exact for sums of texts of doubles; NaN and ±Inf propagate instead of raising.
_EXACT = Context(prec=400, traps=[])

#: Returns a query for the text of a range, such as ``86400s``.
Template = Callable[[str], str]
#: The values of the requested labels, in their order.
Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """One value per group, six decimals; ``dropped`` counts groups whose value is NaN, infinite or negative."""

    values: Mapping[Group, Decimal]
    dropped: int = 0


class WindowSplitter:
    """Queries a window in pieces that the server accepts.

    A window that is too large for the server is split in halves. The accepted length is kept per kind of query, so that
    the next day does not begin with a refusal. Threads may share one object. With ``max_units``, longer windows are
    split before the first query.
    """

    def __init__(self, *, max_units: int | None = None) -> None:
        self._max_units = max_units
        self._accepted: dict[str, int] = {}
        self._lock = Lock()

    def query(
        self, kind: str, window: InstantRange, unit: timedelta, query: Callable[[InstantRange], T]
    ) -> Iterator[T]:
        """Yield the results of ``query`` for the pieces of a window, the earliest first. Pieces are cut at multiples of
        ``unit`` from its start.

        Raises:
            SourceTooLarge: the server refuses a piece of one unit.
        """
        pending = [window]
        while pending:
            piece = pending.pop()
            count = (piece.end - piece.start) // unit
            with self._lock:
                accepted = self._accepted.get(kind, self._max_units)
            if accepted is not None and count > max(accepted, 1):
                pending += _halves(piece, count, unit)
                continue
            try:
                result = query(piece)
            except SourceTooLarge as refusal:
                if count < 2:
                    raise
                with self._lock:
                    self._accepted[kind] = (count + 1) // 2
                logger.info("%s: %s; querying in pieces of %s", kind, refusal.message, (count + 1) // 2 * unit)
                pending += _halves(piece, count, unit)
                continue
            yield result


def _halves(piece: InstantRange, count: int, unit: timedelta) -> list[InstantRange]:
    """Return the two halves of a window of ``count`` units, the later first: the earlier one is processed next."""
    middle = piece.start + (count + 1) // 2 * unit
    return [InstantRange(middle, piece.end), InstantRange(piece.start, middle)]


class WindowSums:
    """Evaluates sums over ``[start, end)``.

    A window is evaluated at its end − 1 ms with its own length as range. That includes every sample of the window with
    Prometheus 2, whose ranges include both ends, and with Prometheus 3, whose ranges exclude the start. Version 2 would
    also include a sample exactly 1 ms before the window, but minute-aligned samples are never there.

    The sums of the pieces of a window add up. Threads may share one object.
    """

    def __init__(self, client: PrometheusClient, *, smallest: timedelta = _SMALLEST) -> None:
        self._client = client
        self._smallest = smallest
        self._splitter = WindowSplitter()

    def sums(self, name: str, template: Template, labels: Sequence[str], window: InstantRange) -> GroupTotals:
        """Return the value of each group over the window. The query must be additive over time, such as a sum of
        ``sum_over_time`` or of ``count_over_time``.

        ``name`` identifies the kind of query. Several series of a group are added up.

        Raises:
            SourceTooLarge: the server refuses even the smallest window.
            SourceError: as for :meth:`PrometheusClient.instant`.
        """

        def _query(piece: InstantRange) -> Sequence[Sample]:
            return self._client.instant(template(render_duration(piece.end - piece.start)), piece.end - _MILLISECOND)

        totals: dict[Group, Decimal] = {}
        for samples in self._splitter.query(name, window, self._smallest, _query):
            _add(totals, samples, labels)
        return _measured(totals)


def _add(totals: dict[Group, Decimal], samples: Sequence[Sample], labels: Sequence[str]) -> None:
    for sample in samples:
        group = tuple(sample.labels.get(label, "") for label in labels)
        totals[group] = _EXACT.add(totals.get(group, Decimal(0)), _number(sample.value))


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def _measured(totals: Mapping[Group, Decimal]) -> GroupTotals:
    values: dict[Group, Decimal] = {}
    for group, total in totals.items():
        value = parse_quantity(str(total))
        if value is not None:
            values[group] = value
    return GroupTotals(values, len(totals) - len(values))
