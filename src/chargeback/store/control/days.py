"""The state of each day: what was gathered, what was derived from it, from which inputs, and what these lacked.

A day has one row for its bill, and one for each dataset that is derived from the bill. The state of a dataset's day
(:class:`DatasetState`) is changed by the functions of this module, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final, TypedDict, Unpack

from sqlalchemy import Connection, Row, and_, bindparam, delete, func, insert, or_, select, update

from chargeback.model.days import DayRange, start_of_day
from chargeback.store.control.schema import dataset_days, days, files, grants, metadata, revisions

# What a day can lack, in addition to listings: the keys of ``DayState.incomplete``.
METRICS: Final = "metrics"
TOPIC_METRICS: Final = "topic metrics"
BILL: Final = "bill"
_LISTING: Final = "listing of "
#: How the error of a day begins that waits for its metrics.
NOT_MEASURED: Final = "metrics unavailable: "
#: The version of the rules for taking evidence; evidence of an earlier version is measured once more.
EVIDENCE_VERSION: Final = 1

#: The column with the day, in every table that has rows per day.
_DAY: Final = "tracking_date"
#: What stays when a day is deleted: what was known of it, without its rows.
_KEPT: Final = frozenset({revisions.name, files.name})


def listing(kind: str) -> str:
    """Return what a day lacks that was calculated while a type could not be listed."""
    return f"{_LISTING}{kind}"


class DayDataset(StrEnum):
    """The datasets whose days are derived, with revisions."""

    CHARGEBACKS = "chargebacks"
    TOPICS = "topics"


class DatasetState(StrEnum):
    """How far a dataset's day is."""

    #: Nothing is to be derived: the day was never due, or its rows were removed.
    NONE = "none"
    #: Rows are to be derived: the bill is new or has changed, rows are damaged, or someone asked for it. Rows of an
    #: earlier bill stay until the new ones are committed.
    DUE = "due"
    #: The rows are those of the present bill.
    CURRENT = "current"
    #: The rows are those of the present bill, and are derived again as soon as their evidence is more complete.
    REVIEW = "review"


#: The states in which the rows are those of the present bill, and those in which the day waits for its stage.
_CURRENT: Final = (DatasetState.CURRENT, DatasetState.REVIEW)
_QUEUED: Final = (DatasetState.DUE, DatasetState.REVIEW)
#: What a day lacks if the measurements of a dataset are missing.
_MEASUREMENTS: Final = {DayDataset.CHARGEBACKS: METRICS, DayDataset.TOPICS: TOPIC_METRICS}


@dataclass(frozen=True, slots=True)
class DatasetDay:
    """One row of the ``dataset_days`` table: a day of one dataset.

    Attributes:
        state: how far it is.
        is_measured: measurements that its rows were derived from are stored.
        fingerprint: the bill that its rows were last derived from; None if they never were.
        rows: how many rows it has.
        revision: the number of the stored revision; 0 means there is none.
    """

    state: DatasetState = DatasetState.NONE
    is_measured: bool = False
    fingerprint: str | None = None
    rows: int = 0
    revision: int = 0

    @property
    def is_current(self) -> bool:
        """Return whether the rows are those of the present bill."""
        return self.state in _CURRENT

    @property
    def is_queued(self) -> bool:
        """Return whether the day waits for its stage."""
        return self.state in _QUEUED


class DatasetChanges(TypedDict, total=False):
    """Changes of columns of the ``dataset_days`` table, as in :class:`DatasetDay`."""

    state: DatasetState
    is_measured: bool
    fingerprint: str | None
    rows: int
    revision: int


@dataclass(frozen=True, slots=True)
class DayState:
    """One row of the ``days`` table, with those of its datasets. ``error`` is the day's own error, in a sentence.

    ``incomplete`` names data that the day lacks, and why: the ``metrics``, the ``topic metrics``, a part of the
    ``bill``, or the ``listing of`` a type. Such a day is calculated again once the data are complete.
    """

    tracking_date: date
    billing_gathered: bool = False
    resources_gathered: bool = False
    gathered_fingerprint: str | None = None
    gathered_at: datetime | None = None
    empty_answers: int = 0
    failed_attempts: int = 0
    incomplete: Mapping[str, str] = field(default_factory=dict)
    evidence_version: int = 0
    billing_lines: int = 0
    error: str | None = None
    chargebacks: DatasetDay = DatasetDay()
    topics: DatasetDay = DatasetDay()

    def of(self, dataset: DayDataset) -> DatasetDay:
        """Return the day of a dataset."""
        return self.chargebacks if dataset is DayDataset.CHARGEBACKS else self.topics

    @property
    def is_due(self) -> bool:
        """Whether everything is there to calculate the day, and it has not been."""
        return self.billing_gathered and self.resources_gathered and not self.chargebacks.is_current

    @property
    def was_calculated(self) -> bool:
        """Whether the day has been calculated, if only from an earlier bill: its rows are there until it is again."""
        return self.chargebacks.is_current or self.chargebacks.fingerprint is not None

    def has_evidence(self, dataset: DayDataset) -> bool:
        """Return whether the rows of a dataset were derived from measurements, which are kept."""
        return self.of(dataset).is_measured and _MEASUREMENTS[dataset] not in self.incomplete

    @property
    def missing_listings(self) -> list[str]:
        """The types that could not be listed when the day was calculated."""
        return sorted(key.removeprefix(_LISTING) for key in self.incomplete if key.startswith(_LISTING))

    @property
    def lacks(self) -> list[str]:
        """What the day had to do without, and not why."""
        return sorted(self.incomplete)

    @property
    def shortcomings(self) -> list[str]:
        """What the day had to do without, each in a sentence."""
        return [f"{what}: {why}" for what, why in sorted(self.incomplete.items())]


# Made once: building them takes longer than running them.
_CHARGEBACKS, _TOPICS = (dataset_days.alias(dataset) for dataset in DayDataset)
_CHARGED: Final = days.outerjoin(
    _CHARGEBACKS,
    and_(_CHARGEBACKS.c.dataset == DayDataset.CHARGEBACKS, _CHARGEBACKS.c.tracking_date == days.c.tracking_date),
)
_JOINED: Final = _CHARGED.outerjoin(
    _TOPICS, and_(_TOPICS.c.dataset == DayDataset.TOPICS, _TOPICS.c.tracking_date == days.c.tracking_date)
)
_OF_DATASET: Final = ("state", "is_measured", "fingerprint", "rows", "revision")
_STATES: Final = select(
    *days.c, *(of.c[name].label(f"{of.name}_{name}") for of in (_CHARGEBACKS, _TOPICS) for name in _OF_DATASET)
).select_from(_JOINED)
_ALL_DAYS: Final = _STATES.order_by(days.c.tracking_date)
_DAYS_WITHIN: Final = _ALL_DAYS.where(
    days.c.tracking_date >= bindparam("start"), days.c.tracking_date < bindparam("end")
)
_ONE_DAY: Final = _STATES.where(days.c.tracking_date == bindparam("day"))
_OF_DAY: Final = tuple(days.c.keys())
#: Where the columns of the datasets begin in a row.
_AT_CHARGEBACKS: Final = len(_OF_DAY)
_AT_TOPICS: Final = _AT_CHARGEBACKS + len(_OF_DATASET)


def _state(row: Row[Any]) -> DayState:
    return DayState(
        **dict(zip(_OF_DAY, row[:_AT_CHARGEBACKS], strict=True)),
        chargebacks=_dataset_day(row[_AT_CHARGEBACKS:_AT_TOPICS]),
        topics=_dataset_day(row[_AT_TOPICS:]),
    )


def _dataset_day(values: tuple[Any, ...]) -> DatasetDay:
    state, *others = values
    return DatasetDay() if state is None else DatasetDay(DatasetState(state), *others)


def read_days(connection: Connection, within: DayRange | None = None) -> list[DayState]:
    """The states of the days of a range, or of all, ascending."""
    if within is None:
        return [_state(row) for row in connection.execute(_ALL_DAYS)]
    return [_state(row) for row in connection.execute(_DAYS_WITHIN, {"start": within.start, "end": within.end})]


def read_day_state(connection: Connection, day: date) -> DayState:
    """The state of one day; that of a day never handled is all false."""
    row = connection.execute(_ONE_DAY, {"day": day}).first()
    return DayState(day) if row is None else _state(row)


def save_day(connection: Connection, day: date, **changes: Any) -> None:
    """Change columns of one day's row, which is made where there is none, with those of its datasets."""
    here = days.c.tracking_date == day
    if changes and connection.execute(update(days).where(here).values(**changes)).rowcount:
        return
    if connection.execute(select(days.c.tracking_date).where(here)).first() is None:
        connection.execute(insert(days).values(tracking_date=day, **changes))
        rows = [{"dataset": dataset, "tracking_date": day, "state": DatasetState.NONE} for dataset in DayDataset]
        connection.execute(insert(dataset_days), rows)


def save_dataset(
    connection: Connection, dataset: DayDataset, affected: Collection[date], **changes: Unpack[DatasetChanges]
) -> None:
    """Change columns of a dataset's days that are known."""
    here = (dataset_days.c.dataset == dataset) & dataset_days.c.tracking_date.in_(affected)
    connection.execute(update(dataset_days).where(here).values(**changes))


def mark_due(connection: Connection, dataset: DayDataset, affected: Collection[date]) -> None:
    """Let days be derived, again if they were."""
    save_dataset(connection, dataset, affected, state=DatasetState.DUE)


def mark_for_review(connection: Connection, dataset: DayDataset, affected: Collection[date]) -> None:
    """Let current days be derived again; they count as current until the new rows replace the present ones."""
    save_dataset(connection, dataset, affected, state=DatasetState.REVIEW)


def mark_current(
    connection: Connection,
    dataset: DayDataset,
    day: date,
    *,
    fingerprint: str | None,
    rows: int,
    revision: int,
    is_measured: bool,
) -> None:
    """Record that the rows of a day are committed: the bill they were derived from, their number, their revision, and
    whether their measurements are stored."""
    save_dataset(
        connection,
        dataset,
        [day],
        state=DatasetState.CURRENT,
        is_measured=is_measured,
        fingerprint=fingerprint,
        rows=rows,
        revision=revision,
    )


def mark_removed(connection: Connection, dataset: DayDataset, affected: Collection[date]) -> None:
    """Record that the rows of days are removed."""
    save_dataset(connection, dataset, affected, state=DatasetState.NONE, is_measured=False, rows=0)


def mark_incomplete(connection: Connection, day: date, reasons: Mapping[str, str | None]) -> None:
    """Note why something was missing when a day was handled; none for what is not missing any more."""
    known = connection.execute(select(days.c.incomplete).where(days.c.tracking_date == day)).scalar() or {}
    changed = {what: why for what, why in (dict(known) | dict(reasons)).items() if why is not None}
    if changed != known:
        save_day(connection, day, incomplete=changed)


def mark_resources_gathered(connection: Connection) -> None:
    """Every gathered day, however old, now has an inventory to be calculated with."""
    connection.execute(
        update(days).where(days.c.billing_gathered, ~days.c.resources_gathered).values(resources_gathered=True)
    )


def oldest_day(connection: Connection) -> date | None:
    """Return the oldest day that has a state, or None if no day has."""
    day: date | None = connection.execute(select(func.min(days.c.tracking_date))).scalar()
    return day


def delete_days(connection: Connection, before: date) -> int:
    """Delete all rows of days before ``before``, in every table, and grants that had ended by then; return the number
    of days that had a state."""
    forgotten = 0
    for table in metadata.sorted_tables:
        if _DAY in table.c and table.name not in _KEPT:
            removed = connection.execute(delete(table).where(table.c[_DAY] < before)).rowcount
            forgotten += removed if table is days else 0
    connection.execute(delete(grants).where(grants.c.deleted_at < start_of_day(before)))
    return forgotten


@dataclass(frozen=True, slots=True)
class DayCounts:
    """How many days are pending and calculated, and the newest calculated one."""

    pending: int
    calculated: int
    last_calculated: date | None


# Made once: building it takes as long as running it; an IN would be expanded each time.
_IS_CALCULATED = or_(*(_CHARGEBACKS.c.state == state for state in _CURRENT))
_COUNTS = select(
    func.count().filter(days.c.billing_gathered & or_(_CHARGEBACKS.c.state.is_(None), ~_IS_CALCULATED)),
    func.count().filter(_IS_CALCULATED),
    func.max(days.c.tracking_date).filter(_IS_CALCULATED),
).select_from(_CHARGED)


def count_days(connection: Connection) -> DayCounts:
    """Counts over all days ever gathered."""
    return DayCounts(*connection.execute(_COUNTS).one())


def count_queued(connection: Connection, dataset: DayDataset) -> int:
    """Return how many days of a dataset wait for its stage."""
    waits = (dataset_days.c.dataset == dataset) & dataset_days.c.state.in_(_QUEUED)
    count: int = connection.execute(select(func.count()).select_from(dataset_days).where(waits)).scalar_one()
    return count


def newest_calculated(connection: Connection) -> date | None:
    """Return the newest calculated day. A day that is being calculated again counts, because its rows remain until the
    new ones replace them."""
    derived = (dataset_days.c.dataset == DayDataset.CHARGEBACKS) & dataset_days.c.fingerprint.is_not(None)
    newest: date | None = connection.execute(select(func.max(dataset_days.c.tracking_date)).where(derived)).scalar()
    return newest
