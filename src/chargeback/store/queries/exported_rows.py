"""The rows of a file, whatever its format: which rows, in which order, and with which tags.

The database writes each field as the format wants it, some thousand rows at a time, so that memory does not grow with
the number of rows. Tags are not in its files; they are resolved once for each pair of identity and resource.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.store.facts.tables import ORDER
from chargeback.store.queries.category_index import CATEGORY_PREFIX
from chargeback.store.queries.category_lookup import NO_CATEGORIES
from chargeback.store.queries.category_parts import SHARE
from chargeback.store.queries.datasets import TAGS, Column, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.keys import ByTag, KeyLookups, KeySql, numbered
from chargeback.store.queries.scan import SOURCE, Condition, Scan
from chargeback.store.queries.sql_format import named
from chargeback.store.queries.tag_index import TagIndex

_BATCH: Final = 50_000
_PIECE: Final = 250_000


@dataclass(frozen=True)
class ExportedRows:
    """All rows of a scan, in the order of the list.

    Attributes:
        columns: distinct names of the dataset's ``export_columns``, ``category:<key>`` with the ``places`` of cost
            categories, and ``category_share``; then the rows are those of ``parts``, a relation and its condition.
        per: a unit of time (day, week, month; UTC): the rows of each that agree in the columns of the
            ``default_export``, of which ``columns`` are then some, and in their categories, are summed.
    """

    cursor: Cursor
    dataset: Dataset
    scan: Scan
    columns: Sequence[str]
    tags: TagIndex
    per: str | None = None
    parts: tuple[str, Condition] | None = None
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_tags(self) -> bool:
        """Whether there is a column of tags, and some row may have one."""
        return TAGS in self.columns and not self.tags.is_empty

    def column(self, name: str) -> Column:
        """Return what is known of one of :attr:`columns` that is stored, or of a cost category or its share."""
        if name.startswith(CATEGORY_PREFIX):
            return Column(name, source=f"category_{self.places[name.removeprefix(CATEGORY_PREFIX)]}")
        known = {column.name: column for column in (*self.dataset.columns, Column(SHARE))}
        return known[name]

    def batches(self, select: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield expressions (SQL) of every row, some thousand rows at a time.

        Raises:
            QueryTimeout: the query was cancelled.
            StorageError: the facts cannot be read.
        """
        if not self.scan.files:
            return
        source, condition = self.parts or (SOURCE, self.scan.condition())
        categories = [f"category_{place}" for place in self.places.values()]
        relation, pieces = f"{source} AS facts WHERE {condition.sql}", [self.scan]
        if self.per is not None:
            relation = f"({self._summed(self.per, source, condition.sql, categories)})"
        elif self.parts or self.scan.filter.clauses:
            # DuckDB keeps the order of files it only reads, but not that of rows it joins, and some filters are joins.
            relation = f"{relation} ORDER BY {', '.join(['date', 'file_row_number', *categories])}"
            pieces = list(self.scan.pieces(_PIECE))  # only one of them is sorted at a time
        sql = f"SELECT {', '.join(select)} FROM {relation}"
        for piece in pieces:
            yield from self.cursor.batches(sql, {**condition.parameters, "files": piece.files}, size=_BATCH)

    def _summed(self, unit: str, source: str, condition: str, categories: Sequence[str]) -> str:
        """Return the sums as SQL; rows whose tags change with the days are summed apart, and have the first of their
        days as their ``date``."""
        dataset, by_tag = self.dataset, self._dated_tags()
        keys = [name for name in dataset.default_export if name not in {"timestamp", dataset.amount, TAGS}]
        keys += categories
        order = [name for name in ORDER[dataset.table] if name == "timestamp" or name in keys]
        tags = [f"d{number}" for number in range(len(by_tag))]
        grouped = [*keys, *(named(key.columns) for key in by_tag)]
        return (
            f"SELECT date_trunc('{unit}', timestamp) AS timestamp, {', '.join(grouped)}, "
            f"sum({dataset.amount}) AS {dataset.amount}, min(date) AS date "
            f"FROM {source} AS facts {' '.join(key.joins for key in by_tag)} "
            f"WHERE {condition} GROUP BY ALL ORDER BY {', '.join([*order, *keys, *tags])}"
        )

    def _dated_tags(self) -> Sequence[KeySql]:
        keys = self.tags.dated_keys if self.has_tags else ()
        lookups = KeyLookups(self.cursor, self.dataset, self.tags, dict, NO_CATEGORIES, None)
        return numbered(ByTag(key).on(lookups) for key in keys)


class TagsOfRows:
    """The tags of many rows at once: each pair of identity and resource is resolved only once for the days on which
    tags stay the same. ``made`` is what the tags of a row are as a value of the Arrow type ``kind``."""

    def __init__(self, tags: TagIndex, made: Callable[[dict[str, str]], Any], kind: pa.DataType) -> None:
        self._tags = tags
        self._made = made
        self._kind = kind
        self._known: dict[tuple[str, str, int], Any] = {}

    def of(self, identities: pa.Array, resources: pa.Array, days: pa.Array) -> pa.Array:
        """Return one value per row."""
        columns = [each.dictionary_encode() for each in (identities, resources, days)]
        payers, things, dates = (each.dictionary.to_pylist() for each in columns)
        payer, thing, day = (each.indices.cast(pa.int64()) for each in columns)
        place = pc.add(pc.multiply(pc.add(pc.multiply(payer, len(things)), thing), len(dates)), day)
        distinct = place.dictionary_encode()
        values = []
        for code in distinct.dictionary.to_pylist():
            pair, of_day = divmod(code, len(dates))
            values.append(self._value(payers[pair // len(things)], things[pair % len(things)], dates[of_day]))
        return pa.array(values, self._kind).take(distinct.indices)

    def _value(self, identity_id: str, resource_id: str, day: date) -> Any:
        place = (identity_id, resource_id, self._tags.era(day))
        if place not in self._known:
            self._known[place] = self._made(self._tags.resolve(identity_id, resource_id, day))
        return self._known[place]
