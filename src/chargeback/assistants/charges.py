"""Why an identity is charged an amount on a day."""

from __future__ import annotations

from typing import Any, Final

from chargeback.assistants.answers import KnownTenant, reconciled_in, within_limit
from chargeback.assistants.api_client import ApiClient, ToolError
from chargeback.assistants.arguments import ExplainArguments
from chargeback.model.inventory import UNALLOCATED
from chargeback.reports.periods import Period

_MOST_CONTENDERS: Final = 10
_MOST_OTHERS: Final = 5
_MOST_ALIKE: Final = 3
_OF_ROW: Final = (
    "resource_id",
    "product_type",
    "cost_type",
    "amount",
    "allocation_method",
    "allocation_detail",
    "identity_usage",
    "total_usage",
)
_OF_LINE: Final = ("resource_name", "quantity", "unit", "unit_price", "total_cost", "description")


async def explain_charge(api: ApiClient, arguments: ExplainArguments) -> dict[str, Any]:
    """Explain what an identity is charged for a billing line: the one that is named, or that of its largest charge.

    Raises:
        ToolError: there is no such charge.
    """
    tenant = await KnownTenant.of(api, arguments.tenant)
    day = {"start_date": arguments.date, "end_date": arguments.date}
    whose = {"identity_id": arguments.identity_id}
    key: dict[str, Any] = {"date": arguments.date, "line_id": arguments.line_id, **whose}
    others: list[dict[str, Any]] = []
    charges = 1
    if arguments.line_id is None:
        filters = {"resource_id": arguments.resource_id, "product_type": arguments.product_type, **whose}
        order = {"sort_by": "amount", "sort_order": "desc", "page_size": _MOST_OTHERS + 1}
        found = (await api.get(tenant.name, "chargebacks", {**day, **filters, **order})).body
        if not found["items"]:
            await _check_exists(api, tenant.name, "identities", "identity_id", arguments.identity_id)
            if arguments.resource_id is not None:
                await _check_exists(api, tenant.name, "resources", "resource_id", arguments.resource_id)
            raise ToolError(
                f"{arguments.identity_id} has no such charge on {arguments.date}; data is there through "
                f"{tenant.data_through}."
            )
        largest, *rest = found["items"]
        charges = found["total"]
        key |= {name: largest["metadata"][name] for name in ("line_id", "portion")}
        others = [
            {"line_id": each["metadata"]["line_id"]}
            | {name: each[name] for name in ("resource_id", "product_type", "cost_type", "amount")}
            for each in rest
        ]
    body: dict[str, Any] = (
        await api.get(tenant.name, "chargebacks/explain", {**key, "page_size": _MOST_CONTENDERS})
    ).body
    reconciled = await reconciled_in(api, tenant.name, Period(arguments.date, arguments.date))
    link = api.link(tenant.name, "rows", {**day, **whose, "line_id": key["line_id"]})

    def _make(count: int) -> dict[str, Any]:
        return {
            **tenant.heading(reconciled, link),
            "date": arguments.date.isoformat(),
            "identity_id": arguments.identity_id,
            "identity_name": body["identity_name"],
            "line_id": body["line_id"],
            "sentence": body["sentence"],
            "charge": _some(body["row"], _OF_ROW),
            "visible": body["visible"],
            "why_nothing": body["why_nothing"],
            "line": _some(body["line"], _OF_LINE),
            "methods": [{name: each[name] for name in ("method", "applied", "why_not")} for each in body["methods"]],
            "evidence": _evidence(body["evidence"], count),
            "evidence_missing": body["evidence_missing"],
            "recomputed": body["recomputed"],
            "charges_on_this_day": charges,
            "next_largest_charges": others[:count],
        }

    return within_limit(_MOST_CONTENDERS, _make)


async def _check_exists(api: ApiClient, tenant: str, path: str, column: str, id_: str) -> None:
    """Check that the inventory has an id.

    Raises:
        ToolError: it does not, as far as the caller sees; the message names those with that name.
    """
    found = (await api.get(tenant, path, {"search": id_, "page_size": _MOST_ALIKE})).body["items"]
    if id_ == UNALLOCATED or any(each[column] == id_ for each in found):
        return
    named = [f"{each[column]} ({each['display_name']})" for each in found if each["display_name"]]
    alike = f" Did you mean {' or '.join(named)}?" if named else ""
    raise ToolError(f"There is no {column} {id_!r} that you can see.{alike}")


def _some(values: dict[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    return None if values is None else {name: values[name] for name in names if values[name] is not None}


def _evidence(evidence: dict[str, Any] | None, count: int) -> dict[str, Any] | None:
    if evidence is None:
        return None
    contenders = evidence["contenders"][:count]
    return {
        "measure": evidence["measure"],
        "total": evidence["total"],
        "contenders": contenders,
        "contenders_total": evidence["contenders_total"],
    }
