"""Requests of callers with access to all data, a part of it or none, and of assistants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote, urlencode

from tests.recorded.content import MONTH
from tests.recorded.questions import AS_OF, CHEAP, NOBODY, REQUIRED, TENANT, Json, Known, Question, joined


def of_callers(document: Json, known: Known, callers: Iterable[str], *, thin: bool) -> Iterator[Question]:
    """Yield the requests of callers of the guarded service; they are the same for each caller."""
    tenant = known.tenant
    base = TENANT.format(tenant_name=tenant)
    week = "period=7d"
    paths = ["/api/v1/me", "/api/v1/tenants"]
    for template, operations in document["paths"].items():
        inner = template.removeprefix(TENANT)
        if "get" in operations and template.startswith(TENANT) and "{" not in inner and "/statement" not in inner:
            names = {each["name"] for each in operations["get"].get("parameters", ())}
            small = "page_size=30" if inner in CHEAP else ""
            queries = [REQUIRED.get(inner, ""), week if "period" in names else "", small]
            if "/explain" not in inner and inner != "/audit":  # rejected requests are added to the log later
                paths.append(joined(template, tenant, *queries))
    sums = (
        "/chargebacks/aggregate?group_by=category:business_unit&period=7d&time_bucket=all",
        "/chargebacks/aggregate?group_by=category:chain&group_by=identity_id&period=7d&time_bucket=week",
        "/chargebacks/aggregate?group_by=tag:team&group_by=product_type&time_bucket=all&names=true",
        "/chargebacks/aggregate?group_by=resource_id&tag:team=payments&time_bucket=month&currency=EUR",
        f"/chargebacks/aggregate?group_by=cluster_id&as_of={AS_OF[0]}&time_bucket=all",
        "/costs?by=tag:team&by=category:chain&include=issues,days,forecast,topics&period=7d",
        "/costs?by=resource_id&compare=none&category:business_unit=orders&period=month",
        "/flow?by=environment_id&by=cluster_id&by=identity_id&top=3&period=7d",
        "/graph?depth=4&top=3&period=7d",
        "/graph?leaves=topics&depth=4&top=3&period=7d",
        "/chargebacks?sort_by=amount&sort_order=desc&page_size=10&names=true",
        "/search?q=o",
        "/search?q=lkc",
        "/unit-costs?per=gib_in&group_by=tag:team&period=7d",
        f"/chargebacks/diff?from_as_of={AS_OF[0]}&group_by=product_type",
        "/chargebacks/changes?group_by=identity_id&period=7d",
        f"/statements?period={MONTH}&by=category:business_unit",
        f"/statements?period={MONTH}&by=tag:team",
        f"/statement?period={MONTH}&by=category:business_unit&value=orders",
        f"/statement.csv?period={MONTH}&by=category:business_unit&value=orders",
        f"/statement.html?period={MONTH}&by=tag:team&value=payments",
        f"/periods/{MONTH}/journal?by=tag:team",
        "/days/2026-03-30/revisions",
        "/cost-categories/business_unit",
        "/cost-categories/business_unit/coverage?period=7d",
        "/tags/keys/team/values",
    )
    paths += [base + each for each in sums]
    rows = [*known.rows[::400]][: 2 if thin else 5]
    for row in rows:
        key = {"date": row["timestamp"][:10], "line_id": row["metadata"]["line_id"], "identity_id": row["identity_id"]}
        paths.append(f"{base}/chargebacks/explain?{urlencode(key | {'portion': row['metadata']['portion']})}")
        paths.append(f"{base}/chargebacks/{row['dimension_id']}")
    for row in known.topic_rows[:600:300]:
        key = {"date": row["timestamp"][:10], "line_id": row["metadata"]["line_id"], "topic_name": row["topic_name"]}
        paths.append(f"{base}/topic-attributions/explain?{urlencode(key)}")
    for name in (*known.most("identity_id")[:2], *known.most("resource_id")[:1]):
        kind = "resource" if name.startswith("l") else "identity"
        paths.append(f"{base}/entities/{kind}/{quote(name, safe='')}/tags")
    days = {"start_date": "2026-03-30", "end_date": "2026-03-30"}
    sent: tuple[tuple[str, Json], ...] = (
        ("/export", days | {"format": "csv"}),
        ("/export", days | {"format": "jsonl", "columns": ["identity_id", "amount", "category:chain"]}),
        ("/topic-attributions/export", days | {"format": "csv"}),
        ("/export/focus", days | {"format": "csv"}),
        ("/tags/bulk-by-filter", days | {"tag_key": "x", "display_name": "y", "dry_run": True}),
        ("/reconciliation/external", days | {"csv": "amount\n1\n", "mapping": {"columns": {"amount": "amount"}}}),
        ("/pipeline/run", {}),
    )
    for caller in callers:
        yield from (Question(path, caller=caller) for path in (paths[2::3] if thin else paths))
        yield from (Question(base + path, "POST", caller, body=body) for path, body in sent)


def of_assistants(known: Known, callers: Iterable[str]) -> Iterator[Question]:
    """Yield calls of the assistants' tools."""
    tenant, row = known.tenant, known.rows[-1]
    identity = row["identity_id"]
    month = {"tenant": tenant, "period": MONTH}
    calls: list[tuple[str, Json]] = [
        ("describe", {}),
        ("describe", {"tenant": tenant}),
        ("describe", {"tenant": "nobody"}),
        ("search_entities", {"tenant": tenant, "query": "o", "limit": 5}),
        ("query_costs", {"tenant": tenant, "period": "7d"}),
        ("query_costs", {"tenant": tenant, "group_by": ["identity_id", "product_type"], "limit": 3, "currency": "EUR"}),
        ("query_costs", {"tenant": tenant, "group_by": ["category:chain"], "period": "month"}),
        ("query_costs", {"tenant": tenant, "group_by": ["tag:team"], "time_bucket": "week"}),
        (
            "query_costs",
            {"tenant": tenant, "dataset": "topics", "group_by": ["topic_name"], "period": "7d", "limit": 3},
        ),
        ("query_costs", {"tenant": tenant, "filters": {"tag:team": ["payments"], "not.product_type": ["KAFKA_BASE"]}}),
        ("query_costs", {"tenant": tenant, "group_by": ["nothing"], "limit": 99}),
        ("compare_periods", {"tenant": tenant, "period": "7d", "limit": 4}),
        (
            "compare_periods",
            {"tenant": tenant, "start_date": "2026-03-20", "end_date": "2026-03-31", "group_by": ["tag:team"]},
        ),
        ("explain_charge", {"tenant": tenant, "date": row["timestamp"][:10], "identity_id": identity}),
        ("explain_charge", {"tenant": tenant, "date": "2026-03-30", "identity_id": "UNALLOCATED"}),
        ("explain_charge", {"tenant": tenant, "date": "2026-03-30", "identity_id": NOBODY}),
        ("list_findings", {"tenant": tenant, "limit": 3}),
        ("list_findings", {"tenant": tenant, "kind": ["idle_identity"]}),
        ("anomalies", {"tenant": tenant, "limit": 3}),
        ("budget_status", {"tenant": tenant}),
        ("forecast", {"tenant": tenant, "filters": {"product_category": ["KAFKA"]}}),
        ("get_statement", month | {"by": "category:business_unit"}),
        ("get_statement", month | {"by": "category:business_unit", "value": "orders"}),
        ("get_statement", month | {"by": "identity_id", "value": NOBODY}),
        ("nothing", {}),
    ]
    headers = {"Accept": "application/json, text/event-stream"}

    def _call(method: str, params: Json | None, caller: str) -> Question:
        body = {"jsonrpc": "2.0", "id": 1, "method": method} | ({} if params is None else {"params": params})
        return Question("/mcp", "POST", caller, headers, body)

    for caller in callers:
        yield _call("tools/list", None, caller)
        for name, arguments in calls:
            yield _call("tools/call", {"name": name, "arguments": arguments}, caller)
