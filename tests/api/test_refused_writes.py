"""Refused and timed-out requests change nothing, for every route that writes."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import Connection, Engine, event

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.api.app import create_app
from chargeback.api.authorisation import api_routes
from chargeback.api.limits import MAX_BODY_BYTES
from chargeback.api.services import ApiLimits
from chargeback.config.notifications import WebhookSettings
from chargeback.model.days import ONE_DAY
from chargeback.model.run_request import RunRequest
from chargeback.reports.findings import IDLE_RESOURCE, finding_id
from chargeback.reports.tenant_view import SimulationOrder
from chargeback.store.control.audit import REQUEST_REFUSED
from chargeback.store.control.deliveries import DEAD, add_deliveries, due_deliveries, finish
from chargeback.store.control.events import PERIOD_READY, Event, add_events
from chargeback.store.control.policies import AppliedVersion, add_applied, read_applied
from chargeback.store.control.simulations import add_simulation, end_simulation, find_simulation
from chargeback.store.facts.tables import USAGE_TABLE
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, fill, known
from tests.reports.test_findings_sums import measure
from tests.support.clock import NOW
from tests.support.facts import tenant_store
from tests.support.plans import empty_answer
from tests.support.receiver import SECRET
from tests.support.serving import services_for

TENANT: Final = "/api/v1/tenants/{tenant_name}"
TAGS: Final = f"{TENANT}/entities/{{entity_type}}/{{entity_id}}/tags"
SA: Final = f"{ACME}/entities/identity/sa-1/tags"
VIEW: Final = {"name": "One", "page": "costs", "query": ""}
DAY: Final = {"start_date": str(LAST), "end_date": str(LAST)}
STATEMENT: Final = {"period": f"{LAST:%Y-%m}", "by": "identity_id", "value": "sa-1"}
CATEGORY: Final = {"default": "Rest", "values": {"Payments": None}}
CSV: Final = "entity_type,entity_id,value\nidentity,sa-1,Payments\n"


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be advanced."""

    _ahead = 0.0

    def time(self) -> float:
        """Return the time with the skipped hours."""
        return super().time() + self._ahead

    def jump(self) -> None:
        """Advance the clock by an hour; may be called from any thread."""
        self._ahead += 3600
        self.call_soon_threadsafe(lambda: None)


@dataclass
class Interruption:
    """Lets a request time out in the middle of its work, and waits until the response is sent."""

    loop: JumpingLoop
    responded: threading.Event = field(default_factory=threading.Event)
    happened: bool = False

    def __call__(self) -> None:
        """Advance the clock; called by the thread that works for the request."""
        if not self.happened:
            self.happened = True
            self.loop.jump()
            assert self.responded.wait(20)


@dataclass
class Runner:
    """Records runs and simulations instead of starting them; ``before`` and ``after`` are called around each start."""

    started: list[RunRequest | SimulationOrder] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None

    def trigger(self, tenant_name: str, request: RunRequest, begin: Callable[[], object]) -> None:
        """Prepare and record a run."""
        self.before()
        begin()
        self.started.append(request)
        self.after()

    def check(self, order: SimulationOrder) -> PolicyCatalogue:
        """Accept any policies."""
        return PolicyCatalogue(parse_policies(order.policies or {}, "policies"), {})

    def start(self, number: str, order: SimulationOrder, begin: Callable[[], object]) -> None:
        """Prepare and record a simulation."""
        self.before()
        begin()
        self.started.append(order)
        self.after()


@dataclass
class House:
    """The application, its storage and its event loop, in this process."""

    app: FastAPI
    store: TenantStore
    folder: Path
    runner: Runner
    loop: JumpingLoop
    run: Callable[[Coroutine[Any, Any, httpx.Response]], httpx.Response]

    def request(self, method: str, path: str, **sent: Any) -> httpx.Response:
        """Send a request and return the response."""

        async def _send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **sent)

        return self.run(_send())

    def state(self) -> list[str]:
        """Return everything that a request could change: the control database, files and started runs. Excluded are
        audit entries of refused requests, which are intended, and partial aggregates, which queries write."""
        with closing(sqlite3.connect(self.folder / "control.db")) as connection:
            rows = [row for row in connection.iterdump() if REQUEST_REFUSED not in row and "sqlite_sequence" not in row]
        derived = (".partials", "control.db")
        files = sorted(
            each
            for each in self.folder.rglob("*")
            if each.is_file() and not any(part.startswith(derived) for part in each.parts)
        )
        versions = [f"{each} {each.stat().st_size} {each.stat().st_mtime_ns}" for each in files]
        return [*rows, *versions, *map(str, self.runner.started)]

    def finish_work(self) -> None:
        """Wait until no thread works for a request."""
        pools = self.app.state.executor.pools_of("acme")
        for pool in (pools.control, pools.questions):
            everyone = threading.Barrier(3)
            for each in [pool.submit(everyone.wait, 20) for _ in range(3)]:
                each.result(20)


@dataclass(frozen=True)
class Write:
    """A valid request of a route; ``changes`` says whether it writes. ``before`` prepares its object, and returns the
    rest of the path or more of the request."""

    sent: dict[str, Any]
    path: str
    before: Callable[[House], dict[str, Any]] = lambda _: {}
    changes: bool = True


def _tag(house: House) -> dict[str, Any]:
    house.request("POST", SA, json={"tag_key": "team", "tag_value": "a"})
    return {}


def _view(house: House) -> dict[str, Any]:
    made = house.request("POST", f"{ACME}/views", json=VIEW | {"name": f"View {len(house.state())}"})
    return {"path": f"{ACME}/views/{made.json()['id']}"}


def _category(house: House) -> dict[str, Any]:
    path = f"{ACME}/cost-categories/units"
    found = house.request("GET", path)
    if found.status_code == 404:
        found = house.request("PUT", path, json={"document": CATEGORY}, headers={"If-None-Match": "*"})
    return {"headers": {"If-Match": found.headers["ETag"]}}


def _budget(house: House) -> dict[str, Any]:
    found = house.request("GET", _BUDGET)
    if found.status_code == 404:
        found = house.request("PUT", _BUDGET, json=_BUDGETED, headers={"If-None-Match": "*"})
    return {"headers": {"If-Match": found.headers["ETag"]}}


def _opened(house: House) -> dict[str, Any]:
    house.request("POST", f"{_DECEMBER}/reopen", json={"reason": "Again"})
    return {}


def _closed(house: House) -> dict[str, Any]:
    house.request("POST", f"{_DECEMBER}/close", json=_CLOSE)
    return {}


def _adjusted(house: House) -> dict[str, Any]:
    made = house.request("POST", f"{ACME}/adjustments", json=_FEE)
    return {"path": f"{ACME}/adjustments/{made.json()['id']}"}


def _reversing(house: House) -> dict[str, Any]:
    return {"path": f"{_adjusted(house)['path']}/reverse"}


def _invoiced(house: House) -> dict[str, Any]:
    house.request("PUT", _INVOICE, json=_INVOICED)
    return {}


def _simulation(house: House) -> dict[str, Any]:
    policies = {"SUPPORT": {"portions": [{"share": "1", "try": ["even(period)"]}]}}
    answer = empty_answer(PolicyCatalogue({}, {}), PolicyCatalogue(parse_policies(policies, ""), {}))
    asked = {"policies": policies, "start_date": "2026-01-01", "end_date": "2026-01-01"}
    number = "1" * 64
    with house.store.control.write() as connection:
        if find_simulation(connection, number, NOW) is None:
            add_simulation(connection, number, asked, "ann", NOW)
            end_simulation(connection, number, 1, answer=answer.model_dump_json(), error=None)
        taken = [each.effective_from for each in read_applied(connection)]
    body = {"simulation": number, "expected_digest": answer.digest, "reason": "Try"}
    return {"json": body | {"effective_from": f"{max([date(2099, 1, 1), *taken]) + ONE_DAY}"}}


def _applied(house: House) -> dict[str, Any]:
    version = AppliedVersion(date(2099, 1, 1), "Try", {}, "", "ann", NOW)
    with house.store.control.write() as connection:
        if version.effective_from not in {each.effective_from for each in read_applied(connection)}:
            add_applied(connection, version)
    return {}


def _given_up(house: House) -> dict[str, Any]:
    """Add a message that cannot be delivered."""
    with house.store.control.write() as connection:
        add_deliveries(connection, "desk", lambda _: True, NOW)
        add_events(connection, [Event(PERIOD_READY, "period/2026-01", {"days": 31}, f"ready {uuid4()}")], NOW)
        add_deliveries(connection, "desk", lambda _: True, NOW)
        for each in due_deliveries(connection, "desk", NOW, 100):
            finish(connection, each, DEAD, "gone", NOW)
    return {}


def _finding(_house: House) -> dict[str, Any]:
    return {"path": f"{ACME}/findings/{finding_id(IDLE_RESOURCE, 'lkc-1')}/snooze"}


def _snoozed(house: House) -> dict[str, Any]:
    place = _finding(house)
    house.request("PUT", place["path"], json={"reason": "Known"})
    return place


def _marked(house: House) -> dict[str, Any]:
    made = house.request("POST", f"{ACME}/anomalies/marks", json=_MARK)
    return {"path": f"{ACME}/anomalies/marks/{made.json()['id']}"}


def _noted(house: House) -> dict[str, Any]:
    made = house.request("POST", f"{ACME}/notes", json=_REMARK)
    return {"path": f"{ACME}/notes/{made.json()['id']}", "headers": {"If-Match": made.headers["ETag"]}}


_TAG = {"json": {"tag_value": "b"}}
_PLACE = {"entity_type": "identity", "entity_id": "sa-1", "tag_key": "team"}
_NOTE = {"json": {"note": "Fine"}, "params": STATEMENT}
_MARK = {"identity_id": "sa-1", "status": "planned", "note": "Load test"} | DAY
_REMARK = {"start_date": str(LAST), "text": "Load test"}
_UNITS = f"{ACME}/cost-categories/units"
_DESK = f"{ACME}/notifications/desk"
_BUDGET = f"{ACME}/budgets/all"
_BUDGETED = {"name": "All", "monthly": "1000"}
#: A month without a bill, which can be closed if this is accepted.
_DECEMBER = f"{ACME}/periods/2025-12"
_CLOSE = {"accept": ["day-missing"], "reason": "Nothing was billed"}
_FEE = {"period": "2026-01", "by": "identity_id", "value": "sa-1", "amount": "5.00", "kind": "fee", "reason": "Care"}
_INVOICE = f"{ACME}/periods/2026-01/invoices/INV-1"
_INVOICED = {"issuer": "Provider", "kind": "invoice", "status": "issued", "currency": "USD", "total": "50.00"}

#: A valid request of each route with another method than GET.
WRITES: Final = {
    f"POST {TENANT}/reconciliation/external": Write(
        {"json": {"csv": "date,resource,type,amount\n", "mapping": {}} | DAY},
        f"{ACME}/reconciliation/external",
        changes=False,
    ),
    f"POST {TAGS}": Write({"json": {"tag_key": "env", "tag_value": "prod"}}, SA),
    f"PUT {TAGS}/{{tag_key}}": Write(_TAG, f"{SA}/team", _tag),
    f"PATCH {TAGS}/{{tag_key}}": Write({"json": {"tag_value": "c"}}, f"{SA}/team", _tag),
    f"DELETE {TAGS}/{{tag_key}}": Write({}, f"{SA}/team", _tag),
    f"POST {TENANT}/tags/bulk": Write(
        {"json": {"items": [_PLACE | {"tag_key": "cost", "tag_value": "x"}]}}, f"{ACME}/tags/bulk"
    ),
    f"POST {TENANT}/tags/bulk-by-filter": Write(
        {"json": {"identity_id": "sa-1", "tag_key": "unit", "display_name": "u"} | DAY}, f"{ACME}/tags/bulk-by-filter"
    ),
    f"POST {TENANT}/tags/bulk-delete": Write({"json": {"items": [_PLACE]}}, f"{ACME}/tags/bulk-delete", _tag),
    f"POST {TENANT}/pipeline/run": Write({"json": {}}, f"{ACME}/pipeline/run"),
    # Without a run there is nothing to cancel; the lease of a run would block the other requests.
    f"POST {TENANT}/pipeline/cancel": Write({}, f"{ACME}/pipeline/cancel", changes=False),
    f"POST {TENANT}/simulations": Write({"json": {"policies": {}} | DAY}, f"{ACME}/simulations"),
    f"POST {TENANT}/policies/apply": Write({}, f"{ACME}/policies/apply", _simulation),
    f"DELETE {TENANT}/policies/applied/{{effective_from}}": Write({}, f"{ACME}/policies/applied/2099-01-01", _applied),
    f"POST {TENANT}/notifications/{{sink_name}}/test": Write({}, f"{_DESK}/test", changes=False),
    f"POST {TENANT}/notifications/{{sink_name}}/retry": Write({}, f"{_DESK}/retry", _given_up),
    f"PUT {TENANT}/budgets/{{budget_id}}": Write({"json": _BUDGETED | {"monthly": "2000"}}, _BUDGET, _budget),
    f"DELETE {TENANT}/budgets/{{budget_id}}": Write({}, _BUDGET, _budget),
    f"POST {TENANT}/budgets": Write({"json": {"csv": "id,name,monthly\nnew,New,5\n"}}, f"{ACME}/budgets"),
    f"POST {TENANT}/export": Write({"json": DAY}, f"{ACME}/export", changes=False),
    f"POST {TENANT}/export/focus": Write({"json": DAY}, f"{ACME}/export/focus", changes=False),
    f"POST {TENANT}/topic-attributions/export": Write(
        {"json": DAY}, f"{ACME}/topic-attributions/export", changes=False
    ),
    f"PUT {TENANT}/findings/{{finding_id}}/snooze": Write({"json": {"reason": "Kept"}}, "", _finding),
    f"DELETE {TENANT}/findings/{{finding_id}}/snooze": Write({}, "", _snoozed),
    f"POST {TENANT}/anomalies/marks": Write({"json": _MARK}, f"{ACME}/anomalies/marks"),
    f"DELETE {TENANT}/anomalies/marks/{{number}}": Write({}, "", _marked),
    f"POST {TENANT}/notes": Write({"json": _REMARK}, f"{ACME}/notes"),
    f"PUT {TENANT}/notes/{{note_id}}": Write({"json": _REMARK | {"text": "Two"}}, "", _noted),
    f"DELETE {TENANT}/notes/{{note_id}}": Write({}, "", _noted),
    f"POST {TENANT}/views": Write({"json": VIEW}, f"{ACME}/views"),
    f"PUT {TENANT}/views/{{view_id}}": Write({"json": VIEW | {"name": "Two"}}, "", _view),
    f"DELETE {TENANT}/views/{{view_id}}": Write({}, "", _view),
    f"POST {TENANT}/statement/acknowledge": Write(_NOTE, f"{ACME}/statement/acknowledge"),
    f"POST {TENANT}/statement/dispute": Write(_NOTE, f"{ACME}/statement/dispute"),
    f"POST {TENANT}/periods/{{period}}/close": Write({"json": _CLOSE}, f"{_DECEMBER}/close", _opened),
    f"POST {TENANT}/periods/{{period}}/reopen": Write({"json": {"reason": "Again"}}, f"{_DECEMBER}/reopen", _closed),
    f"POST {TENANT}/periods/{{period}}/seal": Write({"json": {"reason": "Done"}}, f"{_DECEMBER}/seal", _closed),
    f"POST {TENANT}/adjustments": Write({"json": _FEE}, f"{ACME}/adjustments"),
    f"DELETE {TENANT}/adjustments/{{number}}": Write({}, "", _adjusted),
    f"POST {TENANT}/adjustments/{{number}}/reverse": Write(
        {"json": {"period": "2026-01", "reason": "Twice"}}, "", _reversing
    ),
    f"PUT {TENANT}/periods/{{period}}/invoices/{{invoice_id}}": Write({"json": _INVOICED}, _INVOICE),
    f"DELETE {TENANT}/periods/{{period}}/invoices/{{invoice_id}}": Write({}, _INVOICE, _invoiced),
    f"PUT {TENANT}/cost-categories/{{category_key}}": Write(
        {"json": {"document": CATEGORY | {"default": "Other"}}}, _UNITS, _category
    ),
    f"DELETE {TENANT}/cost-categories/{{category_key}}": Write({}, _UNITS, _category),
    f"PUT {TENANT}/cost-categories/{{category_key}}/rules.csv": Write(
        {"json": {"csv": CSV}}, f"{_UNITS}/rules.csv", _category
    ),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A tenant with five days, an idle cluster, and the application over it."""
    folder, runner = tmp_path_factory.mktemp("house"), Runner()
    with tenant_store(folder) as store, asyncio.Runner(loop_factory=JumpingLoop) as loop:
        fill(store)
        known(store, resources=["lkc-1", "lkc-2"], identities=["sa-1", "sa-2"])
        for day in DAYS:
            measure(store.facts, USAGE_TABLE, day, [("bytes_in", "lkc-1", "sa-1", "0")])
        services = services_for(store, limits=ApiLimits(600), pipeline=runner, simulator=runner)
        desk = WebhookSettings(type="webhook", url="http://127.0.0.1:1", secrets=(SECRET,), allow_private=True)
        tenants = {name: replace(view, sinks={"desk": desk}) for name, view in services.tenants.items()}
        app = create_app(replace(services, tenants=tenants))
        lifespan = app.router.lifespan_context(app)
        loop.run(lifespan.__aenter__())
        running = loop.get_loop()
        assert isinstance(running, JumpingLoop)
        yield House(app, store, folder / "acme", runner, running, loop.run)
        loop.run(lifespan.__aexit__(None, None, None))


@pytest.fixture(params=WRITES)
def write(request: pytest.FixtureRequest, house: House) -> tuple[str, dict[str, Any], Write]:
    """The method and the arguments of a valid request, whose object exists."""
    write = WRITES[request.param]
    method = request.param.partition(" ")[0]
    return method, {"path": write.path, **write.sent, **write.before(house)}, write


@contextmanager
def interrupted(house: House, on: str) -> Iterator[Interruption]:
    """Let the next request time out at its first ``on``: a statement that writes, or the commit."""
    interruption = Interruption(house.loop)

    def _statement(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if on == "statement" and statement.startswith(("INSERT", "UPDATE", "DELETE")):
            interruption()

    def _commit(_connection: Connection) -> None:
        if on == "commit":
            interruption()

    if on == "commit":
        house.runner.after = interruption
        interruption.responded.set()  # the response waits for the commit
    else:
        house.runner.before = interruption
    event.listen(Engine, "before_cursor_execute", _statement)
    event.listen(Engine, "commit", _commit)
    try:
        yield interruption
    finally:
        event.remove(Engine, "before_cursor_execute", _statement)
        event.remove(Engine, "commit", _commit)
        house.runner.before = house.runner.after = lambda: None


def test_every_route_is_here(house: House) -> None:
    """Every route with another method than GET has a request in this table."""
    routes = {
        f"{method} {route.path.replace(':path', '')}"
        for route in api_routes(house.app.routes)
        for method in route.methods or ()
        if method not in {"GET", "HEAD"}
    }
    assert routes == set(WRITES)


def test_a_request_that_timed_out_changed_nothing(house: House, write: tuple[str, dict[str, Any], Write]) -> None:
    """A request that times out within its transaction gets 504 and changes nothing."""
    method, sent, valid = write
    before = house.state()
    with interrupted(house, "statement") as interruption:
        response = house.request(method, **sent)
        interruption.responded.set()
        house.finish_work()
    assert house.state() == before
    if valid.changes:
        assert (response.status_code, interruption.happened) == (504, True)


def test_a_change_that_is_being_committed_is_confirmed(house: House, write: tuple[str, dict[str, Any], Write]) -> None:
    """A request that times out during its commit still reports success; this also checks that the valid requests
    work."""
    method, sent, valid = write
    before = house.state()
    with interrupted(house, "commit"):
        response = house.request(method, **sent)
    assert response.status_code < 300 or not valid.changes, response.text
    assert (house.state() != before) == valid.changes


def _refusals(sent: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the status and the arguments of variants of a valid request that are refused."""
    params, headers = dict(sent.get("params", {})), dict(sent.get("headers", {}))
    yield 404, sent | {"path": sent["path"].replace("/acme/", "/globex/")}
    yield 403, sent | {"headers": headers | {"Sec-Fetch-Site": "cross-site"}}
    yield 421, sent | {"headers": headers | {"Host": "evil.example"}}
    yield 400, sent | {"params": params | {"unknown": "1"}}
    if "json" in sent:
        yield 400, sent | {"json": sent["json"] | {"unknown": "1"}}
        rest = {name: value for name, value in sent.items() if name != "json"}
        yield 400, rest | {"content": b'{"half": ', "headers": headers | {"Content-Type": "application/json"}}
        yield 400, rest | {"content": b"{}", "headers": headers | {"Content-Type": "text/plain"}}
        yield 413, rest | {"content": b" " * (MAX_BODY_BYTES + 1)}
    if "If-Match" in headers:
        yield 412, sent | {"headers": headers | {"If-Match": '"0-0"'}}
        yield 428, sent | {"headers": {}}


def test_a_refused_request_changed_nothing(house: House, write: tuple[str, dict[str, Any], Write]) -> None:
    """A refused request changes nothing."""
    method, sent, _ = write
    before = house.state()
    for status, refused in _refusals(sent):
        response = house.request(method, **refused)
        assert response.status_code == status, (refused, response.text)
    house.finish_work()
    assert house.state() == before
