"""What costs something without being used."""

from __future__ import annotations

from typing import Any, Final

from chargeback.assistants.answers import KnownTenant, reconciled_in, within_limit
from chargeback.assistants.api_client import ApiClient
from chargeback.assistants.arguments import FindingsArguments, PeriodArguments

_SHOWN: Final = (
    "kind",
    "owner",
    "since",
    "last_active",
    "monthly_cost",
    "avoidable_cost",
    "why",
    "confidence",
    "action",
)


async def list_findings(api: ApiClient, arguments: FindingsArguments) -> dict[str, Any]:
    """Return open findings, the most expensive first."""
    tenant = await KnownTenant.of(api, arguments.tenant)
    found = (await api.get(tenant.name, "findings", {"kind": arguments.kind, "page_size": arguments.limit})).body
    reconciled = None
    if tenant.data_through is not None:
        reconciled = await reconciled_in(api, tenant.name, tenant.period(PeriodArguments(tenant=tenant.name)))
    items = found["items"]
    return within_limit(
        len(items),
        lambda count: {
            **tenant.heading(reconciled, api.link(tenant.name, "findings")),
            "rows": [_row(each) for each in items[:count]],
            "total": found["total"],
            "not_shown": found["total"] - min(count, len(items)),
        },
    )


def _row(item: dict[str, Any]) -> dict[str, Any]:
    subject = {name: value for name, value in item["subject"].items() if value is not None}
    return {"subject": subject} | {name: item[name] for name in _SHOWN if item[name] is not None}
