"""Every failure is a problem document, without details that the caller may not see."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from chargeback.api.services import Services
from chargeback.categories.parsing import parse_category
from chargeback.model.billing import line_ids
from chargeback.model.inventory import Identity, Resource
from chargeback.reports.categories.editing import save_categories
from chargeback.store.control.days import save_day
from chargeback.store.control.inventory import ensure_known
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, LAST
from tests.contract.endpoints import ENDPOINTS, TENANT
from tests.support.clock import NOW
from tests.support.damage import DAMAGES, file_of
from tests.support.days import set_chargebacks
from tests.support.facts import Share, line, tenant_store, write_lines, write_shares
from tests.support.serving import client_of, services_for
from tests.support.topics import TopicShare, write_topic_shares


def _problem(response: httpx.Response, status: int, kind: str) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body.keys() >= {"type", "title", "status", "detail"}
    assert (body["status"], body["type"]) == (status, f"urn:chargeback:{kind}")
    return str(body["detail"])


@pytest.mark.parametrize("path", ["/nope", "/api/v1", "/api/v1/tenants/", f"{ACME}/nothing", f"{ACME}/chargebacks/"])
def test_unknown_paths(client: httpx.Client, path: str) -> None:
    """An unknown path is a 404, never a redirect."""
    _problem(client.get(path), 404, "not-found")


@pytest.mark.parametrize("path", ["billing", "chargebacks", "status", "resources", "pipeline/status", "tags"])
def test_unknown_tenants(client: httpx.Client, path: str) -> None:
    """The detail of the 404 names the tenant."""
    assert "nobody" in _problem(client.get(f"/api/v1/tenants/nobody/{path}"), 404, "not-found")


@pytest.mark.parametrize(
    "path",
    [
        "chargebacks/abc",
        "chargebacks/0",
        "chargebacks/-1",
        "chargebacks/9007199254740993",
        f"chargebacks/{'9' * 400}",
        "chargebacks/%00",
        "entities/team/x/tags",
        "entities/resource//tags",
        "entities/resource/%00/tags",
        f"entities/resource/{'x' * 513}/tags",
    ],
)
def test_malformed_path_parts(client: httpx.Client, path: str) -> None:
    """A malformed id in a path is a 404."""
    _problem(client.get(f"{ACME}/{path}"), 404, "not-found")


def test_wrong_methods(client: httpx.Client) -> None:
    """A 405 lists the allowed methods."""
    for path, allowed in (
        ("billing", "GET, HEAD"),
        ("entities/resource/a/b/tags", "GET, HEAD, POST"),
        ("entities/resource/a/tags/team", "DELETE, PATCH, PUT"),
    ):
        response = client.request("OPTIONS", f"{ACME}/{path}")
        assert allowed in _problem(response, 405, "method-not-allowed")
        assert response.headers["allow"] == allowed


def test_bodies_beyond_the_limit(client: httpx.Client) -> None:
    """A body that is too large is refused before it is all read."""
    _problem(client.post(f"{ACME}/tags/bulk", content=b" " * (9 * 2**20)), 413, "body-too-large")


def test_storage_that_cannot_be_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The response is a 503 with an id; only the log has the cause, and other tenants work."""
    with tenant_store(tmp_path) as good, tenant_store(tmp_path, name="broken") as broken:
        with broken.control.write() as connection:
            connection.execute(text("DROP TABLE days"))
            connection.execute(text("DROP TABLE tags"))
        with client_of(services_for(good, broken)) as client:
            detail = _problem(client.get("/api/v1/tenants/broken/status"), 503, "storage-unavailable")
            assert "no such table" not in detail
            (number,) = re.findall(r"under (\w+)", detail)
            assert number in caplog.text
            assert "no such table" in caplog.text
            _problem(client.get("/api/v1/tenants/broken/tags"), 503, "storage-unavailable")
            assert client.get(f"{ACME}/status").status_code == 200
            summaries = {each["tenant_name"]: each["dates_pending"] for each in client.get("/api/v1/tenants").json()}
            assert summaries == {"acme": 0, "broken": None}


def test_a_schema_that_is_not_this_versions(own_store: TenantStore, own_client: httpx.Client) -> None:
    """Reads and writes get a 503 with the reason; no tag is created."""
    with own_store.control.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    time.sleep(1.1)  # readers check the version at most once a second
    tag = {"tag_key": "team", "tag_value": "a"}
    for answer in (
        own_client.post(f"{ACME}/entities/identity/sa-1/tags", json=tag),
        own_client.get(f"{ACME}/tags"),
        own_client.get(f"{ACME}/chargebacks"),
    ):
        assert "written by a newer version" in _problem(answer, 503, "storage-unavailable")


#: The paths of a tenant whose responses contain no sums of amounts.
_WITHOUT_SUMS = {
    *(
        "",
        "/status",
        "/health",
        "/policies",
        "/policies/history",
        "/budgets",
        "/budgets.csv",
        "/budgets/{budget_id}",
        "/budgets/{budget_id}/status",
        "/notifications",
        "/contracts",
        "/contracts/{contract_id}",
        "/anomalies/marks",
        "/shadows",
        "/shadows/{shadow_name}",
        "/simulations",
        "/simulations/{simulation_id}",
        "/simulations/{simulation_id}/items.csv",
        "/usage",
        "/runs",
        "/audit",
        "/notes",
        "/notes/{note_id}",
        "/views",
        "/pipeline/status",
        "/pipeline/log",
        "/inventory/summary",
    ),
    *("/resources", "/resources.csv", "/identities", "/identities.csv", "/export/focus/metadata"),
    *("/tags", "/tags.csv", "/tags/keys", "/tags/keys/{tag_key}/values", "/entities/{entity_type}/{entity_id}/tags"),
    *("/billing", "/billing.csv", "/chargebacks", "/chargebacks.csv", "/chargebacks/{dimension_id}"),
    *("/chargebacks/dates", "/topic-attributions", "/topic-attributions.csv", "/topic-attributions/dates"),
    *("/chargebacks/explain", "/topic-attributions/explain", "/days/{date}/revisions", "/restatements"),
    *("/closings.jsonl", "/closings/signatures", "/events", "/adjustments", "/periods/{period}/invoices"),
    *(
        f"/export/focus/{name}{form}"
        for name in ("billing-periods", "invoice-details", "contract-commitments")
        for form in ("", ".csv")
    ),
    *(f"/cost-categories{rest}" for rest in ("", "/{category_key}", "/{category_key}/history")),
    *(f"/cost-categories/{{category_key}}/{rest}" for rest in ("rules.csv", "resolve")),
}


def test_sums_that_are_too_large(tmp_path: Path) -> None:
    """Every path that returns sums refuses sums of more than 26 digits in the same way; lists return the lines."""
    with tenant_store(tmp_path) as store:
        _fill_too_much(store)
        services = services_for(store)
        tenants = {name: replace(each, topic_attribution_status="enabled") for name, each in services.tenants.items()}
        days, month = {"start_date": str(LAST), "end_date": str(LAST)}, f"{LAST:%Y-%m}"
        others: dict[str, int] = {}
        with client_of(replace(services, tenants=tenants)) as client:
            for endpoint in ENDPOINTS:
                if endpoint.method != "GET" or not endpoint.path.startswith(TENANT):
                    continue
                params = days if "start_date" in endpoint.parameters else {}
                if needed := dict(endpoint.needed):
                    params = needed | {"period": month} if "period" in needed else params | needed
                elif endpoint.path.endswith("/search"):
                    params = {"q": "sa-1"}
                answer = client.get(endpoint.of("acme", date=str(LAST), period=month), params=params)
                if answer.status_code == 409:
                    assert "more than 26 digits" in _problem(answer, 409, "sum-too-large")
                else:
                    others[endpoint.path.removeprefix(TENANT)] = answer.status_code
            for path, sent in (
                ("costs", {"by": "category:cost_center"}),
                ("chargebacks/aggregate", {"group_by": "category:cost_center"}),
                ("chargebacks/aggregate", {"category:cost_center": "x"}),
                ("statements", {"by": "category:cost_center", "period": month}),
            ):
                of_days = {} if "period" in sent else days
                _problem(client.get(f"{ACME}/{path}", params=of_days | sent), 409, "sum-too-large")
    assert others.keys() == _WITHOUT_SUMS
    assert set(others.values()) == {200, 404}


def _fill_too_much(store: TenantStore) -> None:
    """Write a day with two lines whose sum is too large, and a cost category that splits them."""
    lines = [line(LAST, str(6 * 10**25), granularity="hourly", hour=hour) for hour in range(2)]
    lost, most = "NO_IDENTITIES_LOCATED", str(6 * 10**25)
    ids = list(enumerate(line_ids(lines)))
    write_lines(store.facts, lines)
    write_shares(
        store.facts, [Share(LAST, "sa-1", most, hour=hour, detail=lost, line=line_id) for hour, line_id in ids]
    )
    write_topic_shares(
        store.facts, [TopicShare(LAST, "orders", most, hour=hour, line=line_id) for hour, line_id in ids]
    )
    rules = [{"match": {"identity": ["sa-1"]}, "split": {"x": "90", "y": "10"}}]
    with store.control.write() as connection:
        save_day(connection, LAST, billing_gathered=True, resources_gathered=True)
        set_chargebacks(connection, LAST)
        known = [Identity("sa-1", "service_account")]
        ensure_known(connection, NOW, billed=[Resource("lkc-1", "kafka_cluster")], charged=known)
        save_categories(connection, [parse_category("cost_center", {"rules": rules})], who="ada")


@pytest.mark.parametrize("damage", ["missing", "cut short"])
def test_facts_that_are_lost(own_store: TenantStore, own_client: httpx.Client, damage: str) -> None:
    """A 503 names the day and the table; requests that do not need the day succeed."""
    day = own_store.facts.snapshot(CHARGEBACKS_TABLE).days[-1]
    DAMAGES[damage][0](Path(file_of(own_store.facts, CHARGEBACKS_TABLE, day).path))
    asked = {"start_date": str(day), "end_date": str(day)}
    for answer in (
        own_client.get(f"{ACME}/chargebacks", params=asked),
        own_client.get(f"{ACME}/chargebacks/aggregate", params=asked),
        own_client.post(f"{ACME}/export", json=asked),
    ):
        detail = _problem(answer, 503, "damaged-facts")
        assert f"A file of the chargebacks of {day} (UTC) is missing or damaged" in detail
        assert str(own_store.facts.root) not in detail
    before = str(day - timedelta(days=1))
    earlier = own_client.get(f"{ACME}/chargebacks", params={"start_date": before, "end_date": before})
    assert earlier.status_code == 200
    assert own_client.get(f"{ACME}/billing", params=asked).status_code == 200


def test_what_nobody_foresaw(store: TenantStore, caplog: pytest.LogCaptureFixture) -> None:
    """The response is a 500 with an id from the log, and no details."""

    class Broken:
        def trigger(self, tenant_name: str, request: object, begin: Callable[[], object]) -> None:
            raise ZeroDivisionError("a secret of the implementation")

    services: Services = services_for(store, pipeline=Broken())
    with caplog.at_level(logging.ERROR), client_of(services) as client:
        detail = _problem(client.post(f"{ACME}/pipeline/run"), 500, "internal-error")
    assert "secret" not in detail
    (number,) = re.findall(r"under (\w+)", detail)
    assert number in caplog.text
    assert "ZeroDivisionError" in caplog.text
