"""The datasets that can be queried, each declared once.

Lists, files, aggregates, and the names by which a request may filter and group all follow from the declarations
at the end of this module. A file has millions of rows, so the database writes its text. A page has some hundred, and
there the database would spend more time on parsing such expressions than on reading the rows, so Python finishes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from chargeback.model.billing import INSTANT as INSTANT_TYPE
from chargeback.model.chargeback import USAGE_COST
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.topics import TOPIC_RESOURCE_SQL
from chargeback.store.control.tags import IDENTITY, RESOURCE
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE
from chargeback.store.queries.clusters import CLUSTER_ID
from chargeback.store.queries.sql_format import (
    csv_text,
    decimal_text,
    instant_text,
    json_object,
    json_text,
    quoted,
)

TEXT: Final = "text"
NUMBER: Final = "number"
AMOUNT: Final = "amount"
INSTANT: Final = "instant"

#: The columns that a file has in addition to those of the row, where the dataset has such things.
TAGS: Final = "tags"
METADATA: Final = "metadata"


class Export(Enum):
    """Whether a column is part of a file."""

    DEFAULT = "unless the request names columns without it"
    ON_REQUEST = "if the request names it"
    NEVER = "never"


@dataclass(frozen=True)
class Column:
    """A column of a dataset: its public name, its kind, the stored column (``source``) and its decimal places."""

    name: str
    kind: str = TEXT
    source: str = ""
    places: int = 12
    export: Export = Export.DEFAULT

    @property
    def stored(self) -> str:
        """The column of the table."""
        return self.source or self.name

    @property
    def plain(self) -> str:
        """SQL for a value that Python can finish."""
        if self.kind == AMOUNT:
            return f"{self.stored}::VARCHAR"
        return f"make_timestamp(epoch_us({self.stored}))::VARCHAR" if self.kind == INSTANT else self.stored

    @property
    def csv(self) -> str:
        """SQL for the finished CSV field; null where there is no value."""
        return csv_text(self.stored) if self.kind == TEXT else self._text

    @property
    def json(self) -> str:
        """SQL for the value's JSON text; null where there is no value."""
        if self.kind == NUMBER:
            return self._text
        return json_text(self.stored) if self.kind == TEXT else quoted(self._text)

    @property
    def typed(self) -> str:
        """SQL for the value in the type of :attr:`arrow`."""
        if self.kind == AMOUNT:
            return f"{self.stored}::DECIMAL(38, {self.places})"
        return f"{self.stored}::BIGINT" if self.kind == NUMBER else self.stored

    @property
    def arrow(self) -> pa.DataType:
        """The type of the value in a file that has types."""
        if self.kind == AMOUNT:
            return pa.decimal128(38, self.places)
        return {TEXT: pa.string(), NUMBER: pa.int64(), INSTANT: INSTANT_TYPE}[self.kind]

    @property
    def _text(self) -> str:
        if self.kind == AMOUNT:
            return decimal_text(self.stored, self.places)
        return instant_text(self.stored) if self.kind == INSTANT else f"{self.stored}::VARCHAR"


@dataclass(frozen=True)
class Measure:
    """A sum of the rows of a group, as SQL, and the columns that it ``reads``. It can be added up: the sum over some
    rows is that of its values over parts of them. A ``condition`` says which rows it is about."""

    name: str
    sql: str
    reads: frozenset[str]
    condition: str = ""


@dataclass(frozen=True, eq=False)
class Dataset:
    """The rows of one table of facts, as they can be queried.

    Attributes:
        table: the table of facts.
        columns: what a row is made of, in the order of lists and files.
        amount: the column that is summed.
        metadata: columns that are shown together as the row's ``metadata``.
        filters: columns that a selection may filter by, in addition to ``tag:<key>``.
        groups: columns that an aggregate may group by, in addition to ``tag:<key>``.
        cluster_of: the column with the id of a resource, whose cluster is the row's ``cluster_id``.
        aliases: what columns of chargebacks are called here, where rows are filtered by their names.
        ids: columns that have more values the larger the organisation is.
        measures: the sums of a group; ``total`` is one of them.
        partials: sets of columns by which the sums of each file are kept, see
            :mod:`~chargeback.store.queries.partials`; those with the fewest rows come first.
        amounts: what is shown of the sums: each is the first of some sums less the others, by their names.
        subjects: the columns that the rules of cost categories see, by their names there.
        tag_sources: SQL for the id by which a row has the tags of an identity or of a resource; on the same key the
            tag of the first one wins.
        tag_reads: the columns that make up such an id, where it is no column.
        shows_tags: whether rows are shown with their tags; then the tag sources are columns.
        shows_categories: whether rows are shown with their values of cost categories.
    """

    table: str
    columns: tuple[Column, ...]
    amount: str
    metadata: tuple[Column, ...] = ()
    filters: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    cluster_of: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    partials: tuple[tuple[str, ...], ...] = ()
    amounts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    subjects: Mapping[str, str] = field(default_factory=dict)
    tag_sources: Mapping[str, str] = field(default_factory=dict)
    tag_reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shows_tags: bool = False
    shows_categories: bool = False

    @cached_property
    def sums(self) -> Mapping[str, str]:
        """The measures by their names, as SQL."""
        return {each.name: each.sql for each in self.measures}

    @cached_property
    def conditions(self) -> Mapping[str, str]:
        """Which rows a measure is about, as SQL, by its name, where it is not about all."""
        return {each.name: each.condition for each in self.measures if each.condition}

    def filter_column(self, name: str) -> str | None:
        """Return the column by which rows are filtered where chargebacks are filtered by ``name``; None if there is
        none."""
        column = self.aliases.get(name, name)
        return column if column in self.filters else None

    @cached_property
    def row_sql(self) -> str:
        """SQL for the plain values that :meth:`item` finishes."""
        return ", ".join(column.plain for column in (*self.columns, *self.metadata))

    def item(self, row: tuple[Any, ...]) -> dict[str, Any]:
        """Return a row of :attr:`row_sql` as the API shows it; unknown metadata is left out."""
        fields, members = self._finishers
        item = {
            name: value if value is None or finish is None else finish(value)
            for (name, finish), value in zip(fields, row, strict=False)
        }
        if members:
            item[METADATA] = {
                name: value if finish is None else finish(value)
                for (name, finish), value in zip(members, row[len(fields) :], strict=True)
                if value is not None
            }
        return item

    @cached_property
    def shown_sums(self) -> tuple[str, ...]:
        """The names of the sums that make up :attr:`amounts`."""
        shown = {name for names in self.amounts.values() for name in names}
        return tuple(name for name in self.sums if name in shown)

    def tag_columns_of(self, owner: str) -> frozenset[str]:
        """Return the columns that the SQL of a tag source reads."""
        return frozenset(self.tag_reads.get(owner, (self.tag_sources[owner],)))

    @property
    def tag_columns(self) -> tuple[str, str]:
        """The columns of a row's identity and resource, where rows are shown with their tags."""
        return self.tag_sources[IDENTITY], self.tag_sources[RESOURCE]

    @cached_property
    def export_columns(self) -> tuple[str, ...]:
        """Every column that a file can have, in order."""
        names = [column.name for column in self.columns if column.export is not Export.NEVER]
        return (*names, *([TAGS] if self.shows_tags else []), *([METADATA] if self.metadata else []))

    @cached_property
    def default_export(self) -> tuple[str, ...]:
        """The columns of a file unless the request names others."""
        names = [column.name for column in self.columns if column.export is Export.DEFAULT]
        return (*names, TAGS) if self.shows_tags else tuple(names)

    @cached_property
    def metadata_json(self) -> str:
        """SQL for the metadata as a JSON object."""
        return json_object([(column.name, column.json) for column in self.metadata])

    @cached_property
    def _finishers(self) -> tuple[list[_Finisher], list[_Finisher]]:
        fields, members = (
            [(column.name, _FINISH.get(column.kind)) for column in columns] for columns in (self.columns, self.metadata)
        )
        return fields, members


def finish_amount(text: str) -> str:
    """Return a DECIMAL's text without superfluous zeros beyond two decimals.

    >>> finish_amount("-1.500000000000"), finish_amount("0.000000000001")
    ('-1.50', '0.000000000001')
    """
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:2]}{fraction[2:].rstrip('0')}"


def finish_instant(text: str) -> str:
    """Return a TIMESTAMP's text as ISO 8601 in UTC.

    >>> finish_instant("2026-01-31 00:00:00")
    '2026-01-31T00:00:00Z'
    """
    return f"{text.replace(' ', 'T')}Z"


_Finisher = tuple[str, Callable[[str], str] | None]
_FINISH: Final[Mapping[str, Callable[[str], str]]] = {AMOUNT: finish_amount, INSTANT: finish_instant}

#: The numbers of billing lines with a quantity, of charges, and of refunds.
MEASURED_LINES: Final = "measured_lines"
CHARGED_LINES: Final = "charged_lines"
REFUNDED_LINES: Final = "refunded_lines"

_PRODUCT: Final = ("product_type", "product_category")
_USED: Final = f"cost_type = '{USAGE_COST}'"
_UNOWNED: Final = f"identity_id = '{UNALLOCATED}'"

CHARGEBACKS: Final = Dataset(
    CHARGEBACKS_TABLE,
    columns=(
        Column("dimension_id", NUMBER, export=Export.NEVER),
        Column("ecosystem", export=Export.ON_REQUEST),
        Column("tenant_id", export=Export.ON_REQUEST),
        Column("timestamp", INSTANT),
        Column("resource_id"),
        Column("product_category"),
        Column("product_type"),
        Column("identity_id"),
        Column("cost_type"),
        Column("amount", AMOUNT),
        Column("allocation_method"),
        Column("allocation_detail", export=Export.ON_REQUEST),
    ),
    amount="amount",
    metadata=(
        Column("chain_position", NUMBER),
        Column("environment_id"),
        Column("identity_usage", AMOUNT, places=6),
        Column("line_id"),
        Column("policy", source="policy_hash"),
        Column("portion", NUMBER),
        Column("portion_share", AMOUNT),
        Column("total_usage", AMOUNT, places=6),
    ),
    filters=(
        "identity_id",
        "product_type",
        "resource_id",
        "cost_type",
        "product_category",
        "environment_id",
        "allocation_method",
        "allocation_detail",
        "line_id",
        "ecosystem",
        CLUSTER_ID,
    ),
    groups=(
        "identity_id",
        "resource_id",
        "product_type",
        "product_category",
        "cost_type",
        "allocation_method",
        "environment_id",
        "allocation_detail",
        "ecosystem",
        CLUSTER_ID,
    ),
    cluster_of="resource_id",
    ids=("identity_id", "resource_id", "environment_id"),
    measures=(
        Measure("total", "sum(amount)", frozenset(["amount"])),
        Measure(
            "used",
            f"sum(CASE WHEN {_USED} THEN amount ELSE 0 END)::DECIMAL(38, 12)",
            frozenset(["amount", "cost_type"]),
            _USED,
        ),
        Measure(
            "unowned",
            f"sum(CASE WHEN {_UNOWNED} THEN amount ELSE 0 END)::DECIMAL(38, 12)",
            frozenset(["amount", "identity_id"]),
            _UNOWNED,
        ),
        Measure("unowned_rows", f"count(*) FILTER (WHERE {_UNOWNED})", frozenset(["identity_id"]), _UNOWNED),
    ),
    # By all columns at once a daily bill has as many sums as rows.
    partials=(
        (
            *("resource_id", "environment_id", "product_category", "product_type"),
            *("cost_type", "allocation_method", "allocation_detail", "policy_hash"),
        ),
        ("identity_id",),
        ("identity_id", "resource_id", "environment_id"),
    ),
    amounts={"total_amount": ("total",), "usage_amount": ("used",), "shared_amount": ("total", "used")},
    subjects={name: name for name in ("identity_id", "resource_id", "environment_id", *_PRODUCT)},
    # The identity is the one that pays.
    tag_sources={IDENTITY: "identity_id", RESOURCE: "resource_id"},
    shows_tags=True,
    shows_categories=True,
)

BILLING_LINES: Final = Dataset(
    BILLING_TABLE,
    columns=(
        Column("ecosystem"),
        Column("tenant_id"),
        Column("timestamp", INSTANT),
        Column("resource_id"),
        Column("product_category"),
        Column("product_type"),
        Column("quantity", AMOUNT),
        Column("unit_price", AMOUNT),
        Column("total_cost", AMOUNT),
        Column("currency"),
        Column("granularity"),
    ),
    amount="total_cost",
    metadata=(
        Column("description"),
        Column("discount_amount", AMOUNT),
        Column("environment_id"),
        Column("line_id"),
        Column("network_access_type"),
        Column("original_amount", AMOUNT),
        Column("original_text"),
        Column("provider_id"),
        Column("resource_name"),
        Column("tier"),
        Column("unit"),
    ),
    filters=("product_type", "resource_id", "product_category", "environment_id", "line_id", "ecosystem", CLUSTER_ID),
    groups=("resource_id", "product_type", "product_category", "environment_id", "ecosystem", CLUSTER_ID),
    cluster_of="resource_id",
    ids=("resource_id", "environment_id"),
    measures=(
        Measure("total", "sum(total_cost)", frozenset(["total_cost"])),
        Measure("quantity", "sum(quantity)", frozenset(["quantity"])),
        *(
            Measure(name, f"count(*) FILTER (WHERE {which})", frozenset([column]), which)
            for name, column, which in (
                (MEASURED_LINES, "quantity", "quantity IS NOT NULL"),
                (CHARGED_LINES, "total_cost", "total_cost > 0"),
                (REFUNDED_LINES, "total_cost", "total_cost < 0"),
            )
        ),
    ),
    partials=(("resource_id", "environment_id", "product_category", "product_type", "unit"),),
    amounts={"total_amount": ("total",)},
    subjects={name: name for name in ("resource_id", "environment_id", *_PRODUCT)},
    tag_sources={RESOURCE: "resource_id"},
)

TOPIC_ATTRIBUTIONS: Final = Dataset(
    TOPICS_TABLE,
    columns=(
        Column("dimension_id", NUMBER, export=Export.NEVER),
        Column("ecosystem"),
        Column("tenant_id"),
        Column("timestamp", INSTANT),
        Column("env_id"),
        Column("cluster_resource_id"),
        Column("topic_name"),
        Column("product_category"),
        Column("product_type"),
        Column("attribution_method"),
        Column("amount", AMOUNT),
    ),
    amount="amount",
    metadata=(
        Column("line_id"),
        Column("topic_usage", AMOUNT, places=6),
        Column("total_usage", AMOUNT, places=6),
    ),
    filters=(
        "cluster_resource_id",
        "topic_name",
        "product_type",
        "attribution_method",
        "env_id",
        "product_category",
        "line_id",
    ),
    groups=(
        "topic_name",
        "cluster_resource_id",
        "env_id",
        "product_type",
        "product_category",
        "attribution_method",
    ),
    aliases={"resource_id": "cluster_resource_id", CLUSTER_ID: "cluster_resource_id", "environment_id": "env_id"},
    ids=("topic_name", "cluster_resource_id", "env_id"),
    measures=(Measure("total", "sum(amount)", frozenset(["amount"])),),
    partials=(
        ("env_id", "cluster_resource_id", "product_category", "product_type", "attribution_method"),
        ("env_id", "cluster_resource_id", "topic_name"),
    ),
    amounts={"total_amount": ("total",)},
    subjects={name: name for name in ("topic_name", *_PRODUCT)}
    | {"resource_id": "cluster_resource_id", "environment_id": "env_id"},
    tag_sources={RESOURCE: TOPIC_RESOURCE_SQL},
    tag_reads={RESOURCE: ("cluster_resource_id", "topic_name")},
    shows_categories=True,
)

DATASETS: Final = (CHARGEBACKS, BILLING_LINES, TOPIC_ATTRIBUTIONS)
