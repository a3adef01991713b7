"""The examples of ``docs/api.md``: for each endpoint a request that can be run as it is.

They are sent in this order, for one tenant: later examples see what earlier ones wrote.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.contract.endpoints import ENTITY, TENANT

ADDRESS = "http://127.0.0.1:8080"
PEOPLE = "/api/v1/tenants/acme"
TAGS_OF = f"{PEOPLE}/entities/identity/UNALLOCATED/tags"
#: A shell function for days relative to today; it also works on macOS, whose `date` has other options.
AGO = """ago() { jq -nr "now - $1 * 86400 | strftime(\\"%F\\")"; }"""
#: A day that has data in the demo, in shell syntax.
SOME_DAY = "$(ago 8)"
#: A day that is calculated, even if only the last ones are.
CALCULATED_DAY = "$(ago 7)"
SOME_MONTH = "$(ago 8 | cut -c 1-7)"
#: A month before the data of the demo.
EARLIER = "$(ago 70 | cut -c 1-7)"


@dataclass(frozen=True)
class Example:
    """A request to an endpoint (``GET /health``)."""

    endpoint: str
    path: str
    body: dict[str, Any] | None = None
    #: The header ``If-Match``; ``$ETAG`` stands for the ETag that a GET returned.
    if_match: str | None = None
    #: The first line of a response that is a CSV file.
    header: str | None = None
    #: Whether the page shows it; otherwise it only prepares the next one.
    is_shown: bool = True

    @property
    def method(self) -> str:
        """Return the method."""
        return self.endpoint.partition(" ")[0]

    @property
    def command(self) -> str:
        """Return the request as a user types it."""
        words = ["curl -s"]
        if self.method not in ("GET", "POST") or (self.method == "POST" and self.body is None):
            words.append(f"-X {self.method}")
        if self.body is not None:
            quote = '"' if re.search(r"\$[(A-Z]", json.dumps(self.body)) else "'"
            text = json.dumps(self.body)
            words.append(
                f"--json {quote}{text.replace(chr(34), chr(92) + chr(34)) if quote == chr(34) else text}{quote}"
            )
        if self.if_match is not None:
            words.append(f'-H "If-Match: {self.if_match}"')
        quote = '"' if "$" in self.path else "'"
        return " ".join([*words, f"{quote}{ADDRESS}{self.path}{quote}"])


#: A cost category that the examples create and remove.
UNIT = f"{PEOPLE}/cost-categories/business_unit"
_RULES_CSV = "entity_type,entity_id,value,percent,valid_from,valid_to"
_MONTH = f"period={SOME_MONTH}"
_DAY = f"start_date={SOME_DAY}&end_date={SOME_DAY}"
_TOPICS = f"{PEOPLE}/topic-attributions"
_BUDGETS_CSV = "id,name,parent,scope,thresholds,notify,monthly"
_SINCE: dict[str, Any] = {"start_date": SOME_DAY}
_CSV = "timestamp,identity_id,product_type,amount,tags"
_FOCUS_CSV = "ChargePeriodStart,ServiceName,ResourceId,SkuId,BilledCost,ListCost,PricingQuantity,PricingUnit"
_TOPIC_CSV = (
    "ecosystem,tenant_id,timestamp,env_id,cluster_resource_id,topic_name,"
    "product_category,product_type,attribution_method,amount"
)

EXAMPLES = (
    Example("GET /health", "/health"),
    Example("GET /api/v1/readiness", "/api/v1/readiness"),
    Example("GET /api/v1/tenants", "/api/v1/tenants"),
    Example("GET /api/v1/me", "/api/v1/me"),
    Example(f"GET {TENANT}", PEOPLE),
    Example(f"GET {TENANT}/runs", f"{PEOPLE}/runs?limit=1"),
    Example(f"GET {TENANT}/health", f"{PEOPLE}/health"),
    Example(
        f"GET {TENANT}/reconciliation",
        f"{PEOPLE}/reconciliation?period=2d&group_by=product_type",
    ),
    Example(
        f"POST {TENANT}/reconciliation/external",
        f"{PEOPLE}/reconciliation/external",
        {
            "csv": "type,amount\nKAFKA_STORAGE,12.50\n",
            "mapping": {"columns": {"product_type": "type", "amount": "amount"}},
            "start_date": SOME_DAY,
            "end_date": SOME_DAY,
            "limit": 2,
        },
    ),
    Example(f"GET {TENANT}/status", f"{PEOPLE}/status?{_DAY}"),
    Example(
        f"GET {TENANT}/billing",
        f"{PEOPLE}/billing?product_type=KAFKA_STORAGE&page_size=1",
    ),
    Example(
        f"GET {TENANT}/costs",
        f"{PEOPLE}/costs?period=7d&by=tag:team&top=2&include=issues",
    ),
    Example(
        f"GET {TENANT}/unit-costs",
        f"{PEOPLE}/unit-costs?period=7d&per=gib_in&group_by=tag:team&limit=2",
    ),
    Example(
        f"GET {TENANT}/findings",
        f"{PEOPLE}/findings?kind=topic_never_read&min_days=3&page_size=1",
    ),
    Example(
        f"PUT {TENANT}/findings/{{finding_id}}/snooze",
        f"{PEOPLE}/findings/$FINDING/snooze",
        {"reason": "Kept for the audit", "until": "2027-01-01", "created_by": "alice"},
    ),
    Example(f"DELETE {TENANT}/findings/{{finding_id}}/snooze", f"{PEOPLE}/findings/$FINDING/snooze"),
    Example(
        f"GET {TENANT}/series",
        f"{PEOPLE}/series?period=7d&group_by=product_category&time_bucket=week&top=1",
    ),
    Example(
        f"GET {TENANT}/flow",
        f"{PEOPLE}/flow?period=7d&by=environment_id&by=tag:team&top=2&compare=none",
    ),
    Example(
        f"GET {TENANT}/graph",
        f"{PEOPLE}/graph?period=7d&depth=1&top=2",
    ),
    Example(
        f"GET {TENANT}/graph/diff",
        f"{PEOPLE}/graph/diff?period=7d&depth=1&top=1&leaves=topics",
    ),
    Example(
        f"GET {TENANT}/graph/timeline",
        f"{PEOPLE}/graph/timeline?period=7d",
    ),
    Example(
        f"GET {TENANT}/chargebacks",
        f"{PEOPLE}/chargebacks?{_DAY}&timezone=Europe/Berlin&cost_type=usage&page_size=1",
    ),
    Example(f"GET {TENANT}/chargebacks/{{dimension_id}}", f"{PEOPLE}/chargebacks/$DIMENSION"),
    Example(f"GET {TENANT}/chargebacks/explain", f"{PEOPLE}/chargebacks/explain?$KEY"),
    Example(
        f"GET {TENANT}/chargebacks/diff",
        f"{PEOPLE}/chargebacks/diff?from_as_of=$(ago 7)T00:00:00Z&group_by=tag:team&limit=2",
    ),
    Example(
        f"GET {TENANT}/chargebacks/changes",
        f"{PEOPLE}/chargebacks/changes?period=7d&group_by=tag:team&limit=1",
    ),
    Example(
        f"GET {TENANT}/policies",
        f"{PEOPLE}/policies?product_type=KAFKA_NUM_CKUS",
    ),
    Example(
        f"POST {TENANT}/simulations",
        f"{PEOPLE}/simulations",
        {
            "policies": {"KAFKA_NUM_CKUS": {"portions": [{"share": "1", "try": ["even(active)", "unallocated"]}]}},
            "start_date": CALCULATED_DAY,
            "end_date": CALCULATED_DAY,
        },
    ),
    Example(f"GET {TENANT}/simulations", f"{PEOPLE}/simulations"),
    Example(f"GET {TENANT}/simulations/{{simulation_id}}", f"{PEOPLE}/simulations/$SIMULATION"),
    Example(
        f"GET {TENANT}/simulations/{{simulation_id}}/items.csv",
        f"{PEOPLE}/simulations/$SIMULATION/items.csv",
        header="identity_id,before,after,delta,percent",
    ),
    Example(
        f"POST {TENANT}/policies/apply",
        f"{PEOPLE}/policies/apply",
        {
            **{"simulation": "$SIMULATION", "expected_digest": "$DIGEST", "effective_from": "2099-01-01"},
            "reason": "The base fee is shared by everybody who is active",
        },
    ),
    Example(
        f"PUT {TENANT}/budgets/{{budget_id}}",
        f"{PEOPLE}/budgets/kafka",
        {
            "name": "Kafka of all teams",
            "scope": {"product_category": ["KAFKA"]},
            "monthly": "1000",
            "thresholds": [{"on": "actual", "percent": "80"}, {"on": "forecast", "percent": "100"}],
        },
    ),
    Example(f"GET {TENANT}/anomalies", f"{PEOPLE}/anomalies?period=7d&limit=1"),
    Example(
        f"POST {TENANT}/anomalies/marks",
        f"{PEOPLE}/anomalies/marks",
        {
            **{"identity_id": "UNALLOCATED", "status": "planned", "start_date": SOME_DAY, "end_date": SOME_DAY},
            **{"note": "Load test", "created_by": "alice"},
        },
    ),
    Example(f"GET {TENANT}/anomalies/marks", f"{PEOPLE}/anomalies/marks"),
    Example(f"DELETE {TENANT}/anomalies/marks/{{number}}", f"{PEOPLE}/anomalies/marks/1"),
    Example(
        f"POST {TENANT}/notes",
        f"{PEOPLE}/notes",
        {"start_date": SOME_DAY, "text": "Load test of search", "created_by": "alice"},
    ),
    Example(f"GET {TENANT}/notes", f"{PEOPLE}/notes?{_DAY}"),
    Example(f"GET {TENANT}/notes/{{note_id}}", f"{PEOPLE}/notes/1"),
    Example(
        f"PUT {TENANT}/notes/{{note_id}}",
        f"{PEOPLE}/notes/1",
        {"start_date": SOME_DAY, "end_date": CALCULATED_DAY, "text": "Load test of search, repeated"},
        "*",
    ),
    Example(f"DELETE {TENANT}/notes/{{note_id}}", f"{PEOPLE}/notes/1", None, "*"),
    Example(f"GET {TENANT}/budgets", f"{PEOPLE}/budgets"),
    Example(f"GET {TENANT}/budgets.csv", f"{PEOPLE}/budgets.csv", header=_BUDGETS_CSV),
    Example(
        f"POST {TENANT}/budgets",
        f"{PEOPLE}/budgets",
        {"csv": "id,name,monthly,2026-12\nkafka,Kafka,1200,1500\n", "dry_run": True},
    ),
    Example(f"GET {TENANT}/budgets/{{budget_id}}", f"{PEOPLE}/budgets/kafka"),
    Example(f"GET {TENANT}/budgets/{{budget_id}}/status", f"{PEOPLE}/budgets/kafka/status"),
    Example(f"DELETE {TENANT}/budgets/{{budget_id}}", f"{PEOPLE}/budgets/kafka?reason=unused", None, "*"),
    Example(f"GET {TENANT}/contracts", f"{PEOPLE}/contracts"),
    Example(f"GET {TENANT}/forecast", f"{PEOPLE}/forecast?group_by=product_category&top=1"),
    Example(f"GET {TENANT}/contracts/{{contract_id}}", f"{PEOPLE}/contracts/provider"),
    Example(f"GET {TENANT}/notifications", f"{PEOPLE}/notifications"),
    Example(f"POST {TENANT}/notifications/{{sink_name}}/test", f"{PEOPLE}/notifications/finance-desk/test"),
    Example(f"POST {TENANT}/notifications/{{sink_name}}/retry", f"{PEOPLE}/notifications/finance-desk/retry"),
    Example(f"GET {TENANT}/shadows", f"{PEOPLE}/shadows"),
    Example(f"GET {TENANT}/shadows/{{shadow_name}}", f"{PEOPLE}/shadows/next?limit=1"),
    Example(
        f"GET {TENANT}/policies/history",
        f"{PEOPLE}/policies/history",
    ),
    Example(
        f"DELETE {TENANT}/policies/applied/{{effective_from}}",
        f"{PEOPLE}/policies/applied/2099-01-01",
    ),
    Example(
        f"GET {TENANT}/usage",
        f"{PEOPLE}/usage?period=7d&measure=bytes_in&sort_by=value&sort_order=desc&page_size=1",
    ),
    Example(
        f"GET {TENANT}/days/{{date}}/revisions",
        f"{PEOPLE}/days/{SOME_DAY}/revisions",
    ),
    Example(f"GET {TENANT}/restatements", f"{PEOPLE}/restatements?period=30d&page_size=2"),
    Example(f"GET {TENANT}/chargebacks/dates", f"{PEOPLE}/chargebacks/dates"),
    Example(
        f"GET {TENANT}/chargebacks/allocation-issues",
        f"{PEOPLE}/chargebacks/allocation-issues?identity_id=UNALLOCATED&page_size=1",
    ),
    Example(
        f"GET {TENANT}/chargebacks/aggregate",
        f"{PEOPLE}/chargebacks/aggregate?group_by=product_category&group_by=tag:team&time_bucket=week",
    ),
    Example(
        f"GET {TENANT}/resources",
        f"{PEOPLE}/resources?resource_type=kafka_cluster&status=active&sort_by=display_name&page_size=1",
    ),
    Example(
        f"GET {TENANT}/identities",
        f"{PEOPLE}/identities?identity_type=service_account&search=SA-&page_size=1",
    ),
    Example(f"GET {TENANT}/inventory/summary", f"{PEOPLE}/inventory/summary"),
    Example(f"GET {TENANT}/search", f"{PEOPLE}/search?q=ord&limit=2"),
    Example(f"POST {ENTITY}", TAGS_OF, {"tag_key": "team", "tag_value": "platform", "created_by": "alice"}),
    Example(f"GET {ENTITY}", TAGS_OF),
    Example(f"PUT {ENTITY}/{{tag_key}}", f"{TAGS_OF}/team", {"tag_value": "payments"}),
    Example(f"PATCH {ENTITY}/{{tag_key}}", f"{TAGS_OF}/team", {"tag_value": "payments"}),
    Example(
        f"POST {TENANT}/tags/bulk",
        f"{PEOPLE}/tags/bulk",
        {
            "items": [
                {"entity_type": "identity", "entity_id": "UNALLOCATED", "tag_key": key, "tag_value": value}
                for key, value in (("team", "nobody"), ("env", "prod"))
            ],
            "created_by": "alice",
            "override_existing": False,
        },
    ),
    Example(
        f"POST {TENANT}/tags/bulk-by-filter",
        f"{PEOPLE}/tags/bulk-by-filter",
        {"identity_id": "UNALLOCATED", "start_date": SOME_DAY, "tag_key": "owner", "display_name": "unknown"},
    ),
    Example(f"GET {TENANT}/tags", f"{PEOPLE}/tags?entity_type=identity&tag_key=team"),
    Example(f"GET {TENANT}/tags/keys", f"{PEOPLE}/tags/keys"),
    Example(f"GET {TENANT}/tags/keys/{{tag_key}}/values", f"{PEOPLE}/tags/keys/team/values?q=pay"),
    Example(f"DELETE {ENTITY}/{{tag_key}}", f"{TAGS_OF}/team"),
    Example(
        f"GET {TENANT}/audit",
        f"{PEOPLE}/audit?what=tag.changed&page_size=1",
    ),
    Example(
        f"POST {TENANT}/tags/bulk-delete",
        f"{PEOPLE}/tags/bulk-delete",
        {"items": [{"entity_type": "identity", "entity_id": "UNALLOCATED", "tag_key": "env"}], "dry_run": True},
    ),
    Example(
        f"POST {TENANT}/export",
        f"{PEOPLE}/export",
        {"columns": _CSV.split(","), "start_date": SOME_DAY, "filters": {"identity_id": "UNALLOCATED"}},
        header=_CSV,
    ),
    Example(
        f"POST {TENANT}/export/focus",
        f"{PEOPLE}/export/focus",
        {"columns": _FOCUS_CSV.split(","), "start_date": SOME_DAY, "end_date": SOME_DAY, "split": "none"},
        header=_FOCUS_CSV,
    ),
    Example(
        f"GET {TENANT}/export/focus/metadata",
        f"{PEOPLE}/export/focus/metadata?{_DAY}&split=none&columns=ChargePeriodStart&columns=BilledCost",
    ),
    Example(
        f"GET {TENANT}/chargebacks.csv",
        f"{PEOPLE}/chargebacks.csv?{_DAY}&identity_id=UNALLOCATED",
        header="timestamp,resource_id,product_category,product_type,identity_id,cost_type,amount,allocation_method,tags",
    ),
    Example(
        f"GET {TENANT}/chargebacks/aggregate.csv",
        f"{PEOPLE}/chargebacks/aggregate.csv?period=month&time_bucket=month&group_by=identity_id&names=true",
        header="time_bucket,identity_id,identity_name,total_amount,usage_amount,shared_amount,row_count",
    ),
    Example(
        f"GET {TENANT}/billing.csv",
        f"{PEOPLE}/billing.csv?{_DAY}&product_type=KAFKA_STORAGE",
        header="ecosystem,tenant_id,timestamp,resource_id,product_category,product_type,quantity,unit_price,total_cost,"
        "currency,granularity",
    ),
    Example(f"GET {TENANT}/topic-attributions.csv", f"{PEOPLE}/topic-attributions.csv?{_DAY}", header=_TOPIC_CSV),
    Example(
        f"GET {TENANT}/costs.csv",
        f"{PEOPLE}/costs.csv?period=7d&by=product_type&top=2",
        header="by,value,name,kind,others,amount,previous,usage,rows",
    ),
    Example(
        f"GET {TENANT}/unit-costs.csv",
        f"{PEOPLE}/unit-costs.csv?period=7d&per=gib_out&group_by=identity_id&limit=2",
        header="identity_id,amount,excluded_amount,usage,unit_cost,days,days_with_usage",
    ),
    Example(
        f"GET {TENANT}/findings.csv",
        f"{PEOPLE}/findings.csv?min_days=3",
        header="id,kind,subject_type,subject_id,subject_name,cluster_id,owner,since,last_active,measured_days,unmeasured_days,"
        "last_measured,bytes_in,bytes_out,monthly_cost,avoidable,avoidable_cost,confidence,why,action,snooze_reason,"
        "snooze_until",
    ),
    Example(
        f"GET {TENANT}/topics.csv",
        f"{PEOPLE}/topics.csv?period=7d&product_type=KAFKA_STORAGE",
        header="cluster_resource_id,cluster_name,topic_name,amount,previous,bytes_in,bytes_out,zombie",
    ),
    Example(
        f"GET {TENANT}/topic-attributions/aggregate.csv",
        f"{_TOPICS}/aggregate.csv?group_by=env_id&time_bucket=month",
        header="time_bucket,env_id,total_amount,row_count",
    ),
    Example(
        f"GET {TENANT}/chargebacks/allocation-issues.csv",
        f"{PEOPLE}/chargebacks/allocation-issues.csv?identity_id=UNALLOCATED",
        header="ecosystem,resource_id,product_type,identity_id,allocation_detail,row_count,usage_cost,shared_cost,total_cost",
    ),
    Example(
        f"GET {TENANT}/resources.csv",
        f"{PEOPLE}/resources.csv?resource_type=kafka_cluster",
        header="ecosystem,tenant_id,resource_id,resource_type,parent_id,owner_id,status,display_name,metadata,"
        "created_at,deleted_at,last_seen_at",
    ),
    Example(
        f"GET {TENANT}/identities.csv",
        f"{PEOPLE}/identities.csv?identity_type=service_account",
        header="ecosystem,tenant_id,identity_id,identity_type,display_name,metadata,created_at,deleted_at,last_seen_at",
    ),
    Example(
        f"GET {TENANT}/tags.csv",
        f"{PEOPLE}/tags.csv",
        header="tag_id,tenant_id,entity_type,entity_id,tag_key,tag_value,created_by,created_at,valid_from,valid_to",
    ),
    Example(
        f"GET {TENANT}/topic-attributions",
        f"{_TOPICS}?attribution_method=bytes_ratio&page_size=1",
    ),
    Example(
        f"GET {TENANT}/topic-attributions/aggregate",
        f"{_TOPICS}/aggregate?group_by=env_id&time_bucket=month",
    ),
    Example(f"GET {TENANT}/topic-attributions/dates", f"{_TOPICS}/dates"),
    Example(f"GET {TENANT}/topic-attributions/explain", f"{_TOPICS}/explain?$TOPIC_KEY"),
    Example(
        f"POST {TENANT}/topic-attributions/export", f"{_TOPICS}/export", {"start_date": SOME_DAY}, header=_TOPIC_CSV
    ),
    Example(f"GET {TENANT}/topics", f"{PEOPLE}/topics?period=7d&top=2"),
    Example(
        f"GET {TENANT}/statements",
        f"{PEOPLE}/statements?{_MONTH}&by=identity_id",
    ),
    Example(
        f"GET {TENANT}/statements.csv",
        f"{PEOPLE}/statements.csv?{_MONTH}&by=tag:team",
        header="number,supersedes,period,status,data_through,value,name,gl,amount,rounded,previous,delta,currency",
    ),
    Example(
        f"GET {TENANT}/statement",
        f"{PEOPLE}/statement?{_MONTH}&by=identity_id&value=UNALLOCATED",
    ),
    Example(
        f"GET {TENANT}/statement.csv",
        f"{PEOPLE}/statement.csv?{_MONTH}&by=identity_id&value=UNALLOCATED",
        header="number,period,status,value,name,gl,kind,product_category,product_type,amount,rounded,currency",
    ),
    *(
        Example(
            f"POST {TENANT}/statement/{said}",
            f"{PEOPLE}/statement/{said}?{_MONTH}&by=identity_id&value=UNALLOCATED",
            {"note": note, "created_by": "alice"},
        )
        for said, note in (("dispute", "Whose are these?"), ("acknowledge", "Booked on 54100"))
    ),
    Example(
        f"GET {TENANT}/periods/{{period}}/journal",
        f"{PEOPLE}/periods/{SOME_MONTH}/journal?by=tag:team",
    ),
    Example(
        f"POST {TENANT}/views",
        f"{PEOPLE}/views",
        {"name": "Payments", "page": "costs", "query": "period=30d&tag:team=payments", "created_by": "alice"},
    ),
    Example(f"GET {TENANT}/views", f"{PEOPLE}/views"),
    Example(
        f"PUT {TENANT}/views/{{view_id}}",
        f"{PEOPLE}/views/$VIEW",
        {"name": "Payments", "page": "costs", "query": "period=month&tag:team=payments"},
    ),
    Example(f"DELETE {TENANT}/views/{{view_id}}", f"{PEOPLE}/views/$VIEW"),
    Example(
        f"PUT {TENANT}/cost-categories/{{category_key}}",
        UNIT,
        {
            "document": {
                "values": {"payments": {"name": "Payments", "parent": "retail"}, "retail": {"name": "Retail"}},
                "rules": [
                    {"match": {"identity": ["UNALLOCATED"]}, "assign": "retail", "valid_from": "2026-03-01"},
                    {"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}},
                ],
            },
            "reason": "CHG-42",
        },
    ),
    Example(f"GET {TENANT}/cost-categories", f"{PEOPLE}/cost-categories"),
    Example(
        f"PUT {TENANT}/cost-categories/{{category_key}}/rules.csv",
        f"{UNIT}/rules.csv",
        {
            "csv": f"{_RULES_CSV}\ntopic,orders,payments,60,,\ntopic,orders,retail,40,,\n",
            "reason": "from finance",
        },
        "$ETAG",
    ),
    Example(f"GET {TENANT}/cost-categories/{{category_key}}", UNIT),
    Example(f"GET {TENANT}/cost-categories/{{category_key}}/rules.csv", f"{UNIT}/rules.csv", header=_RULES_CSV),
    Example(
        f"GET {TENANT}/cost-categories/{{category_key}}/history",
        f"{UNIT}/history",
    ),
    Example(
        f"GET {TENANT}/cost-categories/{{category_key}}/coverage",
        f"{UNIT}/coverage?period=7d",
    ),
    Example(
        f"GET {TENANT}/cost-categories/{{category_key}}/resolve",
        f"{UNIT}/resolve?identity_id=UNALLOCATED&date=2026-03-01",
    ),
    Example(f"DELETE {TENANT}/cost-categories/{{category_key}}", f"{UNIT}?reason=unused", None, "$ETAG"),
    # Placed before the example that starts a run, which may or may not have ended.
    Example(f"POST {TENANT}/pipeline/cancel", f"{PEOPLE}/pipeline/cancel"),
    Example(f"GET {TENANT}/pipeline/log", f"{PEOPLE}/pipeline/log?page_size=2"),
    Example(f"POST {TENANT}/pipeline/run", f"{PEOPLE}/pipeline/run"),
    Example(f"GET {TENANT}/pipeline/status", f"{PEOPLE}/pipeline/status"),
    Example(f"GET {TENANT}/periods", f"{PEOPLE}/periods"),
    Example(
        f"GET {TENANT}/periods.csv",
        f"{PEOPLE}/periods.csv",
        header="period_id,start,end,state,billed,regular,corrections,adjustments,posted,closed_at,digest",
    ),
    Example(f"GET {TENANT}/periods/{{period}}", f"{PEOPLE}/periods/{SOME_MONTH}"),
    Example(f"GET {TENANT}/periods/{{period}}/closing-preview", f"{PEOPLE}/periods/{SOME_MONTH}/closing-preview"),
    Example(
        f"POST {TENANT}/adjustments",
        f"{PEOPLE}/adjustments",
        {
            "period": SOME_MONTH,
            "by": "tag:team",
            "value": "payments",
            "from": "UNTAGGED",
            "amount": "25.00",
            "kind": "reallocation",
            "reason": "Shared connector",
        },
    ),
    Example(f"GET {TENANT}/adjustments", f"{PEOPLE}/adjustments"),
    Example(
        f"POST {TENANT}/adjustments/{{number}}/reverse",
        f"{PEOPLE}/adjustments/1/reverse",
        {"period": SOME_MONTH, "reason": "Booked twice"},
    ),
    Example(f"DELETE {TENANT}/adjustments/{{number}}", f"{PEOPLE}/adjustments/2"),
    Example(
        f"PUT {TENANT}/periods/{{period}}/invoices/{{invoice_id}}",
        f"{PEOPLE}/periods/{SOME_MONTH}/invoices/INV-1042",
        {"issuer": "Confluent, Inc.", "kind": "invoice", "status": "issued", "currency": "USD", "total": "1234.50"},
    ),
    Example(f"GET {TENANT}/periods/{{period}}/invoices", f"{PEOPLE}/periods/{SOME_MONTH}/invoices"),
    Example(
        f"DELETE {TENANT}/periods/{{period}}/invoices/{{invoice_id}}",
        f"{PEOPLE}/periods/{SOME_MONTH}/invoices/INV-1042",
    ),
    Example(
        f"POST {TENANT}/periods/{{period}}/close",
        f"{PEOPLE}/periods/{EARLIER}/close",
        {"note": "The first month of the books", "accept": ["day-missing"], "reason": "Nothing was billed"},
    ),
    Example(
        f"POST {TENANT}/periods/{{period}}/reopen",
        f"{PEOPLE}/periods/{EARLIER}/reopen",
        {"reason": "A corrected invoice"},
    ),
    Example(
        f"POST {TENANT}/periods/{{period}}/close",
        f"{PEOPLE}/periods/{EARLIER}/close",
        {"accept": ["day-missing"], "reason": "Nothing was billed"},
        is_shown=False,
    ),
    Example(f"POST {TENANT}/periods/{{period}}/seal", f"{PEOPLE}/periods/{EARLIER}/seal", {"reason": "Audited"}),
    Example(f"GET {TENANT}/events", f"{PEOPLE}/events?kind=period.closed&page_size=1"),
    Example(f"GET {TENANT}/closings/signatures", f"{PEOPLE}/closings/signatures"),
    Example(f"GET {TENANT}/export/focus/billing-periods", f"{PEOPLE}/export/focus/billing-periods"),
    Example(
        f"GET {TENANT}/export/focus/billing-periods.csv",
        f"{PEOPLE}/export/focus/billing-periods.csv",
        header="BillingPeriodCreated,BillingPeriodEnd,BillingPeriodLastUpdated,BillingPeriodStart,BillingPeriodStatus,"
        "InvoiceIssuerName",
    ),
    Example(f"GET {TENANT}/export/focus/contract-commitments", f"{PEOPLE}/export/focus/contract-commitments"),
    Example(
        f"GET {TENANT}/export/focus/contract-commitments.csv",
        f"{PEOPLE}/export/focus/contract-commitments.csv",
        header="BillingCurrency,ContractCommitmentApplicability,ContractCommitmentBenefitCategory,"
        "ContractCommitmentCategory,ContractCommitmentCost,ContractCommitmentCreated,ContractCommitmentDescription,"
        "ContractCommitmentDiscountPercentage,ContractCommitmentDurationType,ContractCommitmentFulfillmentInterval,"
        "ContractCommitmentId,ContractCommitmentLastUpdated,ContractCommitmentLifecycleStatus,ContractCommitmentModel,"
        "ContractCommitmentOfferCategory,ContractCommitmentPaymentInterval,ContractCommitmentPaymentModel,"
        "ContractCommitmentPeriodEnd,ContractCommitmentPeriodStart,ContractCommitmentQuantity,ContractCommitmentType,"
        "ContractCommitmentUnit,ContractId,ContractPeriodEnd,ContractPeriodStart,InvoiceIssuerName,ServiceProviderName",
    ),
    Example(
        f"GET {TENANT}/export/focus/invoice-details",
        f"{PEOPLE}/export/focus/invoice-details?by=identity_id&period={SOME_MONTH}",
    ),
    Example(
        f"GET {TENANT}/export/focus/invoice-details.csv",
        f"{PEOPLE}/export/focus/invoice-details.csv?by=identity_id&period={SOME_MONTH}",
        header="BilledCost,BillingAccountId,BillingCurrency,BillingPeriodEnd,BillingPeriodStart,ChargeCategory,"
        "InvoiceDetailCreated,InvoiceDetailDescription,InvoiceDetailGrain,InvoiceDetailId,InvoiceDetailLastUpdated,"
        "InvoiceId,InvoiceIssueDate,InvoiceIssueStatus,InvoiceIssuerName,PaymentDueDate,PaymentTerms,ReferenceInvoiceId,"
        "x_By,x_ExactCost,x_Value",
    ),
)
