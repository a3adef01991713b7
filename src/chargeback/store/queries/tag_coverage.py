"""How much of the cost has which tags."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from chargeback.model.days import InstantRange
from chargeback.model.inventory import UNTAGGED
from chargeback.model.money import to_units
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.keys import ByTag
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

#: So many keys are looked at in one query: each is a join.
_AT_ONCE: Final = 10
#: A share is told in tenths of a per mille.
_STEP: Final = Decimal("0.0001")


def tag_coverage(reader: TenantReader, window: InstantRange, keys: Sequence[str]) -> dict[str, Decimal | None]:
    """Return for each key the share of the cost of ``window`` that has such a tag, from 0 to 1; None where there is no
    cost.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    shares: dict[str, Decimal | None] = {}
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        by = tuple(ByTag(key) for key in some)
        sums = reader.sums(Sums(CHARGEBACKS, Selection(window), by, periods=(window,)))
        tagged = ", ".join(sums.total_or_zero(where=f"d{number} <> '{UNTAGGED}'") for number in range(len(some)))
        ((whole, *parts),) = sums.rows(f"SELECT {sums.total_or_zero()}, {tagged} FROM sums")
        shares |= {key: _share(part, whole) for key, part in zip(some, parts, strict=True)}
    return shares


def _share(part: Decimal, whole: Decimal) -> Decimal | None:
    if whole <= 0:
        return None
    share = Fraction(to_units(part), to_units(whole))
    return Decimal(round(share / Fraction(_STEP))) * _STEP
