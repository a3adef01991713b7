"""Every endpoint of the contract: its method, path, parameters and fields, as named by the specification."""

from __future__ import annotations

from dataclasses import dataclass

TENANT = "/api/v1/tenants/{tenant_name}"
ENTITY = f"{TENANT}/entities/{{entity_type}}/{{entity_id}}/tags"
_DATES = frozenset({"start_date", "end_date", "timezone"})
COMMON = _DATES | {"page", "page_size"}
_FILTERS = {
    "period",
    "as_of",
    "tag:<key>",
    "category:<key>",
    "not.<filter>",
    "product_type",
    "product_category",
    "line_id",
}
_COSTS = (_FILTERS - {"line_id"}) | {
    "identity_id",
    "resource_id",
    "cost_type",
    "environment_id",
    "allocation_method",
    "allocation_detail",
    "ecosystem",
    "cluster_id",
}
_CHARGEBACKS = _COSTS | _FILTERS
_BILLING = _FILTERS | {"resource_id", "environment_id", "ecosystem", "cluster_id"}
_TOPICS = _FILTERS | {"cluster_resource_id", "topic_name", "env_id", "attribution_method"}
_SUBJECT = {"identity_id", "resource_id", "environment_id", "topic", "product_type", "product_category", "date"}
_TAG = {"tag_key", "tag_value"}
_PERIOD = frozenset({"valid_from", "valid_to"})
_BULK = frozenset({"created_by", "override_existing", "replace_periods", "dry_run"})
_TIME = {"active_at", "period_start", "period_end"}
_FOCUS = frozenset({"version", "split", "columns"})
_LIST = {"search", "sort_by", "sort_order"} | _TAG


_STATEMENTS = ("period", "by", "as_of", "basis")
#: The fields that allow a change to move amounts of closed months.
_RESTATING = frozenset({"restate_closed", "reason"})
_ADJUSTMENT = frozenset(
    {
        *("period", "until", "recurring", "by", "value", "from", "amount", "kind", "applies_to", "reason", "reference"),
        *("exact", "idempotency_key"),
    }
)
_INVOICE = frozenset({"issuer", "kind", "status", "references", "issued", "due", "currency", "total", "tax", "lines"})
_MONTH = (("period", "2026-01"), ("by", "identity_id"))


_SIMULATION = ("/{simulation_id}", "/{simulation_id}/items.csv")


@dataclass(frozen=True)
class Endpoint:
    """An endpoint. ``query`` has its own parameters, without the common ones that every GET accepts."""

    method: str
    path: str
    query: frozenset[str] = frozenset()
    body: frozenset[str] = frozenset()
    success: int = 200
    #: The other success status of a PUT: 200 for a change if ``success`` is 201 for a creation.
    other_success: int | None = None
    #: Whether the specification names it; others are additions.
    specified: bool = True
    #: Required parameters, with valid values that match nothing.
    needed: tuple[tuple[str, str], ...] = ()

    @property
    def is_file(self) -> bool:
        """Return whether this is the file of another endpoint, under which the document describes it."""
        return self.path.endswith(".csv") and not self.path.endswith(("/rules.csv", "/items.csv"))

    @property
    def documented(self) -> str:
        """Return the path under which the document describes it."""
        return self.path.removesuffix(".csv") if self.is_file else self.path

    @property
    def parameters(self) -> frozenset[str]:
        """Return all query parameters."""
        return self.query | COMMON if self.method == "GET" and self.path.startswith("/api/") else self.query

    @property
    def name(self) -> str:
        """Return method and path."""
        return f"{self.method} {self.path}"

    def of(self, tenant: str, **parts: str) -> str:
        """Return the path for a tenant, with other parts filled in."""
        filled = {
            "entity_type": "resource",
            "entity_id": "lkc-none",
            "tag_key": "team",
            "dimension_id": "1",
            "date": "2026-01-01",
            "view_id": "1",
            "note_id": "2",
            "finding_id": "0123456789abcdef",
            "period": "2026-01",
            "number": "1",
            "invoice_id": "INV-1",
            "category_key": "cost_center",
            "simulation_id": "0" * 64,
            "effective_from": "2099-01-01",
            "shadow_name": "next",
            "budget_id": "all",
            "sink_name": "finance-desk",
            "contract_id": "provider",
        } | parts
        return self.path.format(tenant_name=tenant, **filled)


def _get(path: str, *query: str, specified: bool = True) -> Endpoint:
    return Endpoint("GET", path, frozenset(query), specified=specified)


ENDPOINTS = (
    _get("/health"),
    _get("/metrics/chargebacks", specified=False),
    _get("/api/v1/readiness"),
    _get("/api/v1/tenants"),
    _get("/api/v1/me", specified=False),
    _get(f"{TENANT}/status"),
    _get(f"{TENANT}/billing", *_BILLING),
    _get(
        f"{TENANT}/costs",
        *_COSTS,
        "by",
        "series",
        "top",
        "compare",
        "time_bucket",
        "include",
        "currency",
        *("basis", "scenario"),
        specified=False,
    ),
    _get(f"{TENANT}", specified=False),
    _get(f"{TENANT}/health", specified=False),
    _get(f"{TENANT}/reconciliation", "period", "as_of", "group_by", specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/reconciliation/external",
        body=frozenset({"csv", "mapping", "start_date", "end_date", "as_of", "limit"}),
        specified=False,
    ),
    _get(f"{TENANT}/days/{{date}}/revisions", specified=False),
    _get(f"{TENANT}/restatements", "period", "as_of", specified=False),
    _get(f"{TENANT}/policies", "hash", "date", "product_type", specified=False),
    _get(f"{TENANT}/policies/history", specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/policies/apply",
        body=frozenset({"simulation", "expected_digest", "effective_from", "reason", "restate_closed"}),
        specified=False,
    ),
    Endpoint("DELETE", f"{TENANT}/policies/applied/{{effective_from}}", success=204, specified=False),
    _get(
        f"{TENANT}/anomalies",
        *("period", "as_of", "min_amount", "min_percent", "limit", "id", "include", "category"),
        specified=False,
    ),
    _get(f"{TENANT}/anomalies/marks", specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/anomalies/marks",
        success=201,
        body=frozenset(
            {"identity_id", "category", "value", "product_category", "status", "start_date", "end_date", "note"}
            | {"created_by"}
        ),
        specified=False,
    ),
    Endpoint("DELETE", f"{TENANT}/anomalies/marks/{{number}}", success=204, specified=False),
    _get(f"{TENANT}/notes", "period", specified=False),
    _get(f"{TENANT}/notes/{{note_id}}", specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/notes",
        success=201,
        body=frozenset({"start_date", "end_date", "text", "created_by"}),
        specified=False,
    ),
    Endpoint(
        "PUT",
        f"{TENANT}/notes/{{note_id}}",
        body=frozenset({"start_date", "end_date", "text"}),
        specified=False,
    ),
    Endpoint("DELETE", f"{TENANT}/notes/{{note_id}}", success=204, specified=False),
    _get(f"{TENANT}/budgets", "month", specified=False),
    _get(f"{TENANT}/budgets.csv", "month", specified=False),
    Endpoint("POST", f"{TENANT}/budgets", body=frozenset({"csv", "dry_run", "reason"}), specified=False),
    _get(f"{TENANT}/budgets/{{budget_id}}", specified=False),
    _get(f"{TENANT}/budgets/{{budget_id}}/status", "month", specified=False),
    Endpoint(
        "PUT",
        f"{TENANT}/budgets/{{budget_id}}",
        body=frozenset({"name", "scope", "parent", "amounts", "monthly", "thresholds", "notify", "expected", "reason"}),
        success=201,
        other_success=200,
        specified=False,
    ),
    Endpoint("DELETE", f"{TENANT}/budgets/{{budget_id}}", query=frozenset({"reason"}), success=204, specified=False),
    _get(f"{TENANT}/contracts", "as_of", specified=False),
    _get(f"{TENANT}/forecast", *_COSTS, "until", "group_by", "top", specified=False),
    _get(f"{TENANT}/contracts/{{contract_id}}", "as_of", specified=False),
    _get(f"{TENANT}/notifications", specified=False),
    Endpoint("POST", f"{TENANT}/notifications/{{sink_name}}/test", specified=False),
    Endpoint("POST", f"{TENANT}/notifications/{{sink_name}}/retry", specified=False),
    _get(f"{TENANT}/shadows", specified=False),
    _get(f"{TENANT}/shadows/{{shadow_name}}", "limit", specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/simulations",
        body=frozenset(
            {"policies", "isolate", "cost_categories", "tags", "start_date", "end_date", "as_of", "group_by"}
        ),
        success=202,
        specified=False,
    ),
    *(_get(f"{TENANT}/simulations{each}", specified=False) for each in ("", *_SIMULATION)),
    _get(
        f"{TENANT}/usage",
        *("period", "as_of", "measure", "resource_id", "subject", "sort_by", "sort_order"),
        specified=False,
    ),
    _get(f"{TENANT}/runs", "limit", specified=False),
    _get(f"{TENANT}/audit", "what", "who", specified=False),
    _get(f"{TENANT}/series", *_COSTS, "group_by", "top", "time_bucket", "currency", specified=False),
    _get(f"{TENANT}/flow", *_COSTS, "by", "top", "compare", "currency", specified=False),
    _get(f"{TENANT}/graph", *_COSTS, "focus", "leaves", "depth", "top", specified=False),
    _get(f"{TENANT}/graph/diff", *_COSTS, "focus", "leaves", "depth", "top", "compare", specified=False),
    _get(f"{TENANT}/graph/timeline", *_COSTS, "focus", "leaves", "time_bucket", specified=False),
    _get(f"{TENANT}/search", "q", "limit", "period", "as_of", specified=False),
    _get(f"{TENANT}/topics", *_COSTS, "top", "compare", "currency", specified=False),
    _get(f"{TENANT}/unit-costs", *_COSTS, "per", "group_by", "currency", "limit", specified=False),
    _get(f"{TENANT}/unit-costs.csv", *_COSTS, "per", "group_by", "currency", "limit", specified=False),
    _get(f"{TENANT}/findings", "kind", "min_days", "state", specified=False),
    _get(f"{TENANT}/findings.csv", "kind", "min_days", "state", specified=False),
    Endpoint(
        "PUT",
        f"{TENANT}/findings/{{finding_id}}/snooze",
        body=frozenset({"reason", "until", "created_by"}),
        specified=False,
    ),
    Endpoint("DELETE", f"{TENANT}/findings/{{finding_id}}/snooze", success=204, specified=False),
    _get(f"{TENANT}/views", specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/views",
        body=frozenset({"name", "page", "query", "created_by"}),
        success=201,
        specified=False,
    ),
    Endpoint("PUT", f"{TENANT}/views/{{view_id}}", body=frozenset({"name", "page", "query"}), specified=False),
    Endpoint("DELETE", f"{TENANT}/views/{{view_id}}", success=204, specified=False),
    _get(f"{TENANT}/cost-categories", specified=False),
    _get(f"{TENANT}/cost-categories/{{category_key}}", "version", specified=False),
    _get(f"{TENANT}/cost-categories/{{category_key}}/history", specified=False),
    _get(f"{TENANT}/cost-categories/{{category_key}}/rules.csv", specified=False),
    _get(f"{TENANT}/cost-categories/{{category_key}}/coverage", *_CHARGEBACKS, specified=False),
    _get(f"{TENANT}/cost-categories/{{category_key}}/resolve", *_SUBJECT, specified=False),
    Endpoint(
        "PUT",
        f"{TENANT}/cost-categories/{{category_key}}",
        query=frozenset({"dry_run", "period"}),
        body=frozenset({"document"}) | _RESTATING,
        success=201,
        other_success=200,
        specified=False,
    ),
    Endpoint(
        "PUT",
        f"{TENANT}/cost-categories/{{category_key}}/rules.csv",
        body=frozenset({"csv"}) | _RESTATING,
        success=201,
        other_success=200,
        specified=False,
    ),
    Endpoint(
        "DELETE",
        f"{TENANT}/cost-categories/{{category_key}}",
        query=_RESTATING,
        success=204,
        specified=False,
    ),
    _get(
        f"{TENANT}/chargebacks",
        *_CHARGEBACKS,
        *_TAG,
        "sort_by",
        "sort_order",
        "min_amount",
        "names",
        *("basis", "scenario"),
    ),
    _get(f"{TENANT}/chargebacks.csv", *_CHARGEBACKS, *_TAG, "basis", "scenario", specified=False),
    _get(f"{TENANT}/billing.csv", *_BILLING, specified=False),
    _get(f"{TENANT}/topic-attributions.csv", *_TOPICS, specified=False),
    _get(
        f"{TENANT}/costs.csv",
        *_COSTS,
        "by",
        "series",
        "top",
        "compare",
        "time_bucket",
        "include",
        "currency",
        *("basis", "scenario"),
        specified=False,
    ),
    _get(f"{TENANT}/topics.csv", *_COSTS, "top", "compare", "currency", specified=False),
    _get(
        f"{TENANT}/topic-attributions/aggregate.csv", "group_by", "time_bucket", "currency", *_TOPICS, specified=False
    ),
    _get(f"{TENANT}/chargebacks/allocation-issues.csv", *_CHARGEBACKS, *_TAG, specified=False),
    _get(f"{TENANT}/resources.csv", "resource_type", "status", *_TIME, *_LIST, specified=False),
    _get(f"{TENANT}/identities.csv", "identity_type", *_TIME, *_LIST, specified=False),
    _get(f"{TENANT}/tags.csv", "entity_type", "tag_key", specified=False),
    _get(f"{TENANT}/chargebacks/{{dimension_id}}", "as_of"),
    _get(f"{TENANT}/chargebacks/dates", "as_of"),
    Endpoint(
        "GET",
        f"{TENANT}/chargebacks/explain",
        frozenset({"date", "line_id", "identity_id", "portion", "as_of"}),
        specified=False,
        needed=(("date", "2026-01-01"), ("line_id", "none"), ("identity_id", "nobody")),
    ),
    Endpoint(
        "GET",
        f"{TENANT}/topic-attributions/explain",
        frozenset({"date", "line_id", "topic_name", "as_of"}),
        specified=False,
        needed=(("date", "2026-01-01"), ("line_id", "none"), ("topic_name", "none")),
    ),
    Endpoint(
        "GET",
        f"{TENANT}/chargebacks/diff",
        frozenset({"group_by", "from_as_of", "limit"} | _CHARGEBACKS),
        specified=False,
        needed=(("from_as_of", "2026-01-01T00:00:00Z"),),
    ),
    _get(
        f"{TENANT}/chargebacks/changes",
        *_COSTS,
        "group_by",
        "compare",
        "limit",
        *("from_start", "from_end", "to_start", "to_end"),
        specified=False,
    ),
    _get(f"{TENANT}/chargebacks/allocation-issues", *_CHARGEBACKS, *_TAG),
    _get(
        f"{TENANT}/chargebacks/aggregate",
        "group_by",
        "time_bucket",
        "names",
        "currency",
        "basis",
        "scenario",
        *_CHARGEBACKS,
    ),
    _get(
        f"{TENANT}/chargebacks/aggregate.csv",
        "group_by",
        "time_bucket",
        "names",
        "currency",
        *("basis", "scenario"),
        *_CHARGEBACKS,
        specified=False,
    ),
    _get(f"{TENANT}/resources", "resource_type", "status", *_TIME, *_LIST),
    _get(f"{TENANT}/identities", "identity_type", *_TIME, *_LIST),
    _get(f"{TENANT}/inventory/summary"),
    _get(ENTITY),
    Endpoint("POST", ENTITY, body=_PERIOD | _RESTATING | {"tag_key", "tag_value", "created_by"}, success=201),
    Endpoint("PUT", f"{ENTITY}/{{tag_key}}", body=_PERIOD | _RESTATING | {"tag_value", "replace_periods"}),
    Endpoint(
        "PATCH",
        f"{ENTITY}/{{tag_key}}",
        body=_PERIOD | _RESTATING | {"tag_value", "replace_periods"},
        specified=False,
    ),
    Endpoint("DELETE", f"{ENTITY}/{{tag_key}}", query=_RESTATING | {"valid_from"}, success=204),
    _get(f"{TENANT}/tags", "entity_type", "tag_key"),
    _get(f"{TENANT}/tags/keys", specified=False),
    _get(f"{TENANT}/tags/keys/{{tag_key}}/values", "q", specified=False),
    Endpoint("POST", f"{TENANT}/tags/bulk", body=_BULK | _RESTATING | {"items"}),
    Endpoint("POST", f"{TENANT}/tags/bulk-delete", body=_RESTATING | {"items", "dry_run"}, specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/tags/bulk-by-filter",
        body=_DATES | _PERIOD | _BULK | _RESTATING | {"identity_id", "tag_key", "display_name"},
    ),
    Endpoint(
        "POST",
        f"{TENANT}/pipeline/run",
        body=_RESTATING | {"start_date", "end_date", "recalculate", "accept_less"},
        success=202,
    ),
    _get(f"{TENANT}/pipeline/status"),
    Endpoint("POST", f"{TENANT}/pipeline/cancel", specified=False),
    _get(f"{TENANT}/pipeline/log", "run_id", specified=False),
    Endpoint("POST", f"{TENANT}/export", body=_DATES | {"format", "columns", "filters", "as_of", "basis", "style"}),
    Endpoint("POST", f"{TENANT}/export/focus", body=_DATES | _FOCUS | {"format", "as_of", "basis"}, specified=False),
    _get(f"{TENANT}/export/focus/metadata", "as_of", "basis", *_FOCUS, specified=False),
    *(_get(f"{TENANT}/export/focus/billing-periods{form}", "as_of", specified=False) for form in ("", ".csv")),
    *(_get(f"{TENANT}/export/focus/contract-commitments{form}", "as_of", specified=False) for form in ("", ".csv")),
    *(
        _get(f"{TENANT}/export/focus/invoice-details{form}", "as_of", "by", "period", specified=False)
        for form in ("", ".csv")
    ),
    *(
        Endpoint("GET", f"{TENANT}/statements{form}", frozenset(_STATEMENTS), specified=False, needed=_MONTH)
        for form in ("", ".csv", ".zip")
    ),
    *(
        Endpoint(
            "GET",
            f"{TENANT}/statement{form}",
            frozenset({*_STATEMENTS, "value"}),
            specified=False,
            needed=(*_MONTH, ("value", "nobody")),
        )
        for form in ("", ".html", ".csv", ".pdf")
    ),
    *(
        Endpoint(
            "POST",
            f"{TENANT}/statement/{said}",
            frozenset({"period", "by", "value", "basis"}),
            body=frozenset({"note", "number", "digest", "created_by"}),
            specified=False,
            needed=(*_MONTH, ("value", "nobody")),
        )
        for said in ("acknowledge", "dispute")
    ),
    Endpoint(
        "GET",
        f"{TENANT}/periods/{{period}}/journal",
        frozenset({"by", "as_of", "basis", "format", "template"}),
        specified=False,
        needed=(("by", "identity_id"),),
    ),
    _get(f"{TENANT}/periods", "as_of", specified=False),
    _get(f"{TENANT}/periods.csv", "as_of", specified=False),
    _get(f"{TENANT}/periods/{{period}}", "as_of", specified=False),
    _get(f"{TENANT}/periods/{{period}}/closing-preview", "as_of", "by", specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/periods/{{period}}/close",
        body=frozenset({"note", "expected_digest", "looked_at", "accept", "reason", "idempotency_key"}),
        other_success=202,
        specified=False,
    ),
    *(
        Endpoint("POST", f"{TENANT}/periods/{{period}}/{what}", body=frozenset({"reason"}), specified=False)
        for what in ("reopen", "seal")
    ),
    _get(f"{TENANT}/closings.jsonl", specified=False),
    _get(f"{TENANT}/closings/signatures", specified=False),
    _get(f"{TENANT}/events", "after", "kind", specified=False),
    _get(f"{TENANT}/adjustments", "period", specified=False),
    Endpoint("POST", f"{TENANT}/adjustments", body=_ADJUSTMENT, success=201, specified=False),
    Endpoint("DELETE", f"{TENANT}/adjustments/{{number}}", success=204, specified=False),
    Endpoint(
        "POST",
        f"{TENANT}/adjustments/{{number}}/reverse",
        body=frozenset({"period", "reason"}),
        success=201,
        specified=False,
    ),
    _get(f"{TENANT}/periods/{{period}}/invoices", specified=False),
    Endpoint("PUT", f"{TENANT}/periods/{{period}}/invoices/{{invoice_id}}", body=_INVOICE, specified=False),
    Endpoint("DELETE", f"{TENANT}/periods/{{period}}/invoices/{{invoice_id}}", success=204, specified=False),
    _get(f"{TENANT}/topic-attributions", *_TOPICS),
    _get(f"{TENANT}/topic-attributions/aggregate", "group_by", "time_bucket", "currency", *_TOPICS),
    _get(f"{TENANT}/topic-attributions/dates", "as_of"),
    Endpoint("POST", f"{TENANT}/topic-attributions/export", body=_DATES | {"format"}),
)
BY_NAME = {endpoint.name: endpoint for endpoint in ENDPOINTS}
