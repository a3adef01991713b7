"""SPEC §4 «Topic attributions», compared with the whole list and with the bill."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.contract.problems import complaints, detail_of, kind_of
from tests.contract.records import Client, Everything, Record, shown, those, total, typical, when
from tests.contract.test_aggregation import UNITS, bucket
from tests.contract.test_export import FORMATS, plain, records

COLUMNS = ("topic_name", "cluster_resource_id", "env_id", "product_type", "product_category", "attribution_method")
FILTERS = ("cluster_resource_id", "topic_name", "product_type", "attribution_method")
EXPORTED = (
    "ecosystem",
    "tenant_id",
    "timestamp",
    "env_id",
    "cluster_resource_id",
    "topic_name",
    "product_category",
    "product_type",
    "attribution_method",
    "amount",
)
ZONES = ("UTC", "America/Denver", "Asia/Kathmandu")


@pytest.fixture
def path(everything: Everything) -> str:
    """Return the path of topic rows."""
    return f"{everything.base}/topic-attributions"


def summed(rows: list[Record], by: tuple[str, ...], unit: str, zone: str) -> Record:
    """Return the expected aggregate of some rows."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        time = bucket(when(row).astimezone(ZoneInfo(zone)), unit)
        groups.setdefault((time, *(row[name] for name in by)), []).append(row)
    ordered = sorted(groups.items(), key=lambda item: [(part is not None, part or "") for part in item[0]])
    return {
        "buckets": [
            {
                "dimensions": dict(zip(by, key[1:], strict=True)),
                "time_bucket": key[0],
                "total_amount": shown(total(group)),
                "row_count": len(group),
            }
            for key, group in ordered
        ],
        "currency": "USD",
        "total_amount": shown(total(rows)),
        "total_rows": len(rows),
    }


def in_range(rows: list[Record], first: str, last: str, zone: str) -> list[Record]:
    """Return the rows whose day in the time zone lies between two days, both included."""
    return [row for row in rows if first <= str(when(row).astimezone(ZoneInfo(zone)).date()) <= last]


def test_rows(everything: Everything) -> None:
    """Rows have exactly the fields of the contract and are ordered by time."""
    assert {"bytes_ratio", "even_split"} <= {row["attribution_method"] for row in everything.topics}
    times = [row["timestamp"] for row in everything.topics]
    assert times == sorted(times) != []


def test_rows_sum_to_the_bill(everything: Everything) -> None:
    """The rows of a cluster, product type and day sum exactly to what was billed for them."""
    attributed: dict[tuple[str, str, str], list[Record]] = {}
    for row in everything.topics:
        attributed.setdefault((row["timestamp"], row["cluster_resource_id"], row["product_type"]), []).append(row)
    for (timestamp, cluster, product), rows in attributed.items():
        lines = those(everything.billing, timestamp=timestamp, resource_id=cluster, product_type=product)
        assert total(rows) == total(lines, "total_cost")


@pytest.mark.parametrize(
    "filters", [some for size in (1, 2, 3, 4) for some in combinations(FILTERS, size)], ids="+".join
)
def test_filters(client: Client, everything: Everything, path: str, filters: tuple[str, ...]) -> None:
    """Filters work alone and combined."""
    row = those(everything.topics, attribution_method="bytes_ratio")[7]
    asked = {name: row[name] for name in filters}
    assert client.all_items(path, page_size=31, **asked) == those(everything.topics, **asked) != []


@pytest.mark.parametrize("method", ["bytes_ratio", "retained_bytes_ratio", "even_split", "ATTRIBUTION_FAILED"])
def test_every_method(client: Client, everything: Everything, path: str, method: str) -> None:
    """Every attribution method of a row is a valid filter."""
    assert client.all_items(path, attribution_method=method) == those(everything.topics, attribution_method=method)


@pytest.mark.parametrize("zone", ZONES)
def test_ranges(client: Client, everything: Everything, path: str, zone: str) -> None:
    """A range has whole days in a time zone, both ends included, in lists, sums and files."""
    first, last = everything.days[3], everything.days[6]
    rows = in_range(everything.topics, first, last, zone)
    asked = {"start_date": first, "end_date": last, "timezone": zone}
    assert client.all_items(path, **asked) == rows
    assert client.answer(f"{path}/aggregate", **asked) == summed(rows, ("topic_name",), "day", zone)
    assert exported(client, path, asked) == [{name: row[name] or "" for name in EXPORTED} for row in rows]


def test_aggregate_defaults(client: Client, everything: Everything, path: str) -> None:
    """By default, sums are by topic and day."""
    answer = client.answer(f"{path}/aggregate")
    assert answer == summed(everything.topics, ("topic_name",), "day", "UTC")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", ZONES)
def test_units_of_time_in_zones(client: Client, everything: Everything, path: str, unit: str, zone: str) -> None:
    """Buckets follow the calendar of the time zone."""
    asked = {"time_bucket": unit, "timezone": zone, "start_date": "2000-01-01", "end_date": "2999-01-01"}
    assert client.answer(f"{path}/aggregate", **asked) == summed(everything.topics, ("topic_name",), unit, zone)


@pytest.mark.parametrize("by", [*((name,) for name in COLUMNS), *combinations(COLUMNS, 3), COLUMNS], ids="+".join)
def test_columns(client: Client, everything: Everything, path: str, by: tuple[str, ...]) -> None:
    """Sums can be grouped by every column, alone and combined."""
    answer = client.answer(f"{path}/aggregate", group_by=by, time_bucket="week")
    assert answer == summed(everything.topics, by, "week", "UTC")


@pytest.mark.parametrize("name", ["cluster_resource_id", "topic_name", "product_type"])
def test_filters_of_the_aggregate(client: Client, everything: Everything, path: str, name: str) -> None:
    """Each of the three filters applies to the aggregate."""
    value = typical(everything.topics, name)
    rows = those(everything.topics, **{name: value})
    assert client.answer(f"{path}/aggregate", **{name: value}) == summed(rows, ("topic_name",), "day", "UTC")


def test_dates(client: Client, everything: Everything, path: str) -> None:
    """The response has the distinct days with topic rows."""
    answer = client.answer(f"{path}/dates")
    assert answer["dates"] == sorted({row["timestamp"][:10] for row in everything.topics})


def exported(client: Client, path: str, body: Any = None) -> list[dict[str, str]]:
    """Return the rows of the file."""
    response = client.post(f"{path}/export", json=body) if body is not None else client.post(f"{path}/export")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["content-disposition"] == "attachment; filename=topic_attributions.csv"
    rows = list(csv.DictReader(io.StringIO(response.text, newline="")))
    assert tuple(rows[0]) == EXPORTED
    return rows


def test_export(client: Client, everything: Everything, path: str) -> None:
    """The export has all rows of the list, under the name and with the columns of the contract."""
    expected = [{name: row[name] or "" for name in EXPORTED} for row in everything.topics]
    assert exported(client, path) == exported(client, path, {}) == expected


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"attribution_method": "guess"}, ["attribution_method"]),
        ({"topic_name": ""}, ["topic_name"]),
        ({"resource_id": "x", "identity_id": "x"}, ["identity_id", "resource_id"]),
        ({"cluster_resource_id": "x" * 256}, ["cluster_resource_id"]),
    ],
)
def test_what_the_list_refuses(client: Client, path: str, asked: dict[str, Any], named: list[str]) -> None:
    """A 400 names every invalid parameter."""
    assert complaints(client.get(path, params=asked)) == named


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"group_by": "identity_id"}, ["group_by"]),
        ({"group_by": [f"tag:k{number}" for number in range(21)]}, ["group_by"]),
        ({"time_bucket": "year"}, ["time_bucket"]),
        ({"identity_id": "sa-1"}, ["identity_id"]),
        ({"cost_type": "usage"}, ["cost_type"]),
    ],
)
def test_what_the_aggregate_refuses(client: Client, path: str, asked: dict[str, Any], named: list[str]) -> None:
    """A 400 names every invalid parameter."""
    assert complaints(client.get(f"{path}/aggregate", params=asked)) == named


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_formats_of_the_export(client: Client, everything: Everything, path: str, form: str) -> None:
    """Other formats have the rows and columns of CSV, with the values of the list."""
    response = client.post(f"{path}/export", json={"format": form})
    assert response.headers["content-type"].partition(";")[0] == FORMATS[form]
    assert response.headers["content-disposition"] == f"attachment; filename=topic_attributions.{form}"
    rows = [{name: plain(value) for name, value in each.items()} for each in records(response.content, form)]
    assert rows == [{name: row[name] for name in EXPORTED} for row in everything.topics]


def test_what_the_export_refuses(client: Client, path: str) -> None:
    """A 400 names every invalid field."""
    body = {"timezone": "x", "start_date": "x", "columns": ["amount"]}
    assert complaints(client.post(f"{path}/export", json=body)) == ["columns", "start_date", "timezone"]
    assert complaints(client.post(f"{path}/export", json={"format": "xlsx"})) == ["format"]


@pytest.mark.parametrize("end", ["", "/aggregate", "/dates", "/export"])
def test_without_topic_attribution(client: Client, end: str) -> None:
    """A 400 names the setting that enables topics, or what is wrong with the settings."""
    method = "POST" if end == "/export" else "GET"
    disabled = client.request(method, f"/api/v1/tenants/plain/topic-attributions{end}")
    assert kind_of(disabled, 400) == "topic-attribution-unavailable"
    assert "plugin_settings.topic_attribution.enabled" in detail_of(disabled, 400)
    wrong = client.request(method, f"/api/v1/tenants/wrong/topic-attributions{end}")
    assert "missing_metrics_behavior" in detail_of(wrong, 400)


def test_topics_by_their_tags(scratch: Client) -> None:
    """``group_by=tag:<key>`` and ``tag:<key>=…`` use the tags of the topic as a resource; others are ``UNTAGGED``."""
    base = "/api/v1/tenants/scratch"
    rows = scratch.all_items(f"{base}/topic-attributions")
    row = rows[0]
    topic = f"{row['cluster_resource_id']}:topic:{row['topic_name']}"
    assert (
        scratch.post(
            scratch.tag_path("scratch", "resource", topic), json={"tag_key": "team", "tag_value": "red"}
        ).status_code
        == 201
    )
    red = those(rows, cluster_resource_id=row["cluster_resource_id"], topic_name=row["topic_name"])
    answer = scratch.answer(f"{base}/topic-attributions/aggregate", group_by="tag:team", time_bucket="month")
    sums = [each["total_amount"] for each in answer["buckets"] if each["dimensions"]["tag:team"] == "red"]
    assert sum(map(total_of, sums)) == total_of(shown(total(red)))
    only = scratch.answer(f"{base}/topic-attributions/aggregate", **{"tag:team": "red"})
    assert (only["total_amount"], only["total_rows"]) == (shown(total(red)), len(red))
    others = scratch.answer(f"{base}/topic-attributions/aggregate", **{"tag:team": "UNTAGGED"})
    assert others["total_rows"] == len(rows) - len(red)


def total_of(text: str) -> Any:
    """Return an amount as a number that can be added exactly."""
    return total([{"amount": text}])


def test_times_are_instants(everything: Everything) -> None:
    """Daily rows have the time 00:00 UTC."""
    assert {datetime.fromisoformat(row["timestamp"]).hour for row in everything.topics} == {0}
