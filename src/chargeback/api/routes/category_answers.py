"""What a cost category assigns: altogether, and to one subject."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.category_responses import assigned_response, coverage_response
from chargeback.api.problems import NotFound
from chargeback.api.responses import json_response
from chargeback.api.routes.cost_categories import CategoryKey
from chargeback.api.routing import Routes
from chargeback.api.schemas.category_answers import (
    AssignedAnswer,
    CoverageAnswer,
    CoverageQuery,
    SubjectQuery,
)
from chargeback.api.tenant_requests import CATEGORIES_HEADER, Facts
from chargeback.model.inventory import ENVIRONMENT
from chargeback.service.category_answers import assignment_of, coverage
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.lineage import read_lineages
from chargeback.store.queries.category_lookup import CategoryIndex

router = Routes(prefix="/tenants/{tenant_name}/cost-categories/{category_key}", tags=["Cost categories"])

_NO_CATEGORY = {404: "There is no such tenant or cost category."}


@router.get(
    "/coverage",
    response_model=CoverageAnswer,
    needs=Right.READ,
    whole=True,
    problems=_NO_CATEGORY,
    responses={200: {"headers": CATEGORIES_HEADER}},
    keep=True,
)
def get_coverage(request: Facts, category_key: CategoryKey, params: Annotated[CoverageQuery, Query()]) -> Response:
    """Return how much of the costs of a period a cost category assigns, which rules do, and who is left."""
    tenant = request.tenant
    reader = request.reader
    selection = request.selection(params)
    _present(reader.categories.index, category_key)
    found = coverage(reader, category_key, selection)
    with tenant.store.control.read() as connection:
        return json_response({"currency": tenant.currency, **coverage_response(connection, found)})


@router.get(
    "/resolve",
    response_model=AssignedAnswer,
    needs=Right.READ,
    whole=True,
    problems=_NO_CATEGORY,
    responses={200: {"headers": CATEGORIES_HEADER}},
)
def resolve_subject(request: Facts, category_key: CategoryKey, params: Annotated[SubjectQuery, Query()]) -> Response:
    """Return what a cost category assigns to an identity, a resource or a topic on a day, by which rule, and which
    later rules would have applied."""
    tenant = request.tenant
    day = params.date or params.today
    reader = request.reader
    version = _present(reader.categories.index, category_key)
    subject = _subject(tenant, params)
    found = assignment_of(reader, category_key, subject, day)
    return json_response({"subject": subject, "date": day.isoformat(), "version": version, **assigned_response(found)})


def _present(index: CategoryIndex, key: str) -> int:
    """Return the version of a category."""
    if key not in index.by_key:
        raise NotFound(f"There is no cost category {key}.")
    return index.by_key[key].version


def _subject(tenant: TenantView, params: SubjectQuery) -> dict[str, str | None]:
    environment = params.environment_id
    if environment is None and params.resource_id is not None:
        with tenant.store.control.read() as connection:
            known = read_lineages(connection, [params.resource_id])
        above: str | None = params.resource_id
        while above in known and known[above].type != ENVIRONMENT:
            above = known[above].parent_id
        environment = above if above in known else None
    return {
        "identity_id": params.identity_id,
        "resource_id": params.resource_id,
        "environment_id": environment,
        "topic_name": params.topic,
        "product_type": params.product_type,
        "product_category": params.product_category,
    }
