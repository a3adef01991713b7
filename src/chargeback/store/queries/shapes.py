"""What a row is made of, described once and rendered twice: by the database for files, in Python for pages.

A file has millions of rows, so the database writes its text. A page has some hundred, and there the database would
spend more time on understanding such expressions than on reading the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from chargeback.store.queries.text import decimal_text, instant_text, json_object, json_text, quoted

TEXT: Final = "text"
NUMBER: Final = "number"
AMOUNT: Final = "amount"
INSTANT: Final = "instant"


@dataclass(frozen=True)
class Column:
    """One column of a table: how it is called outside, where it lies, of which kind it is, how many decimals it has."""

    name: str
    kind: str = TEXT
    source: str = ""
    places: int = 12

    @property
    def stored(self) -> str:
        """The column of the table."""
        return self.source or self.name

    @property
    def plain(self) -> str:
        """SQL that gives a value Python can finish."""
        if self.kind == AMOUNT:
            return f"{self.stored}::VARCHAR"
        return f"make_timestamp(epoch_us({self.stored}))::VARCHAR" if self.kind == INSTANT else self.stored

    @property
    def text(self) -> str:
        """SQL that gives the finished text."""
        if self.kind == AMOUNT:
            return decimal_text(self.stored, self.places)
        return instant_text(self.stored) if self.kind == INSTANT else self.stored

    @property
    def json(self) -> str:
        """SQL that gives the value's JSON text."""
        if self.kind == NUMBER:
            return f"{self.stored}::VARCHAR"
        return quoted(self.text) if self.kind == AMOUNT else json_text(self.stored)


class Shape:
    """The fields of a row, and the columns that are shown together as its ``metadata``."""

    def __init__(self, fields: Sequence[Column], metadata: Sequence[Column]) -> None:
        members = sorted(metadata, key=lambda column: column.name)
        self.metadata_json = json_object([(column.name, column.json) for column in members])
        self.plain = ", ".join(column.plain for column in (*fields, *members))
        self._fields = [(column.name, _FINISH.get(column.kind)) for column in fields]
        self._members = [(column.name, _FINISH.get(column.kind)) for column in members]

    def item(self, row: tuple[Any, ...]) -> dict[str, Any]:
        """A row of the ``plain`` columns as the API shows it; metadata that is not known is left out."""
        item = {
            name: value if value is None or finish is None else finish(value)
            for (name, finish), value in zip(self._fields, row, strict=False)
        }
        item["metadata"] = {
            name: value if finish is None else finish(value)
            for (name, finish), value in zip(self._members, row[len(self._fields) :], strict=True)
            if value is not None
        }
        return item


def finish_amount(text: str) -> str:
    """A DECIMAL's text without superfluous zeros beyond two decimals.

    >>> finish_amount("-1.500000000000"), finish_amount("0.000000000001")
    ('-1.50', '0.000000000001')
    """
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:2]}{fraction[2:].rstrip('0')}"


def finish_instant(text: str) -> str:
    """A TIMESTAMP's text as ISO 8601 in UTC.

    >>> finish_instant("2026-01-31 00:00:00")
    '2026-01-31T00:00:00Z'
    """
    return f"{text.replace(' ', 'T')}Z"


_FINISH: Final[dict[str, Callable[[str], str]]] = {AMOUNT: finish_amount, INSTANT: finish_instant}

CHARGEBACK: Final = Shape(
    [
        Column("dimension_id", NUMBER),
        Column("ecosystem"),
        Column("tenant_id"),
        Column("timestamp", INSTANT),
        Column("resource_id"),
        Column("product_category"),
        Column("product_type"),
        Column("identity_id"),
        Column("cost_type"),
        Column("amount", AMOUNT),
        Column("allocation_method"),
        Column("allocation_detail"),
    ],
    [
        Column("chain_position", NUMBER),
        Column("environment_id"),
        Column("identity_usage", AMOUNT, places=6),
        Column("line_id"),
        Column("policy", source="policy_hash"),
        Column("portion", NUMBER),
        Column("portion_share", AMOUNT),
        Column("total_usage", AMOUNT, places=6),
    ],
)

BILLING: Final = Shape(
    [
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
    ],
    [
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
    ],
)
