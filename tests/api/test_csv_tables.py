"""Responses as tables: values are written as in the export."""

from __future__ import annotations

import csv
import io

from chargeback.api.responses import csv_response


def test_every_kind_of_value() -> None:
    """Formulas are escaped, amounts keep their sign, missing values are empty, and objects are JSON."""
    item = {
        "name": "=1+1",
        "amount": "-1.50",
        "note": "-1.50",
        "flag": True,
        "count": 3,
        "gone": None,
        "metadata": {"b": 'x;"y"', "a": 1},
        "omitted": "x",
    }
    columns = [name for name in item if name != "omitted"]
    answer = csv_response("file.csv", columns, [item], numbers=["amount"], headers={"x-more": "1"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment; filename=file.csv"
    assert answer.headers["x-more"] == "1"
    text = bytes(answer.body).decode()
    assert text.endswith("\r\n")
    header, row = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == columns
    assert row == ["'=1+1", "-1.50", "'-1.50", "true", "3", "", r'{"a":1,"b":"x\u003b\"y\""}']


def test_a_table_of_nothing_has_a_header() -> None:
    """An empty table has its header."""
    assert csv_response("file.csv", ["a", "tag:team"], []).body == b"a,tag:team\r\n"
