"""Files of lines: the tags of a CSV field, and JSON lines that are the rows of the list."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

from chargeback.model.days import instants
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.export import tags_field
from chargeback.store.queries.paging import Page
from chargeback.store.queries.selection import Selection, TagFilter
from chargeback.store.queries.tag_index import TagIndex
from tests.support.facts import Share, days_from, write_shares
from tests.support.readers import Read

DAY = date(2026, 1, 1)
JANUARY = Selection(instants(DAY, date(2026, 1, 31)))
TAGS = TagIndex.undated({"sa-1": {"team": 'a=b;c\\ "x"\n', "ü": "é"}}, {"lkc-1": {"team": "lost", "env": "prod"}})


def lines(read: Read, selection: Selection, columns: tuple[str, ...], tags: TagIndex = TAGS) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    content: bytes = read(lambda reader: b"".join(reader.export(CHARGEBACKS, selection, columns, form="jsonl")), tags)
    assert content == b"" or content.endswith(b"}\n")
    return [json.loads(line) for line in content.decode().split("\n")[:-1]]


def test_tags_are_defused_in_every_locale() -> None:
    """Also where a spreadsheet separates cells by semicolons or tabs."""
    assert tags_field({"a": ";@SUM(A1)", "b": "x\t+1", "c": "'y"}) == "a=\\;'@SUM(A1);b=x\t'+1;c='y"


def test_json_lines_are_the_list(read: Read, facts: FactTables) -> None:
    """Same rows, order and values as the list's, whatever is in the texts; the columns in the order asked for."""
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
    items, total = read(lambda reader: reader.list_rows(CHARGEBACKS, JANUARY, Page(0, 1000)), TAGS)
    columns = tuple(reversed(CHARGEBACKS.export_columns))
    found = lines(read, JANUARY, columns)
    assert len(found) == total == 120
    assert found == [{name: item[name] for name in columns} for item in items]
    assert tuple(found[0]) == columns
    assert lines(read, JANUARY, ("tags",)) == [{"tags": item["tags"]} for item in items]


def test_an_unknown_value_is_null(read: Read, facts: FactTables) -> None:
    """A column without a value is there; its text is not empty but null."""
    content = read(
        lambda reader: b"".join(reader.export(TOPIC_ATTRIBUTIONS, JANUARY, form="jsonl")),
    )
    assert content == b""
    write_shares(facts, [Share(DAY, "sa-2", "1", resource="lkc-9")])
    assert lines(read, JANUARY, ("identity_id", "tags"), TagIndex()) == [{"identity_id": "sa-2", "tags": {}}]
    assert lines(read, JANUARY, ("tags", "amount")) == [{"tags": {}, "amount": "1.00"}]


def test_nothing_is_an_empty_file(read: Read, facts: FactTables) -> None:
    """There is no header, and so no line."""
    write_shares(facts, [Share(DAY, "sa-2", "1")])
    nobody = replace(JANUARY, tags=(TagFilter("team", frozenset(["nobody"])),))
    assert lines(read, nobody, ("amount",)) == []
