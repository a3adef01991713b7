"""SPEC §4 «Billing and chargebacks»: filters alone and combined, compared with the whole list."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.contract.problems import complaints, detail_of, kind_of
from tests.contract.records import Client, Everything, Record, shown, those, total, typical, when

ISSUE_KEY = ("ecosystem", "resource_id", "product_type", "identity_id", "allocation_detail")
ISSUES = {
    "NO_METRICS_LOCATED",
    "METRICS_UNAVAILABLE",
    "NO_USAGE_FOR_ACTIVE_IDENTITIES",
    "NO_OWNER_LOCATED",
    "NO_ACTIVE_IDENTITIES_LOCATED",
    "NO_IDENTITIES_LOCATED",
    "UNKNOWN_PRODUCT_TYPE",
}
#: The fields of a dimension, except its id.
DIMENSION = (
    *("ecosystem", "tenant_id", "resource_id", "product_category", "product_type"),
    *("identity_id", "cost_type", "allocation_method", "allocation_detail"),
)
FILTERS = ("identity_id", "product_type", "resource_id", "cost_type")
ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Kiritimati")


def in_range(rows: list[Record], first: str, last: str, zone: str) -> list[Record]:
    """Return the rows whose day in the time zone lies between two days, both included."""
    return [row for row in rows if first <= str(when(row).astimezone(ZoneInfo(zone)).date()) <= last]


def issues_of(rows: list[Record]) -> list[Record]:
    """Return the expected allocation issues of some chargeback rows."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for row in rows:
        if row["allocation_detail"] in ISSUES:
            groups.setdefault(tuple(row[name] for name in ISSUE_KEY), []).append(row)
    return [
        dict(zip(ISSUE_KEY, key, strict=True))
        | {
            "row_count": len(group),
            "usage_cost": shown(total(those(group, cost_type="usage"))),
            "shared_cost": shown(total(those(group, cost_type="shared"))),
            "total_cost": shown(total(group)),
        }
        for key, group in groups.items()
    ]


def by_key(issues: list[Record]) -> list[Record]:
    """Return issues in a fixed order."""
    return sorted(issues, key=lambda issue: [issue[name] for name in ISSUE_KEY])


def test_billing_lines(everything: Everything) -> None:
    """Each line has exactly the fields of the contract; lines are ordered by time and belong to the tenant."""
    assert everything.billing
    assert [line["timestamp"] for line in everything.billing] == sorted(
        line["timestamp"] for line in everything.billing
    )
    assert {(line["ecosystem"], line["tenant_id"]) for line in everything.billing} == {("confluent_cloud", "acme")}


def test_chargeback_rows(everything: Everything) -> None:
    """Each row has exactly the fields of the contract; rows are ordered by time, and none is zero."""
    rows = everything.chargebacks
    assert [row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows)
    assert {(row["ecosystem"], row["tenant_id"]) for row in rows} == {("confluent_cloud", "acme")}
    assert {row["cost_type"] for row in rows} == {"usage", "shared"}
    assert not [row for row in rows if Decimal(row["amount"]) == 0]
    assert "UNALLOCATED" in {row["identity_id"] for row in rows}


@pytest.mark.parametrize("filters", [("product_type",), ("resource_id",), ("product_type", "resource_id")])
def test_filters_of_billing(client: Client, everything: Everything, filters: tuple[str, ...]) -> None:
    """``product_type`` and ``resource_id`` work alone and together."""
    line = next(line for line in everything.billing if line["product_type"] == "KAFKA_STORAGE")
    asked = {name: line[name] for name in filters}
    expected = those(everything.billing, **asked)
    assert 0 < len(expected) < len(everything.billing)
    assert client.all_items(f"{everything.base}/billing", page_size=11, **asked) == expected


@pytest.mark.parametrize(
    "filters", [some for size in (1, 2, 3, 4) for some in combinations(FILTERS, size)], ids="+".join
)
@pytest.mark.parametrize("name", ["chargebacks", "chargebacks/allocation-issues"])
def test_filters_of_chargebacks(client: Client, everything: Everything, name: str, filters: tuple[str, ...]) -> None:
    """``identity_id``, ``product_type``, ``resource_id`` and ``cost_type`` work in every combination."""
    row = those(everything.chargebacks, identity_id="UNALLOCATED", allocation_detail="NO_OWNER_LOCATED")[0]
    asked = {name: row[name] for name in filters}
    expected = those(everything.chargebacks, **asked)
    assert 0 < len(expected) < len(everything.chargebacks)
    found = client.all_items(f"{everything.base}/{name}", page_size=101, **asked)
    if name == "chargebacks":
        assert found == expected
    else:
        assert by_key(found) == by_key(issues_of(expected))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("first", "last"), [(0, 0), (3, 9), (14, 14), (-3, 20)])
def test_ranges_in_zones(client: Client, everything: Everything, zone: str, first: int, last: int) -> None:
    """A range has whole days in the time zone, both ends included, for lines, rows and issues."""
    begin = date.fromisoformat(everything.days[0])
    start, end = str(begin + timedelta(days=first)), str(begin + timedelta(days=last))
    asked = {"start_date": start, "end_date": end, "timezone": zone}
    assert client.all_items(f"{everything.base}/billing", **asked) == in_range(everything.billing, start, end, zone)
    rows = in_range(everything.chargebacks, start, end, zone)
    assert client.all_items(f"{everything.base}/chargebacks", **asked) == rows
    issues = client.all_items(f"{everything.base}/chargebacks/allocation-issues", **asked)
    assert by_key(issues) == by_key(issues_of(rows))


def test_a_filter_and_a_range_in_a_zone(client: Client, everything: Everything) -> None:
    """Ranges, zones, filters and small pages can be combined."""
    day, zone = everything.days[6], "America/Los_Angeles"
    identity = typical(everything.chargebacks, "identity_id")
    rows = those(in_range(everything.chargebacks, day, day, zone), identity_id=identity, cost_type="usage")
    assert rows
    asked = {"start_date": day, "end_date": day, "timezone": zone, "identity_id": identity, "cost_type": "usage"}
    assert client.all_items(f"{everything.base}/chargebacks", page_size=2, **asked) == rows


def test_allocation_issues(client: Client, everything: Everything) -> None:
    """Issues are sums of the rows whose detail is a failure; each is the sum of usage and shared cost."""
    assert by_key(everything.issues) == by_key(issues_of(everything.chargebacks))
    for issue in everything.issues:
        assert Decimal(issue["usage_cost"]) + Decimal(issue["shared_cost"]) == Decimal(issue["total_cost"])


def test_unknown_values_find_nothing(client: Client, everything: Everything) -> None:
    """An unknown id or type returns an empty list, and so does text with special characters."""
    for name in ("identity_id", "product_type", "resource_id", "tag_key"):
        for value in ("nobody", "x" * {"tag_key": 63, "resource_id": 512}.get(name, 255)):
            for path in ("chargebacks", "chargebacks/allocation-issues"):
                assert client.all_items(f"{everything.base}/{path}", **{name: value}) == []
    for value in ("' OR 1=1 --", "%", "*", "\\", "$files", "ü", "🙂"):
        assert client.all_items(f"{everything.base}/chargebacks", identity_id=value) == []
        assert client.all_items(f"{everything.base}/billing", resource_id=value) == []


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"cost_type": "USAGE"}, ["cost_type"]),
        ({"cost_type": ""}, ["cost_type"]),
        ({"identity_id": ""}, ["identity_id"]),
        ({"identity_id": "x" * 256}, ["identity_id"]),
        ({"resource_id": "a\x00b"}, ["resource_id"]),
        ({"resource_id": "x" * 513}, ["resource_id"]),
        ({"tag_value": "x"}, ["tag_value"]),
        ({"tag_key": "no spaces"}, ["tag_key"]),
        ({"tag_key": "x" * 64}, ["tag_key"]),
        ({"tag_key": ""}, ["tag_key"]),
        ({"tag:no spaces": "x"}, ["tag:no spaces"]),
        ({"not.cost_type": "USAGE", "not.group_by": "x"}, ["not.cost_type", "not.group_by"]),
        ({"cost_type": ["usage", "x"], "not.tag:": "x"}, ["cost_type", "not.tag:"]),
        ({"tags": "x", "excluded": "x", "not.tags": "x"}, ["excluded", "not.tags", "tags"]),
        ({"period": "fortnight"}, ["period"]),
        ({"period": "7d", "start_date": "2026-01-01"}, ["period"]),
        ({"group_by": "identity_id"}, ["group_by"]),
        ({"cost_type": "x", "tag_value": "x", "page": 0}, ["cost_type", "page", "tag_value"]),
    ],
)
@pytest.mark.parametrize("name", ["chargebacks", "chargebacks/allocation-issues"])
def test_what_chargebacks_refuse(
    client: Client, everything: Everything, name: str, asked: dict[str, Any], named: list[str]
) -> None:
    """A 400 names the parameter; ``tag_value`` requires ``tag_key``."""
    assert complaints(client.get(f"{everything.base}/{name}", params=asked)) == named


def test_what_billing_refuses(client: Client, everything: Everything) -> None:
    """Billing does not accept the filters of chargebacks."""
    for name in ("identity_id", "cost_type", "tag_key", "currency"):
        assert complaints(client.get(f"{everything.base}/billing", params={name: "usage"})) == [name]
    assert complaints(client.get(f"{everything.base}/billing", params={"product_type": ""})) == ["product_type"]


def test_dates(client: Client, everything: Everything) -> None:
    """``{dates: [...]}`` has the distinct days with chargebacks, in order, whatever the range."""
    answer = client.answer(f"{everything.base}/chargebacks/dates")
    assert answer["dates"] == everything.days
    assert client.answer(f"{everything.base}/chargebacks/dates", end_date="2020-01-01", page_size=1) == answer


def test_one_dimension(client: Client, everything: Everything) -> None:
    """The response has the fields that identify a dimension, without tags, time, amount or metadata."""
    rows = {row["dimension_id"]: row for row in everything.chargebacks}
    for identifier in [*rows][::10]:
        answer = client.answer(f"{everything.base}/chargebacks/{identifier}")
        assert answer == {name: rows[identifier][name] for name in ("dimension_id", *DIMENSION)}


def test_dimensions_differ(everything: Everything) -> None:
    """Rows have the same id if and only if they have the same dimension."""
    seen: dict[int, tuple[Any, ...]] = {}
    for row in everything.chargebacks:
        dimension = tuple(row[name] for name in DIMENSION)
        assert seen.setdefault(row["dimension_id"], dimension) == dimension
    assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize(
    "part", ["0", "1", "9007199254740992", "9999999999999999", "abc", "-1", "1.5", "1e3", "9" * 50, "٣", "%00"]
)
def test_unknown_dimensions(client: Client, everything: Everything, part: str) -> None:
    """An unknown or malformed id is a 404."""
    assert kind_of(client.get(f"{everything.base}/chargebacks/{part}"), 404) == "not-found"


def test_lines_and_rows_agree_line_by_line(everything: Everything) -> None:
    """The rows of each billing line sum to its cost."""
    charged: dict[tuple[str, str], Decimal] = {}
    for row in everything.chargebacks:
        key = (row["timestamp"], row["metadata"]["line_id"])
        charged[key] = charged.get(key, Decimal(0)) + Decimal(row["amount"])
    billed: dict[tuple[str, str], Decimal] = {}
    for line in everything.billing:
        if cost := Decimal(line["total_cost"]):
            billed[line["timestamp"], line["metadata"]["line_id"]] = cost
    assert charged == billed


LISTS: list[Callable[[Everything], list[Record]]] = [lambda all_: all_.billing, lambda all_: all_.chargebacks]


@pytest.mark.extensive
def test_pages_are_stable(client: Client, everything: Everything) -> None:
    """The list is the same for every page size, and each time it is read."""
    for name, whole in (("billing", everything.billing), ("chargebacks", everything.chargebacks)):
        for size in (97, 1000):
            assert client.all_items(f"{everything.base}/{name}", page_size=size) == whole


def test_times_are_utc(everything: Everything) -> None:
    """Daily lines are at 00:00 UTC."""
    assert {datetime.fromisoformat(line["timestamp"]).hour for line in everything.billing} == {0}


def test_malformed_parts_say_so(client: Client, everything: Everything) -> None:
    """The detail of a 404 names the missing resource."""
    assert "abc" in detail_of(client.get(f"{everything.base}/chargebacks/abc"), 404)


COLUMNS = ("identity_id", "resource_id", "product_type", "product_category", "cost_type", "allocation_detail")


@pytest.mark.extensive
@pytest.mark.parametrize("name", COLUMNS)
def test_filters_have_several_values_and_exclude(client: Client, everything: Everything, name: str) -> None:
    """A repeated filter matches any of its values, and with ``not.`` none of them, both in lists and in sums."""
    path = f"{everything.base}/chargebacks"
    values = sorted({row[name] for row in everything.chargebacks})[:2]
    among = [row for row in everything.chargebacks if row[name] in values]
    assert client.all_items(path, **{name: values}) == among
    others = [row for row in everything.chargebacks if row[name] not in values]
    assert client.all_items(path, **{f"not.{name}": values}) == others
    sums = [client.answer(f"{path}/aggregate", **{key: values})["total_amount"] for key in (name, f"not.{name}")]
    assert sums == [shown(total(among)), shown(total(others))]


def test_filters_by_environment(client: Client, everything: Everything) -> None:
    """An empty value selects costs without an environment."""
    path = f"{everything.base}/chargebacks"
    nowhere = [row for row in everything.chargebacks if "environment_id" not in row["metadata"]]
    assert client.all_items(path, environment_id="") == nowhere
    assert len(client.all_items(path, **{"not.environment_id": ""})) == len(everything.chargebacks) - len(nowhere)
    lines = [line for line in everything.billing if "environment_id" not in line["metadata"]]
    assert client.all_items(f"{everything.base}/billing", environment_id="") == lines


@pytest.mark.extensive
def test_filters_by_tags(client: Client, everything: Everything) -> None:
    """Rows are filtered by the tags that they show; `UNTAGGED` matches rows without the tag."""
    path = f"{everything.base}/chargebacks"
    teams = [row["tags"].get("team", "UNTAGGED") for row in everything.chargebacks]
    for wanted in ({"payments"}, {"UNTAGGED"}, {"payments", "UNTAGGED"}):
        rows = [row for row, team in zip(everything.chargebacks, teams, strict=True) if team in wanted]
        assert client.all_items(path, **{"tag:team": sorted(wanted)}) == rows
        assert client.all_items(path, **{"tag:team": ",".join(wanted)}) == rows
        others = [row for row, team in zip(everything.chargebacks, teams, strict=True) if team not in wanted]
        assert client.all_items(path, **{"not.tag:team": sorted(wanted)}) == others


def test_a_named_period(client: Client, everything: Everything) -> None:
    """A named period ends with the last calculated day."""
    last = everything.days[-3:]
    rows = [row for row in everything.chargebacks if row["timestamp"][:10] in last]
    assert client.all_items(f"{everything.base}/chargebacks", period="3d") == rows
