"""The rows of a dataset as CSV, written by the database.

Every row leaves DuckDB as one text, its line end included; a batch of them is one contiguous piece of memory that
goes out as it is. No row passes through Python, and memory does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.store.facts.tables import ORDER
from chargeback.store.queries.datasets import TAGS, Dataset
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.scan import SOURCE, Scan
from chargeback.store.queries.sql_format import END_OF_LINE, guarded_inside
from chargeback.store.queries.tag_index import TagIndex

_BATCH = 50_000


def csv_chunks(
    cursor: Cursor, dataset: Dataset, scan: Scan, columns: Sequence[str], tags: TagIndex, *, per: str | None = None
) -> Iterator[memoryview]:
    """Yield the header and then all rows of a scan in the order of the list, as UTF-8 CSV, some thousand at a time.

    ``columns`` are distinct names of the dataset's ``export_columns``. ``per`` (day, week, month; UTC) sums the rows of
    each such unit that agree in the columns of the ``default_export``, of which ``columns`` are then some.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    yield memoryview(f"{','.join(columns)}{END_OF_LINE}".encode())
    if not scan.files:
        return
    condition = scan.condition()
    relation = f"{SOURCE} WHERE {condition.sql}" if per is None else f"({_summed(dataset, per, condition.sql)})"
    fields = dataset.export_columns
    if TAGS not in columns or tags.is_empty:
        sql = f"SELECT {_line([fields[name] for name in columns], end=True)} FROM {relation}"
        for batch in cursor.batches(sql, condition.parameters, size=_BATCH):
            yield text_of(batch.column(0))
        return
    at = columns.index(TAGS)
    head = _line([fields[name] for name in columns[:at]], end=False)
    tail = _line([fields[name] for name in columns[at + 1 :]], end=True)
    texts = _TagTexts(tags)
    sql = f"SELECT {head}, {', '.join(dataset.tag_columns)}, {tail} FROM {relation}"
    for batch in cursor.batches(sql, condition.parameters, size=_BATCH):
        before, identities, resources, after = batch.columns
        written = texts.of(identities, resources)
        opening = pa.scalar("," if at > 0 else "")
        closing = pa.scalar("," if at + 1 < len(columns) else "")
        yield text_of(pc.binary_join_element_wise(before, opening, written, closing, after, ""))


def _summed(dataset: Dataset, unit: str, condition: str) -> str:
    keys = [name for name in dataset.default_export if name not in {"timestamp", dataset.amount, TAGS}]
    order = [name for name in ORDER[dataset.table] if name == "timestamp" or name in keys]
    return (
        f"SELECT date_trunc('{unit}', timestamp) AS timestamp, {', '.join(keys)}, "
        f"sum({dataset.amount}) AS {dataset.amount} "
        f"FROM {SOURCE} WHERE {condition} GROUP BY ALL ORDER BY {', '.join([*order, *keys])}"
    )


def _line(fields: Sequence[str], *, end: bool) -> str:
    joined = ", ',', ".join(f"({field})" for field in fields)
    return f"concat({', '.join(filter(None, [joined, 'chr(13) || chr(10)' if end else _NOTHING]))})"


_NOTHING: Final = "''"


class _TagTexts:
    """The ``tags`` fields of many rows at once: each pair of identity and resource is resolved only once."""

    def __init__(self, tags: TagIndex) -> None:
        self._tags = tags
        self._known: dict[tuple[str, str], str] = {}

    def of(self, identities: pa.Array, resources: pa.Array) -> pa.Array:
        """One field per row."""
        payer, thing = identities.dictionary_encode(), resources.dictionary_encode()
        payers, things = payer.dictionary.to_pylist(), thing.dictionary.to_pylist()
        pair = pc.add(pc.multiply(payer.indices.cast(pa.int64()), len(things)), thing.indices.cast(pa.int64()))
        distinct = pair.dictionary_encode()
        texts = [
            self._text(payers[code // len(things)], things[code % len(things)])
            for code in distinct.dictionary.to_pylist()
        ]
        return pa.array(texts, pa.string()).take(distinct.indices)

    def _text(self, identity_id: str, resource_id: str) -> str:
        pair = (identity_id, resource_id)
        if pair not in self._known:
            self._known[pair] = tags_field(self._tags.resolve(identity_id, resource_id))
        return self._known[pair]


def tags_field(tags: dict[str, str]) -> str:
    r"""Tags as one CSV field: ``key=value`` joined by ``;``, sorted by key; ``\``, ``;`` and ``=`` are escaped.

    A key begins with a letter or a digit, so that no spreadsheet takes it for a formula; in values, what follows a
    separator is guarded as in every text.

    >>> tags_field({"team": "a=b;c", "env": "prod"})
    'env=prod;team=a\\=b\\;c'
    """
    text = guarded_inside(";".join(f"{key}={_escaped(value)}" for key, value in sorted(tags.items())))
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in '",\r\n') else text


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(";", "\\;").replace("=", "\\=")


def text_of(array: Any) -> memoryview:
    """The texts of a string array, one after the other, without copying them."""
    _, offsets, data = array.buffers()
    if data is None:
        return memoryview(b"")
    positions = memoryview(offsets).cast("i")
    return memoryview(data)[positions[array.offset] : positions[array.offset + len(array)]]
