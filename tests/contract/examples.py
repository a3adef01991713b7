"""The examples of ``docs/api.md``: for each endpoint a request that anybody can run, and the shape of its answer.

They are asked in this order, of one tenant: what one writes, the next ones see.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.contract import page_shapes, shapes
from tests.contract.endpoints import ENTITY, TENANT

ADDRESS = "http://127.0.0.1:8080"
PEOPLE = "/api/v1/tenants/acme"
TAGS_OF = f"{PEOPLE}/entities/identity/UNALLOCATED/tags"
#: A day that has data in the demo, as a shell writes it.
SOME_DAY = "$(date -u -d '8 days ago' +%F)"


@dataclass(frozen=True)
class Example:
    """A request of one endpoint (``GET /health``), and what its answer must be: a shape, or the header of a CSV."""

    endpoint: str
    path: str
    shape: shapes.Shape | str | None
    body: dict[str, Any] | None = None

    @property
    def method(self) -> str:
        """The method."""
        return self.endpoint.partition(" ")[0]

    @property
    def command(self) -> str:
        """The request as somebody types it."""
        words = ["curl -s"]
        if self.method not in ("GET", "POST") or (self.method == "POST" and self.body is None):
            words.append(f"-X {self.method}")
        if self.body is not None:
            quote = '"' if "$(" in json.dumps(self.body) else "'"
            text = json.dumps(self.body)
            words.append(
                f"--json {quote}{text.replace(chr(34), chr(92) + chr(34)) if quote == chr(34) else text}{quote}"
            )
        quote = '"' if "$" in self.path else "'"
        return " ".join([*words, f"{quote}{ADDRESS}{self.path}{quote}"])


_DAY = f"start_date={SOME_DAY}&end_date={SOME_DAY}"
_TOPICS = f"{PEOPLE}/topic-attributions"
_CSV = "timestamp,identity_id,product_type,amount,tags"
_TOPIC_CSV = (
    "ecosystem,tenant_id,timestamp,env_id,cluster_resource_id,topic_name,"
    "product_category,product_type,attribution_method,amount"
)

EXAMPLES = (
    Example("GET /health", "/health", shapes.HEALTH),
    Example("GET /api/v1/readiness", "/api/v1/readiness", shapes.READINESS),
    Example("GET /api/v1/tenants", "/api/v1/tenants", [shapes.TENANT]),
    Example(f"GET {TENANT}", PEOPLE, page_shapes.TENANT_OVERVIEW),
    Example(f"GET {TENANT}/runs", f"{PEOPLE}/runs?limit=1", page_shapes.RUNS),
    Example(f"GET {TENANT}/reconciliation", f"{PEOPLE}/reconciliation?period=2d", page_shapes.RECONCILIATION),
    Example(f"GET {TENANT}/status", f"{PEOPLE}/status?{_DAY}", shapes.TENANT_STATUS),
    Example(
        f"GET {TENANT}/billing",
        f"{PEOPLE}/billing?product_type=KAFKA_STORAGE&page_size=1",
        shapes.read_page(shapes.BILLING_LINE),
    ),
    Example(
        f"GET {TENANT}/costs",
        f"{PEOPLE}/costs?period=7d&by=tag:team&top=2&include=issues",
        page_shapes.COSTS,
    ),
    Example(
        f"GET {TENANT}/flow",
        f"{PEOPLE}/flow?period=7d&by=environment_id&by=tag:team&top=2&compare=none",
        page_shapes.FLOW,
    ),
    Example(
        f"GET {TENANT}/chargebacks",
        f"{PEOPLE}/chargebacks?{_DAY}&timezone=Europe/Berlin&cost_type=usage&page_size=1",
        shapes.read_page(shapes.CHARGEBACK),
    ),
    Example(f"GET {TENANT}/chargebacks/{{dimension_id}}", f"{PEOPLE}/chargebacks/$DIMENSION", shapes.DIMENSION),
    Example(f"GET {TENANT}/chargebacks/explain", f"{PEOPLE}/chargebacks/explain?$KEY", page_shapes.EXPLANATION),
    Example(
        f"GET {TENANT}/chargebacks/diff",
        f"{PEOPLE}/chargebacks/diff?from_as_of=$(date -u -d '7 days ago' +%F)T00:00:00Z&group_by=tag:team&limit=2",
        page_shapes.DIFFERENCE,
    ),
    Example(
        f"GET {TENANT}/days/{{date}}/revisions",
        f"{PEOPLE}/days/$(date -u -d '8 days ago' +%F)/revisions",
        page_shapes.REVISIONS,
    ),
    Example(f"GET {TENANT}/chargebacks/dates", f"{PEOPLE}/chargebacks/dates", shapes.DATES),
    Example(
        f"GET {TENANT}/chargebacks/allocation-issues",
        f"{PEOPLE}/chargebacks/allocation-issues?identity_id=UNALLOCATED&page_size=1",
        shapes.read_page(shapes.ISSUE),
    ),
    Example(
        f"GET {TENANT}/chargebacks/aggregate",
        f"{PEOPLE}/chargebacks/aggregate?group_by=product_category&group_by=tag:team&time_bucket=week",
        shapes.AGGREGATE,
    ),
    Example(
        f"GET {TENANT}/resources",
        f"{PEOPLE}/resources?resource_type=kafka_cluster&status=active&sort_by=display_name&page_size=1",
        shapes.read_page(shapes.RESOURCE),
    ),
    Example(
        f"GET {TENANT}/identities",
        f"{PEOPLE}/identities?identity_type=service_account&search=SA-&page_size=1",
        shapes.read_page(shapes.IDENTITY),
    ),
    Example(f"GET {TENANT}/inventory/summary", f"{PEOPLE}/inventory/summary", shapes.INVENTORY),
    Example(f"GET {TENANT}/search", f"{PEOPLE}/search?q=ord&limit=2", page_shapes.FOUND),
    Example(f"POST {ENTITY}", TAGS_OF, shapes.TAG, {"tag_key": "team", "tag_value": "platform", "created_by": "alice"}),
    Example(f"GET {ENTITY}", TAGS_OF, [shapes.TAG]),
    Example(f"PUT {ENTITY}/{{tag_key}}", f"{TAGS_OF}/team", shapes.TAG, {"tag_value": "payments"}),
    Example(f"PATCH {ENTITY}/{{tag_key}}", f"{TAGS_OF}/team", shapes.TAG, {"tag_value": "payments"}),
    Example(
        f"POST {TENANT}/tags/bulk",
        f"{PEOPLE}/tags/bulk",
        shapes.BULK,
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
        shapes.BULK,
        {"identity_id": "UNALLOCATED", "start_date": SOME_DAY, "tag_key": "owner", "display_name": "unknown"},
    ),
    Example(f"GET {TENANT}/tags", f"{PEOPLE}/tags?entity_type=identity&tag_key=team", shapes.read_page(shapes.TAG)),
    Example(f"GET {TENANT}/tags/keys", f"{PEOPLE}/tags/keys", shapes.TAG_KEYS),
    Example(f"GET {TENANT}/tags/keys/{{tag_key}}/values", f"{PEOPLE}/tags/keys/team/values?q=pay", shapes.TAG_VALUES),
    Example(f"DELETE {ENTITY}/{{tag_key}}", f"{TAGS_OF}/team", None),
    Example(
        f"POST {TENANT}/tags/bulk-delete",
        f"{PEOPLE}/tags/bulk-delete",
        page_shapes.REMOVAL_PREVIEW,
        {"items": [{"entity_type": "identity", "entity_id": "UNALLOCATED", "tag_key": "env"}], "dry_run": True},
    ),
    Example(
        f"POST {TENANT}/export",
        f"{PEOPLE}/export",
        _CSV,
        {"columns": _CSV.split(","), "start_date": SOME_DAY, "filters": {"identity_id": "UNALLOCATED"}},
    ),
    Example(
        f"GET {TENANT}/chargebacks.csv",
        f"{PEOPLE}/chargebacks.csv?{_DAY}&identity_id=UNALLOCATED",
        "timestamp,resource_id,product_category,product_type,identity_id,cost_type,amount,allocation_method,tags",
    ),
    Example(
        f"GET {TENANT}/chargebacks/aggregate.csv",
        f"{PEOPLE}/chargebacks/aggregate.csv?period=month&time_bucket=month&group_by=identity_id&names=true",
        "time_bucket,identity_id,identity_name,total_amount,usage_amount,shared_amount,row_count",
    ),
    Example(
        f"GET {TENANT}/billing.csv",
        f"{PEOPLE}/billing.csv?{_DAY}&product_type=KAFKA_STORAGE",
        "ecosystem,tenant_id,timestamp,resource_id,product_category,product_type,quantity,unit_price,total_cost,"
        "currency,granularity",
    ),
    Example(f"GET {TENANT}/topic-attributions.csv", f"{PEOPLE}/topic-attributions.csv?{_DAY}", _TOPIC_CSV),
    Example(
        f"GET {TENANT}/costs.csv",
        f"{PEOPLE}/costs.csv?period=7d&by=product_type&top=2",
        "by,value,name,kind,others,amount,previous,usage,rows",
    ),
    Example(
        f"GET {TENANT}/topics.csv",
        f"{PEOPLE}/topics.csv?period=7d&product_type=KAFKA_STORAGE",
        "cluster_resource_id,cluster_name,topic_name,amount,previous,bytes_in,bytes_out,zombie",
    ),
    Example(
        f"GET {TENANT}/topic-attributions/aggregate.csv",
        f"{_TOPICS}/aggregate.csv?group_by=env_id&time_bucket=month",
        "time_bucket,env_id,total_amount,row_count",
    ),
    Example(
        f"GET {TENANT}/chargebacks/allocation-issues.csv",
        f"{PEOPLE}/chargebacks/allocation-issues.csv?identity_id=UNALLOCATED",
        "ecosystem,resource_id,product_type,identity_id,allocation_detail,row_count,usage_cost,shared_cost,total_cost",
    ),
    Example(
        f"GET {TENANT}/resources.csv",
        f"{PEOPLE}/resources.csv?resource_type=kafka_cluster",
        "ecosystem,tenant_id,resource_id,resource_type,parent_id,owner_id,status,display_name,metadata,"
        "created_at,deleted_at,last_seen_at",
    ),
    Example(
        f"GET {TENANT}/identities.csv",
        f"{PEOPLE}/identities.csv?identity_type=service_account",
        "ecosystem,tenant_id,identity_id,identity_type,display_name,metadata,created_at,deleted_at,last_seen_at",
    ),
    Example(
        f"GET {TENANT}/tags.csv",
        f"{PEOPLE}/tags.csv",
        "tag_id,tenant_id,entity_type,entity_id,tag_key,tag_value,created_by,created_at",
    ),
    Example(
        f"GET {TENANT}/topic-attributions",
        f"{_TOPICS}?attribution_method=bytes_ratio&page_size=1",
        shapes.read_page(shapes.TOPIC_ROW),
    ),
    Example(
        f"GET {TENANT}/topic-attributions/aggregate",
        f"{_TOPICS}/aggregate?group_by=env_id&time_bucket=month",
        shapes.TOPIC_AGGREGATE,
    ),
    Example(f"GET {TENANT}/topic-attributions/dates", f"{_TOPICS}/dates", shapes.DATES),
    Example(f"POST {TENANT}/topic-attributions/export", f"{_TOPICS}/export", _TOPIC_CSV, {"start_date": SOME_DAY}),
    Example(f"GET {TENANT}/topics", f"{PEOPLE}/topics?period=7d&top=2", page_shapes.TOPICS),
    Example(
        f"POST {TENANT}/views",
        f"{PEOPLE}/views",
        page_shapes.VIEW,
        {"name": "Payments", "page": "costs", "query": "period=30d&tag:team=payments", "created_by": "alice"},
    ),
    Example(f"GET {TENANT}/views", f"{PEOPLE}/views", {"items": [page_shapes.VIEW]}),
    Example(
        f"PUT {TENANT}/views/{{view_id}}",
        f"{PEOPLE}/views/$VIEW",
        page_shapes.VIEW,
        {"name": "Payments", "page": "costs", "query": "period=month&tag:team=payments"},
    ),
    Example(f"DELETE {TENANT}/views/{{view_id}}", f"{PEOPLE}/views/$VIEW", None),
    Example(f"POST {TENANT}/pipeline/run", f"{PEOPLE}/pipeline/run", shapes.RUN_ACCEPTED),
    Example(f"GET {TENANT}/pipeline/status", f"{PEOPLE}/pipeline/status", shapes.PIPELINE_STATUS),
)
