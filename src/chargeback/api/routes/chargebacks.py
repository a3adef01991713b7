"""Chargeback rows, their dimensions, dates and issues."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.csv_tables import csv_response
from chargeback.api.documentation import documented
from chargeback.api.facts import FactsDep
from chargeback.api.parameters import FactsParameters, query
from chargeback.api.problems import NotFound
from chargeback.api.responses import json_response, page_response
from chargeback.api.schemas.chargebacks import (
    AllocationIssue,
    ChargebackListQuery,
    ChargebackQuery,
    ChargebackRow,
    Dimension,
)
from chargeback.api.schemas.common import DatesAnswer, PageOf
from chargeback.service.explain_links import chargeback_link
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES
from chargeback.store.control.names import names_of
from chargeback.store.queries.chargebacks import ISSUE_AMOUNTS, ISSUE_FIELDS, allocation_issues, dimension
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

router = APIRouter(prefix="/tenants/{tenant_name}/chargebacks", tags=["Chargebacks"])


@router.get(
    "",
    response_model=PageOf[ChargebackRow],
    **documented(needs=Right.READ, query=ChargebackListQuery, etag=True),
)
async def list_chargebacks(
    facts: FactsDep, params: Annotated[ChargebackListQuery, query(ChargebackListQuery)]
) -> Response:
    """List chargeback rows with their tags, ordered by time and ids or by amount; with `Accept: text/csv`, as CSV.

    `explain` in the metadata of a row is the link to its explanation, relative to the address of the list."""
    if facts.wants_csv:
        return await facts.download(params, "chargebacks.csv")

    def _read(reader: TenantReader, selection: Selection) -> Response:
        items, total = reader.list_rows(CHARGEBACKS, selection, params.paging, params.order)
        if params.names:
            _add_names(facts.tenant, items)
        for item in items:
            item["metadata"]["explain"] = chargeback_link(item, params.as_of)
        return page_response(items, total, page=params.page, page_size=params.page_size)

    return await facts.select(params, _read)


def _add_names(tenant: TenantView, items: list[dict[str, Any]]) -> None:
    """Add the display names of identity and resource to rows."""
    with tenant.store.control.read() as connection:
        for field, kind in (("identity", IDENTITIES), ("resource", RESOURCES)):
            names = names_of(connection, kind, {item[f"{field}_id"] for item in items})
            for item in items:
                known = names.get(item[f"{field}_id"])
                item[f"{field}_name"] = None if known is None else known.name


@router.get("/dates", response_model=DatesAnswer, **documented(needs=Right.READ, query=FactsParameters, etag=True))
async def list_dates(facts: FactsDep, params: Annotated[FactsParameters, query(FactsParameters)]) -> Response:
    """List all UTC days with chargeback rows; date parameters are ignored."""
    return await facts.answer(params, lambda reader: json_response({"dates": reader.dates(CHARGEBACKS)}))


@router.get(
    "/allocation-issues",
    response_model=PageOf[AllocationIssue],
    **documented(needs=Right.READ, query=ChargebackQuery, etag=True),
)
async def list_issues(facts: FactsDep, params: Annotated[ChargebackQuery, query(ChargebackQuery)]) -> Response:
    """List costs that could not be allocated as intended by their policy, with the reason, summed over the range; with
    `Accept: text/csv`, all of them as a file."""

    def _read(reader: TenantReader, selection: Selection) -> Response:
        if facts.wants_csv:
            issues, _ = allocation_issues(reader, selection)
            return csv_response("allocation_issues.csv", ISSUE_FIELDS, issues, numbers=ISSUE_AMOUNTS)
        items, total = allocation_issues(reader, selection, params.paging)
        return page_response(items, total, page=params.page, page_size=params.page_size)

    return await facts.select(params, _read)


@router.get(
    "/{dimension_id}",
    response_model=Dimension,
    **documented(
        needs=Right.READ,
        query=FactsParameters,
        problems={404: "There is no such tenant, or no such dimension."},
        etag=True,
    ),
)
async def one_dimension(
    facts: FactsDep,
    dimension_id: Annotated[str, Path(description="A `dimension_id` of a chargeback row.", pattern="^[0-9]{1,16}$")],
    params: Annotated[FactsParameters, query(FactsParameters)],
) -> Response:
    """Return one dimension: the common fields of its chargeback rows."""

    def _read(reader: TenantReader) -> Response:
        found = dimension(reader, int(dimension_id))
        if found is None:
            name = facts.tenant.tenant_name
            raise NotFound(f"Tenant {name} has no chargeback dimension {dimension_id[:80]!r}.")
        return json_response(found)

    return await facts.answer(params, _read)
