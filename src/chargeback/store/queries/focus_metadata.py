"""What FOCUS data says about itself: who made it, which columns it has, and which days are complete."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5

import pyarrow as pa

from chargeback import __version__
from chargeback.model.days import ONE_DAY, DayRange, render_instant, start_of_day
from chargeback.model.focus import TOPICS
from chargeback.store.control.day_revisions import read_day_revisions
from chargeback.store.control.days import DayDataset
from chargeback.store.queries.focus import FocusSource
from chargeback.store.queries.focus_columns import FocusColumn, FocusLayout

#: When the columns were last changed.
_COLUMNS_SINCE: Final = datetime(2026, 11, 22, tzinfo=UTC)
_NAMES: Final = uuid5(NAMESPACE_URL, "https://focus.finops.org/chargeback")


def focus_metadata(source: FocusSource, layout: FocusLayout, days: DayRange) -> dict[str, Any]:
    """Return the metadata of the rows of some UTC days, in the form of FOCUS: the same for the same data.

    A day that was handled, but not calculated from its present bill, is a time sector that is not complete; and, of
    topics, one whose topics are still to be attributed.

    Raises:
        StorageError: the storage cannot be read.
        ValueError: the version has no such column.
    """
    instance = str(dataset_instance_id(source.tenant.tenant_id, layout.split))
    definitions = [_definition(column) for column in source.columns(layout)]
    sectors = _time_sectors(source, layout, days)
    updated = max((each["TimeSectorLastUpdated"] for each in sectors), default=None)
    recency = {
        "DatasetInstanceId": instance,
        "RecencyLastUpdated": updated,
        "DatasetInstanceLastUpdated": updated,
        "TimeSectors": sectors,
    }
    return {
        "DataGenerator": {"DataGenerator": "Chargeback"},
        "DatasetInstance": [
            {
                "DatasetInstanceId": instance,
                "DatasetInstanceName": f"{source.tenant.name}-{layout.split}",
                "FocusDatasetId": "CostAndUsage",
            }
        ],
        "Recency": [recency] if updated is not None else [],
        "Schema": [
            {
                "SchemaId": str(uuid5(_NAMES, f"schema {layout.version} {definitions}")),
                "FocusVersion": layout.version,
                "CreationDate": render_instant(_COLUMNS_SINCE),
                "DataGeneratorVersion": __version__,
                "DatasetInstanceId": instance,
                "ColumnDefinition": definitions,
            }
        ],
    }


def dataset_instance_id(tenant_id: str, split: str) -> UUID:
    """Return the id of a tenant's data, which each split has of its own."""
    return uuid5(_NAMES, f"instance {tenant_id} {split}")


def _definition(column: FocusColumn) -> dict[str, Any]:
    if pa.types.is_decimal(column.type):
        numbers = {"NumericPrecision": column.type.precision, "NumberScale": column.type.scale}
        return {"ColumnName": column.name, "DataType": "DECIMAL", **numbers}
    if pa.types.is_integer(column.type):
        return {"ColumnName": column.name, "DataType": "INTEGER"}
    if pa.types.is_timestamp(column.type):
        return {"ColumnName": column.name, "DataType": "DATETIME"}
    return {"ColumnName": column.name, "DataType": "JSON" if column.is_json else "STRING", "StringEncoding": "UTF-8"}


def _time_sectors(source: FocusSource, layout: FocusLayout, days: DayRange) -> list[dict[str, Any]]:
    states = source.states(days)
    datasets = tuple(DayDataset) if layout.split == TOPICS else (DayDataset.CHARGEBACKS,)
    with source.control.read() as connection:
        revisions = [each for name in datasets for each in read_day_revisions(connection, name, days)]
    sectors = []
    for state in states:
        known = [each.calculated_at for each in revisions if each.tracking_date == state.tracking_date]
        updated = max(known, default=state.gathered_at)
        if updated is not None:
            is_complete = state.chargebacks.is_current and not (layout.split == TOPICS and state.topics.is_queued)
            sectors.append(_time_sector(state.tracking_date, updated, is_complete=is_complete))
    return sectors


def _time_sector(day: date, updated: datetime, *, is_complete: bool) -> dict[str, Any]:
    return {
        "TimeSectorStart": render_instant(start_of_day(day)),
        "TimeSectorEnd": render_instant(start_of_day(day + ONE_DAY)),
        "TimeSectorComplete": is_complete,
        "TimeSectorLastUpdated": render_instant(updated),
    }
