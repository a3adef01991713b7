"""The rights that each endpoint needs according to the specification of access, written again for comparison."""

from __future__ import annotations

from chargeback.access.caller import Right
from tests.contract.endpoints import BY_NAME, ENTITY, TENANT, Endpoint

_CATEGORY = f"{TENANT}/cost-categories/{{category_key}}"

#: Endpoints that need no identity.
OPEN = frozenset({"GET /health", "GET /api/v1/readiness"})
#: Endpoints that every caller with an identity may use.
OF_ANYBODY = frozenset({"GET /api/v1/me", "GET /api/v1/tenants", "GET /metrics/chargebacks"})
#: Endpoints about the whole bill, which are refused to callers with a scope.
WHOLE = frozenset(
    {
        f"GET {TENANT}/runs",
        f"GET {TENANT}/pipeline/log",
        f"GET {TENANT}/health",
        f"GET {TENANT}/audit",
        f"GET {TENANT}/usage",
        f"GET {TENANT}/days/{{date}}/revisions",
        f"GET {TENANT}/restatements",
        f"GET {TENANT}/reconciliation",
        f"POST {TENANT}/reconciliation/external",
        f"POST {TENANT}/export/focus",
        f"GET {TENANT}/export/focus/metadata",
        *(
            f"GET {TENANT}/export/focus/{dataset}{form}"
            for dataset in ("billing-periods", "invoice-details", "contract-commitments")
            for form in ("", ".csv")
        ),
        f"GET {TENANT}/periods/{{period}}/journal",
        f"GET {TENANT}/periods",
        f"GET {TENANT}/periods.csv",
        f"GET {TENANT}/periods/{{period}}",
        f"GET {TENANT}/periods/{{period}}/closing-preview",
        f"POST {TENANT}/periods/{{period}}/close",
        f"POST {TENANT}/periods/{{period}}/reopen",
        f"POST {TENANT}/periods/{{period}}/seal",
        f"GET {TENANT}/closings.jsonl",
        f"GET {TENANT}/closings/signatures",
        f"GET {TENANT}/events",
        f"GET {TENANT}/adjustments",
        f"POST {TENANT}/adjustments",
        f"DELETE {TENANT}/adjustments/{{number}}",
        f"POST {TENANT}/adjustments/{{number}}/reverse",
        f"GET {TENANT}/periods/{{period}}/invoices",
        f"PUT {TENANT}/periods/{{period}}/invoices/{{invoice_id}}",
        f"DELETE {TENANT}/periods/{{period}}/invoices/{{invoice_id}}",
        f"POST {TENANT}/budgets",
        f"PUT {TENANT}/budgets/{{budget_id}}",
        f"DELETE {TENANT}/budgets/{{budget_id}}",
        f"GET {TENANT}/contracts",
        f"GET {TENANT}/contracts/{{contract_id}}",
        f"GET {TENANT}/notifications",
        f"POST {TENANT}/notifications/{{sink_name}}/test",
        f"POST {TENANT}/notifications/{{sink_name}}/retry",
        f"GET {TENANT}/shadows",
        f"GET {TENANT}/shadows/{{shadow_name}}",
        f"POST {TENANT}/policies/apply",
        f"DELETE {TENANT}/policies/applied/{{effective_from}}",
        f"POST {TENANT}/simulations",
        f"GET {TENANT}/simulations",
        f"GET {TENANT}/simulations/{{simulation_id}}",
        f"GET {TENANT}/simulations/{{simulation_id}}/items.csv",
        f"GET {_CATEGORY}",
        f"GET {_CATEGORY}/history",
        f"GET {_CATEGORY}/rules.csv",
        f"GET {_CATEGORY}/coverage",
        f"GET {_CATEGORY}/resolve",
        f"PUT {_CATEGORY}",
        f"PUT {_CATEGORY}/rules.csv",
        f"DELETE {_CATEGORY}",
    }
)
_WRITES = {
    f"POST {TENANT}/export": Right.EXPORT,
    f"POST {TENANT}/topic-attributions/export": Right.EXPORT,
    f"POST {TENANT}/export/focus": Right.EXPORT,
    f"POST {TENANT}/reconciliation/external": Right.READ,
    f"PUT {TENANT}/findings/{{finding_id}}/snooze": Right.TAG,
    f"DELETE {TENANT}/findings/{{finding_id}}/snooze": Right.TAG,
    f"POST {TENANT}/anomalies/marks": Right.TAG,
    f"DELETE {TENANT}/anomalies/marks/{{number}}": Right.TAG,
    f"POST {TENANT}/notes": Right.TAG,
    f"PUT {TENANT}/notes/{{note_id}}": Right.TAG,
    f"DELETE {TENANT}/notes/{{note_id}}": Right.TAG,
    f"POST {TENANT}/statement/acknowledge": Right.READ,
    f"POST {TENANT}/statement/dispute": Right.READ,
    f"POST {TENANT}/periods/{{period}}/close": Right.CLOSE,
    f"POST {TENANT}/periods/{{period}}/reopen": Right.ADMIN,
    f"POST {TENANT}/periods/{{period}}/seal": Right.ADMIN,
    f"POST {TENANT}/adjustments": Right.CLOSE,
    f"DELETE {TENANT}/adjustments/{{number}}": Right.CLOSE,
    f"POST {TENANT}/adjustments/{{number}}/reverse": Right.CLOSE,
    f"PUT {TENANT}/periods/{{period}}/invoices/{{invoice_id}}": Right.CLOSE,
    f"DELETE {TENANT}/periods/{{period}}/invoices/{{invoice_id}}": Right.CLOSE,
    f"POST {TENANT}/views": Right.READ,
    f"PUT {TENANT}/views/{{view_id}}": Right.READ,
    f"DELETE {TENANT}/views/{{view_id}}": Right.READ,
    f"POST {TENANT}/budgets": Right.ADMIN,
    f"PUT {TENANT}/budgets/{{budget_id}}": Right.ADMIN,
    f"DELETE {TENANT}/budgets/{{budget_id}}": Right.ADMIN,
    f"POST {TENANT}/notifications/{{sink_name}}/test": Right.ADMIN,
    f"POST {TENANT}/notifications/{{sink_name}}/retry": Right.ADMIN,
    f"PUT {_CATEGORY}": Right.ADMIN,
    f"PUT {_CATEGORY}/rules.csv": Right.ADMIN,
    f"DELETE {_CATEGORY}": Right.ADMIN,
    f"POST {ENTITY}": Right.TAG,
    f"PUT {ENTITY}/{{tag_key}}": Right.TAG,
    f"PATCH {ENTITY}/{{tag_key}}": Right.TAG,
    f"DELETE {ENTITY}/{{tag_key}}": Right.TAG,
    f"POST {TENANT}/tags/bulk": Right.TAG,
    f"POST {TENANT}/tags/bulk-delete": Right.TAG,
    f"POST {TENANT}/tags/bulk-by-filter": Right.TAG,
    f"POST {TENANT}/pipeline/run": Right.RUN,
    f"POST {TENANT}/pipeline/cancel": Right.RUN,
    f"POST {TENANT}/simulations": Right.RUN,
    f"POST {TENANT}/policies/apply": Right.ADMIN,
    f"DELETE {TENANT}/policies/applied/{{effective_from}}": Right.ADMIN,
}
assert set(_WRITES) == {name for name, each in BY_NAME.items() if each.method != "GET"}
assert set(BY_NAME) >= WHOLE | OPEN | OF_ANYBODY


def right_for(endpoint: Endpoint) -> Right:
    """Return the right that an endpoint needs; files need export, except the rules of a category."""
    if endpoint.method != "GET":
        return _WRITES[endpoint.name]
    is_file = endpoint.path.endswith((".csv", ".pdf", ".zip", "/journal")) and "rules.csv" not in endpoint.path
    return Right.EXPORT if is_file else Right.READ
