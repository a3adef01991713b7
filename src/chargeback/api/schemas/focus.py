"""The export in FOCUS."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator
from pydantic.alias_generators import to_pascal

from chargeback.api.parameters import CommonParameters, DateRangeParameters, StrictModel
from chargeback.api.problems import InvalidParameter
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.focus import VERSIONS
from chargeback.store.queries.focus import FocusFormat
from chargeback.store.queries.focus_columns import FocusLayout, all_columns

FILTERS = "filters"


def _utc(value: object) -> object:
    if value != "UTC":
        raise ValueError("should be UTC: the days and months of FOCUS data are those of UTC")
    return value


_NAMES = sorted({column.name for each in VERSIONS for column in all_columns(each, (), has_programme=True)})
_CATEGORY = "^x_CostCategory[A-Za-z0-9_]+$"


def _known_column(name: str) -> str:
    if name not in _NAMES and not re.fullmatch(_CATEGORY, name):
        raise ValueError(f"should be one of {', '.join(_NAMES)}, or x_CostCategory<Key>")
    return name


ColumnName = Annotated[
    str,
    AfterValidator(_known_column),
    WithJsonSchema({"anyOf": [{"enum": _NAMES}, {"type": "string", "pattern": _CATEGORY}]}),
]


class FocusFields(StrictModel):
    """Which FOCUS data is meant."""

    version: Literal["1.2", "1.4"] = Field(
        default="1.2",
        description="The version of FOCUS: `1.2`, whose official rules are checked, or `1.4`, which is followed, but "
        "not officially validated.",
    )
    split: Literal["identities", "topics", "none"] = Field(
        default="identities",
        description="Among whom the billing lines are divided. Each is a dataset of its own, with the whole bill: two "
        "of them together count everything twice. `topics` leaves lines whole that are not attributed to topics, "
        "`none` all lines.",
    )
    columns: list[ColumnName] = Field(
        default=[],
        description="Only these columns, in this order; default: all. Cost categories are "
        "`x_CostCategory<Key>`; which columns a version has is in its metadata.",
        json_schema_extra={"uniqueItems": True},
    )

    @field_validator("columns")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("should not name a column twice")
        return value

    @property
    def layout(self) -> FocusLayout:
        """Return which data is meant."""
        return FocusLayout(self.version, self.split, tuple(self.columns))


class FocusRequest(FocusFields, DateRangeParameters):
    """What is exported in FOCUS; all fields have defaults."""

    timezone: Annotated[Literal["UTC"], BeforeValidator(_utc)] = Field(
        default="UTC", description="Always UTC: the days and months of FOCUS data are those of UTC."
    )
    format: FocusFormat = Field(
        default="csv",
        description="`parquet` has exact decimals, and instants; in `csv` decimals are plain text, and texts are not "
        "altered for spreadsheets.",
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: Any) -> list[InvalidParameter]:
        """Check the dates, and that nothing is filtered."""
        wrong = super().cross_checks(raw, now)
        if FILTERS in raw:
            wrong.append(InvalidParameter(FILTERS, "cannot be given: rows of a part would not sum to the bill"))
        return wrong


class FocusMetadataQuery(FocusFields, CommonParameters):
    """Which FOCUS data is described."""


def utc_days(params: DateRangeParameters, lookback_days: int) -> DayRange:
    """Return the UTC days that are meant."""
    start, end = params.days(lookback_days)
    return DayRange(start, end + ONE_DAY)


class _Metadata(BaseModel):
    model_config = ConfigDict(alias_generator=to_pascal)


class FocusDataGenerator(_Metadata):
    """Who made the data."""

    data_generator: str


class FocusDatasetInstance(_Metadata):
    """A dataset: that of one split."""

    dataset_instance_id: str = Field(description="The same for ever, for a tenant and a split.")
    dataset_instance_name: str
    focus_dataset_id: Literal["CostAndUsage"]


class FocusTimeSector(_Metadata):
    """A UTC day."""

    time_sector_start: str
    time_sector_end: str
    time_sector_complete: bool = Field(description="Whether the day is calculated, and its rows are in the data.")
    time_sector_last_updated: str


class FocusRecency(_Metadata):
    """When the data last changed."""

    dataset_instance_id: str
    recency_last_updated: str
    dataset_instance_last_updated: str
    time_sectors: list[FocusTimeSector]


class FocusColumnDefinition(_Metadata):
    """A column of the data, in its order."""

    column_name: str
    data_type: Literal["STRING", "JSON", "DECIMAL", "INTEGER", "DATETIME"]
    numeric_precision: int | None = Field(default=None, description="Of decimals.")
    number_scale: int | None = Field(default=None, description="Of decimals.")
    string_encoding: str | None = Field(default=None, description="Of texts.")


class FocusSchema(_Metadata):
    """The columns of the data; other columns are another schema."""

    schema_id: str
    focus_version: str
    creation_date: str
    data_generator_version: str
    dataset_instance_id: str
    column_definition: list[FocusColumnDefinition]


class FocusMetadata(_Metadata):
    """What FOCUS data says about itself; the names are those of the specification."""

    data_generator: FocusDataGenerator
    dataset_instance: list[FocusDatasetInstance]
    recency: list[FocusRecency] = Field(description="Empty where no day has data.")
    schema_: list[FocusSchema] = Field(alias="Schema")
