"""The charges of shadows: policies that are calculated in addition to those in force, without effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from statistics import pstdev
from typing import Final, Literal

from pydantic import Field
from sqlalchemy import Connection

from chargeback.config.shadows import ENOUGH_DAYS, Shadow
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import total
from chargeback.reports.answers import Exact, ResponseModel, Sum
from chargeback.reports.simulation import SimulatedSum, changed_sums, percent_of
from chargeback.reports.wording import counted
from chargeback.store.control.days import read_days
from chargeback.store.control.shadows import ShadowDay, read_shadow_days, shadow_files
from chargeback.store.facts.files import DayFile
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by

_IDENTITY: Final = "identity_id"
_ZERO: Final = Decimal(0)


class ShadowDayItem(ResponseModel):
    """One day of a shadow."""

    date: date
    billed: Sum
    moved: Sum = Field(description="The amount that would be charged to other identities.")
    moved_share: Exact = Field(description="`moved` in percent of the bill, to two places.")


class ShadowItem(ResponseModel):
    """A shadow, and its state."""

    name: str = Field(examples=["next"])
    start_date: date
    end_date: date = Field(description="Inclusive.")
    visible: bool = Field(description="Whether callers with a scope may also see its rows.")
    state: Literal["coming", "running", "ended"]
    days: int = Field(description="The number of days that are calculated by it.")
    missing: int = Field(description="The number of calculated days of the range that are not, or have changed since.")
    billed: Sum
    moved: Sum = Field(description="The amount that would be charged to other identities, on all days.")
    moved_share: Exact = Field(description="`moved` in percent of the bill, to two places.")
    ready: bool = Field(description=f"Whether {ENOUGH_DAYS} days are calculated, and none is missing.")
    verdict: str = Field(examples=["ready: 30 complete days, moved 3.10 % ± 0.40"])


class ShadowAnswer(ShadowItem):
    """A shadow with its days."""

    currency: str
    by_day: list[ShadowDayItem]
    largest: list[SimulatedSum] = Field(description="The identities whose cost of all days would change most.")


@dataclass(frozen=True)
class _State:
    """The state of a shadow: its days, and the number of the tenant's calculated days that it lacks."""

    days: Sequence[ShadowDay]
    missing: int


def list_shadows(connection: Connection, shadows: Sequence[Shadow], today: date) -> list[ShadowItem]:
    """Return shadows by their names."""
    return [_item(each, _state(connection, each), today) for each in sorted(shadows, key=lambda each: each.name)]


def show_shadow(
    reader: TenantReader,
    connection: Connection,
    facts: FactTables,
    shadow: Shadow,
    currency: str,
    today: date,
    most: int,
) -> ShadowAnswer:
    """Return a shadow with its days, and the ``most`` identities whose cost would change most.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    state = _state(connection, shadow)
    files = files_of(connection, facts, shadow.name)
    days = {each.day for each in files}
    real = [each for each in reader.snapshot(CHARGEBACKS_TABLE).within(shadow.days) if each.day in days]
    sides = (reader.with_files(CHARGEBACKS_TABLE, each) for each in (real, files))
    old, new = (sums_by(each, CHARGEBACKS, Selection.of_days(shadow.days), (_IDENTITY,)) for each in sides)
    return ShadowAnswer.like(
        _item(shadow, state, today),
        currency=currency,
        by_day=[
            ShadowDayItem(
                date=each.tracking_date,
                billed=each.billed,
                moved=each.moved,
                moved_share=percent_of(each.moved, each.billed) or _ZERO,
            )
            for each in state.days
        ],
        largest=changed_sums((_IDENTITY,), old, new)[:most],
    )


def files_of(connection: Connection, facts: FactTables, name: str) -> list[DayFile]:
    """Return the files of the rows of a shadow, by day."""
    return [facts.day_file(each) for each in shadow_files(connection, name)]


def _state(connection: Connection, shadow: Shadow) -> _State:
    known = {each.tracking_date: each for each in read_shadow_days(connection, shadow.name)}
    current = {
        each.tracking_date: each.chargebacks.revision
        for each in read_days(connection, shadow.days)
        if each.was_calculated
    }
    right = [each for day, each in known.items() if current.get(day) == each.revision]
    return _State(right, len(current) - len(right))


def _item(shadow: Shadow, state: _State, today: date) -> ShadowItem:
    billed, moved = (total(getattr(each, name) for each in state.days) for name in ("billed", "moved"))
    share = percent_of(moved, billed) or _ZERO
    ready = len(state.days) >= ENOUGH_DAYS and not state.missing
    return ShadowItem(
        name=shadow.name,
        start_date=shadow.days.start,
        end_date=shadow.days.end - ONE_DAY,
        visible=shadow.visible,
        state=_standing(shadow.days, today),
        days=len(state.days),
        missing=state.missing,
        billed=billed,
        moved=moved,
        moved_share=share,
        ready=ready,
        verdict=_verdict(state, share, ready=ready),
    )


def _standing(days: DayRange, today: date) -> Literal["coming", "running", "ended"]:
    if today < days.start:
        return "coming"
    return "running" if today < days.end else "ended"


def _verdict(state: _State, share: Decimal, *, ready: bool) -> str:
    """Return the state of a shadow in words; the spread is that of the shares of the days, an estimate."""
    shares = [percent_of(each.moved, each.billed) or _ZERO for each in state.days]
    spread = f" ± {pstdev(map(float, shares)):.2f}" if len(shares) > 1 else ""
    count = counted(len(state.days), "complete day")
    missing = f", {state.missing} missing" if state.missing else ""
    return f"{'ready' if ready else 'not ready'}: {count}{missing}, moved {share:.2f} %{spread}"
