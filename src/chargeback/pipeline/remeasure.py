"""Bills constructed from metrics and measured again: the more complete measurement of each product type is kept.

A measurement is less complete than another if it covers less of the day, or as much with a smaller quantity, because
metrics have expired or are temporarily unavailable. The rate is not measured: a changed rate is accepted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Final

from chargeback.errors import DamagedFacts
from chargeback.model.billing import BillingLine, coverage_of
from chargeback.model.money import canonical
from chargeback.store.facts.tables import BILLING_TABLE, FactTables, read_day

#: Two responses of one source may differ in the last digits of a double; this does not count as less.
_NOISE: Final = 1 - Decimal("1e-9")
_FIELDS: Final = tuple(field.name for field in fields(BillingLine) if field.name not in {"day", "resource_type"})


@dataclass(frozen=True, slots=True)
class Remeasured:
    """A bill that is at least as complete as the stored one, and descriptions of the product types for which the new
    measurement has less."""

    lines: Sequence[BillingLine]
    poorer: Sequence[str] = ()


def richer_bill(facts: FactTables, day: date, measured: Sequence[BillingLine]) -> Remeasured:
    """Return the measured lines, with less complete ones replaced by the stored lines."""
    stored, new = _by_type(_stored(facts, day)), _by_type(measured)
    kept = {name for name in stored.keys() & new.keys() if _is_less(new[name], stored[name])}
    if not kept:
        return Remeasured(measured)
    lines = [line for line in measured if line.product_type not in kept]
    lines += [line for name in sorted(kept) for line in stored[name]]
    poorer = [f"{name}: {_spell(new[name])} instead of {_spell(stored[name])}" for name in sorted(kept)]
    return Remeasured(lines, poorer)


def unmeasured_part(lines: Iterable[BillingLine]) -> str | None:
    """Describe the parts of a bill that were measured over a part of the day only, or return None."""
    partial = sorted({f"{line.product_type}: {line.description}" for line in lines if coverage_of(line) < 1})
    return "; ".join(partial) or None


def _stored(facts: FactTables, day: date) -> list[BillingLine]:
    try:
        rows = read_day(facts, BILLING_TABLE, day).to_pylist()
    except DamagedFacts:
        return []
    return [BillingLine(day=day, **{name: row[name] for name in _FIELDS}) for row in rows]


def _by_type(lines: Iterable[BillingLine]) -> dict[str, list[BillingLine]]:
    by_type: defaultdict[str, list[BillingLine]] = defaultdict(list)
    for line in lines:
        by_type[line.product_type].append(line)
    return dict(by_type)


def _is_less(new: Sequence[BillingLine], stored: Sequence[BillingLine]) -> bool:
    seen, seen_before = (_seen(lines) for lines in (new, stored))
    if seen != seen_before:
        return seen < seen_before
    return _quantity(new) < _quantity(stored) * _NOISE


def _seen(lines: Iterable[BillingLine]) -> Fraction:
    return min(map(coverage_of, lines))


def _quantity(lines: Iterable[BillingLine]) -> Decimal:
    return sum((line.quantity or Decimal(0) for line in lines), Decimal(0))


def _spell(lines: Sequence[BillingLine]) -> str:
    text = f"{canonical(_quantity(lines))} {lines[0].unit or ''}".rstrip()
    return f"{text} ({lines[0].description})" if _seen(lines) < 1 else text
