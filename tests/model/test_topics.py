"""The model of the topic overlay."""

from __future__ import annotations

from datetime import date

import duckdb
import pyarrow as pa

from chargeback.model.topics import (
    TOPIC_ATTRIBUTIONS,
    TOPIC_DIMENSION_COLUMNS,
    TOPIC_DIMENSION_ID_SQL,
    TOPIC_ORDER,
    TOPIC_RESOURCE_SQL,
    TopicMethod,
    TopicPlan,
    topic_resource_id,
)


def dimension_id(**values: str | None) -> int:
    """Return the id of a dimension whose other columns are all `x`."""
    row = {name: values.get(name, "x") for name in TOPIC_DIMENSION_COLUMNS}
    columns = ", ".join(f"${name}::VARCHAR AS {name}" for name in row)
    found: tuple[int] | None = duckdb.execute(
        f"SELECT {TOPIC_DIMENSION_ID_SQL} FROM (SELECT {columns})", row
    ).fetchone()
    assert found is not None
    return found[0]


def test_no_column_is_a_float() -> None:
    """No column is a float: money and quantities are decimals."""
    assert not [field.name for field in TOPIC_ATTRIBUTIONS if pa.types.is_floating(field.type)]


def test_keys_are_columns() -> None:
    """The order and the dimension use existing columns."""
    assert {*TOPIC_ORDER, *TOPIC_DIMENSION_COLUMNS} <= set(TOPIC_ATTRIBUTIONS.names)


def test_a_dimension_is_told_by_every_column() -> None:
    """Every column changes the id, and values of adjacent columns are not confused."""
    ids = {dimension_id(), *(dimension_id(**{name: "y"}) for name in TOPIC_DIMENSION_COLUMNS)}
    assert len(ids) == len(TOPIC_DIMENSION_COLUMNS) + 1
    assert dimension_id(env_id=None, cluster_resource_id="a") != dimension_id(env_id="a", cluster_resource_id="")
    assert all(0 < each < 2**53 for each in ids)


def test_an_unknown_environment_is_an_empty_one() -> None:
    """The id is the same whether an unknown environment is None or empty."""
    assert dimension_id(env_id=None) == dimension_id(env_id="")


def test_a_topic_has_one_id_in_python_and_in_the_query_engine() -> None:
    """The id of a topic in SQL equals its id in Python."""
    query = f"SELECT {TOPIC_RESOURCE_SQL} FROM (SELECT 'lkc-1' AS cluster_resource_id, 'a:b' AS topic_name)"
    assert duckdb.execute(query).fetchone() == (topic_resource_id("lkc-1", "a:b"),)


def test_a_plan_knows_other_spellings() -> None:
    """An alias uses the method of its type; exclusions are shell patterns."""
    plan = TopicPlan({"A": TopicMethod("even_split")}, {"B": "A"}, "cluster", "topic", ("_*", "x?"))
    assert plan.method_of("A") == plan.method_of("B") == TopicMethod("even_split")
    assert plan.method_of("C") is None
    assert [plan.excludes(name) for name in ("_a", "x1", "x12", "a_")] == [True, True, False, False]


def test_retention_counts_days_back() -> None:
    """The oldest day kept is ``retention_days`` before the given day."""
    assert TopicPlan({}, {}, "cluster", "topic", retention_days=31).oldest_day(date(2026, 3, 31)) == date(2026, 2, 28)
