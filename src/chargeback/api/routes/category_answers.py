"""The coverage of a cost category, and its assignment of one subject."""

from functools import partial
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from chargeback.access.caller import Right
from chargeback.api.parameters import CATEGORY_KEY, CommonParameters, Day, Id, StrictModel, Text
from chargeback.api.problems import NotFound
from chargeback.api.routing import Routes
from chargeback.api.selecting import ChargebackFilters, PeriodName
from chargeback.api.tenant_requests import CATEGORIES_HEADER, Facts
from chargeback.model.inventory import ENVIRONMENT
from chargeback.reports.categories.answers import (
    AssignedAnswer,
    CoverageAnswer,
    assignment_of,
    coverage,
    display_names,
)
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import read_lineages
from chargeback.store.queries.reader import TenantReader


class CoverageQuery(ChargebackFilters):
    """Parameters of the coverage."""


class EditQuery(StrictModel):
    """Parameters of a change."""

    dry_run: bool = Field(
        default=False,
        description="Change nothing, and return what would change in the costs of the period.",
    )
    period: PeriodName = Field(
        default="30d",
        description="With `dry_run`: the period by its name, as in the aggregates: `7d`, `month`, `2026-10`, …",
    )


class SubjectQuery(CommonParameters):
    """The subject to resolve: the known columns of a row of costs."""

    identity_id: Text | None = Field(default=None, description="The identity that pays.", examples=["sa-123abc"])
    resource_id: Id | None = Field(
        default=None, description="The resource; of a topic, its cluster.", examples=["lkc-abc123"]
    )
    environment_id: Text | None = Field(
        default=None, description="Default: the environment in which the inventory has the resource."
    )
    topic: Text | None = Field(default=None, description="The name of a topic, for rows of topic attributions.")
    product_type: Text | None = Field(default=None, description="The product type.")
    product_category: Text | None = Field(default=None, description="The product category.")
    date: Day | None = Field(default=None, description="The charge day, in UTC. Default: today.")


router = Routes(prefix="/tenants/{tenant_name}/cost-categories/{category_key}", tags=["Cost categories"])

CategoryKey = Annotated[
    str, Path(description="The key of a cost category.", pattern=CATEGORY_KEY, examples=["cost_center"])
]

_NO_CATEGORY = {404: "There is no such tenant or cost category."}


@router.get(
    "/coverage",
    needs=Right.READ,
    whole=True,
    problems=_NO_CATEGORY,
    responses={200: {"headers": CATEGORIES_HEADER}},
    keep=True,
)
def get_coverage(
    request: Facts, category_key: CategoryKey, params: Annotated[CoverageQuery, Query()]
) -> CoverageAnswer:
    """Return how much of the costs of a period a cost category assigns, by which rules, and which identities are not
    assigned."""
    tenant = request.tenant
    selection = request.selection(params)
    _require(request.reader, category_key)
    found = coverage(request.reader, category_key, selection, partial(display_names, tenant))
    return CoverageAnswer(currency=tenant.currency, **dict(found))


@router.get(
    "/resolve",
    needs=Right.READ,
    whole=True,
    problems=_NO_CATEGORY,
    responses={200: {"headers": CATEGORIES_HEADER}},
)
def resolve_subject(
    request: Facts, category_key: CategoryKey, params: Annotated[SubjectQuery, Query()]
) -> AssignedAnswer:
    """Return what a cost category assigns to an identity, a resource or a topic on a day, by which rule, and which
    later rules would have applied."""
    _require(request.reader, category_key)
    subject = _subject(request.tenant, params)
    return assignment_of(request.reader, category_key, subject, params.date or params.today)


def _require(reader: TenantReader, key: str) -> None:
    if key not in reader.categories.index.by_key:
        raise NotFound(f"There is no cost category {key}.")


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
