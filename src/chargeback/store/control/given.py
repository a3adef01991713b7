"""Rows and ids that a query is given, as relations of the database."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Subquery, cast, func, literal, select
from sqlalchemy import Text as TextType
from sqlalchemy.types import TypeEngine

#: The ids of some identities and resources, by the type of the entity.
EntityIds = Mapping[str, Collection[str]]

_NO_TYPES: Final[Mapping[str, TypeEngine[Any]]] = {}


def among(connection: Connection, column: ColumnElement[str], ids: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that ``column`` has one of some ids, however many these are."""
    given_rows = relation(connection, [[each] for each in sorted(ids)], ("id",))
    return column.in_(select(given_rows.c.id))


def relation(
    connection: Connection,
    rows: Sequence[Sequence[str | int | None]],
    names: Sequence[str],
    types: Mapping[str, TypeEngine[Any]] = _NO_TYPES,
) -> Subquery:
    """Return ``rows`` as a relation, sent as one value: neither database limits its number of entries. Columns are
    texts unless ``types`` has them."""
    document = json.dumps(rows)
    if connection.dialect.name == "sqlite":
        entry = func.json_each(document).table_valued("value").c.value
        fields: list[ColumnElement[Any]] = [func.json_extract(entry, f"$[{index}]") for index in range(len(names))]
    else:
        from sqlalchemy.dialects.postgresql import JSONB  # a service with SQLite does without

        entry = func.jsonb_array_elements(cast(literal(document, TextType), JSONB)).table_valued("value").c.value
        texts = [func.jsonb_extract_path_text(entry, str(index)) for index in range(len(names))]
        fields = [cast(text, types.get(name, TextType())) for text, name in zip(texts, names, strict=True)]
    return select(*(field.label(name) for field, name in zip(fields, names, strict=True))).subquery()
