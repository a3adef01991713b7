"""Chargeback rows as CSV, written by the database.

Every row leaves DuckDB as one text, its line end included; a batch of them is one contiguous piece of memory that
goes out as it is. No row passes through Python, and memory does not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.model.days import InstantRange
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, FactTables
from chargeback.store.queries.engine import Cursor
from chargeback.store.queries.filters import Filters
from chargeback.store.queries.scan import SOURCE, Scan
from chargeback.store.queries.shapes import CHARGEBACK
from chargeback.store.queries.tags import TagBook
from chargeback.store.queries.text import END_OF_LINE, csv_text, decimal_text, instant_text

TAGS: Final = "tags"

#: Every column an export can have, as SQL that writes its field.
EXPORT_COLUMNS: Final = {
    "ecosystem": csv_text("ecosystem"),
    "tenant_id": csv_text("tenant_id"),
    "timestamp": instant_text("timestamp"),
    "resource_id": csv_text("resource_id"),
    "product_category": csv_text("product_category"),
    "product_type": csv_text("product_type"),
    "identity_id": csv_text("identity_id"),
    "cost_type": csv_text("cost_type"),
    "amount": decimal_text("amount"),
    "allocation_method": csv_text("allocation_method"),
    "allocation_detail": csv_text("allocation_detail"),
    TAGS: "''",
    "metadata": csv_text(CHARGEBACK.metadata_json),
}
DEFAULT_COLUMNS: Final = (
    "timestamp",
    "resource_id",
    "product_category",
    "product_type",
    "identity_id",
    "cost_type",
    "amount",
    "allocation_method",
    TAGS,
)

_BATCH = 50_000


def csv_chunks(
    cursor: Cursor,
    facts: FactTables,
    window: InstantRange,
    filters: Filters,
    columns: Sequence[str],
    book: TagBook,
    *,
    per: str | None = None,
) -> Iterator[memoryview]:
    """The header and then all rows of ``window`` in the order of the list, as UTF-8 CSV, some thousand rows at a time.

    ``columns`` are distinct names of :data:`EXPORT_COLUMNS`. ``per`` (day, week, month; UTC) sums the rows of each such
    unit that agree in :data:`DEFAULT_COLUMNS`, of which ``columns`` are then some. Nothing is read before the first
    chunk is asked for.

    Raises:
        QueryTimeout: the question was called off.
        StorageError: the facts cannot be read.
    """
    yield memoryview(f"{','.join(columns)}{END_OF_LINE}".encode())
    scan = Scan.of(facts.snapshot(CHARGEBACKS_TABLE), window)
    if not scan.files:
        return
    condition = scan.condition() & filters.condition()
    relation = f"FROM {SOURCE} WHERE {condition.sql}" if per is None else f"FROM ({_summed(per, condition.sql)})"
    if TAGS not in columns or book.empty:
        sql = f"SELECT {_line(columns, end=True)} {relation}"
        for batch in cursor.batches(sql, condition.parameters, size=_BATCH):
            yield text_of(batch.column(0))
        return
    at = columns.index(TAGS)
    head, tail = _line(columns[:at], end=False), _line(columns[at + 1 :], end=True)
    texts = _TagTexts(book)
    sql = f"SELECT {head}, identity_id, resource_id, {tail} {relation}"
    for batch in cursor.batches(sql, condition.parameters, size=_BATCH):
        before, identities, resources, after = batch.columns
        fields = texts.of(identities, resources)
        opening = pa.scalar("," if at > 0 else "")
        closing = pa.scalar("," if at + 1 < len(columns) else "")
        yield text_of(pc.binary_join_element_wise(before, opening, fields, closing, after, ""))


def _summed(unit: str, condition: str) -> str:
    keys = ", ".join(name for name in DEFAULT_COLUMNS if name not in {"timestamp", "amount", TAGS})
    return (
        f"SELECT date_trunc('{unit}', timestamp) AS timestamp, {keys}, sum(amount) AS amount "
        f"FROM {SOURCE} WHERE {condition} GROUP BY ALL "
        f"ORDER BY timestamp, identity_id, resource_id, product_type, {keys}"
    )


def _line(columns: Sequence[str], *, end: bool) -> str:
    fields = ", ',', ".join(f"({EXPORT_COLUMNS[name]})" for name in columns)
    return f"concat({', '.join(filter(None, [fields, 'chr(13) || chr(10)' if end else _NOTHING]))})"


_NOTHING: Final = "''"


class _TagTexts:
    """The ``tags`` fields of many rows at once: each pair of identity and resource is resolved only once."""

    def __init__(self, book: TagBook) -> None:
        self._book = book
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
            self._known[pair] = tags_field(self._book.resolved(identity_id, resource_id))
        return self._known[pair]


def tags_field(tags: dict[str, str]) -> str:
    r"""Tags as one CSV field: ``key=value`` joined by ``;``, sorted by key; ``\``, ``;`` and ``=`` are escaped.

    A key begins with a letter or a digit, so that no spreadsheet takes the field for a formula.

    >>> tags_field({"team": "a=b;c", "env": "prod"})
    'env=prod;team=a\\=b\\;c'
    """
    text = ";".join(f"{key}={_escaped(value)}" for key, value in sorted(tags.items()))
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
