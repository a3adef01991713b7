"""A caller with a scope learns nothing from outside it: tenants that differ only outside a scope get the same
responses.

The differences are names, amounts, tags, usage, numbers of rows and of entities, views, notes, snoozes and replies of
others. Every route of the application is requested, every file, and every tool of an assistant.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import cycle, product
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import update

from chargeback.access.caller import Caller, Right
from chargeback.access.scope import RowScope
from chargeback.api.app import create_app
from chargeback.api.authorisation import RequiredAccess, api_routes
from chargeback.api.routing import PREFIX
from chargeback.api.services import ApiLimits, Services
from chargeback.assistants.api_client import ApiClient, Sender, ToolError
from chargeback.assistants.tools import TOOLS
from chargeback.model.billing import BillingLine
from chargeback.model.days import start_of_day
from chargeback.model.inventory import Grant, Identity, Inventory, Resource
from chargeback.recompute.rules import AllocationRules
from chargeback.reports.findings import finding_id
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control import schema, tags
from chargeback.store.control.anomalies import MarkedDays, add_mark
from chargeback.store.control.cost_categories import CategoryWrite, write_category
from chargeback.store.control.notes import NoteWrite, create_note
from chargeback.store.control.snoozes import put_snooze
from chargeback.store.control.statement_replies import DISPUTED, StatementKey, add_reply
from chargeback.store.control.tags import IDENTITY, RESOURCE, TagWrite
from chargeback.store.control.views import ViewWrite, create_view
from chargeback.store.tenant import TenantStore
from tests.support.callers import Callers, asked_by, caller
from tests.support.clock import FixedClock
from tests.support.sources import Laboratory, line

ACCESS_PAGE: Final = Path(__file__).parents[2] / "docs" / "access.md"
DAYS: Final = [date(2026, 1, 30), date(2026, 1, 31), date(2026, 2, 1), date(2026, 2, 2)]
#: From this day on, no identity of the scopes by payer uses lkc-3.
GONE: Final = DAYS[2]
NOW: Final = datetime(2026, 2, 8, 12, tzinfo=UTC)

#: Responses within a scope that depend on the outside, as listed in docs/access.md, with the fields that may therefore
#: differ. All other responses of the tenants in this test are the same.
EXCEPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "Days and runs": frozenset(),
    "The line of a visible row": frozenset(),
    "The resource of a visible row": frozenset(),
    "Statements": frozenset(),
    "Configuration": frozenset({"cost-categories: rules", "cost-categories: values"}),
    "Ids of tags, views and notes": frozenset({"tags: tag_id", "views: id", "notes: id"}),
}


@dataclass(frozen=True)
class World:
    """A tenant: the other identities on the clusters that the scopes by payer share, and costs elsewhere."""

    #: Bytes that others wrote to lkc-1, by name; their sum is always 68.
    others: Mapping[str, int]
    #: Others who are active on lkc-1; their number is the same in every world, because costs are shared evenly.
    members: tuple[str, str, str]
    names: str = "first"
    #: The cost of the cluster of other teams, in another environment.
    elsewhere: str = "50"
    #: The cost of lkc-3 since the scopes by payer have no part of it.
    without_us: str = "40"
    more: bool = False


FIRST: Final = World({"sa-a": 68}, ("sa-a", "sa-b", "sa-f"))
#: Other payers with other amounts, names and additional resources.
OTHERS: Final = World({"sa-c": 41, "sa-d": 20, "sa-e": 7}, ("sa-c", "sa-d", "sa-e"), "second", "87.5", "90", more=True)
#: Differs from FIRST only in another environment.
ELSEWHERE: Final = World({"sa-a": 68}, ("sa-a", "sa-b", "sa-f"), "first", "87.5", "40", more=True)

#: The scopes, and the tenants that differ only outside them.
SCOPES: Final[Mapping[str, tuple[Mapping[str, list[str]], tuple[World, ...]]]] = {
    "identity": ({"identity_id": ["sa-me", "sa-idle"]}, (OTHERS, ELSEWHERE)),
    "tag": ({"tag:team": ["mine"]}, (OTHERS, ELSEWHERE)),
    "category": ({"category:cost_center": ["mine"]}, (OTHERS, ELSEWHERE)),
    "environment": ({"environment_id": ["env-1"]}, (ELSEWHERE,)),
    "cluster": ({"cluster_id": ["lkc-1"]}, (ELSEWHERE,)),
    "resource": ({"resource_id": ["lkc-1", "lkc-4"]}, (ELSEWHERE,)),
    "product": ({"product_type": ["KAFKA_PARTITION"]}, (OTHERS, ELSEWHERE)),
    "both": ({"product_category": ["KAFKA"], "identity_id": ["sa-me"]}, (OTHERS, ELSEWHERE)),
    "nothing": ({"identity_id": []}, (OTHERS, ELSEWHERE)),
}
#: The scopes that share billing lines with others.
PAYERS: Final = ("identity", "tag", "category", "both")


def _bill(world: World, day: date) -> list[BillingLine]:
    shared = Decimal(world.elsewhere) if day >= GONE else Decimal(60)
    alone = Decimal(world.without_us) if day >= GONE else Decimal(30)

    def _line(cost: str | Decimal, resource: str, product: str, **more: Any) -> BillingLine:
        quantity = Decimal(cost)
        return line(
            str(cost), resource=resource, product=product, day=day, quantity=quantity, unit_price=1, unit="GB", **more
        )

    found = [
        _line("97" if day < GONE else "101", "lkc-1", "KAFKA_NETWORK_WRITE"),
        _line("10", "lkc-1", "CLUSTER_LINKING_BASE"),
        # Resources that the scopes by payer do not use.
        _line(shared, "lkc-2", "KAFKA_NETWORK_WRITE"),
        _line(alone, "lkc-3", "KAFKA_BASE"),
        # A resource with one owner, who is in all scopes by payer.
        _line("3", "lkc-4", "KAFKA_PARTITION"),
    ]
    if world.more:
        found += [_line("11", "lkc-9", "KAFKA_NETWORK_READ"), _line("5", "lkc-9", "KAFKA_STORAGE")]
    return found


def _inventory(world: World) -> Inventory:
    elsewhere = f"{world.elsewhere} elsewhere"
    clusters = {"lkc-1": ("shared", "env-1"), "lkc-3": ("left", "env-1"), "lkc-4": ("ours", "env-1")}
    clusters["lkc-2"] = (elsewhere, "env-2")
    resources = [Resource("env-1", "environment", "production"), Resource("env-2", "environment", elsewhere)]
    theirs = {*world.others, *world.members}
    keys = [("sa-me", "lkc-1"), ("sa-idle", "lkc-1"), ("sa-me", "lkc-4")]
    keys += [(who, resource) for who in world.members for resource in ("lkc-1", "lkc-3")]
    keys += [(world.members[0], "lkc-2"), ("sa-z", "lkc-2")]
    if world.more:
        clusters["lkc-9"] = ("more", "env-9")
        resources.append(Resource("env-9", "environment", "another"))
        theirs |= {"sa-y", "sa-x"}
        keys += [("sa-y", "lkc-9"), ("sa-x", "lkc-9")]
    resources += [
        Resource(each, "kafka_cluster", name, parent_id=above, owner_id=world.members[0] if each == "lkc-1" else None)
        for each, (name, above) in clusters.items()
    ]
    identities = [Identity("sa-me", "service_account", "me"), Identity("sa-idle", "service_account", "idle")]
    identities += [
        Identity(each, "service_account", f"{each} {world.names}", metadata={"of": world.names})
        for each in sorted(theirs)
    ]
    identities.append(Identity("sa-z", "service_account", elsewhere))
    grants = [Grant(f"key-{number}", resource, who) for number, (who, resource) in enumerate(keys)]
    grants.append(Grant("key-old", "lkc-3", "sa-me", deleted_at=start_of_day(GONE)))
    return Inventory(resources, identities, grants)


def _totals(world: World) -> dict[str, dict[tuple[str, str], int]]:
    written = {("lkc-1", "sa-me"): 29} | {("lkc-1", who): amount for who, amount in world.others.items()}
    written |= {("lkc-2", world.members[0]): 5, ("lkc-2", "sa-z"): 7 if world.more else 2}
    read = {("lkc-1", "sa-me"): 3} | {("lkc-1", who): 5 for who in world.others}
    if world.more:
        # An identity without visible usage uses resources of others.
        read |= {("lkc-2", "sa-idle"): 4, ("lkc-9", "sa-y"): 9}
    return {"bytes_in": written, "bytes_out": read}


def _topics(world: World) -> dict[str, dict[tuple[str, str], int]]:
    others = {f"{world.names}-{who}": amount for who, amount in world.others.items()}
    written = {("lkc-1", "orders"): 29} | {("lkc-1", name): amount for name, amount in others.items()}
    written |= {("lkc-2", "elsewhere"): 1 + len(world.elsewhere)}
    if world.more:
        written |= {("lkc-9", "more"): 4, ("lkc-2", "and more"): 6}
    return {"topic_bytes_in": written, "topic_bytes_out": dict.fromkeys(written, 1)}


def _fill(world: World, store: TenantStore) -> None:
    """Give a tenant tags, a cost category, and saved items; those of others are created before ours."""
    theirs = [TagWrite(IDENTITY, "sa-z", "team", "theirs"), TagWrite(RESOURCE, "lkc-2", "stage", "dev")]
    if world is OTHERS:
        theirs += [TagWrite(IDENTITY, each, "secret", f"of {each}") for each in world.others]
        theirs += [TagWrite(IDENTITY, each, "team", "others") for each in world.others]
    if world.more:
        theirs += [TagWrite(IDENTITY, "sa-y", "hidden", "value"), TagWrite(RESOURCE, "lkc-9", "team", "theirs")]
    ours = [TagWrite(IDENTITY, each, "team", "mine") for each in ("sa-me", "sa-idle")]
    ours.append(TagWrite(RESOURCE, "lkc-1:topic:orders", "team", "mine"))
    rules: list[dict[str, Any]] = [
        {"match": {"resource": "lkc-4"}, "split": {"mine": "60", "theirs": "40"}},
        {"match": {"identity": ["sa-me", "sa-idle"]}, "assign": "mine"},
        {"match": {"topic": "orders"}, "assign": "mine"},
        {"match": {"resource": "lkc-2"}, "assign": "theirs"},
    ]
    if world.more:
        rules.append({"match": {"resource": "lkc-9"}, "assign": "others"})
    with store.control.write() as connection:
        for written in (theirs, ours):
            tags.write_many(connection, store.tenant_id, written, created_by="test", override=False)
        connection.execute(update(schema.tags).values(created_at=NOW))
        document = json.dumps({"rules": rules})
        # Changes get increasing timestamps, and the two tenants were not filled at the same time.
        connection.execute(update(schema.tenant).values(facts_changed_at=None))
        write_category(
            connection,
            CategoryWrite("cost_center", document, f"for {world.names}"),
            expected=None,
            clock=FixedClock(NOW),
        )
        for number in range(3 if world.more else 1):
            create_view(connection, ViewWrite(f"Of others {number}", "costs", ""), "somebody")
            create_note(connection, NoteWrite(DAYS[0], DAYS[-1], f"Of others {number}"), "somebody")
            put_snooze(connection, finding_id("idle_identity", f"sa-{number}"), "known", None, "somebody")
            add_mark(
                connection, MarkedDays("", f"sa-{number}", None, "planned", DAYS[0], DAYS[-1], "secret", "somebody")
            )
            key = StatementKey(f"S-{number}", "2026-02", "identity_id", "sa-z", 1, "none")
            add_reply(connection, key, DISPUTED, "no", DAYS[-1], "somebody")
        for name, (scope, _) in SCOPES.items():
            create_view(connection, ViewWrite("Mine", "costs", ""), name)
            create_note(connection, NoteWrite(DAYS[0], DAYS[0], "Mine"), name, RowScope.of(scope).digest)
        connection.execute(update(schema.views).values(created_at=NOW))
        connection.execute(update(schema.notes).values(created_at=NOW, changed_at=NOW))


def _opened(stack: ExitStack, folder: Path, world: World) -> FastAPI:
    """Return the application for a tenant with calculated and corrected days."""
    laboratory = stack.enter_context(Laboratory(folder, days=len(DAYS)))
    laboratory.clock = FixedClock(NOW)
    sources = laboratory.sources
    sources.listed, sources.totals, sources.topic_totals = _inventory(world), _totals(world), _topics(world)
    sources.lines = {day: _bill(world, day) for day in DAYS}
    laboratory.run()
    _fill(world, laboratory.store)
    store, rules = laboratory.store, AllocationRules.of(laboratory.tenant)
    tenant = TenantView(
        *(store.tenant_name, store.tenant_id, store.ecosystem, 12, store),
        topic_attribution_status="enabled",
        rules=rules,
    )
    services = Services("1.2.3", "api", ApiLimits(query_threads=1), {store.tenant_name: tenant}, clock=FixedClock(NOW))
    return create_app(_authenticated(services))


def _authenticated(services: Services) -> Services:
    return replace(services, authenticate=Callers.of(CALLERS.values()))


CALLERS: Final[Mapping[str, Caller]] = {
    name: caller(name, Right.ADMIN, scope=scope) for name, (scope, _) in SCOPES.items()
} | {"whole": caller("whole", Right.ADMIN)}


ACME: Final = "/tenants/{tenant_name}"
_DAYS: Final = {"start_date": DAYS[0].isoformat(), "end_date": DAYS[-1].isoformat()}
_MONTH: Final = {"period": "2026-02", "by": "identity_id"}
_BY_CATEGORY: Final = {"period": "2026-02", "by": "category:cost_center"}
_TWO_RANGES: Final = {"start_date": "2026-02-01", "end_date": "2026-02-02", "compare": "2026-01-30..2026-01-31"}
_AS_OF: Final = {"as_of": "2026-02-08T13:00:00Z"}
_SINCE: Final = {"from_as_of": "2026-02-08T13:00:00Z"}
_COST_PARTS: Final = {
    "include": "issues,days,forecast,topics",
    "by": ["identity_id", "tag:team", "category:cost_center"],
}

#: The query parameters of routes, by the end of their paths; others are requested with only the required ones.
QUERIES: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "/chargebacks": [{}, {"names": "true", "sort_by": "amount", "sort_order": "desc", **_AS_OF}],
    "/costs": [_TWO_RANGES | _COST_PARTS, {"period": "2d", **_AS_OF}],
    "/costs.csv": [_TWO_RANGES],
    "/series": [_DAYS | {"group_by": "resource_id"}],
    "/flow": [_TWO_RANGES | {"by": ["resource_id", "identity_id"]}],
    "/graph": [_DAYS, {**_DAYS, "leaves": "topics"}],
    "/graph/diff": [_TWO_RANGES],
    "/graph/timeline": [_DAYS],
    "/chargebacks/diff": [_SINCE],
    "/chargebacks/changes": [
        {**_TWO_RANGES, "group_by": each}
        for each in ("identity_id", "resource_id", "product_type", "tag:team", "category:cost_center")
    ],
    "/chargebacks/aggregate": [{**_DAYS, "group_by": ["identity_id", "resource_id"], "names": "true"}, _AS_OF],
    "/topic-attributions/aggregate": [{**_DAYS, "group_by": ["topic_name"]}],
    "/findings": [{"min_days": 1, "state": "all"}],
    "/findings.csv": [{"min_days": 1, "state": "all"}],
    "/unit-costs": [{**_DAYS, "group_by": "identity_id"}, {**_DAYS, "per": "gib_out"}],
    "/search": [{"q": "a", "limit": 50}, {"q": "second"}],
    "/statements": [_BY_CATEGORY, _MONTH, {"period": "2026-02", "by": "tag:team"}],
    "/statements.csv": [_BY_CATEGORY],
    "/statements.zip": [_BY_CATEGORY, _MONTH],
    "/topics": [_TWO_RANGES],
    "/topics.csv": [_TWO_RANGES],
    "/statement": [{**_MONTH, "value": "sa-me"}, {**_BY_CATEGORY, "value": "mine"}],
    "/statement.html": [{**_MONTH, "value": "sa-me"}, {**_BY_CATEGORY, "value": "mine"}],
    "/statement.csv": [{**_MONTH, "value": "sa-me"}],
    "/statement.pdf": [{**_MONTH, "value": "sa-me"}],
    "/periods/{period}/journal": [{"by": "identity_id"}],
}
#: The values for the parts of paths, in all combinations.
PARTS: Final[Mapping[str, Sequence[str]]] = {
    "date": [DAYS[-1].isoformat()],
    "entity_type": ["identity", "resource"],
    "entity_id": ["sa-me", "lkc-1", "sa-z", "lkc-9"],
    "tag_key": ["team", "secret", "stage"],
    "period": ["2026-02"],
    "category_key": ["cost_center"],
    "simulation_id": ["0" * 64],
    "effective_from": ["2099-01-01"],
    "shadow_name": ["next"],
    "budget_id": ["all"],
    "note_id": ["1"],
    "sink_name": ["desk"],
    "contract_id": ["provider"],
}
#: POST requests that only read.
READING: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    f"{ACME}/export": [{"format": each} for each in ("csv", "parquet", "jsonl")],
    f"{ACME}/topic-attributions/export": [{"format": each} for each in ("csv", "parquet")],
    f"{ACME}/tags/bulk-by-filter": [{"tag_key": "x", "display_name": "y", "dry_run": True}],
    f"{ACME}/export/focus": [{}],
    f"{ACME}/reconciliation/external": [{}],
}
TOOL_CALLS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "describe": [{}, {"tenant": "acme"}],
    "search_entities": [{"tenant": "acme", "query": "a", "limit": 50}],
    "query_costs": [
        {"tenant": "acme", "group_by": ["identity_id", "resource_id"], "limit": 50},
        {"tenant": "acme", "group_by": ["topic_name", "cluster_resource_id"], "dataset": "topics"},
    ],
    "compare_periods": [{"tenant": "acme", "period": "2d", "group_by": ["resource_id"]}],
    "explain_charge": [{"tenant": "acme", "date": DAYS[-1].isoformat(), "identity_id": "sa-me"}],
    "list_findings": [{"tenant": "acme", "limit": 50}],
    "anomalies": [{"tenant": "acme", "limit": 50}],
    "budget_status": [{"tenant": "acme"}, {"tenant": "acme", "month": "2026-02"}],
    "forecast": [{"tenant": "acme"}],
    "get_statement": [
        {"tenant": "acme", "period": "2026-02", "by": "identity_id"},
        {"tenant": "acme", "period": "2026-02", "by": "identity_id", "value": "sa-me"},
    ],
}
#: Response headers that are not compared.
_HEADERS: Final = frozenset({"date"})


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    query: Mapping[str, Any]
    body: Mapping[str, Any] | None = None
    whole: bool = False

    def __str__(self) -> str:
        return (
            f"{self.method} {self.path} {json.dumps(self.query)} {'' if self.body is None else json.dumps(self.body)}"
        )


def _everything(app: FastAPI, rows: Sequence[Any], topics: Sequence[Any], most: int | None = None) -> Iterator[Asked]:
    """Yield requests to every route, at most ``most`` for each, and requests about one row for every row."""
    for route in api_routes(app.routes):
        reach = RequiredAccess.of(route)
        assert reach is not None
        path = route.path.removeprefix(PREFIX)
        if route.methods == {"GET"}:
            for filled in _filled(route.path, rows):
                queries = _about_rows(path.removeprefix(ACME), rows, topics)
                if not path.endswith("/explain"):
                    queries = queries or QUERIES.get(path.removeprefix(ACME), [{}])[:most]
                for query in queries:
                    yield Asked("GET", filled, query, whole=reach.whole)
        elif path in READING:
            for body in READING[path][:most]:
                yield Asked("POST", route.path.format(tenant_name="acme"), {}, body, whole=reach.whole)


def _filled(path: str, rows: Sequence[Any]) -> Iterator[str]:
    parts = {"tenant_name": ["acme"], **PARTS, "dimension_id": sorted({str(row["dimension_id"]) for row in rows})[:2]}
    names = re.findall(r"\{(\w+)", path)
    for values in product(*(parts[name] for name in names)):
        yield re.sub(r":path\}", "}", path).format(**dict(zip(names, values, strict=True)))


def _about_rows(path: str, rows: Sequence[Any], topics: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    if path == "/chargebacks/explain":
        return [
            {
                "date": row["timestamp"][:10],
                **{name: row["metadata"][name] for name in ("line_id", "portion")},
                "identity_id": row["identity_id"],
            }
            for row in rows
        ]
    if path == "/topic-attributions/explain":
        return [
            {"date": row["timestamp"][:10], "line_id": row["metadata"]["line_id"], "topic_name": row["topic_name"]}
            for row in topics
        ]
    return []


class Twins:
    """Tenants that are alike, each with its own application in this process."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._runner = stack.enter_context(asyncio.Runner())
        self._lifespans = AsyncExitStack()
        stack.callback(lambda: self._runner.run(self._lifespans.aclose()))
        self._stack, self._folder = stack, folder
        self._opened: dict[int, tuple[FastAPI, httpx.AsyncClient]] = {}

    def of(self, world: World) -> tuple[FastAPI, httpx.AsyncClient]:
        """Return the application of a world, and its client."""
        if id(world) not in self._opened:
            self._opened[id(world)] = self._runner.run(self._open(world))
        return self._opened[id(world)]

    async def _open(self, world: World) -> tuple[FastAPI, httpx.AsyncClient]:
        app = _opened(self._stack, self._folder / str(len(self._opened)), world)
        await self._lifespans.enter_async_context(app.router.lifespan_context(app))
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
        return app, await self._lifespans.enter_async_context(client)

    def ask(self, world: World, who: str, asked: Asked, **headers: str) -> httpx.Response:
        """Return the response to a request of a caller."""
        _, client = self.of(world)
        return self._runner.run(
            client.request(
                asked.method, asked.path, params=asked.query, json=asked.body, headers=asked_by(who) | headers
            )
        )

    def items(self, world: World, who: str, path: str) -> list[Any]:
        """Return the visible rows."""
        asked = Asked("GET", f"{PREFIX}/tenants/acme/{path}", {**_DAYS, "page_size": 1000})
        found: list[Any] = self.ask(world, who, asked).json()["items"]
        return found

    def call(self, world: World, who: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the response of a tool of an assistant."""
        api = ApiClient(self.of(world)[0], Sender(CALLERS[who]), "http://localhost/ui")
        try:
            return json.dumps(self._runner.run(TOOLS[tool].call(api, dict(arguments))))
        except ToolError as error:
            return f"error: {error.message}"


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """The tenants, each made when it is needed."""
    with ExitStack() as stack:
        yield Twins(stack, tmp_path_factory.mktemp("twins"))


def _shown(response: httpx.Response, path: str) -> Any:
    """Return the content of a response without the fields of documented exceptions."""
    headers = {name: value for name, value in response.headers.items() if name not in _HEADERS}
    masked = _masked(path)
    if not masked or response.status_code != 200:
        return response.status_code, headers, response.content
    text = response.text
    if "json" in headers["content-type"]:
        text = json.dumps(_without(response.json(), masked))
    else:
        lines = list(csv.DictReader(io.StringIO(text)))
        text = json.dumps(_without(lines, masked))
    # These headers depend on the whole body.
    return response.status_code, {k: v for k, v in headers.items() if k not in {"etag", "content-length"}}, text


def _masked(path: str) -> frozenset[str]:
    """Return the fields of documented exceptions in the responses of a path."""
    end = path.rpartition("/")[2].removesuffix(".csv")
    fields = (each.split(": ") for each in frozenset[str]().union(*EXCEPTIONS.values()))
    return frozenset(field for of, field in fields if of == end)


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(each, names) for name, each in value.items() if name not in names}
    return [_without(each, names) for each in value] if isinstance(value, list) else value


def test_the_exceptions_are_documented() -> None:
    """The page about access lists exactly the exceptions of this test."""
    table = ACCESS_PAGE.read_text(encoding="utf-8").partition("| what | ")[2].partition("\n\n")[0]
    assert [row.split("|")[1].strip() for row in table.splitlines()[2:]] == list(EXCEPTIONS)


def _differences(twins: Twins, name: str, others: Sequence[World], asked: Asked) -> Iterator[str]:
    """Yield the differences between responses to a caller, each of which reveals something outside."""
    mine = twins.ask(FIRST, name, asked)
    assert mine.status_code in ({403} if asked.whole else {200, 404}), f"{asked}: {mine.text}"
    for other in others:
        theirs = twins.ask(other, name, asked)
        if _shown(mine, asked.path) != _shown(theirs, asked.path):
            yield f"{name}: {asked}\n  {mine.headers} {mine.text}\n  {theirs.headers} {theirs.text}"


def _differing_tools(twins: Twins, name: str, others: Sequence[World]) -> Iterator[str]:
    for tool in TOOLS:
        for arguments in TOOL_CALLS[tool]:
            mine = twins.call(FIRST, name, tool, arguments)
            for other in others:
                if (theirs := twins.call(other, name, tool, arguments)) != mine:
                    yield f"{name}: {tool} {arguments}\n  {mine}\n  {theirs}"


def test_no_answer_depends_on_the_outside(twins: Twins) -> None:
    """No status, header or body of any route or tool differs between tenants that differ only outside the scope. Each
    route is requested with one kind of scope."""
    kinds = cycle(PAYERS)
    rows = [row for row in twins.items(FIRST, "both", "chargebacks") if row["timestamp"][:10] == str(DAYS[-1])]
    topics = twins.items(FIRST, "tag", "topic-attributions")[-1:]
    # PDF files have the same content as pages, which are faster.
    everything = _everything(twins.of(FIRST)[0], rows, topics, most=1)
    questions = [each for each in everything if not each.path.endswith(".pdf")]
    told = [each for asked in questions for each in _differences(twins, next(kinds), [OTHERS], asked)]
    told += _differing_tools(twins, "tag", [OTHERS])
    assert told == []


@pytest.mark.drill
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SCOPES)
def test_no_answer_to_any_scope_depends_on_the_outside(twins: Twins, name: str) -> None:
    """Within every scope, every request about every visible row has the same response."""
    others = SCOPES[name][1]
    rows, topics = (twins.items(FIRST, name, path) for path in ("chargebacks", "topic-attributions"))
    questions = _everything(twins.of(FIRST)[0], rows, topics)
    told = [each for asked in questions for each in _differences(twins, name, others, asked)]
    told += _differing_tools(twins, name, others)
    assert told == []


def test_the_whole_differs(twins: Twins) -> None:
    """Without a scope, these responses differ, so the tests above would notice a difference."""
    for end in ("chargebacks", "billing", "resources.csv", "tags/keys", "costs", "search?q=a", "topics"):
        asked = Asked("GET", f"{PREFIX}/tenants/acme/{end}", {})
        assert list(_differences(twins, "whole", [OTHERS], asked)), end


@pytest.mark.parametrize("path", ["costs", "chargebacks", "findings"])
def test_changes_outside_leave_what_a_client_has(twins: Twins, path: str) -> None:
    """A caller with a scope gets 304 after changes outside the scope; without a scope, the response changes."""
    asked = Asked("GET", f"{PREFIX}/tenants/acme/{path}", {})
    for who, status in (("identity", 304), ("tag", 304), ("category", 304), ("whole", 200)):
        tag = twins.ask(FIRST, who, asked).headers["etag"]
        again = [twins.ask(world, who, asked, **{"If-None-Match": tag}) for world in (OTHERS, OTHERS, FIRST)]
        assert [each.status_code for each in again] == [status, status, 304]
