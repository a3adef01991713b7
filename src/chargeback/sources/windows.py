"""Sums over a window of time that are exact however the window must be cut."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Context, Decimal, InvalidOperation
from threading import Lock

from chargeback.errors import SourceTooLarge
from chargeback.model.days import InstantRange
from chargeback.model.usage import parse_quantity
from chargeback.sources.prometheus import PrometheusClient, Sample, render_duration

logger = logging.getLogger(__name__)

_MILLISECOND = timedelta(milliseconds=1)
_SMALLEST = timedelta(minutes=1)
# Sums of doubles' texts, exactly; NaN and ±Inf spread instead of raising.
_EXACT = Context(prec=400, traps=[])

#: Makes a query from the text of a range, such as ``86400s``.
Template = Callable[[str], str]
#: The values of the labels that were asked for, in their order.
Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """One value per group, six decimals; ``dropped`` counts groups whose value is NaN, infinite or negative."""

    values: Mapping[Group, Decimal]
    dropped: int = 0


class WindowSums:
    """Evaluates sums over ``[start, end)``.

    A window is evaluated at its end − 1 ms with its own length as range. That takes every sample of the window under
    Prometheus 2, whose ranges are closed on both sides, and 3, whose are open on the left; a sample stamped exactly
    1 ms before the window is taken by version 2 too, which no minute-aligned sample is.

    A window that the server finds too large is cut in halves, whose sums add up. What length went well is remembered
    per kind of question, so that the next day does not begin with a refusal. Threads may share one object.
    """

    def __init__(self, client: PrometheusClient, *, smallest: timedelta = _SMALLEST) -> None:
        self._client = client
        self._smallest = smallest
        self._accepted: dict[str, timedelta] = {}
        self._lock = Lock()

    def sums(self, name: str, template: Template, labels: Sequence[str], window: InstantRange) -> GroupTotals:
        """The value of each group over the window. The query must be additive over time, as a sum of
        ``sum_over_time`` or of ``count_over_time`` is.

        ``name`` says what kind of question it is. Two series of a group are added up.

        Raises:
            SourceTooLarge: the server refuses even the smallest window.
            SourceError: as for :meth:`PrometheusClient.instant`.
        """
        totals: dict[Group, Decimal] = {}
        pending = [window]
        while pending:
            piece = pending.pop()
            with self._lock:
                accepted = self._accepted.get(name)
            if accepted is not None and piece.end - piece.start > accepted and self._can_halve(piece):
                pending += self._halves(piece)
                continue
            try:
                samples = self._client.instant(
                    template(render_duration(piece.end - piece.start)), piece.end - _MILLISECOND
                )
            except SourceTooLarge as refusal:
                if not self._can_halve(piece):
                    raise
                half = self._halves(piece)
                with self._lock:
                    self._accepted[name] = half[0].end - half[0].start
                logger.info("%s: %s; querying in pieces of %s", name, refusal.message, half[0].end - half[0].start)
                pending += half
                continue
            _add(totals, samples, labels)
        return _measured(totals)

    def _can_halve(self, piece: InstantRange) -> bool:
        return piece.end - piece.start >= 2 * self._smallest

    def _halves(self, piece: InstantRange) -> list[InstantRange]:
        """Two pieces of whole smallest windows, the later first; the longer one never exceeds half rounded up."""
        steps = (piece.end - piece.start) // self._smallest
        middle = piece.start + (steps // 2) * self._smallest
        return [InstantRange(middle, piece.end), InstantRange(piece.start, middle)]


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
