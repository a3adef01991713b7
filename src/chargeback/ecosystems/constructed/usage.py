"""Usage of one UTC day on the one resource that everything is billed for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from chargeback.ecosystems.constructed.meter import Shares
from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.usage import measurements


def measured_usage(day: date, resource_id: str, measures: Mapping[str, Shares]) -> MeasuredUsage:
    """Return shares by measure as the day's usage, in the order (measure, subject).

    Values without the label count for ``UNALLOCATED``, provided that other values have it: if none has the label, the
    metric does not name identities, and nothing was measured.
    """
    rows = measurements(
        (day, measure, resource_id, subject, value)
        for measure, shares in sorted(measures.items())
        for subject, value in sorted(_subjects(shares).items())
    )
    return MeasuredUsage(rows, sum(each.dropped for each in measures.values()))


def _subjects(shares: Shares) -> dict[str, Decimal]:
    if not any(shares.values.keys()):
        return {}
    subjects: dict[str, Decimal] = {}
    for name, value in shares.values.items():
        subject = name or UNALLOCATED
        subjects[subject] = subjects.get(subject, Decimal(0)) + value
    return subjects
