"""Requests with a body: exports, dry runs, changes of a tenant, and rejected requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from tests.recorded.content import CHANGE, MONTH
from tests.recorded.organisations import ODD_NAMES
from tests.recorded.questions import AS_OF, NOBODY, TENANT, Json, Known, Question


def bodies(known: Known, *, thin: bool) -> Iterator[Question]:
    """Yield POST and PUT requests that change nothing: exports, comparisons and dry runs."""
    tenant = known.tenant
    base = TENANT.format(tenant_name=tenant)
    days = {"start_date": "2026-03-29", "end_date": "2026-03-30"}

    def _ask(path: str, body: Json, method: str = "POST", **headers: str) -> Question:
        return Question(base + path, method, headers=headers, body=body)

    identity = known.most("identity_id")[0]
    columns = ["timestamp", "identity_id", "product_type", "amount", "tags"]
    for form in ("csv", "parquet", "jsonl"):
        yield _ask("/export", days | {"format": form})
        yield _ask("/export", {"format": form, "columns": columns, "filters": {"product_category": "KAFKA"}})
        yield _ask("/topic-attributions/export", days | {"format": form})
    more: list[Json] = [
        {"columns": [*columns, "category:chain", "category:business_unit"]},
        {"filters": {"tag:team": "payments"}},
        {"filters": {"identity_id": identity, "cost_type": "usage"}, "timezone": "America/New_York"},
        {"as_of": AS_OF[0]},
        {"columns": ["nothing"]},
        {"filters": {"nothing": "x"}},
        {"format": "xls"},
    ]
    yield from (_ask("/export", days | each) for each in more)
    for version in ("1.2", "1.4"):
        for split in ("identities", "topics", "none"):
            for form in ("csv",) if thin else ("csv", "parquet"):
                yield _ask("/export/focus", days | {"version": version, "split": split, "format": form})
    chosen = ["ChargePeriodStart", "BilledCost", "Tags", "ServiceName", "x_CostCategoryChain"]
    yield _ask("/export/focus", days | {"columns": chosen})
    yield _ask("/export/focus", days | {"columns": ["Nothing"]})
    mapping = {"columns": {"entity": "where", "product_type": "what", "amount": "how much", "date": "day"}}
    text = "day,where,what,how much\n" + "".join(
        f"{each['timestamp'][:10]},{each['resource_id']},{each['product_type']},{each['total_cost']}\n"
        for each in known.lines[:60]
        if "," not in each["resource_id"]
    )
    external: list[Json] = [
        {"csv": text, "mapping": mapping},
        {"csv": text.replace("KAFKA", "OTHER", 9), "mapping": mapping, "limit": 3},
        {
            "csv": "type,amount\nKAFKA_STORAGE,12.5\n",
            "mapping": {"columns": {"product_type": "type", "amount": "amount"}},
        },
        {"csv": "a;b\n1;x\n", "mapping": mapping},
        {
            "csv": f"id,amount\n{identity},1\n".replace("=", ""),
            "mapping": {"columns": {"entity": "id", "amount": "amount"}},
        },
    ]
    yield from (_ask("/reconciliation/external", days | each) for each in external)
    entity = {"entity_type": "identity", "entity_id": identity}
    tag = entity | {"tag_key": "team", "tag_value": "other"}
    dated = tag | {"tag_key": "cost-center", "valid_from": "2026-04-01"}
    for body in (
        {"items": [tag, dated]},
        {"items": [tag], "override_existing": True},
        {"items": [dated], "replace_periods": True},
    ):
        yield _ask("/tags/bulk", body | {"dry_run": True})
    yield _ask(
        "/tags/bulk-delete", {"items": [entity | {"tag_key": "team"}, entity | {"tag_key": "no"}], "dry_run": True}
    )
    for filters in ({"identity_id": identity}, days, {"identity_id": NOBODY}):
        yield _ask("/tags/bulk-by-filter", filters | {"tag_key": "team", "display_name": "new", "dry_run": True})
    document = known.get("cost-categories/business_unit")["document"]
    changed = document | {"rules": document["rules"][2:]}
    path = f"{base}/cost-categories/business_unit"
    match = {"If-Match": f"$ETAG {path}"}
    for other in (changed, document, {"rules": [{"assign": "x"}]}):
        yield _ask("/cost-categories/business_unit?dry_run=true&period=7d", {"document": other}, "PUT", **match)
    yield _ask("/cost-categories/fresh?dry_run=true&period=7d", {"document": changed}, "PUT")


def invalid(tenant: str) -> Iterator[Question]:
    """Yield requests that are rejected."""
    base = TENANT.format(tenant_name=tenant)
    queries = (
        "nothing=1",
        "page=0",
        "page=x&page_size=5000&tyme=zone",
        "start_date=2026-02-30",
        "start_date=2026-04-02&end_date=2026-03-01",
        "timezone=Mars/Phobos",
        "period=3w",
        "period=7d&start_date=2026-03-01",
        "as_of=yesterday",
        "tag:=x",
        "tag:team=",
        "category:1=x",
        "not.nothing=1",
        "identity_id=%00",
        f"identity_id={'x' * 300}",
        "product_type=a&product_type=b&page_size=1&page_size=2",
        "currency=eur",
        "currency=CHF",
        "group_by=nothing",
        "group_by=tag:team&group_by=tag:team",
        "by=nothing&top=99",
        "time_bucket=year",
        "compare=tomorrow",
        "start_date=0001-01-01&end_date=9999-12-31",
        "%FF=%FE",
    )
    lists = ("/chargebacks", "/chargebacks/aggregate", "/costs", "/topic-attributions", "/graph")
    yield from (Question(f"{base}{path}?{query}") for path in lists for query in queries)
    yield from (
        Question(f"{base}{path}?nothing=1&page=0") for path in ("", "/status", "/runs", "/views", "/tags", "/search")
    )
    for path in (
        "/api/v1/tenants/nobody/costs",
        "/api/v1/nothing",
        f"{base}/nothing",
        "/api/v1/tenants/%2F/costs",
        "//",
        "/%00",
    ):
        yield Question(path)
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        yield Question(f"{base}/costs", method)
        yield Question(f"{base}/tags", method)
    wrong: list[Any] = [{"nothing": 1}, [], {"items": [{}], "format": 1, "csv": 1, "start_date": "x", "name": ""}]
    for path in ("/export", "/tags/bulk", "/views", "/reconciliation/external", "/pipeline/run", "/tags/bulk-delete"):
        for body in wrong:
            yield Question(base + path, "POST", body=body)
    yield Question(f"{base}/costs", headers={"Host": "evil.example"})
    yield Question(f"{base}/views", "POST", headers={"Origin": "https://evil.example"}, body={"name": "a", "page": "b"})
    yield Question(f"{base}/costs", headers={"If-None-Match": '"other"'})


def _send(path: str, body: Any = None, method: str = "POST", caller: str = "", **headers: str) -> Question:
    return Question(path, method, caller, headers, body)


def writes() -> Iterator[Question]:
    """Yield changes of the tenant ``scratch``, in this order, each followed by requests for what it changed."""
    base = TENANT.format(tenant_name="scratch")
    yield from _of_tags(base)
    yield from _of_views(base)
    yield from _of_categories(base)


def _of_tags(base: str) -> Iterator[Question]:
    tags = f"{base}/entities/identity/UNALLOCATED/tags"
    yield _send(tags, {"tag_key": "team", "tag_value": "platform", "created_by": "alice"})
    yield _send(tags, {"tag_key": "team", "tag_value": "again"})
    yield _send(tags, {"tag_key": "bad key", "tag_value": ""})
    yield _send(f"{base}/entities/identity/{quote('a/b %2F,', safe='')}/tags", {"tag_key": "team", "tag_value": "x"})
    yield _send(tags, {"tag_key": "dated", "tag_value": "one", "valid_to": CHANGE})
    yield _send(tags, {"tag_key": "dated", "tag_value": "two", "valid_from": CHANGE})
    yield _send(tags, {"tag_key": "dated", "tag_value": "three", "valid_from": "2026-03-01"})
    yield _send(f"{tags}/team", {"tag_value": ODD_NAMES[0]}, "PUT")
    yield _send(f"{tags}/team", {"tag_value": ODD_NAMES[2]}, "PATCH")
    yield _send(f"{tags}/dated", {"tag_value": "all"}, "PUT")
    yield _send(f"{tags}/dated", {"tag_value": "all", "replace_periods": True}, "PUT")
    yield _send(f"{tags}/none", {"tag_value": "x"}, "PUT")
    items = [
        {"entity_type": "identity", "entity_id": "UNALLOCATED", "tag_key": f"k{n}", "tag_value": "v"} for n in range(5)
    ]
    yield _send(f"{base}/tags/bulk", {"items": items, "created_by": "bob"})
    yield _send(f"{base}/tags/bulk", {"items": items, "override_existing": True})
    yield _send(
        f"{base}/tags/bulk-by-filter",
        {"start_date": "2026-03-30", "end_date": "2026-03-30", "tag_key": "seen", "display_name": "yes"},
    )
    places = [{name: each[name] for name in ("entity_type", "entity_id", "tag_key")} for each in items[:3]]
    yield _send(f"{base}/tags/bulk-delete", {"items": [*places, *places]})
    yield _send(f"{base}/tags/bulk-delete", {"items": places})
    yield Question(tags)
    yield _send(f"{tags}/team", method="DELETE")
    yield _send(f"{tags}/team", method="DELETE")
    yield _send(f"{tags}/dated?valid_from=none", method="DELETE")
    for caller in ("reader", "team", "unit", "stranger"):  # not in the tenant whose audit log is recorded
        yield _send(f"{tags.replace('scratch', 'plain')}/team", {"tag_value": "x"}, "PUT", caller)
    yield _send(tags, {"tag_key": "mine", "tag_value": "x", "created_by": "someone else"}, caller="admin")


def _of_views(base: str) -> Iterator[Question]:
    yield _send(f"{base}/views", {"name": "Payments", "page": "costs", "query": "period=30d", "created_by": "bob"})
    yield _send(f"{base}/views", {"name": "Payments", "page": "costs", "query": ""})
    yield _send(f"{base}/views/1", {"name": "Changed", "page": "costs", "query": "period=7d"}, "PUT")
    yield _send(f"{base}/views/99", {"name": "Changed", "page": "costs", "query": ""}, "PUT")
    yield Question(f"{base}/views")
    yield _send(f"{base}/views/1", method="DELETE")
    yield _send(f"{base}/views/1", method="DELETE")


def _of_categories(base: str) -> Iterator[Question]:
    path = f"{base}/cost-categories/fresh"
    match = {"If-Match": f"$ETAG {path}"}
    document = {
        "values": {"a": {"name": "A"}},
        "rules": [{"id": "all", "match": {"identity": {"glob": "*"}}, "assign": "a"}],
    }
    wrong = {"rules": [{"match": {"nothing": 1}, "assign": 1}], "share": [{"from": "x"}]}
    cycle = {"rules": [], "share": [{"from": "a", "to": ["b"], "by": "even"}, {"from": "b", "to": ["a"], "by": "even"}]}
    for body in (document, wrong, cycle):
        yield _send(path, {"document": body, "reason": "first"}, "PUT")
    yield _send(path, {"document": document | {"default": "z"}, "reason": "second"}, "PUT")
    yield _send(path, {"document": document | {"default": "z"}, "reason": "second"}, "PUT", **match)
    yield _send(path, {"document": document}, "PUT", **{"If-Match": '"17"'})
    csv = "entity_type,entity_id,value,percent,valid_from,valid_to\n"
    csv += "identity,UNALLOCATED,a,60,,\nidentity,UNALLOCATED,b,40,,\n"
    yield _send(f"{path}/rules.csv", {"csv": csv, "reason": "file"}, "PUT", **match)
    yield _send(f"{path}/rules.csv", {"csv": csv.replace("40", "50")}, "PUT", **match)
    for after in ("", "/history", "/rules.csv", "/coverage?period=7d"):
        yield Question(path + after)
    yield Question(f"{base}/chargebacks/aggregate?group_by=category:fresh&period=7d&time_bucket=all")
    yield _send(path.replace("scratch", "plain"), {"document": document}, "PUT", "reader")
    yield _send(f"{path}?reason=unused", method="DELETE")
    yield _send(f"{path}?reason=unused", method="DELETE", **match)
    yield Question(path)


def of_findings_and_replies(known: Known) -> Iterator[Question]:
    """Yield the remaining changes of a tenant, for which ids of its content are needed."""
    base = TENANT.format(tenant_name=known.tenant)
    for each in known.findings[:2]:
        path = f"{base}/findings/{each['id']}/snooze"
        yield Question(path, "PUT", body={"reason": "later", "until": "2026-06-01", "created_by": "eve"})
        yield Question(path, "PUT", body={"reason": "", "until": "2020-01-01"})
    yield Question(f"{base}/findings?min_days=1&state=snoozed")
    yield Question(f"{base}/findings/{known.findings[0]['id']}/snooze", "DELETE")
    yield Question(f"{base}/findings/0123456789abcdef/snooze", "DELETE")
    found = known.get("statements", period=MONTH, by="identity_id")["items"]
    for said, each in zip(("acknowledge", "dispute"), found, strict=False):
        query = urlencode({"period": MONTH, "by": "identity_id", "value": each["recipient"]["value"]})
        path = f"{base}/statement/{said}?{query}"
        yield Question(path, "POST", body={"note": "Booked", "number": each["number"], "digest": each["digest"]})
        yield Question(path, "POST", body={"note": "Booked", "digest": "0" * 32})
        yield Question(path, "POST", body={"note": " "})
        yield Question(f"{base}/statement?{query}")
    yield Question(f"{base}/audit?page_size=200")
    yield Question(f"{base}/tags?page_size=500")
    yield Question(f"{base}/inventory/summary")
