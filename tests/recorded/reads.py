"""The GET requests of a tenant: every list and sum with each of its parameters, and single objects."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from tests.recorded.content import CHANGE, MONTH
from tests.recorded.questions import (
    AS_OF,
    CHEAP,
    CSV,
    NOBODY,
    REQUIRED,
    TENANT,
    Json,
    Known,
    Params,
    Question,
    joined,
    path_of,
)

#: Requests with combined parameters, by the path within a tenant.
_GROUPS: Final = (
    "group_by=product_type&time_bucket=week",
    "group_by=identity_id&group_by=product_category&time_bucket=all&names=true",
    "group_by=tag:team&time_bucket=month",
    "group_by=tag:cost-center&group_by=tag:env&time_bucket=all",
    "group_by=category:business_unit&time_bucket=day&period=7d",
    "group_by=category:business_unit@1&time_bucket=all&period=month",
    "group_by=category:chain&group_by=identity_id&time_bucket=all&period=7d&names=true",
    "group_by=category:chain&group_by=tag:team&time_bucket=month",
    "group_by=environment_id&group_by=cluster_id&group_by=cost_type&time_bucket=all&names=true",
    "group_by=allocation_method&group_by=allocation_detail&time_bucket=all",
    "group_by=resource_id&time_bucket=hour&start_date=2026-03-29&end_date=2026-03-30&timezone=Europe/Berlin",
    "group_by=product_category&time_bucket=day&start_date=2026-03-28&end_date=2026-03-30&timezone=America/New_York",
    "group_by=product_category&time_bucket=week&timezone=Australia/Lord_Howe",
    "group_by=product_category&time_bucket=month&timezone=Pacific/Kiritimati&currency=EUR",
    "group_by=product_category&time_bucket=month&currency=JPY&start_date=2026-03-20&end_date=2026-04-02",
    "group_by=tag:team&category:chain=a&not.tag:env=prod&time_bucket=all",
)
_COMBINED: Final[Mapping[str, Sequence[str]]] = {
    "/chargebacks/aggregate": _GROUPS,
    "/chargebacks/aggregate.csv": _GROUPS[:9],
    "/topic-attributions/aggregate": (
        "group_by=topic_name&time_bucket=all",
        "group_by=cluster_resource_id&group_by=env_id&time_bucket=week",
        "group_by=attribution_method&group_by=product_type&time_bucket=month&currency=EUR",
        "group_by=tag:owner&time_bucket=all",
        "group_by=category:business_unit&group_by=product_category&time_bucket=all",
        "group_by=topic_name&tag:owner=x&time_bucket=day",
        "group_by=env_id&time_bucket=day&timezone=Europe/Berlin&start_date=2026-03-28&end_date=2026-03-30",
    ),
    "/topic-attributions/aggregate.csv": ("group_by=topic_name&group_by=tag:owner&time_bucket=all",),
    "/costs": (
        "by=identity_id&by=tag:team&by=category:chain&series=tag:team&top=3&include=issues,days,forecast,topics",
        "by=category:business_unit&time_bucket=week&compare=none",
        "by=category:business_unit@1&by=cost_type&time_bucket=month&currency=EUR&period=7d",
        "by=product_type&compare=2026-03-01..2026-03-10&start_date=2026-03-11&end_date=2026-03-20",
        "by=resource_id&tag:team=payments&not.cost_type=shared&timezone=Europe/Berlin&period=7d",
        "by=allocation_detail&by=environment_id&by=cluster_id&top=2&period=last-month",
    ),
    "/costs.csv": ("by=tag:team&by=category:chain&series=tag:team&top=3", "by=product_type&compare=none&period=7d"),
    "/series": (
        "group_by=tag:team&time_bucket=week&top=2",
        "group_by=category:chain&time_bucket=month",
        "group_by=category:business_unit@1&period=7d&currency=EUR",
        "group_by=cluster_id&timezone=Europe/Berlin&start_date=2026-03-28&end_date=2026-03-30",
    ),
    "/flow": (
        "by=environment_id&by=tag:team&top=2&compare=none",
        "by=product_category&by=category:chain&by=category:business_unit&top=2,3,4&period=7d",
        "by=cluster_id&by=resource_id&by=identity_id&by=cost_type&top=2&period=month&currency=EUR",
    ),
    "/graph": (
        "depth=5&top=2",
        "leaves=topics&depth=4&top=3",
        "leaves=none&depth=3&category:chain=a",
        "tag:team=payments&top=3",
    ),
    "/graph/diff": (
        "depth=3&top=3&compare=previous&period=7d",
        "leaves=topics&depth=3&top=2&period=7d",
        "compare=year",
    ),
    "/graph/timeline": (
        "time_bucket=week&leaves=topics",
        "time_bucket=month&period=quarter",
        "category:chain=a&period=7d",
    ),
    "/topics": ("period=7d&top=3&currency=EUR", "tag:owner=x", "category:chain=a&period=7d", "identity_id=x&period=7d"),
    "/topics.csv": ("period=7d&top=5",),
    "/unit-costs": (
        "per=gib_in&group_by=tag:team&period=7d",
        "per=gib_out&group_by=identity_id&limit=3&period=month",
        "per=gib_in&group_by=category:business_unit&period=7d&currency=EUR",
        "per=gib_out&group_by=cluster_id&group_by=product_type&period=7d",
    ),
    "/unit-costs.csv": ("per=gib_out&group_by=identity_id&limit=3&period=7d",),
    "/chargebacks": (
        "sort_by=amount&sort_order=desc&page_size=5",
        "sort_by=amount&sort_order=asc&page_size=5&page=3&names=true",
        "sort_by=timestamp&sort_order=desc&page_size=5&category:chain=a",
        "tag:team=payments&not.product_category=KAFKA&cost_type=usage&min_amount=1&page_size=10",
        "start_date=2026-03-28&end_date=2026-03-30&timezone=America/New_York&page_size=7",
    ),
    "/chargebacks.csv": (
        "period=2d",
        "start_date=2026-03-30&end_date=2026-03-30&category:chain=a",
        "period=2d&names=true",
    ),
    "/billing.csv": ("period=7d", "period=7d&product_category=KAFKA&tag:env=prod"),
    "/topic-attributions.csv": ("period=2d", "period=2d&category:business_unit=orders"),
    "/chargebacks/changes": (
        "group_by=product_type&period=7d&limit=5",
        "group_by=identity_id&group_by=product_category&compare=2026-03-01..2026-03-07&period=7d&limit=5",
        "group_by=tag:team&from_start=2026-03-01&from_end=2026-03-10&to_start=2026-03-20&to_end=2026-03-31",
        "group_by=category:chain&period=7d",
        "group_by=resource_id&period=7d&tag:team=payments&timezone=Europe/Berlin",
    ),
    "/chargebacks/diff": (
        f"from_as_of={AS_OF[0]}&group_by=product_type",
        f"from_as_of={AS_OF[0]}&as_of={AS_OF[1]}&group_by=identity_id&group_by=resource_id&limit=4",
        f"from_as_of={AS_OF[1]}&as_of={AS_OF[2]}&group_by=tag:team",
        f"from_as_of={AS_OF[0]}&group_by=category:chain&limit=3",
    ),
    "/reconciliation": tuple(
        f"group_by={by}&{when}"
        for by in ("day", "month", "product_type", "resource_id")
        for when in ("period=7d", "period=quarter", f"period=quarter&as_of={AS_OF[0]}")
    ),
    "/cost-categories/business_unit/coverage": (
        "period=7d",
        "period=month&product_category=KAFKA",
        "period=7d&tag:env=prod",
    ),
    "/cost-categories/chain/coverage": ("period=7d",),
    "/cost-categories/business_unit/history": ("page_size=1", "page_size=1&page=2"),
    "/cost-categories/chain": ("version=1", "version=2", "version=3"),
    "/cost-categories/gone": ("", "version=1"),
    "/cost-categories/gone/history": ("",),
    "/cost-categories/chain/rules.csv": ("",),
    "/cost-categories/none": ("",),
    "/inventory/summary": ("",),
    "/resources": (
        "sort_by=display_name&sort_order=desc&page_size=5",
        "tag_key=env&tag_value=prod",
        "search=%25&page_size=2",
    ),
    "/identities": ("sort_by=display_name&page_size=5", "tag_key=team&page_size=3", "search=%5C"),
    "/usage": ("sort_by=value&sort_order=desc&page_size=3", "measure=bytes_in&period=2d&page_size=4&page=2"),
    "/findings": (
        "kind=topic_never_read&kind=idle_identity",
        "state=snoozed&min_days=1",
        "state=all&min_days=1&page_size=5",
    ),
    "/findings.csv": ("min_days=1", "state=all&min_days=3"),
    "/export/focus/metadata": ("version=1.4&split=topics", "version=1.4&split=none", "split=identities&period=7d"),
}
#: Parts of paths whose requests are created separately.
_APART: Final = ("/explain", "/statement", "/journal", "/entities/", "/revisions", "{")


#: The maximum number of requested values of a parameter; 2 for all others.
_MOST: Final = {"tag:<key>": 6, "category:<key>": 7, "not.<filter>": 5, "as_of": 5, "timezone": 4, "period": 4, "by": 4}
#: The parameters of every endpoint; without periods, they have no effect.
_COMMON: Final = ("start_date", "end_date", "timezone", "page", "page_size")
_ALL_COMMON: Final = "start_date=2026-03-27&end_date=2026-03-30&timezone=Europe/Berlin&page=2&page_size=3"
#: The parameters of a thin spread: those with names as values.
_NAMED: Final = re.compile(r".*_id|.*>|topic_name|product_type|q|search|focus|group_by|by|names|subject|tag_.*|as_of")


def spread(document: Json, known: Known, *, thin: bool) -> Iterator[Question]:
    """Yield the GET requests of every list and sum: each parameter alone, and combinations.

    A ``thin`` spread has only one value of each parameter with names as values; so have files.
    """
    values, tenant = known.values(), known.tenant
    for template, operations in document["paths"].items():
        inner = template.removeprefix(TENANT)
        if "get" not in operations or inner == template or any(part in inner for part in _APART):
            continue
        required = REQUIRED.get(inner, "")
        yield Question(joined(template, tenant, required))
        parameters = [each for each in operations["get"].get("parameters", ()) if each["in"] == "query"]
        names = {each["name"] for each in parameters}
        if "period" not in names:
            parameters = [each for each in parameters if each["name"] not in _COMMON]
            yield Question(joined(template, tenant, required, _ALL_COMMON))
        short = thin or inner.endswith(".csv")
        singles: list[list[str]] = []
        for each in parameters:
            asked = list(_asked(each, values, inner))
            most = _MOST.get(each["name"], 2) if not short else int(bool(_NAMED.fullmatch(each["name"])))
            singles.append(asked[:most])
            for one in asked[:most]:
                yield Question(joined(template, tenant, required, one, _small(inner, one, names)))
        yield from (Question(joined(template, tenant, each)) for each in _COMBINED.get(inner, ()))
        yield from _several(template, tenant, required, [each for each in singles if each], 1 if short else 6)
    for inner, combined in _COMBINED.items():
        if "/cost-categories/" in inner:
            yield from (Question(joined(TENANT + inner, tenant, each)) for each in combined)


def _asked(parameter: Json, values: Mapping[str, list[list[str]]], inner: str) -> Iterator[str]:
    """Yield the queries of one parameter."""
    name, schema = parameter["name"], parameter["schema"]
    choices = schema.get("enum") or schema.get("items", {}).get("enum")
    if name.endswith(">"):
        yield from (urlencode([each.partition("=")[::2] for each in one]) for one in values[name])
    elif name == "version" and "/focus" in inner:
        yield from ("version=1.2", "version=1.4")
    elif choices is not None and name not in {"split"}:
        yield from (urlencode({name: each}) for each in choices[:9])
    elif schema.get("type") == "boolean":
        yield f"{name}=true"
    elif name == "group_by" or name not in values:
        return
    else:
        yield from (urlencode([(name, each) for each in one]) for one in values[name] if one)


def _small(inner: str, query: str, names: Collection[str]) -> str:
    """Return parameters that keep the response small: a page of few entries, or the days of a week."""
    more = []
    if inner in CHEAP and not query.startswith("page"):
        more.append("page_size=20")
    if not query.startswith(("period", "start_", "end_", "timezone", "as_of", "currency", "from_as_of", "compare")):
        more.append("period=7d" if "period" in names else "")
    return "&".join(filter(None, more))


def _several(template: str, tenant: str, required: str, singles: Sequence[list[str]], count: int) -> Iterator[Question]:
    """Yield requests with several parameters, always the same ones."""
    rng = random.Random(f"{template} {tenant}")
    for _ in range(count if len(singles) > 3 else 0):
        chosen = rng.sample(range(len(singles)), 3)
        yield Question(joined(template, tenant, required, *(rng.choice(singles[index]) for index in chosen)))


def of_usual(known: Known) -> Iterator[Question]:
    """Yield requests that read many rows."""
    tenant = known.tenant
    for inner, combined in _COMBINED.items():
        few = combined[:3] if inner != "/chargebacks/aggregate" else combined
        yield from (Question(joined(TENANT + inner, tenant, each)) for each in few)
    yield Question(path_of(f"{TENANT}/chargebacks.csv", tenant, [("period", "7d")]))
    yield Question(path_of(f"{TENANT}/chargebacks", tenant, [("page_size", "1000"), ("page", "40")]))


def places(known: Known) -> Iterator[Question]:
    """Yield requests about single objects: dimensions, days, tags of an entity, categories."""
    tenant, rows = known.tenant, known.rows

    def _get(path: str, *params: tuple[str, str], **parts: str) -> Question:
        return Question(path_of(TENANT + path, tenant, params, **parts))

    for row in rows[:200:50]:
        yield _get("/chargebacks/{dimension_id}", dimension_id=str(row["dimension_id"]))
    yield _get("/chargebacks/{dimension_id}", ("as_of", AS_OF[0]), dimension_id=str(rows[0]["dimension_id"]))
    yield _get("/chargebacks/{dimension_id}", dimension_id="12345")
    for day in ("2026-03-30", "2026-03-27", "2026-04-01", "2026-04-03", "2020-01-01", "2026-02-30"):
        yield _get("/days/{date}/revisions", date=day)
    entities = [("identity", each) for each in known.most("identity_id")[:6]]
    entities += [("resource", each) for each in known.most("resource_id")[:3]]
    entities += [
        ("resource", ":topic:".join((r["cluster_resource_id"], r["topic_name"]))) for r in known.topic_rows[:9:3]
    ]
    for entity_type, entity_id in [*entities, ("identity", NOBODY), ("thing", "x")]:
        yield _get("/entities/{entity_type}/{entity_id}/tags", entity_type=entity_type, entity_id=entity_id)
    for key in ("team", "cost-center", "env", "owner", "none", "a.b:c-d_e"):
        yield _get("/tags/keys/{tag_key}/values", tag_key=key)
        yield _get("/tags/keys/{tag_key}/values", ("q", "P"), tag_key=key)
    for key in ("business_unit", "chain", "none"):
        for subject in _subjects(known):
            yield _get("/cost-categories/{category_key}/resolve", *subject, category_key=key)
        yield _get("/cost-categories/{category_key}", category_key=key)
        yield _get("/cost-categories/{category_key}/history", category_key=key)
        yield _get("/cost-categories/{category_key}/rules.csv", category_key=key)


def _subjects(known: Known) -> Iterator[Params]:
    for row in known.rows[::300]:
        columns = ("identity_id", "resource_id", "product_type", "product_category")
        yield [(name, row[name]) for name in columns] + [("date", row["timestamp"][:10])]
    for row in known.topic_rows[:400:200]:
        yield [("resource_id", row["cluster_resource_id"]), ("topic", row["topic_name"]), ("date", "2026-04-02")]
    yield [("identity_id", known.most("identity_id")[2])]
    yield []


def explanations(known: Known, most: int) -> Iterator[Question]:
    """Yield explanations of rows that were split in different ways, and of rows that do not exist."""
    tenant = known.tenant
    chosen: dict[tuple[str, ...], Json] = {}
    for row in known.rows:
        chosen.setdefault((row["allocation_method"], row["allocation_detail"], row["product_type"]), row)
    template = f"{TENANT}/chargebacks/explain"
    for number, row in enumerate(list(chosen.values())[:most]):
        key = [("date", row["timestamp"][:10]), ("line_id", row["metadata"]["line_id"])]
        whose = ("identity_id", row["identity_id"])
        portion = ("portion", str(row["metadata"]["portion"]))
        yield Question(path_of(template, tenant, [*key, whose, portion]))
        if number % 5 == 0:
            yield Question(path_of(template, tenant, [*key, ("identity_id", NOBODY)]))
            yield Question(path_of(template, tenant, [*key, whose]))
            yield Question(path_of(template, tenant, [*key, whose, portion, ("page_size", "2"), ("page", "2")]))
            yield Question(path_of(template, tenant, [*key, whose, portion, ("as_of", AS_OF[0])]))
    yield Question(path_of(template, tenant, [("date", CHANGE), ("line_id", "none"), ("identity_id", "x")]))
    yield Question(path_of(template, tenant, [("date", "2026-04-03"), ("line_id", "none"), ("identity_id", "x")]))
    template = f"{TENANT}/topic-attributions/explain"
    of_topics: dict[tuple[str, ...], Json] = {}
    for row in known.topic_rows:
        of_topics.setdefault((row["attribution_method"], row["product_type"], row["cluster_resource_id"]), row)
    for number, row in enumerate(list(of_topics.values())[: most // 2]):
        key = [("date", row["timestamp"][:10]), ("line_id", row["metadata"]["line_id"])]
        yield Question(path_of(template, tenant, [*key, ("topic_name", row["topic_name"])]))
        if number % 4 == 0:
            yield Question(path_of(template, tenant, [*key, ("topic_name", "none")]))
            yield Question(path_of(template, tenant, [*key, ("topic_name", "__UNATTRIBUTED__"), ("page_size", "2")]))


def finance(known: Known, *, thin: bool) -> Iterator[Question]:
    """Yield statements and journals."""
    tenant = known.tenant
    ways = ("identity_id", "tag:team", "category:business_unit", "category:chain", "category:none")
    for period in ("2026-04",) if thin else ("2026-02", "2026-04", "2026-05"):
        for by in ways if period == "2026-04" else ways[:3]:
            asked = [("period", period), ("by", by)]
            yield Question(path_of(f"{TENANT}/statements", tenant, asked))
            if period == "2026-04":
                yield Question(path_of(f"{TENANT}/statements.csv", tenant, asked))
    for by in ways[:-1]:
        asked = [("period", MONTH), ("by", by)]
        found = known.get("statements", period=MONTH, by=by)["items"]
        for number, each in enumerate(found[: 1 if thin else 3]):
            whose = [*asked, ("value", each["recipient"]["value"])]
            for form in ("", ".csv", ".html") if number == 0 else ("",):
                yield Question(path_of(f"{TENANT}/statement{form}", tenant, whose))
        whose = [*asked, ("value", found[0]["recipient"]["value"])]
        yield Question(path_of(f"{TENANT}/statement", tenant, [*whose, ("as_of", AS_OF[1])]))
        yield Question(path_of(f"{TENANT}/statement", tenant, [*asked, ("value", NOBODY)]))
        if by == "tag:team":
            yield Question(path_of(f"{TENANT}/statement.pdf", tenant, whose))
    journal = f"{TENANT}/periods/{{period}}/journal"
    for query in ("", "by=tag:team", "by=category:chain", "by=identity_id&format=csv", "template=sap", "template=none"):
        yield Question(joined(journal.replace("{period}", MONTH), tenant, query))
    if not thin:
        more = ("template=net", "template=book", "template=wide", "template=wrong", "format=csv&template=sap")
        for query in (*more, f"by=tag:team&as_of={AS_OF[0]}", "by=category:business_unit&format=csv"):
            yield Question(joined(journal.replace("{period}", MONTH), tenant, query))
        yield Question(joined(journal.replace("{period}", "2026-02"), tenant, "by=category:business_unit"))
        yield Question(joined(journal.replace("{period}", MONTH), tenant, "by=tag:team"), headers=CSV)
        yield Question(joined(journal.replace("{period}", "2026-13"), tenant, ""))


def common(document: Json, known: Known) -> Iterator[Question]:
    """Yield requests outside of tenants, and every endpoint once with other methods and headers."""
    for path in (
        "/",
        "/health",
        "/api/v1/readiness",
        "/api/v1/tenants",
        "/api/v1/me",
        "/metrics/chargebacks",
        "/metrics",
    ):
        yield Question(path)
    yield from (Question(path) for path in ("/docs", "/openapi.json", "/redoc", "/ui"))
    plain = [
        template
        for template, operations in document["paths"].items()
        if "get" in operations
        and template.startswith(TENANT)
        and template.count("{") == 1
        and "/statement" not in template
    ]
    asked = [joined(each, known.tenant, REQUIRED.get(each.removeprefix(TENANT), "")) for each in plain]
    for path in (each for each in asked if "/explain" not in each):
        yield Question(path, "HEAD")
        yield Question(path, headers={"If-None-Match": "$ETAG"})
        yield Question(path, headers=CSV)
        yield Question(path, headers={"Accept-Encoding": "gzip"})
    for accepted in ("text/html", "application/xml", "text/csv;q=0.5, application/json", "*/*"):
        yield Question(asked[0], headers={"Accept": accepted})
        yield Question(f"/api/v1/tenants/{known.tenant}/costs", headers={"Accept": accepted})


def of_other_tenants(document: Json) -> Iterator[Question]:
    """Yield each list of the tenants without rows, without topics, and with invalid topic settings."""
    for template, operations in document["paths"].items():
        if "get" in operations and template.startswith(TENANT) and template.count("{") == 1:
            inner = template.removeprefix(TENANT)
            query = REQUIRED.get(inner, "")
            if "/statement" in template:
                query = f"period={MONTH}&by=identity_id" + ("" if "/statements" in template else "&value=x")
            if "/explain" in template:
                query = f"date={CHANGE}&line_id=x&" + ("topic_name=x" if "/topic" in template else "identity_id=x")
            yield Question(joined(template, "empty", query))
            if "topic" in template or inner in {"", "/costs", "/status", "/graph", "/findings", "/reconciliation"}:
                yield from (Question(joined(template, tenant, query)) for tenant in ("plain", "wrong"))
