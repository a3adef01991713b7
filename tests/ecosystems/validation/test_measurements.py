"""Measured usage that is not as the contract asks is refused; odd texts in it are mended."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from chargeback.ecosystems.contract import MeasuredUsage
from chargeback.errors import PluginError
from chargeback.model.inventory import Inventory
from chargeback.model.usage import USAGE
from tests.ecosystems.plugins import DAY, SECOND, measured, row


def table(**columns: Any) -> MeasuredUsage:
    """One row of usage, some of its columns of another type."""
    known = {field.name: pa.array([row(DAY)[field.name]], field.type) for field in USAGE}
    return MeasuredUsage(pa.table({name: column for name, column in (known | columns).items() if column is not None}))


WRONG_USAGE = [
    (lambda: None, "the answer should be a MeasuredUsage, not None"),
    (USAGE.empty_table, "the answer should be a MeasuredUsage, not Table"),
    (lambda: MeasuredUsage([row(DAY)]), "table should be a Table, not list"),
    (lambda: MeasuredUsage(USAGE.empty_table(), dropped=None), "dropped should be an int, not None"),  # type: ignore[arg-type]
    (lambda: MeasuredUsage(USAGE.empty_table(), dropped=-1), "dropped should be at least 0, not -1"),
    (lambda: table(value=pa.array([1.5])), r"column value of the table should be decimal128(38, 6), not double"),
    (lambda: table(value=pa.array([3])), r"column value of the table should be decimal128(38, 6), not int64"),
    (lambda: table(date=pa.array(["2026-01-02"])), "column date of the table should be date32[day], not string"),
    (
        lambda: table(subject=None),
        "table should have the columns date, measure, resource_id, subject, value; it lacks s",
    ),
    (lambda: table(unit=pa.array(["x"])), "it has unit too much"),
    (lambda: table(subject=pa.array([None], pa.string())), "row 1: subject should not be null"),
    (lambda: measured(row(DAY), row(SECOND)), "row 2: date should be 2026-01-02, not 2026-01-03"),
    (lambda: measured(row(DAY, value=Decimal(-1))), "row 1: value should be at least 0, not -1.000000"),
    (lambda: measured(row(DAY, value=Decimal("1e27"))), "row 1: value should be below 10^26"),
    (lambda: measured(row(DAY, subject="")), "row 1: subject should not be empty"),
    (lambda: measured(row(DAY, resource_id=" ")), "row 1: resource_id should not be empty"),
    (
        lambda: measured(row(DAY), row(DAY)),
        "2 rows have measure 'requests', resource_id 'thing-1', subject 'web'; add them up",
    ),
    (lambda: 1 / 0, "raised ZeroDivisionError: division by zero (test_measurements.py, line"),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_USAGE)
def test_wrong_usage_is_an_error(ask: Callable[..., Any], answer: Callable[[], Any], expected: str) -> None:
    """The error names the day, the row and the column; of topics as well."""
    for method, name in ((lambda g: g.usage(DAY, Inventory()), "usage"), (lambda g: g.topics(DAY), "topics")):
        with pytest.raises(PluginError) as caught:
            ask(method, on_usage=lambda day: answer(), on_topics=lambda day: answer())
        assert caught.value.message.startswith(f"plugin tiny: {name} of 2026-01-02")
        assert expected in caught.value.message


def test_the_reserved_measure_of_topics(ask: Callable[..., Any]) -> None:
    """What says that a topic existed is the service's own."""
    with pytest.raises(PluginError, match="measure should not be 'topic_existed', which is reserved"):
        ask(lambda g: g.topics(DAY), on_topics=lambda day: measured(row(day, measure="topic_existed")))


def test_usage_that_only_cleaning_made_the_same_is_added_up(ask: Callable[..., Any]) -> None:
    """Nothing is lost, and no row is there twice."""
    rows = [row(DAY, subject="web\0"), row(DAY, subject="web"), row(DAY, subject="\x01")]
    found = ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: measured(*rows)).table
    assert found.schema == USAGE
    assert sorted(zip(found["subject"].to_pylist(), found["value"].to_pylist(), strict=True)) == [
        ("web", Decimal(20)),
        ("�", Decimal(10)),
    ]


def test_a_column_that_was_added_later_may_be_missing(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that knows nothing of it goes on; one that does may say nothing in it."""
    longer = USAGE.append(pa.field("source", pa.string()))
    monkeypatch.setattr("chargeback.ecosystems.validation.gathered.USAGE", longer)
    without = measured(row(DAY))
    for said in (None, "metrics"):
        known = MeasuredUsage(without.table.append_column("source", pa.array([said], pa.string())))
        for answer, expected in ((without, None), (known, said)):
            found = ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day, answer=answer: answer).table
            assert (found.schema, found["source"].to_pylist()) == (longer, [expected])
