"""Chargeback rows, their dimensions, dates and issues."""

from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.parameters import FactsParameters
from chargeback.api.problems import NotFound
from chargeback.api.responses import csv_response, json_response, page_response
from chargeback.api.routing import CSV, Files, Routes
from chargeback.api.schemas.chargebacks import (
    AllocationIssue,
    ChargebackListQuery,
    ChargebackQuery,
    ChargebackRow,
    Dimension,
)
from chargeback.api.tenant_requests import Facts
from chargeback.reports.answers import DatesAnswer, PageOf
from chargeback.reports.explain.links import chargeback_link
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.control.names import names_of
from chargeback.store.queries.chargebacks import ISSUE_AMOUNTS, ISSUE_FIELDS, allocation_issues, dimension
from chargeback.store.queries.datasets import CHARGEBACKS

router = Routes(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])


@router.get("", response_model=PageOf[ChargebackRow], needs=Right.READ, files=Files(rows="chargebacks.csv"))
def list_chargebacks(request: Facts, params: Annotated[ChargebackListQuery, Query()]) -> Response:
    """List chargeback rows with their tags, ordered by time and ids or by amount.

    `explain` in the metadata of a row is the link to its explanation, relative to the address of the list."""
    reader = request.reader
    selection = request.selection(params)
    items, total = reader.list_rows(CHARGEBACKS, selection, params.paging, params.order)
    if params.names:
        _add_names(request.tenant, items)
    for item in items:
        item["metadata"]["explain"] = chargeback_link(item, params.as_of)
    return page_response(items, total, page=params.page, page_size=params.page_size)


def _add_names(tenant: TenantView, items: list[dict[str, Any]]) -> None:
    """Add the display names of identity and resource to rows."""
    with tenant.store.control.read() as connection:
        for field, kind in (("identity", IDENTITIES), ("resource", RESOURCES)):
            names = names_of(connection, kind, {item[f"{field}_id"] for item in items})
            for item in items:
                known = names.get(item[f"{field}_id"])
                item[f"{field}_name"] = None if known is None else known.name


@router.get("/dates", response_model=DatesAnswer, needs=Right.READ)
def list_dates(request: Facts, _params: Annotated[FactsParameters, Query()]) -> Response:
    """List all UTC days with chargeback rows; date parameters are ignored."""
    return json_response({"dates": request.reader.dates(CHARGEBACKS)})


@router.get("/allocation-issues", response_model=PageOf[AllocationIssue], needs=Right.READ, files=CSV)
def list_issues(request: Facts, params: Annotated[ChargebackQuery, Query()]) -> Response:
    """List costs that could not be allocated as intended by their policy, with the reason, summed over the range."""
    reader = request.reader
    selection = request.selection(params)
    if request.wants_csv:
        issues, _ = allocation_issues(reader, selection)
        return csv_response("allocation_issues.csv", ISSUE_FIELDS, issues, numbers=ISSUE_AMOUNTS)
    items, total = allocation_issues(reader, selection, params.paging)
    return page_response(items, total, page=params.page, page_size=params.page_size)


@router.get(
    "/{dimension_id}",
    response_model=Dimension,
    needs=Right.READ,
    problems={404: "There is no such tenant, or no such dimension."},
)
def one_dimension(
    request: Facts,
    dimension_id: Annotated[str, Path(description="A `dimension_id` of a chargeback row.", pattern="^[0-9]{1,16}$")],
    _params: Annotated[FactsParameters, Query()],
) -> Response:
    """Return one dimension: the common fields of its chargeback rows."""
    reader = request.reader
    found = dimension(reader, int(dimension_id))
    if found is None:
        name = request.tenant.tenant_name
        raise NotFound(f"Tenant {name} has no chargeback dimension {dimension_id[:80]!r}.")
    return json_response(found)
