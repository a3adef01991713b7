"""Common parameters of dataset queries: which rows they select, and how an aggregate groups them."""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator

from chargeback.api.parameters import TAG_PARAMETER, CommonParameters, DateRangeParameters, is_tag_key
from chargeback.store.queries.aggregate import TAG_PREFIX, Grouping
from chargeback.store.queries.datasets import Dataset
from chargeback.store.queries.selection import Selection, TagFilter

#: Each tag to group by is a join; about a hundred joins need more memory than the query engine has.
MAX_GROUPS = 20


def selection_of(
    dataset: Dataset,
    dates: DateRangeParameters,
    lookback_days: int,
    filters: BaseModel,
    tags: tuple[TagFilter, ...] = (),
) -> Selection:
    """Return the rows of ``dataset`` within ``dates`` for which every field of ``filters`` named like one of the
    dataset's filters has the value given, if any."""
    given = {name: getattr(filters, name, None) for name in dataset.filters}
    equal = {name: value for name, value in given.items() if value is not None}
    return Selection(dates.window(lookback_days), equal, tags)


class DatasetQuery(CommonParameters):
    """Parameters of a query of :attr:`dataset`; those named like one of its filters select rows."""

    dataset: ClassVar[Dataset]

    def tag_filters(self) -> tuple[TagFilter, ...]:
        """Return the filters by tags."""
        return ()

    def selection(self, lookback_days: int) -> Selection:
        """Return the selection of rows."""
        return selection_of(self.dataset, self, lookback_days, self, self.tag_filters())


class AggregateParameters(DatasetQuery):
    """Parameters of every aggregate; a subclass declares ``group_by`` with :func:`groups_of`, and ``tags``."""

    takes_tags: ClassVar[bool] = True

    group_by: list[str] = Field(default=[])
    time_bucket: Literal["hour", "day", "week", "month"] = Field(
        default="day", description="Unit of time, in the calendar of `timezone`; weeks start on Monday."
    )

    @field_validator("group_by", check_fields=False)
    @classmethod
    def _known(cls, value: list[str]) -> list[str]:
        """Check that every column is one of the list or a tag, without duplicates."""
        columns = cls.dataset.groups
        for name in value:
            if name not in columns and not _is_tag(name):
                raise ValueError(f"{name[:80]!r} should be one of {', '.join(columns)}, or tag:<key>")
        return list(dict.fromkeys(value))

    def tag_filters(self) -> tuple[TagFilter, ...]:
        """Return the filters by tags: for each key the values, separated by commas."""
        tags: dict[str, list[str]] = getattr(self, "tags", {})
        return tuple(
            TagFilter(key, frozenset(part for value in values for part in value.split(",")))
            for key, values in tags.items()
        )

    @property
    def grouping(self) -> Grouping:
        """Return how rows are grouped."""
        return Grouping(tuple(self.group_by), self.time_bucket, self.zone)


def groups_of(dataset: Dataset, default: str) -> Any:
    """Return the field ``group_by`` of an aggregate of ``dataset``."""
    return Field(
        default=[default],
        max_length=MAX_GROUPS,
        description=f"Columns to group by, repeatable: {', '.join(dataset.groups)}, or `tag:<key>`; "
        f"at most {MAX_GROUPS}.",
        json_schema_extra={
            "items": {
                "anyOf": [
                    {"type": "string", "enum": list(dataset.groups)},
                    {"type": "string", "pattern": TAG_PARAMETER},
                ]
            }
        },
    )


def _is_tag(name: str) -> bool:
    return name.startswith(TAG_PREFIX) and is_tag_key(name.removeprefix(TAG_PREFIX))
