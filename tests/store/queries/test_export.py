"""CSV and JSON lines are read correctly by spreadsheets and programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.export import tags_field
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection, TagFilter
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, write_shares
from tests.support.readers import Read

DAY = date(2026, 1, 1)
JANUARY = Selection(instants(DAY, date(2026, 1, 31)))
TAGS = TagIndex.undated({"sa-1": {"team": "a=b;c\\", "x": 'say "hi", now'}}, {"lkc-1": {"team": "lost", "env": "prod"}})


def _export(read: Read, columns: Sequence[str] = (), tags: TagIndex = TAGS) -> str:
    text: bytes = read(lambda reader: b"".join(reader.export(CHARGEBACKS, JANUARY, columns)), tags)
    return text.decode()


def test_the_default_file(read: Read, facts: FactTables) -> None:
    """The file has a header, CRLF line ends, plain amounts, and tags sorted and escaped."""
    write_shares(facts, [Share(DAY, "sa-1", "-1.5"), Share(DAY, "sa-2", "2", resource="lkc-2")])
    assert _export(read) == (
        "timestamp,resource_id,product_category,product_type,identity_id,cost_type,amount,allocation_method,tags\r\n"
        "2026-01-01T00:00:00Z,lkc-1,KAFKA,KAFKA_NUM_CKUS,sa-1,usage,-1.50,usage_ratio,"
        '"env=prod;team=a\\=b\\;c\\\\;x=say ""hi"", now"\r\n'
        "2026-01-01T00:00:00Z,lkc-2,KAFKA,KAFKA_NUM_CKUS,sa-2,usage,2.00,usage_ratio,\r\n"
    )


def test_tags_anywhere_in_the_row(read: Read, facts: FactTables) -> None:
    """The column of tags may be first, last, or the only one."""
    write_shares(facts, [Share(DAY, "sa-9", "1")])
    assert _export(read, ["tags", "amount"]) == "tags,amount\r\nenv=prod;team=lost,1.00\r\n"
    assert _export(read, ["amount", "tags"]) == "amount,tags\r\n1.00,env=prod;team=lost\r\n"
    assert _export(read, ["tags"]) == "tags\r\nenv=prod;team=lost\r\n"


def test_no_rows_is_a_header(read: Read, facts: FactTables) -> None:
    """A file without rows has a header."""
    assert _export(read, ["amount", "tags"]) == "amount,tags\r\n"


def test_the_file_is_the_list(read: Read, facts: FactTables) -> None:
    """A file has the rows, order and texts of the API's list, over many days and batches."""
    shares = [
        Share(day, f"sa-{n % 13}", f"{n}.5", resource=f"lkc-{n % 2}", line=f"line-{n}")
        for day in days_from(DAY, 5)
        for n in range(150)
    ]
    write_shares(facts, shares)
    rows = list(csv.DictReader(io.StringIO(_export(read, list(CHARGEBACKS.export_columns)), newline="")))
    items, _ = read(lambda reader: reader.list_rows(CHARGEBACKS, JANUARY, Page(0, 1000)), TAGS)
    assert len(rows) == len(items) == 750
    for row, item in zip(rows, items, strict=True):
        for name in CHARGEBACKS.export_columns:
            if name == "tags":
                assert row[name] == tags_field(item[name]).strip('"').replace('""', '"')
            elif name == "metadata":
                assert row[name] == json.dumps(item[name], sort_keys=True, separators=(",", ":"))
            else:
                assert row[name] == item[name]


def test_a_filter_keeps_the_order(read: Read, facts: FactTables) -> None:
    """A filter keeps the order in 100 files, although DuckDB returns joined rows in the order of its threads."""
    shares = [Share(day, "sa-1", f"{place}", portion=place) for place, day in enumerate(days_from(DAY, 12))]
    write_shares(facts, shares)
    tagged = replace(JANUARY, tags=(TagFilter("team", frozenset(["a=b;c\\"])),))
    expected = ["amount", *(f"{place}.00" for place in range(12))]

    def _files(reader: TenantReader) -> list[list[str]]:
        return [b"".join(reader.export(CHARGEBACKS, tagged, ["amount"])).decode().split() for _ in range(100)]

    assert [each for each in read(_files, TAGS) if each != expected] == []


def test_formulas_are_defused(read: Read, facts: FactTables) -> None:
    """Ids that a spreadsheet would execute get an apostrophe; negative amounts stay numbers."""
    write_shares(facts, [Share(DAY, "=1+1", "-3", resource="@x"), Share(DAY, "+a,b", "1", resource="-y")])
    text = _export(read, ["resource_id", "identity_id", "amount"], TagIndex())
    assert list(csv.reader(io.StringIO(text)))[1:] == [["'-y", "'+a,b", "1.00"], ["'@x", "'=1+1", "-3.00"]]


def test_rows_can_be_summed_per_unit_of_time(read: Read, facts: FactTables) -> None:
    """There is one row for each week, at its Monday, and combination of the default columns; sums are exact."""
    days = days_from(date(2026, 1, 4), 2)
    write_shares(facts, [Share(day, "sa-9", "0.000000000001", line=line) for day in days for line in "ab"])
    chunks = read(lambda reader: b"".join(reader.export(CHARGEBACKS, JANUARY, per="week")), TAGS)
    ids = "lkc-1,KAFKA,KAFKA_NUM_CKUS,sa-9,usage"
    assert chunks.decode().splitlines()[1:] == [
        f"{monday}T00:00:00Z,{ids},0.000000000002,usage_ratio,env=prod;team=lost"
        for monday in ("2025-12-29", "2026-01-05")
    ]


ODD_TAGS = TagIndex.undated({"sa-1": {"team": 'a=b;c\\ "x"\n', "ü": "é"}}, {"lkc-1": {"team": "lost", "env": "prod"}})


def lines(
    read: Read, selection: Selection, columns: tuple[str, ...], tags: TagIndex = ODD_TAGS
) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    content: bytes = read(lambda reader: b"".join(reader.export(CHARGEBACKS, selection, columns, form="jsonl")), tags)
    assert content == b"" or content.endswith(b"}\n")
    return [json.loads(line) for line in content.decode().split("\n")[:-1]]


def test_tags_are_defused_in_every_locale() -> None:
    """Tags are also safe in spreadsheets that separate cells by semicolons or tabs."""
    assert tags_field({"a": ";@SUM(A1)", "b": "x\t+1", "c": "'y"}) == "a=\\;'@SUM(A1);b=x\t'+1;c='y"


def test_json_lines_are_the_list(read: Read, facts: FactTables) -> None:
    """Rows, order and values equal those of the list, for any texts; columns are in the requested order."""
    texts = ["=1+1", 'say "hi"\\', "a\nb\u2028;c", "sa-1", "'ü"]
    shares = [
        Share(
            day,
            texts[n % 5],
            f"-{n}.5",
            resource=f"lkc-{n % 2}",
            line=f"l{n}",
            environment=None,
            usage=[None, "2"][n % 2],
        )
        for day in days_from(DAY, 3)
        for n in range(40)
    ]
    write_shares(facts, shares)
    items, total = read(lambda reader: reader.list_rows(CHARGEBACKS, JANUARY, Page(0, 1000)), ODD_TAGS)
    columns = tuple(reversed(CHARGEBACKS.export_columns))
    found = lines(read, JANUARY, columns)
    assert len(found) == total == 120
    assert found == [{name: item[name] for name in columns} for item in items]
    assert tuple(found[0]) == columns
    assert lines(read, JANUARY, ("tags",)) == [{"tags": item["tags"]} for item in items]


def test_an_unknown_value_is_null(read: Read, facts: FactTables) -> None:
    """A column without a value is null, not an empty text."""
    content = read(
        lambda reader: b"".join(reader.export(TOPIC_ATTRIBUTIONS, JANUARY, form="jsonl")),
    )
    assert content == b""
    write_shares(facts, [Share(DAY, "sa-2", "1", resource="lkc-9")])
    assert lines(read, JANUARY, ("identity_id", "tags"), TagIndex()) == [{"identity_id": "sa-2", "tags": {}}]
    assert lines(read, JANUARY, ("tags", "amount")) == [{"tags": {}, "amount": "1.00"}]


def test_nothing_is_an_empty_file(read: Read, facts: FactTables) -> None:
    """A file without rows is empty, because there is no header."""
    write_shares(facts, [Share(DAY, "sa-2", "1")])
    nobody = replace(JANUARY, tags=(TagFilter("team", frozenset(["nobody"])),))
    assert lines(read, nobody, ("amount",)) == []
