"""No tenant can reach the data of another, through any endpoint, id or path."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest
from fastapi import FastAPI
from sqlalchemy import select

from chargeback.api.app import create_app
from chargeback.categories.parsing import parse_category
from chargeback.model.chargeback import DIMENSION_COLUMNS, dimension_id
from chargeback.model.days import utc_now
from chargeback.model.topics import TOPIC_ATTRIBUTIONS
from chargeback.reports.categories.editing import save_categories
from chargeback.reports.findings import IDLE_RESOURCE, finding_id
from chargeback.store.control import schema
from chargeback.store.control.notes import NoteWrite, create_note
from chargeback.store.control.tags import TagWrite, create
from chargeback.store.control.views import ViewWrite, create_view
from chargeback.store.facts.tables import TOPICS_TABLE
from chargeback.store.tenant import TenantStore
from tests.api.conftest import DAYS, LAST
from tests.support.facts import ECOSYSTEM, TENANT_ID, Share, line, replace_day, tenant_store, write_lines, write_shares
from tests.support.serving import served, services_for

#: Occurs in all data of acme only, and in no request of this file.
MARK = "acmes-own"
#: A resource, an identity and a tag key that both tenants have.
RESOURCE, IDENTITY, KEY = "lkc-both", "sa-both", "team"


def fill(store: TenantStore, mark: str) -> None:
    """Write the same ids to both tenants, with different names, values and amounts."""
    shares = [Share(day, IDENTITY, "1", resource=RESOURCE, product=mark) for day in DAYS]
    shares += [Share(day, f"sa-{mark}", "1", resource=f"lkc-{mark}") for day in DAYS]
    write_shares(store.facts, shares)
    write_lines(store.facts, [line(day, "2", resource=RESOURCE, product=mark) for day in DAYS])
    for day in DAYS:
        replace_day(store.facts, TOPICS_TABLE, day, topics(day, mark))
    now = {"last_seen_at": utc_now(), "metadata": {"mark": mark}, "display_name": mark}
    with store.control.write() as connection:
        connection.execute(schema.resources.insert().values(resource_id=RESOURCE, resource_type=mark, **now))
        connection.execute(schema.identities.insert().values(identity_id=IDENTITY, identity_type=mark, **now))
        for kind, entity in (("resource", RESOURCE), ("identity", IDENTITY)):
            create(connection, TENANT_ID, TagWrite(kind, entity, KEY, mark), mark)


def topics(day: date, mark: str) -> pa.Table:
    """Return one topic of the resource on a day."""
    row = {field.name: mark for field in TOPIC_ATTRIBUTIONS if field.type == pa.string()}
    row |= {"cluster_resource_id": RESOURCE, "attribution_method": "even_split"}
    when = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return pa.Table.from_pylist(
        [{**row, "date": day, "timestamp": when, "dimension_id": 1, "amount": Decimal(1)}], schema=TOPIC_ATTRIBUTIONS
    )


def service(*stores: TenantStore) -> FastAPI:
    """Return an application with these tenants, with topics enabled."""
    services = services_for(*stores)
    tenants = {name: replace(view, topic_attribution_status="enabled") for name, view in services.tenants.items()}
    return create_app(replace(services, tenants=tenants))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TenantStore, TenantStore]]:
    """Two tenants of one service."""
    folder = tmp_path_factory.mktemp("storage")
    with tenant_store(folder) as acme, tenant_store(folder, name="globex") as globex:
        fill(acme, MARK)
        fill(globex, "the-others")
        for store, name in ((acme, MARK), (globex, "the-others")):
            with store.control.write() as connection:
                create_view(connection, ViewWrite(name, "costs", f"tag:team={name}"), "somebody")
                create_note(connection, NoteWrite(LAST, LAST, name), "somebody")
                rules = [{"match": {"identity": [f"sa-{name}"]}, "assign": name}]
                save_categories(connection, [parse_category("cost_center", {"rules": rules})], who=name)
        yield acme, globex


@pytest.fixture(scope="module")
def address(stores: tuple[TenantStore, TenantStore]) -> Iterator[str]:
    """The address of the service."""
    with served(service(*stores)) as address:
        yield address


def acmes_dimension() -> int:
    """Return a dimension that only acme has."""
    row = Share(LAST, f"sa-{MARK}", "1", resource=f"lkc-{MARK}").row()
    return dimension_id(tuple(row[name] for name in DIMENSION_COLUMNS))


def bodies() -> dict[str, Any]:
    """Return the bodies for each endpoint that writes or exports."""
    tag = {"entity_type": "resource", "entity_id": RESOURCE, "tag_key": KEY, "tag_value": "changed"}
    return {
        "/entities/{entity_type}/{entity_id}/tags": {"tag_key": "new", "tag_value": "changed"},
        "/entities/{entity_type}/{entity_id}/tags/{tag_key}": {"tag_value": "changed"},
        "/tags/bulk": {"items": [tag], "override_existing": True},
        "/tags/bulk-by-filter": {"tag_key": KEY, "display_name": "changed", "override_existing": True},
        "/tags/bulk-delete": {"items": [{name: tag[name] for name in ("entity_type", "entity_id", "tag_key")}]},
        "/views": {"name": "changed", "page": "costs", "query": ""},
        "/views/{view_id}": {"name": "changed too", "page": "costs", "query": ""},
        "/notes": {"start_date": str(LAST), "text": "changed"},
        "/notes/{note_id}": {"start_date": str(LAST), "text": "changed too"},
        "/budgets": {"csv": "id,name,monthly\nall,changed,1\n"},
        "/budgets/{budget_id}": {"name": "changed", "monthly": "1"},
        "/cost-categories/{category_key}": {"document": {}},
        "/cost-categories/{category_key}/rules.csv": {
            "csv": f"entity_type,entity_id,value\nresource,{RESOURCE},changed\n"
        },
        "/reconciliation/external": {
            "csv": f"id,amount\n{RESOURCE},1\n",
            "mapping": {"columns": {"entity": "id", "amount": "amount"}},
            "start_date": str(DAYS[0]),
            "end_date": str(LAST),
        },
        "/pipeline/run": {},
        "/pipeline/cancel": None,
        "/notifications/{sink_name}/test": None,
        "/notifications/{sink_name}/retry": None,
        "/policies/apply": {"simulation": "0" * 64, "expected_digest": "0" * 64},
        "/simulations": {"policies": {}, "start_date": str(LAST), "end_date": str(LAST)},
        "/findings/{finding_id}/snooze": {"reason": "changed"},
        "/anomalies/marks": {
            **{"identity_id": f"sa-{MARK}", "status": "planned", "note": "changed"},
            **{"start_date": str(LAST), "end_date": str(LAST)},
        },
        "/statement/acknowledge": {"note": "changed"},
        "/statement/dispute": {"note": "changed"},
        "/periods/{period}/close": {"accept": ["day-missing", "day-pending"], "reason": "changed"},
        "/periods/{period}/reopen": {"reason": "changed"},
        "/periods/{period}/seal": {"reason": "changed"},
        "/periods/{period}/invoices/{invoice_id}": {
            **{"issuer": "changed", "kind": "invoice", "status": "issued", "currency": "USD", "total": "1.00"},
        },
        "/adjustments": {
            **{"period": f"{LAST:%Y-%m}", "by": "identity_id", "value": "sa-1", "amount": "1.00", "kind": "fee"},
            "reason": "changed",
        },
        "/adjustments/{number}/reverse": {"period": f"{LAST:%Y-%m}", "reason": "changed"},
        "/export": {},
        "/export/focus": {},
        "/topic-attributions/export": {},
    }


def test_every_endpoint_as_another_tenant(address: str, stores: tuple[TenantStore, TenantStore]) -> None:
    """No request to globex with ids that acme has as well returns or changes anything of acme; the test fails if an
    endpoint has no request."""
    acme, _ = stores
    before = everything_of(acme)
    prefix = "/api/v1/tenants/{tenant_name}"
    with httpx.Client(base_url=address, timeout=60) as client:
        document = client.get("/openapi.json").json()
        asked = 0
        files = {
            f"{path}.csv": {"get": methods["get"]}
            for path, methods in document["paths"].items()
            if "text/csv" in str(methods.get("get", {}).get("responses"))
        }
        for path, methods in (document["paths"] | files).items():
            if not path.startswith(prefix):
                continue
            given = {
                "{tenant_name}": "globex",
                "{entity_type}": "resource",
                "{entity_id}": RESOURCE,
                "{tag_key}": KEY,
                "{dimension_id}": str(acmes_dimension()),
                "{view_id}": "1",
                "{note_id}": "1",
                "{category_key}": "cost_center",
                "{finding_id}": finding_id(IDLE_RESOURCE, RESOURCE),
                "{date}": str(LAST),
                "{period}": f"{LAST:%Y-%m}",
                "{number}": "1",
                "{invoice_id}": "INV-1",
                "{simulation_id}": "0" * 64,
                "{effective_from}": "2099-01-01",
                "{shadow_name}": "next",
                "{budget_id}": "all",
                "{sink_name}": "desk",
                "{contract_id}": "provider",
            }
            concrete = path
            for name, value in given.items():
                concrete = concrete.replace(name, value)
            assert "{" not in concrete, path
            for method in sorted(methods, key=["get", "post", "patch", "put", "delete"].index):
                body = None if method in {"get", "delete"} else bodies()[path.removeprefix(prefix)]
                about = {"period": f"{LAST:%Y-%m}", "by": "identity_id", "value": RESOURCE}
                sent = about if path.endswith(("/acknowledge", "/dispute")) else None
                answer = client.request(method, concrete, params=sent, json=body, headers={"If-Match": "*"})
                assert answer.status_code < 500, answer.text
                assert MARK not in answer.text, f"{method} {path}"
                asked += 1
        assert asked >= 25
        assert client.get(f"/api/v1/tenants/globex/chargebacks/{acmes_dimension()}").status_code == 404
    assert everything_of(acme) == before


def everything_of(store: TenantStore) -> list[Any]:
    """Return all rows of the control database, and the versions of the facts."""
    with store.control.read() as connection:
        rows = [connection.execute(select(table)).all() for table in schema.metadata.sorted_tables]
    return [*rows, [store.facts.snapshot(name).version for name in ("billing", "chargebacks", "dimensions")]]


def test_filters_do_not_leave_the_tenant(address: str) -> None:
    """Ids, tags and searches that match only acme's data find nothing in globex, and neither do quotes and
    wildcards."""
    with httpx.Client(base_url=f"{address}/api/v1/tenants/globex", timeout=60) as client:
        for path, name in (
            ("/chargebacks", "identity_id"),
            ("/chargebacks", "resource_id"),
            ("/chargebacks/aggregate", "identity_id"),
            ("/billing", "resource_id"),
            ("/resources", "search"),
            ("/identities", "search"),
        ):
            for value in (f"sa-{MARK}", f"lkc-{MARK}", "' OR '1'='1", "%' OR 1=1 --", "../acme"):
                answer = client.get(path, params={name: value})
                assert answer.status_code == 200
                found = answer.json()
                assert not found.get("items") and not found.get("buckets"), (path, value)


TRAVERSALS = [
    "/api/v1/tenants/globex/../acme/chargebacks",
    "/api/v1/tenants/globex/%2e%2e/acme/chargebacks",
    "/api/v1/tenants/globex%2F..%2Facme/chargebacks",
    "/api/v1/tenants/..%2Ftenants%2Facme/chargebacks",
    "/api/v1/tenants/globex/entities/resource/..%2F..%2F..%2Facme%2Fentities%2Fresource%2Flkc-both/tags",
    "/api/v1/tenants/globex/entities/resource/../../../acme/entities/resource/lkc-both/tags",
    "/api/v1/tenants/globex/entities/resource/..%2f..%2f..%2f..%2fetc%2fpasswd/tags",
    "/api/v1/tenants/globex/chargebacks/..%2f..%2facme%2fchargebacks",
    "/api/v1/tenants/globex/chargebacks/0%2f..%2f..",
    "/api/v1/tenants/acme%00/chargebacks",
    "/api/v1/tenants/%61cme%0a/chargebacks",
    "/api/v1/tenants//acme/chargebacks",
    "//api/v1/tenants/acme/chargebacks",
    "/metrics/../etc/passwd",
    "/docs/..%2f..%2f..%2fetc%2fpasswd",
]


@pytest.mark.parametrize("path", TRAVERSALS)
def test_paths_do_not_leave_their_tenant(address: str, path: str) -> None:
    """Dots, encoded slashes and NULs in a path do not lead to other data."""
    host = urlsplit(address)
    connection = http.client.HTTPConnection(str(host.hostname), host.port, timeout=30)
    connection.putrequest("GET", path, skip_accept_encoding=True)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status in {400, 404}, text
    assert MARK not in text
    assert "root:" not in text


def test_bodies_do_not_leave_their_tenant(address: str, stores: tuple[TenantStore, TenantStore]) -> None:
    """A tag for an entity that only acme has is not created in either tenant."""
    tag = {"entity_type": "identity", "entity_id": f"sa-{MARK}", "tag_key": "x", "tag_value": "y"}
    answer = httpx.post(f"{address}/api/v1/tenants/globex/tags/bulk", json={"items": [tag]}, timeout=30)
    assert answer.status_code == 404
    for store in stores:
        with store.control.read() as connection:
            assert "x" not in connection.execute(select(schema.tags.c.tag_key)).scalars().all()


def test_the_two_tenants_are_told_apart(stores: tuple[TenantStore, TenantStore], tmp_path: Path) -> None:
    """Responses of acme contain its mark, so the tests above would notice it."""
    acme, globex = stores
    assert (acme.ecosystem, globex.ecosystem) == (ECOSYSTEM, ECOSYSTEM)
    with served(service(acme)) as alone:
        for path in ("chargebacks", "resources", "identities", "tags", "billing", "topic-attributions"):
            assert MARK in httpx.get(f"{alone}/api/v1/tenants/acme/{path}", timeout=30).text
