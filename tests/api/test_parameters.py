"""All problems of a request are reported together, as a 400."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chargeback.api.app import create_app
from chargeback.api.parameters import MOST_MISTAKES, SentBody, read_body
from chargeback.api.problems import InvalidRequest
from chargeback.api.routes.tags import MAX_ITEMS, BulkTags
from tests.api.conftest import ACME, fill, parameters_of
from tests.support.clock import NOW
from tests.support.facts import tenant_store
from tests.support.serving import client_of, services_for

JSON = {"content-type": "application/json"}
GETS = [
    "/api/v1/readiness",
    "/api/v1/tenants",
    f"{ACME}/status",
    f"{ACME}/billing",
    f"{ACME}/chargebacks",
    f"{ACME}/chargebacks/dates",
    f"{ACME}/chargebacks/allocation-issues",
    f"{ACME}/chargebacks/aggregate",
    f"{ACME}/resources",
    f"{ACME}/identities",
    f"{ACME}/inventory/summary",
    f"{ACME}/entities/identity/UNALLOCATED/tags",
    f"{ACME}/tags",
    f"{ACME}/tags/keys",
    f"{ACME}/tags/keys/team/values",
    f"{ACME}/pipeline/status",
]


@pytest.mark.parametrize("path", GETS)
def test_the_common_parameters_are_accepted_and_checked_everywhere(client: httpx.Client, path: str) -> None:
    """Common parameters are accepted everywhere, even if unused; invalid values are refused."""
    good: dict[str, str | int] = {
        "page": 1,
        "page_size": 1000,
        "start_date": "2026-01-01",
        "end_date": "2026-01-02",
        "timezone": "Asia/Tokyo",
    }
    assert client.get(path, params=good).status_code == 200
    bad: dict[str, str | int] = {
        "page": 0,
        "page_size": 1001,
        "start_date": "soon",
        "end_date": "2026-02-30",
        "timezone": "Mars/Base",
    }
    assert parameters_of(client.get(path, params=bad)) == sorted(bad)


@pytest.mark.parametrize("path", [*GETS, "/health"])
def test_an_unknown_parameter_is_refused(client: httpx.Client, path: str) -> None:
    """An unknown parameter is refused, so that a misspelt filter is not ignored."""
    assert parameters_of(client.get(path, params={"identiy_id": "x"})) == ["identiy_id"]


@pytest.mark.parametrize(
    ("path", "query", "wrong"),
    [
        ("chargebacks", "page=1&page=2", ["page"]),
        ("chargebacks", "page=x&page_size=", ["page", "page_size"]),
        (
            "chargebacks",
            "tag_value=x&page=0&start_date=2026-02-01&end_date=2026-01-01",
            ["page", "start_date", "tag_value"],
        ),
        ("chargebacks", "start_date=2999-01-01", ["start_date"]),
        ("chargebacks", "start_date=20260101", ["start_date"]),
        ("chargebacks", "start_date=1767225600", ["start_date"]),
        ("chargebacks", "cost_type=free", ["cost_type"]),
        ("chargebacks", "identity_id=", ["identity_id"]),
        ("chargebacks", "identity_id=%00", ["identity_id"]),
        ("chargebacks", f"identity_id={'x' * 256}", ["identity_id"]),
        ("chargebacks", f"resource_id={'x' * 513}", ["resource_id"]),
        ("chargebacks", "tag_key=a%20b", ["tag_key"]),
        ("chargebacks", "timezone=../../etc/passwd", ["timezone"]),
        ("chargebacks", "timezone=%00", ["timezone"]),
        ("chargebacks/allocation-issues", "tag_value=x", ["tag_value"]),
        ("chargebacks/aggregate", "group_by=nonsense&time_bucket=year", ["group_by", "time_bucket"]),
        ("chargebacks/aggregate", "group_by=", ["group_by"]),
        ("chargebacks/aggregate", "group_by=tag:", ["group_by"]),
        ("chargebacks/aggregate", "tag:a%20b=x&tag:ok=", ["tag:a b", "tag:ok"]),
        ("chargebacks/aggregate", "tags=x&tag_key=x", ["tag_key", "tags"]),
        ("resources", "status=gone&sort_order=up", ["sort_order", "status"]),
        (
            "resources",
            "active_at=2026-01-01T00:00:00Z&period_start=2026-01-01T00:00:00Z",
            ["active_at", "period_start"],
        ),
        ("resources", "period_end=2026-01-01T00:00:00Z&tag_value=x", ["period_end", "tag_value"]),
        ("resources", "period_start=2026-01-02T00:00:00Z&period_end=2026-01-01T00:00:00Z", ["period_start"]),
        ("resources", "active_at=yesterday", ["active_at"]),
        ("resources", "active_at=0001-01-01T00:00:00%2B14:00", ["active_at"]),
        ("identities", "status=active", ["status"]),
        ("tags", "entity_type=team&tag_key=%25", ["entity_type", "tag_key"]),
    ],
)
def test_what_is_refused(client: httpx.Client, path: str, query: str, wrong: list[str]) -> None:
    """Each invalid value is a 400 that names its parameter."""
    assert parameters_of(client.get(f"{ACME}/{path}?{query}")) == wrong


@pytest.mark.parametrize(
    "query",
    [
        "start_date=0001-01-01&end_date=9999-12-31",
        "start_date=0001-01-01&timezone=Asia/Tokyo",
        "end_date=9999-12-31&timezone=America/Los_Angeles",
        "end_date=0001-01-05",
        f"page={10**30}",
        "identity_id=%FF%FE",
    ],
)
def test_extremes_are_no_accidents(client: httpx.Client, query: str) -> None:
    """Dates at the end of the calendar and very high page numbers are valid."""
    assert client.get(f"{ACME}/chargebacks?{query}").status_code == 200
    assert client.get(f"{ACME}/status?{query}").status_code == (200 if "identity" not in query else 400)


@pytest.mark.parametrize(
    ("path", "content", "wrong"),
    [
        ("export", b"{", ["body"]),
        ("export", b"[]", ["body"]),
        ("export", b"\xff", ["body"]),
        ("export", b"[" * 100_000, ["body"]),
        ("export", b'{"columns": []}', ["columns"]),
        ("export", b'{"columns": ["nope", "amount"]}', ["columns[0]"]),
        ("export", b'{"columns": ["amount", "amount"]}', ["columns"]),
        (
            "export",
            b'{"filters": {"tag": "x"}, "timezone": "x", "start_date": 20260101}',
            ["filters.tag", "start_date", "timezone"],
        ),
        ("export", b'{"start_date": "2026-02-01", "end_date": "2026-01-01", "page": 1}', ["page", "start_date"]),
        ("tags/bulk", b"", ["body"]),
        ("tags/bulk", b"{}", ["items"]),
        ("tags/bulk", b'{"items": []}', ["items"]),
        (
            "tags/bulk",
            b'{"items": [{"entity_type": "x", "entity_id": "\\u0000"}], "override_existing": "yes"}',
            [
                "items[0].entity_id",
                "items[0].entity_type",
                "items[0].tag_key",
                "items[0].tag_value",
                "override_existing",
            ],
        ),
        ("tags/bulk-by-filter", b'{"product_type": "x"}', ["display_name", "product_type", "tag_key"]),
        (
            "pipeline/run",
            b'{"start_date": "2026-02-01", "end_date": "2026-01-01", "recalculate": 1}',
            ["recalculate", "start_date"],
        ),
        ("entities/resource/x/tags", b'{"tag_key": "-", "tag_value": ""}', ["tag_key", "tag_value"]),
        ("entities/resource/x/tags", b'{"tag_key": "k", "tag_value": "\\ud800"}', ["body"]),
    ],
)
def test_bodies_that_are_refused(client: httpx.Client, path: str, content: bytes, wrong: list[str]) -> None:
    """Malformed JSON and every invalid field are a 400."""
    assert parameters_of(client.post(f"{ACME}/{path}", content=content, headers=JSON)) == wrong


def test_query_and_body_are_reported_together(client: httpx.Client) -> None:
    """Unknown query parameters of a POST are reported, too."""
    response = client.post(f"{ACME}/export?page=1", json={"columns": []})
    assert parameters_of(response) == ["columns", "page"]


@pytest.mark.parametrize("declared", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_must_be_declared_as_json(client: httpx.Client, declared: str | None) -> None:
    """Bodies of other types, or without a type, are refused, because any web page can send them without a preflight
    request."""
    headers = {"content-type": declared} if declared else {}
    response = client.post(f"{ACME}/export?page=1", content=b'{"columns": ["amount"]}', headers=headers)
    assert parameters_of(response) == ["Content-Type", "page"]


@pytest.mark.parametrize("declared", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_spellings_of_json(client: httpx.Client, declared: str) -> None:
    """The type may have parameters and capital letters."""
    headers = {"content-type": declared}
    response = client.post(f"{ACME}/export", content=b'{"columns": ["amount"]}', headers=headers)
    assert response.status_code == 200


def test_no_body_needs_no_type(client: httpx.Client) -> None:
    """If the body is optional and missing, its type does not matter."""
    for headers in ({}, {"content-type": "text/plain"}):
        assert client.post(f"{ACME}/export", headers=headers).status_code == 200


def test_a_thousand_mistakes_are_listed_and_no_more() -> None:
    """Up to a thousand mistakes are listed; beyond that they are only counted, to limit the time. Too many items are
    one mistake."""

    def _mistakes(items: int) -> list[str]:
        sent = SentBody(b'{"items":[' + b",".join([b"{}"] * items) + b"]}", "application/json")
        with pytest.raises(InvalidRequest) as refused:
            read_body(BulkTags, (), sent, NOW, optional=False)
        return [f"{each.parameter}: {each.message}" for each in refused.value.errors]

    assert len(_mistakes(250)) == MOST_MISTAKES
    assert _mistakes(300) == ["request: has 1,200 mistakes, too many to list; send a part of it to see them"]
    assert BulkTags.model_json_schema()["properties"]["items"]["maxItems"] == MAX_ITEMS


FIRST, LAST = "0001-01-01", "9999-12-31"
#: Required parameters besides dates, and the parts of paths.
NEEDED = {"line_id": "none", "identity_id": "sa-1", "topic_name": "none", "by": "identity_id", "q": "x"}
PARTS = {
    "tenant_name": "acme",
    "entity_type": "identity",
    "entity_id": "sa-1",
    "tag_key": "team",
    "dimension_id": "1",
    "category_key": "none",
    "period": "2026-01",
    "view_id": "1",
    "finding_id": "0123456789abcdef",
    "simulation_id": "0" * 64,
    "shadow_name": "next",
    "budget_id": "all",
    "note_id": "1",
    "sink_name": "desk",
    "contract_id": "provider",
}


@pytest.mark.parametrize("day", [FIRST, LAST])
def test_a_day_at_the_end_of_the_calendar(client: httpx.Client, day: str) -> None:
    """The first and last days of the calendar are like any day that is not calculated."""
    key = {"date": day, "line_id": "none", "identity_id": "sa-1"}
    response = client.get(f"{ACME}/chargebacks/explain", params=key)
    assert (response.status_code, response.json()["detail"]) == (404, f"The day {day} is not calculated.")
    assert client.get(f"{ACME}/days/{day}/revisions").json() == {"date": day, "items": []}


@pytest.mark.drill
def test_the_ends_of_the_calendar(tmp_path: Path) -> None:
    """Every GET handles the first and the last date and time of the calendar, in the time zones where they overflow
    first."""
    seen = 0
    with tenant_store(tmp_path) as store:
        fill(store)
        services = services_for(store)
        operations = create_app(services).openapi()["paths"]
        with client_of(services) as client:
            files = {f"{path}.csv": each for path, each in operations.items() if "text/csv" in str(each.get("get"))}
            for path, operation in (operations | files).items():
                for sent in _extreme_requests(path, operation.get("get", {})):
                    assert client.send(client.build_request("GET", **sent)).status_code < 500, sent
                    seen += 1
    assert seen > 500


def _extreme_requests(path: str, operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield requests with each date at the first and the last day, and with all dates together."""
    parameters = {each["name"]: each for each in operation.get("parameters", ())}
    dated = {name for name, each in parameters.items() if _is_date(each["schema"])}
    if not dated:
        return
    needed = {name: value for name, value in NEEDED.items() if parameters.get(name, {}).get("required")}
    for day, zone in ((FIRST, "Pacific/Kiritimati"), (LAST, "Etc/GMT+12")):
        values = {name: day if _is_date(parameters[name]["schema"]) == "date" else f"{day}T23:59:59Z" for name in dated}
        in_path = {name: value for name, value in values.items() if parameters[name]["in"] == "path"}
        always = {name: value for name, value in values.items() if parameters[name].get("required")}
        query = needed | ({"timezone": zone} if "timezone" in parameters else {})
        for some in ({}, *({name: values[name]} for name in sorted(dated)), values):
            sent = {name: value for name, value in (query | always | some).items() if name not in in_path}
            yield {"url": path.format(**PARTS | in_path), "params": sent}


def _is_date(schema: dict[str, Any]) -> str | None:
    formats = (each.get("format") for each in (schema, *schema.get("anyOf", ())))
    return next((each for each in formats if each in {"date", "date-time"}), None)
