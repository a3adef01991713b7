"""``plugin_settings`` of a bill in FOCUS."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.ecosystems.constructed.settings import (
    NAME_PATTERN,
    PRESENCE,
    ConstructedSettings,
    Kind,
    Query,
    ResourceSource,
    Text,
    check_known_measures,
    check_sources,
)
from chargeback.ecosystems.constructed.system import UsageQuery
from chargeback.ecosystems.settings import LabelName
from chargeback.settings import ObjectStoreSettings, Settings

#: The value of ``from`` for the tag of a name: ``tag:team``.
TAG_PREFIX = "tag:"
_BUCKET_URL = re.compile(r"(s3|gs|az)://[^/\s]+(/[^\s]*)?")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def _place(value: str) -> str:
    if "://" in value and not _BUCKET_URL.fullmatch(value):
        raise ValueError("should be a folder, a file, a pattern such as bill/*.parquet, or s3://bucket/prefix")
    return value


def _column(value: str) -> str:
    name = value.removeprefix(TAG_PREFIX)
    if not name or (name == value and not _COLUMN.fullmatch(value)):
        raise ValueError("should be the name of a column, such as ResourceId, or tag:NAME")
    return value


#: A column of the bill, or ``tag:NAME``.
Column = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_column)]
Patterns = tuple[Text, ...]


class BillFilter(Settings):
    """Which rows of the files belong to the bill: a row must match every given key, and one pattern of a list. ``*``
    stands for any characters."""

    services: Patterns = ()
    resources: Patterns = ()
    accounts: Patterns = ()
    tags: dict[str, Text] = Field(default_factory=dict)


class ColumnChoice(Settings):
    """A column whose values are used, perhaps under other names: ``map`` has patterns of values, the longest that
    matches wins."""

    column: Column = Field(alias="from")
    map: dict[str, Text] = Field(default_factory=dict)


class BillSettings(Settings):
    """Where the files are, and what of them is used.

    ``files`` is a folder (with all below it), a file, a pattern, or a prefix of a bucket. A file that was changed less
    than ``settle_seconds`` ago may not be complete: the next run reads it; with 0 every file counts at once.
    """

    files: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_place)]
    format: Literal["auto", "csv", "parquet"] = "auto"
    version: Literal["auto", "1.0", "1.1", "1.2", "1.3", "1.4"] = "auto"
    filter: BillFilter = BillFilter()
    cost: Literal["effective", "billed", "list", "contracted"] = "effective"
    resource: ColumnChoice | None = None
    product_type: ColumnChoice | None = None
    identity: ColumnChoice | None = None
    attributes: Annotated[tuple[Column, ...], Field(max_length=20)] = ()
    settle_seconds: Annotated[int, Field(ge=0, le=3600)] = 60
    object_store: ObjectStoreSettings = ObjectStoreSettings()

    @property
    def is_remote(self) -> bool:
        """Whether the files are in object storage."""
        return "://" in self.files

    @property
    def cost_column(self) -> str:
        """The column of the cost."""
        return f"{self.cost.capitalize()}Cost"


class TopicKinds(Settings):
    """Kinds of topics that are priced differently: the label of the metrics that names them, and its values."""

    label: LabelName
    values: Annotated[tuple[Kind, ...], Field(min_length=1, max_length=20)]


class UsageMeasure(Settings):
    """A measure of usage: a query that gives the increase of each step, and the label that names an identity (by
    default that of the identity source). Each of its ``kinds`` is a further measure, ``<measure>_<kind>``."""

    query: Query
    label: LabelName | None = None
    kinds: TopicKinds | None = None


class AdminApi(ResourceSource):
    """The cluster itself, which lists its brokers and topics: here nothing else does."""

    source: Literal["admin_api"]


class FocusFilesSettings(ConstructedSettings):
    """Everything under ``plugin_settings``."""

    bill: BillSettings
    usage: dict[Annotated[str, StringConstraints(pattern=NAME_PATTERN)], UsageMeasure] = Field(default_factory=dict)
    resource_source: AdminApi | None = None

    @field_validator("usage")
    @classmethod
    def _names_are_free(cls, value: dict[str, UsageMeasure]) -> dict[str, UsageMeasure]:
        if PRESENCE in value:
            raise ValueError(f"{PRESENCE} is a built-in measure; choose another name")
        return value

    @model_validator(mode="after")
    def _can_be_measured(self) -> Self:
        check_sources(self, ["usage"] if self.usage else [])
        if self.chargeback_granularity == "hourly":
            raise ValueError("chargeback_granularity: a bill from files has daily lines")
        check_known_measures(self.allocation_policies, frozenset({*self.measures, PRESENCE}))
        return self

    @property
    def measures(self) -> dict[str, UsageQuery]:
        """Every measure that policies may use."""
        found: dict[str, UsageQuery] = {}
        for name, each in self.usage.items():
            label = each.label or self.identity_label
            found[name] = UsageQuery(each.query, label)
            if each.kinds is not None:
                for value in each.kinds.values:
                    found[f"{name}_{value}"] = UsageQuery(each.query, label, (each.kinds.label, value))
        return found


def tenant_catalogue(settings: FocusFilesSettings) -> PolicyCatalogue:
    """Return the tenant's ``allocation_policies``: the product types of a bill are its provider's, so none has a policy
    before."""
    return PolicyCatalogue({}, {}).override(parse_policies(settings.allocation_policies, "allocation_policies"))
