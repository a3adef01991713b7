"""Everything that fails is answered as a problem, and never says too much."""

from __future__ import annotations

import logging
import re
import time
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from chargeback.api.services import Services
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME
from tests.support.damage import DAMAGES, file_of
from tests.support.facts import Share, tenant_store, write_shares
from tests.support.serving import client_of, services_for


def _problem(response: httpx.Response, status: int, kind: str) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body.keys() >= {"type", "title", "status", "detail"}
    assert (body["status"], body["type"]) == (status, f"urn:chargeback:{kind}")
    return str(body["detail"])


@pytest.mark.parametrize("path", ["/nope", "/api/v1", "/api/v1/tenants/", f"{ACME}/nothing", f"{ACME}/chargebacks/"])
def test_unknown_paths(client: httpx.Client, path: str) -> None:
    """A path that leads nowhere is 404, never a redirect."""
    _problem(client.get(path), 404, "not-found")


@pytest.mark.parametrize("path", ["billing", "chargebacks", "status", "resources", "pipeline/status", "tags"])
def test_unknown_tenants(client: httpx.Client, path: str) -> None:
    """The detail names the tenant."""
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
    """What cannot be an id is not found."""
    _problem(client.get(f"{ACME}/{path}"), 404, "not-found")


def test_wrong_methods(client: httpx.Client) -> None:
    """405 says which methods are possible."""
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
    """503 with an id; the cause is in the log alone, and other tenants go on."""
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
    """503 says why nothing is read and nothing written; no tag is made."""
    with own_store.control.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    time.sleep(1.1)  # readers trust their last look for a second
    tag = {"tag_key": "team", "tag_value": "a"}
    for answer in (
        own_client.post(f"{ACME}/entities/identity/sa-1/tags", json=tag),
        own_client.get(f"{ACME}/tags"),
        own_client.get(f"{ACME}/chargebacks"),
    ):
        assert "written by a newer version" in _problem(answer, 503, "storage-unavailable")


def test_sums_that_are_too_large(own_store: TenantStore, own_client: httpx.Client) -> None:
    """503 says that an amount must be wrong; the lists show it."""
    day = own_store.facts.snapshot(CHARGEBACKS_TABLE).days[-1]
    write_shares(own_store.facts, [Share(day, f"sa-{number}", str(9 * 10**25)) for number in range(2)])
    asked = {"start_date": str(day), "end_date": str(day)}
    answer = own_client.get(f"{ACME}/chargebacks/aggregate", params=asked)
    assert "at least one amount is wrong" in _problem(answer, 503, "sum-too-large")
    assert own_client.get(f"{ACME}/chargebacks", params=asked).json()["total"] == 2


@pytest.mark.parametrize("damage", ["missing", "cut short"])
def test_facts_that_are_lost(own_store: TenantStore, own_client: httpx.Client, damage: str) -> None:
    """503 names the day and its table; questions that do not need it are answered."""
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
    """500 with an id that the log has, and nothing else."""

    class Broken:
        def trigger(self, tenant_name: str, request: object) -> None:
            raise ZeroDivisionError("a secret of the implementation")

    services: Services = services_for(store, pipeline=Broken())
    with caplog.at_level(logging.ERROR), client_of(services) as client:
        detail = _problem(client.post(f"{ACME}/pipeline/run"), 500, "internal-error")
    assert "secret" not in detail
    (number,) = re.findall(r"under (\w+)", detail)
    assert number in caplog.text
    assert "ZeroDivisionError" in caplog.text
