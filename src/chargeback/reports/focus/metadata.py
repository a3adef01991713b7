"""The metadata of data in FOCUS: its columns, and which days are complete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final, Literal
from uuid import NAMESPACE_URL, UUID, uuid5

import pyarrow as pa
from pydantic import AliasGenerator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_pascal

from chargeback import __version__
from chargeback.model.days import ONE_DAY, DayRange, render_instant, start_of_day
from chargeback.model.focus import TOPICS
from chargeback.reports.answers import ResponseModel, left_out
from chargeback.reports.focus.columns import FocusColumn, FocusLayout
from chargeback.reports.focus.file import FocusSource
from chargeback.store.control.day_revisions import read_day_revisions
from chargeback.store.control.days import DayDataset

#: When the columns were last changed.
_COLUMNS_SINCE: Final = datetime(2026, 11, 29, tzinfo=UTC)
_NAMES: Final = uuid5(NAMESPACE_URL, "https://focus.finops.org/chargeback")

#: An instant; FOCUS says only that it is a text.
InstantText = Annotated[datetime, PlainSerializer(render_instant, return_type=str)]


class FocusRecord(ResponseModel):
    """A record under the field names of FOCUS."""

    # Other versions may have fields that are not named here.
    model_config = ConfigDict(alias_generator=AliasGenerator(serialization_alias=to_pascal), extra="ignore")


class FocusDataGenerator(FocusRecord):
    """The generator of the data."""

    data_generator: str


class FocusDatasetInstance(FocusRecord):
    """A dataset, for one way of splitting lines."""

    dataset_instance_id: str = Field(description="Always the same for a tenant and a way of splitting lines.")
    dataset_instance_name: str
    focus_dataset_id: Literal["CostAndUsage"]


class FocusTimeSector(FocusRecord):
    """A UTC day."""

    time_sector_start: InstantText
    time_sector_end: InstantText
    time_sector_complete: bool = Field(description="Whether the day is calculated, and its rows are in the data.")
    time_sector_last_updated: InstantText


class FocusRecency(FocusRecord):
    """When the data last changed."""

    dataset_instance_id: str
    recency_last_updated: InstantText
    dataset_instance_last_updated: InstantText
    time_sectors: list[FocusTimeSector]


class FocusColumnDefinition(FocusRecord):
    """A column of the data, in its order."""

    column_name: str
    data_type: Literal["STRING", "JSON", "DECIMAL", "INTEGER", "DATETIME"]
    numeric_precision: int | None = left_out("Of decimals.")
    number_scale: int | None = left_out("Of decimals.")
    string_encoding: str | None = left_out("Of texts.")


class FocusSchema(FocusRecord):
    """The columns of the data; other columns are another schema."""

    schema_id: str
    focus_version: str
    creation_date: InstantText
    data_generator_version: str
    dataset_instance_id: str
    column_definition: list[FocusColumnDefinition]


class FocusMetadata(FocusRecord):
    """The metadata of FOCUS data, under the names of the specification."""

    data_generator: FocusDataGenerator
    dataset_instance: list[FocusDatasetInstance]
    recency: list[FocusRecency] = Field(description="Empty if no day has data.")
    schema_: list[FocusSchema] = Field(serialization_alias="Schema")


def focus_metadata(source: FocusSource, layout: FocusLayout, days: DayRange) -> FocusMetadata:
    """Return the metadata of the rows of some UTC days, in the form of FOCUS; equal data has equal metadata.

    A known day that is not calculated from its present bill is a time sector that is not complete. For topics, so is a
    day whose topics are not attributed yet.

    Raises:
        StorageError: the storage cannot be read.
        ValueError: the version has no such column.
    """
    instance = str(dataset_instance_id(source.tenant.tenant_id, layout.split))
    definitions = [_definition(column) for column in source.columns(layout)]
    named = [each.model_dump(by_alias=True) for each in definitions]
    sectors = _time_sectors(source, layout, days)
    recency = []
    if sectors:
        updated = max(each.time_sector_last_updated for each in sectors)
        recency.append(
            FocusRecency(
                dataset_instance_id=instance,
                recency_last_updated=updated,
                dataset_instance_last_updated=updated,
                time_sectors=sectors,
            )
        )
    return FocusMetadata(
        data_generator=FocusDataGenerator(data_generator="Chargeback"),
        dataset_instance=[
            FocusDatasetInstance(
                dataset_instance_id=instance,
                dataset_instance_name=f"{source.tenant.name}-{layout.split}",
                focus_dataset_id="CostAndUsage",
            )
        ],
        recency=recency,
        schema_=[
            FocusSchema(
                schema_id=str(uuid5(_NAMES, f"schema {layout.version} {named}")),
                focus_version=layout.version,
                creation_date=_COLUMNS_SINCE,
                data_generator_version=__version__,
                dataset_instance_id=instance,
                column_definition=definitions,
            )
        ],
    )


def dataset_instance_id(tenant_id: str, split: str) -> UUID:
    """Return the id of a tenant's data for one way of splitting lines."""
    return uuid5(_NAMES, f"instance {tenant_id} {split}")


def _definition(column: FocusColumn) -> FocusColumnDefinition:
    if pa.types.is_decimal(column.type):
        return FocusColumnDefinition(
            column_name=column.name,
            data_type="DECIMAL",
            numeric_precision=column.type.precision,
            number_scale=column.type.scale,
        )
    if pa.types.is_integer(column.type):
        return FocusColumnDefinition(column_name=column.name, data_type="INTEGER")
    if pa.types.is_timestamp(column.type):
        return FocusColumnDefinition(column_name=column.name, data_type="DATETIME")
    kind: Literal["JSON", "STRING"] = "JSON" if column.is_json else "STRING"
    return FocusColumnDefinition(column_name=column.name, data_type=kind, string_encoding="UTF-8")


def _time_sectors(source: FocusSource, layout: FocusLayout, days: DayRange) -> list[FocusTimeSector]:
    datasets = tuple(DayDataset) if layout.split == TOPICS else (DayDataset.CHARGEBACKS,)
    sectors = []
    for seen, within, until in source.regular(days):
        states = seen.states(within)
        with source.control.read() as connection:
            revisions = [each for name in datasets for each in read_day_revisions(connection, name, within, until)]
        for state in states:
            known = [each.calculated_at for each in revisions if each.tracking_date == state.tracking_date]
            updated = max(known, default=state.gathered_at)
            if updated is not None:
                sectors.append(
                    FocusTimeSector(
                        time_sector_start=start_of_day(state.tracking_date),
                        time_sector_end=start_of_day(state.tracking_date + ONE_DAY),
                        time_sector_complete=state.chargebacks.is_current
                        and not (layout.split == TOPICS and state.topics.is_queued),
                        time_sector_last_updated=updated,
                    )
                )
    return sectors
