"""Checks of measurements: the table has the schema, each row belongs to the day and occurs once."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.ecosystems.validation.values import InvalidValue, check_count, expect
from chargeback.model.texts import MAX_ID_LENGTH, MAX_TOPIC_LENGTH, clean_column
from chargeback.model.topics import EXISTED
from chargeback.model.usage import QUANTITY, QUANTITY_LIMIT, USAGE

_KEY: Final = ("measure", "resource_id", "subject")


def check_usage(answer: object, day: date) -> MeasuredUsage:
    """Return the checked usage of ``day``."""
    return _measured(answer, day, longest_subject=MAX_ID_LENGTH)


def check_topics(answer: object, day: date) -> MeasuredUsage:
    """Return the checked topic measures of ``day``."""
    measured = _measured(answer, day, longest_subject=MAX_TOPIC_LENGTH)
    if pc.any(pc.equal(measured.table["measure"], EXISTED)).as_py():
        raise InvalidValue(f"measure should not be {EXISTED!r}, which is reserved")
    return measured


def _measured(answer: object, day: date, *, longest_subject: int) -> MeasuredUsage:
    measured = expect(MeasuredUsage, answer, "the answer")
    dropped = check_count(measured.dropped, "dropped")
    given = expect(pa.Table, measured.table, "table")
    table = _with_schema(given)
    _check_rows(table, day)
    _check_once(table)
    limits = dict(zip(_KEY, (MAX_ID_LENGTH, MAX_ID_LENGTH, longest_subject), strict=True))
    cleaned = table
    for name, longest in limits.items():
        column = table[name]
        clean = clean_column(column, longest)
        _check_none(table, pc.equal(pc.utf8_trim_whitespace(clean), ""), f"{name} should not be empty")
        if clean is not column:
            cleaned = cleaned.set_column(table.schema.get_field_index(name), USAGE.field(name), clean)
    return MeasuredUsage(table if cleaned is table else _added_up(cleaned), dropped)


def _with_schema(table: pa.Table) -> pa.Table:
    """Return the table in the order of the schema, whose names and types it must have; a field may be declared
    nullable. Of the columns of the schema, those that may be null may also be missing: they were added to it later than
    the plugin was written."""
    missing = [field.name for field in USAGE if field.name not in table.column_names and not field.nullable]
    extra = sorted(set(table.column_names) - set(USAGE.names))
    if missing or extra or table.num_columns != len(set(table.column_names)):
        what = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(extra) or 'a column twice'} too much"
        raise InvalidValue(f"table should have the columns {', '.join(USAGE.names)}; it {what}")
    for field in USAGE:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        column = table[field.name]
        if column.type != field.type:
            raise InvalidValue(f"column {field.name} of the table should be {field.type}, not {column.type}")
        if column.null_count and not field.nullable:
            row = pc.index(pc.is_null(column), True).as_py() + 1
            raise InvalidValue(f"row {row}: {field.name} should not be null")
    return pa.table([table[name] for name in USAGE.names], schema=USAGE)


def _check_rows(table: pa.Table, day: date) -> None:
    _check_none(table, pc.not_equal(table["date"], pa.scalar(day, pa.date32())), f"date should be {day}", shown="date")
    zero, limit = (pa.scalar(Decimal(each), QUANTITY) for each in (0, QUANTITY_LIMIT - 1))
    _check_none(table, pc.less(table["value"], zero), "value should be at least 0", shown="value")
    _check_none(
        table, pc.greater(table["value"], limit), f"value should be below 10^{QUANTITY_LIMIT.adjusted()}", shown="value"
    )


def _check_none(table: pa.Table, wrong: pa.ChunkedArray, expected: str, *, shown: str | None = None) -> None:
    position = pc.index(wrong, True).as_py()
    if position >= 0:
        found = f", not {table[shown][position].as_py()}" if shown else ""
        raise InvalidValue(f"row {position + 1}: {expected}{found}")


def _check_once(table: pa.Table) -> None:
    counted = table.group_by(_KEY).aggregate([([], "count_all")])
    if counted.num_rows != table.num_rows:
        twice = counted.filter(pc.greater(counted["count_all"], 1)).slice(0, 1).to_pylist()[0]
        key = ", ".join(f"{name} {twice[name][:60]!r}" for name in _KEY)
        raise InvalidValue(f"{twice['count_all']} rows have {key}; add them up")


def _added_up(table: pa.Table) -> pa.Table:
    """Return rows that only cleaning made equal added up to one."""
    summed = table.group_by(["date", *_KEY], use_threads=False).aggregate([("value", "sum")])
    columns = {name: summed[name] for name in ("date", *_KEY)}
    return _with_schema(pa.table(columns | {"value": summed["value_sum"].cast(QUANTITY)}))
