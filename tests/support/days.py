"""Days of the control database in the state that a test needs."""

from __future__ import annotations

from datetime import date
from typing import Unpack

from sqlalchemy import Connection

from chargeback.store.control.days import DatasetChanges, DatasetState, DayDataset, save_dataset, save_day


def set_chargebacks(connection: Connection, day: date, **changes: Unpack[DatasetChanges]) -> None:
    """Set the state of a day's chargebacks; without ``changes``, they are current. The day is created if it does not
    exist."""
    _set(connection, DayDataset.CHARGEBACKS, day, changes)


def set_topics(connection: Connection, day: date, **changes: Unpack[DatasetChanges]) -> None:
    """Set the state of a day's topics; without ``changes``, they are current. The day is created if it does not
    exist."""
    _set(connection, DayDataset.TOPICS, day, changes)


def _set(connection: Connection, dataset: DayDataset, day: date, changes: DatasetChanges) -> None:
    changes.setdefault("state", DatasetState.CURRENT)
    save_day(connection, day)
    save_dataset(connection, dataset, [day], **changes)
