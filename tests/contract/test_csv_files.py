"""Every list and every sum as a file, compared with the JSON field by field."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record

PERIOD = {"period": "6d"}


def _items(client: Client, path: str, params: Record) -> list[Record]:
    return client.all_items(path, **params)


def _buckets(client: Client, path: str, params: Record) -> list[Record]:
    return [bucket | bucket["dimensions"] for bucket in client.answer(path, **params)["buckets"]]


def _topics(client: Client, path: str, params: Record) -> list[Record]:
    items: list[Record] = client.answer(path, **params, top=1000)["items"]
    return items


def _breakdowns(client: Client, path: str, params: Record) -> list[Record]:
    rows: list[Record] = []
    for breakdown in client.answer(path, **params)["breakdowns"]:
        rows += [{"by": breakdown["by"], "others": None} | item for item in breakdown["items"]]
        if (other := breakdown["other"]) is not None:
            missing = dict.fromkeys(("value", "name", "kind", "usage", "rows"))
            rows.append(missing | {"by": breakdown["by"], "others": other["count"]} | other)
    return rows


@pytest.mark.parametrize(
    ("path", "read", "params"),
    [
        ("resources", _items, {"sort_by": "display_name", "sort_order": "desc"}),
        ("resources", _items, {"resource_type": "kafka_cluster"}),
        ("identities", _items, {"search": "sa-"}),
        ("tags", _items, {}),
        ("chargebacks/allocation-issues", _items, PERIOD),
        ("chargebacks/aggregate", _buckets, PERIOD | {"group_by": ["environment_id", "tag:team"]}),
        ("chargebacks/aggregate", _buckets, {"identity_id": "nobody"}),
        ("topic-attributions/aggregate", _buckets, PERIOD | {"time_bucket": "week"}),
        ("topics", _topics, PERIOD),
        ("topics", _topics, PERIOD | {"compare": "none", "product_type": "KAFKA_STORAGE"}),
        ("costs", _breakdowns, PERIOD | {"by": ["identity_id", "cost_type"], "top": 3}),
    ],
)
def test_files_say_what_the_json_says(
    client: Client,
    everything: Everything,
    path: str,
    read: Callable[[Client, str, Record], list[Record]],
    params: Record,
) -> None:
    """The path and ``Accept`` give the same file, with the rows of the JSON in order."""
    url = f"{everything.base}/{path}"
    by_path = client.get(f"{url}.csv", params=params)
    assert by_path.status_code == 200, by_path.text
    assert client.get(url, params=params, headers={"Accept": "text/csv"}).content == by_path.content
    assert by_path.headers["content-type"].startswith("text/csv")
    assert by_path.headers["content-disposition"].startswith("attachment; filename=")
    rows = csv.DictReader(io.StringIO(by_path.text, newline=""), strict=True)
    assert list(rows) == [
        {name: _text(item[name]) for name in rows.fieldnames or ()} for item in read(client, url, params)
    ]


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    compact: str = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return compact


@pytest.mark.parametrize("path", ["resources", "tags", "costs", "topics", "chargebacks/aggregate"])
def test_what_is_refused(client: Client, everything: Everything, path: str) -> None:
    """A file refuses the same parameters as its endpoint."""
    wrong = {"nonsense": "1", "timezone": "Mars"}
    assert complaints(client.get(f"{everything.base}/{path}.csv", params=wrong)) == ["nonsense", "timezone"]
