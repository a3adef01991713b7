"""SPEC §4 «Chargeback aggregation»: every parameter, compared with sums of the plain list."""

from __future__ import annotations

import csv
import io
from datetime import date, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, shown, those, total, typical, when
from tests.support.facts import Share, days_from, tenant_store, write_shares
from tests.support.serving import client_of, services_for

COLUMNS = (
    "identity_id",
    "resource_id",
    "product_type",
    "product_category",
    "cost_type",
    "allocation_method",
    "environment_id",
)
FILTERS = ("identity_id", "product_type", "resource_id", "cost_type")
UNITS = ("hour", "day", "week", "month")
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia")


def column(row: Record, name: str) -> str | None:
    """Return the value of a row in a column that can be grouped by."""
    value: str | None = row["metadata"].get("environment_id") if name == "environment_id" else row[name]
    return value


def bucket(moment: datetime, unit: str) -> str:
    """Return the name of the time bucket that contains a local time."""
    day: date = moment.date()
    match unit:
        case "hour":
            return moment.replace(minute=0, second=0, microsecond=0).isoformat()
        case "week":
            day -= timedelta(days=day.weekday())
        case "month":
            day = day.replace(day=1)
    return str(day)


def summed(rows: list[Record], by: tuple[str, ...], unit: str, zone: str) -> Record:
    """Return the expected aggregate of some rows."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        time = bucket(when(row).astimezone(ZoneInfo(zone)), unit)
        groups.setdefault((time, *(column(row, name) for name in by)), []).append(row)
    ordered = sorted(groups.items(), key=lambda item: [(part is not None, part or "") for part in item[0]])
    buckets = [
        {"dimensions": dict(zip(by, key[1:], strict=True)), "time_bucket": key[0]}
        | _amounts(group)
        | {"row_count": len(group)}
        for key, group in ordered
    ]
    return {"buckets": buckets, "currency": "USD"} | _amounts(rows) | {"total_rows": len(rows)}


def _amounts(rows: list[Record]) -> dict[str, str]:
    return {
        "total_amount": shown(total(rows)),
        "usage_amount": shown(total(those(rows, cost_type="usage"))),
        "shared_amount": shown(total(those(rows, cost_type="shared"))),
    }


@pytest.fixture
def path(everything: Everything) -> str:
    """Return the path of the aggregate."""
    return f"{everything.base}/chargebacks/aggregate"


def test_defaults(client: Client, everything: Everything, path: str) -> None:
    """By default, sums are by identity and day, over the lookback, in UTC."""
    answer = client.answer(path)
    assert answer == summed(everything.chargebacks, ("identity_id",), "day", "UTC")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", ZONES)
def test_units_of_time_in_zones(client: Client, everything: Everything, path: str, unit: str, zone: str) -> None:
    """Buckets follow the calendar of the time zone; weeks begin on Monday, months on the first."""
    first, last = "2000-01-01", "2999-01-01"
    answer = client.answer(path, time_bucket=unit, timezone=zone, start_date=first, end_date=last)
    assert answer == summed(everything.chargebacks, ("identity_id",), unit, zone)


@pytest.mark.parametrize("by", [*((name,) for name in COLUMNS), *list(combinations(COLUMNS, 2))[::4]], ids="+".join)
def test_columns(client: Client, everything: Everything, path: str, by: tuple[str, ...]) -> None:
    """Sums can be grouped by every column and by pairs of columns."""
    answer = client.answer(path, group_by=by, time_bucket="week")
    assert answer == summed(everything.chargebacks, by, "week", "UTC")


def test_names_of_ids(client: Client, everything: Everything, path: str) -> None:
    """On request, the response has the names of ids in the inventory; columns that are no ids have none."""
    answer = client.answer(path, group_by=["identity_id", "product_type"], time_bucket="month", names="true")
    names = answer.pop("names")
    assert answer == summed(everything.chargebacks, ("identity_id", "product_type"), "month", "UTC")
    listed = {row["identity_id"]: row["display_name"] for row in client.all_items(f"{everything.base}/identities")}
    charged = {row["identity_id"] for row in everything.chargebacks}
    assert names == {"identity_id": {each: listed[each] for each in charged if listed[each] is not None}}
    assert names["identity_id"]


@pytest.mark.parametrize("names", [False, True])
def test_sums_as_a_file(client: Client, everything: Everything, path: str, names: bool) -> None:
    """The file has one line for each bucket, in the same order, with names next to their ids."""
    asked = {"group_by": ["environment_id", "tag:team"], "time_bucket": "month", "names": str(names).lower()}
    answer, file = client.answer(path, **asked), client.get(f"{path}.csv", params=asked)
    assert file.headers["content-type"].startswith("text/csv")
    assert file.headers["content-disposition"] == "attachment; filename=chargebacks_aggregate.csv"
    assert client.get(f"{path}.csv", params=asked, headers={"If-None-Match": file.headers["etag"]}).status_code == 304
    lines = [
        {"time_bucket": bucket["time_bucket"]}
        | {name: value or "" for name, value in bucket["dimensions"].items()}
        | (
            {"environment_name": answer["names"]["environment_id"].get(bucket["dimensions"]["environment_id"], "")}
            if names
            else {}
        )
        | {name: bucket[name] for name in ("total_amount", "usage_amount", "shared_amount")}
        | {"row_count": str(bucket["row_count"])}
        for bucket in answer["buckets"]
    ]
    assert list(csv.DictReader(io.StringIO(file.text, newline=""))) == lines
    assert complaints(client.get(f"{path}.csv", params={"group_by": "timestamp"})) == ["group_by"]


def test_all_columns_at_once(client: Client, everything: Everything, path: str) -> None:
    """``group_by`` may be repeated; columns keep their order, and a repeated column counts once."""
    answer = client.answer(path, group_by=[*COLUMNS, "identity_id"], time_bucket="month")
    assert answer == summed(everything.chargebacks, COLUMNS, "month", "UTC")
    assert list(answer["buckets"][0]["dimensions"]) == list(COLUMNS)


@pytest.mark.parametrize("filters", [some for size in (1, 2, 4) for some in combinations(FILTERS, size)], ids="+".join)
def test_filters(client: Client, everything: Everything, path: str, filters: tuple[str, ...]) -> None:
    """Filters work alone and combined."""
    row = those(everything.chargebacks, identity_id=typical(everything.chargebacks, "identity_id"))[3]
    asked = {name: row[name] for name in filters}
    rows = those(everything.chargebacks, **asked)
    assert 0 < len(rows) < len(everything.chargebacks)
    answer = client.answer(path, group_by="product_type", **asked)
    assert answer == summed(rows, ("product_type",), "day", "UTC")


@pytest.mark.parametrize("zone", ZONES)
def test_ranges(client: Client, everything: Everything, path: str, zone: str) -> None:
    """A range has whole days in a time zone, both ends included."""
    first, last = everything.days[4], everything.days[8]
    rows = [row for row in everything.chargebacks if first <= str(when(row).astimezone(ZoneInfo(zone)).date()) <= last]
    answer = client.answer(path, start_date=first, end_date=last, timezone=zone, group_by="cost_type")
    assert answer == summed(rows, ("cost_type",), "day", zone)


def test_the_most_groups_there_can_be(client: Client, everything: Everything, path: str) -> None:
    """Twenty columns can be grouped by at once."""
    answer = client.answer(path, group_by=[f"tag:k{number}" for number in range(20)], time_bucket="month")
    assert answer["total_amount"] == shown(total(everything.chargebacks))


def test_nothing_sums_to_nothing(client: Client, path: str) -> None:
    """Without rows, there are no buckets and the totals are zero."""
    nothing = {"buckets": [], "currency": "USD", **_amounts([]), "total_rows": 0}
    assert client.answer(path, identity_id="nobody") == nothing
    assert client.answer(path, start_date="2001-01-01", end_date="2001-01-02") == nothing


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"group_by": "timestamp"}, ["group_by"]),
        ({"group_by": ["identity_id", "nonsense"]}, ["group_by"]),
        ({"group_by": ""}, ["group_by"]),
        ({"group_by": "identity_id,product_type"}, ["group_by"]),
        ({"group_by": "tag:"}, ["group_by"]),
        ({"group_by": "tag:no spaces"}, ["group_by"]),
        ({"group_by": [f"tag:k{number}" for number in range(21)]}, ["group_by"]),
        ({"time_bucket": "year"}, ["time_bucket"]),
        ({"time_bucket": ""}, ["time_bucket"]),
        ({"cost_type": "both"}, ["cost_type"]),
        ({"tag:": "x"}, ["tag:"]),
        ({"tag:no spaces": "x"}, ["tag:no spaces"]),
        ({"tag_key": "team"}, ["tag_key"]),
        ({"time_bucket": ["day", "hour"]}, ["time_bucket"]),
        ({"group_by": "x", "time_bucket": "x", "cost_type": "x"}, ["cost_type", "group_by", "time_bucket"]),
    ],
)
def test_what_is_refused(client: Client, path: str, asked: dict[str, Any], named: list[str]) -> None:
    """A 400 names every invalid parameter."""
    assert complaints(client.get(path, params=asked)) == named


def test_at_most_ten_thousand_buckets(own_folder: Path) -> None:
    """Beyond the limit, the oldest time buckets are left out and a header says so; the totals cover everything."""
    days = days_from(date(2026, 1, 1), 3)
    with tenant_store(own_folder) as store, client_of(services_for(store)) as client:
        write_shares(store.facts, [Share(day, f"sa-{number:04}", "0.5") for day in days for number in range(4_000)])
        asked = {"start_date": str(days[0]), "end_date": str(days[-1])}
        response = client.get("/api/v1/tenants/acme/chargebacks/aggregate", params=asked)
        answer = response.json()
        assert response.headers["x-buckets-truncated"] == "true"
        assert {each["time_bucket"] for each in answer["buckets"]} == {str(day) for day in days[1:]}
        assert len(answer["buckets"]) == 8_000
        assert (answer["total_amount"], answer["total_rows"]) == ("6000.00", 12_000)
        file = client.get("/api/v1/tenants/acme/chargebacks/aggregate.csv", params=asked)
        assert complaints(file) == ["group_by"]
        narrower = client.get("/api/v1/tenants/acme/chargebacks/aggregate", params=asked | {"end_date": str(days[1])})
        assert "x-buckets-truncated" not in narrower.headers
        assert len(narrower.json()["buckets"]) == 8_000


def test_the_whole_period_as_one_unit(client: Client, everything: Everything) -> None:
    """With ``time_bucket=all``, each group has one bucket with the sum of its days."""
    asked = {"period": "9d", "group_by": ["product_category", "cost_type"]}
    whole = client.answer(f"{everything.base}/chargebacks/aggregate", **asked, time_bucket="all")
    days = client.answer(f"{everything.base}/chargebacks/aggregate", **asked, time_bucket="day")
    sums: dict[tuple[Any, ...], list[Record]] = {}
    for each in days["buckets"]:
        sums.setdefault(tuple(each["dimensions"].values()), []).append(each)
    assert {tuple(each["dimensions"].values()): each["total_amount"] for each in whole["buckets"]} == {
        key: shown(total(each, "total_amount")) for key, each in sums.items()
    }
    assert {each["time_bucket"] for each in whole["buckets"]} == {days["buckets"][0]["time_bucket"]}
    assert len(whole["buckets"]) == len(sums)
    assert whole["total_amount"] == days["total_amount"]
