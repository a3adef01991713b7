"""The declared columns of a dataset exist, and its rows have the same values in the database and in Python."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.clusters import CLUSTER_ID
from chargeback.store.queries.datasets import (
    AMOUNT,
    DATASETS,
    INSTANT,
    METADATA,
    NUMBER,
    TAGS,
    Column,
    Dataset,
    Export,
)
from chargeback.store.queries.paging import Page
from chargeback.store.queries.selection import Selection, TagFilter, equal
from tests.support.facts import Share, line, write_lines, write_shares
from tests.support.readers import Ask, Read
from tests.support.topics import TopicShare, write_topic_shares

DAY = date(2026, 1, 1)
SAMPLE = Dataset(
    "sample",
    columns=(Column("amount", AMOUNT), Column("moment", INSTANT), Column("name")),
    amount="amount",
    metadata=(
        Column("a", source="name"),
        Column("cost", AMOUNT, source="amount"),
        Column("z", NUMBER, source="number"),
    ),
)
#: Columns that a row may lack, which is an empty text.
EMPTY = ("environment_id", CLUSTER_ID)
EVERY = pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.table)


@pytest.mark.parametrize("amount", ["0", "-0.000000000001", "12.5", "99999999999999999999999999", None])
@pytest.mark.parametrize("name", ['a "quoted" \\ name\n', "ü", None])
def test_both_renderings_agree(ask: Ask, amount: str | None, name: str | None) -> None:
    """Metadata as JSON for files equals that of pages, without null values."""
    row = (
        "(SELECT $amount::VARCHAR::DECIMAL(38, 12) AS amount, make_timestamptz(1767225600500000) AS moment, "
        "$name::VARCHAR AS name, 3 AS number)"
    )
    values = {"amount": amount, "name": name}
    (plain,) = ask(lambda cursor: cursor.rows(f"SELECT {SAMPLE.row_sql} FROM {row}", values))
    ((text,),) = ask(lambda cursor: cursor.rows(f"SELECT {SAMPLE.metadata_json} FROM {row}", values))
    item = SAMPLE.item(plain)
    assert text == json.dumps(item["metadata"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert item["moment"] == "2026-01-01T00:00:00.5Z"
    assert item["amount"] is None if amount is None else Decimal(item["amount"]) == Decimal(amount)
    assert ("cost" in item["metadata"], "a" in item["metadata"]) == (amount is not None, name is not None)


def test_a_file_has_the_columns_that_are_declared_for_it() -> None:
    """The default columns are those that need not be requested, with tags and metadata if the dataset has them."""
    columns = (Column("a", export=Export.NEVER), Column("b", export=Export.ON_REQUEST), Column("c"))
    assert list(Dataset("bare", columns, "c").export_columns) == ["b", "c"]
    rich = Dataset("rich", columns, "c", metadata=(Column("m"),), shows_tags=True)
    assert list(rich.export_columns) == ["b", "c", TAGS, METADATA]
    assert rich.default_export == ("c", TAGS)


@pytest.fixture
def filled(facts: FactTables) -> FactTables:
    """Return tables with one row in each dataset."""
    write_shares(facts, [Share(DAY, "sa-1", "1.5")])
    write_lines(facts, [line(DAY, "1.5")])
    write_topic_shares(facts, [TopicShare(DAY, "orders", "1.5")])
    return facts


@EVERY
def test_every_verb_works_on_every_dataset(read: Read, filled: FactTables, dataset: Dataset) -> None:
    """Every declared filter and group works; list, sums, file and dates agree."""
    selection = Selection(instants(DAY, DAY))
    (item,), total = read(lambda reader: reader.list_rows(dataset, selection, Page(0, 10)))
    assert total == 1
    assert item[dataset.amount] == "1.50"
    row = {**item.get(METADATA, {}), **item}
    given = {name: row.get(name, "") for name in dataset.filters if name in row or name in EMPTY}
    assert set(dataset.filters) - set(given) <= {"line_id"}  # topic rows do not have it
    narrow = Selection(selection.window, equal(**given), (TagFilter("team", frozenset(["UNTAGGED"])),))
    grouping = Grouping((*dataset.groups, "tag:team"), "day", ZoneInfo("UTC"))
    sums = read(lambda reader: reader.aggregate(dataset, narrow, grouping))
    assert [bucket["total_amount"] for bucket in sums.buckets] == ["1.50"]
    text = read(lambda reader: b"".join(reader.export(dataset, narrow, list(dataset.export_columns)))).decode()
    assert text.splitlines()[0] == ",".join(dataset.export_columns)
    assert "1.50" in text.splitlines()[1]
    assert read(lambda reader: reader.dates(dataset)) == [DAY]


@EVERY
def test_only_declared_columns_group(read: Read, filled: FactTables, dataset: Dataset) -> None:
    """A name that the dataset does not declare never becomes SQL."""
    grouping = Grouping(("date; DROP",), "day", ZoneInfo("UTC"))
    with pytest.raises(ValueError, match="cannot be grouped by date; DROP"):
        read(lambda reader: reader.aggregate(dataset, Selection(instants(DAY, DAY)), grouping))
