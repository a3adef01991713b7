"""SPEC §4 «Export»: every column, filter and default, compared with the list."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from decimal import Decimal
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest

from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, shown, those, when

DEFAULT = (
    "timestamp",
    "resource_id",
    "product_category",
    "product_type",
    "identity_id",
    "cost_type",
    "amount",
    "allocation_method",
    "tags",
)
COLUMNS = ("ecosystem", "tenant_id", *DEFAULT[:-1], "allocation_detail", "tags", "metadata")
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "jsonl": "application/x-ndjson"}
FILTERS = ("identity_id", "product_type", "resource_id", "cost_type")


def exported(client: Client, tenant: str = "acme", body: Any = ...) -> list[dict[str, str]]:
    """Return the rows of an export as text, after checking that it is a CSV file with the line ends of RFC 4180."""
    asked = {} if body is ... else {"json": body}
    response = client.post(f"/api/v1/tenants/{tenant}/export", **asked)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["content-disposition"].startswith("attachment")
    assert response.content.endswith(b"\r\n")
    return list(csv.DictReader(io.StringIO(response.text, newline="")))


def field(row: Record, name: str) -> str:
    """Return a field as the CSV file has it."""
    if name == "tags":
        return ";".join(f"{key}={value}" for key, value in sorted(row["tags"].items()))
    if name == "metadata":
        stored = {name: value for name, value in row["metadata"].items() if name != "explain"}
        return json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text: str = row[name]
    return text


def records(content: bytes, form: str) -> list[Record]:
    """Return the rows of a file that is not CSV."""
    if form == "parquet":
        found: list[Record] = pq.read_table(io.BytesIO(content)).to_pylist(maps_as_pydicts="strict")
        return found
    return [json.loads(line) for line in content.decode().split("\n")[:-1]]


def plain(value: Any) -> Any:
    """Convert a value of such a file to the value in the list."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, Decimal):
        return shown(value)
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else value


def stored(row: Record, name: str) -> Any:
    """Return a field of the list as such a file has it."""
    return {key: value for key, value in row[name].items() if key != "explain"} if name == "metadata" else row[name]


def expected(rows: list[Record], columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the expected contents of the file."""
    return [{name: field(row, name) for name in columns} for row in rows]


@pytest.mark.parametrize("body", [..., {}, {"filters": {}}, {"timezone": "UTC", "start_date": None}], ids=str)
def test_defaults(client: Client, everything: Everything, body: Any) -> None:
    """Without a body, or with an empty one, the file has the default columns of the lookback, in the order of the
    list."""
    rows = exported(client, body=body)
    assert tuple(rows[0]) == DEFAULT
    assert rows == expected(everything.chargebacks, DEFAULT)


def test_every_column(client: Client, everything: Everything) -> None:
    """The file can have all available columns, in the requested order."""
    backwards = tuple(reversed(COLUMNS))
    rows = exported(client, body={"columns": list(backwards)})
    assert tuple(rows[0]) == backwards
    assert rows == expected(everything.chargebacks, backwards)


@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_alone(client: Client, everything: Everything, name: str) -> None:
    """The file can have a single column."""
    response = client.post(f"{everything.base}/export", json={"columns": [name]})
    texts = [line[0] if line else "" for line in csv.reader(io.StringIO(response.text, newline=""))]
    assert texts == [name, *(field(row, name) for row in everything.chargebacks)]


@pytest.mark.parametrize("filters", [some for size in (1, 2, 4) for some in combinations(FILTERS, size)], ids="+".join)
def test_filters(client: Client, everything: Everything, filters: tuple[str, ...]) -> None:
    """Filters work alone and combined."""
    row = those(everything.chargebacks, cost_type="usage")[40]
    asked = {name: row[name] for name in filters}
    rows = exported(client, body={"filters": asked, "columns": list(DEFAULT)})
    assert rows == expected(those(everything.chargebacks, **asked), DEFAULT) != []


@pytest.mark.parametrize(("form", "media_type"), FORMATS.items())
def test_formats(client: Client, everything: Everything, form: str, media_type: str) -> None:
    """Every format has the same rows, with all columns, a filter and a time zone, and the values of the list."""
    row = those(everything.chargebacks, cost_type="usage")[40]
    body = {"format": form, "columns": list(COLUMNS), "filters": {"identity_id": row["identity_id"]}}
    response = client.post(f"{everything.base}/export", json=body | {"timezone": "Asia/Tokyo"})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].partition(";")[0] == media_type
    assert response.headers["content-disposition"] == f"attachment; filename=chargebacks.{form}"
    rows = those(everything.chargebacks, identity_id=row["identity_id"])
    if form == "csv":
        assert list(csv.DictReader(io.StringIO(response.text, newline=""))) == expected(rows, COLUMNS)
        return
    found = records(response.content, form)
    listed = [{name: stored(each, name) for name in COLUMNS} for each in rows]
    assert [{name: plain(each[name]) for name in COLUMNS} for each in found] == listed != []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "body",
    [{"columns": ["amount", "category_share"]}, {"as_of": "x"}, {"columns": ["category:none", "amount"]}],
    ids=str,
)
def test_every_format_refuses_the_same(client: Client, everything: Everything, form: str, body: Record) -> None:
    """Every format refuses invalid shares, instants and categories with the same error."""
    refused = client.post(f"{everything.base}/export", json=body)
    answer = client.post(f"{everything.base}/export", json={"format": form, **body})
    assert answer.status_code == refused.status_code in (400, 404)
    assert answer.json()["detail"] == refused.json()["detail"]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_ranges(client: Client, everything: Everything, zone: str) -> None:
    """A range has whole days in a time zone, both ends included."""
    first, last = everything.days[2], everything.days[4]
    rows = [row for row in everything.chargebacks if first <= str(when(row).astimezone(ZoneInfo(zone)).date()) <= last]
    body = {"start_date": first, "end_date": last, "timezone": zone}
    assert exported(client, body=body) == expected(rows, DEFAULT)


def test_nothing_is_a_header(client: Client, everything: Everything) -> None:
    """An export without rows has a header with its columns."""
    response = client.post(f"{everything.base}/export", json={"filters": {"identity_id": "nobody"}})
    assert (response.status_code, response.text) == (200, ",".join(DEFAULT) + "\r\n")


def test_tags(scratch: Client) -> None:
    """Tags are ``key=value``, sorted and joined by semicolons, with special characters escaped and quoted."""
    row = scratch.all_items("/api/v1/tenants/scratch/chargebacks")[0]
    path = scratch.tag_path("scratch", "identity", row["identity_id"])
    value = 'a;b=c\\d "e", f\n'
    for key, text in (("z", value), ("a", "=1+1")):
        assert scratch.post(path, json={"tag_key": key, "tag_value": text}).status_code == 201
    rows = exported(scratch, "scratch", {"columns": ["tags"], "filters": {"identity_id": row["identity_id"]}})
    assert {each["tags"] for each in rows} == {'a=\\=1+1;z=a\\;b\\=c\\\\d "e", f\n'}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"columns": []}, ["columns"]),
        ({"columns": ["amount", "nonsense"]}, ["columns[1]"]),
        ({"columns": ["dimension_id"]}, ["columns[0]"]),
        ({"columns": ["amount", "amount"]}, ["columns"]),
        ({"columns": "amount"}, ["columns"]),
        ({"filters": {"tag_key": "x"}}, ["filters.tag_key"]),
        ({"filters": {"cost_type": "x", "identity_id": 1}}, ["filters.cost_type", "filters.identity_id"]),
        ({"filters": []}, ["filters"]),
        ({"start_date": "2026-02-02", "end_date": "2026-02-01"}, ["start_date"]),
        ({"timezone": "x", "end_date": "x", "format": "xlsx"}, ["end_date", "format", "timezone"]),
        ({"format": ["csv"]}, ["format"]),
        ({"format": "CSV"}, ["format"]),
        ([], ["body"]),
    ],
)
def test_what_is_refused(client: Client, everything: Everything, body: Any, named: list[str]) -> None:
    """A 400 names every invalid field."""
    assert complaints(client.post(f"{everything.base}/export", json=body)) == named
