"""What a cost category assigns: altogether, and to one subject."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import Field
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.parameters import CATEGORY_KEY, CommonParameters, Day, Id, StrictModel, Text
from chargeback.api.problems import NotFound
from chargeback.api.responses import json_response
from chargeback.api.routing import Routes
from chargeback.api.schemas.chargebacks import ChargebackFilters
from chargeback.api.schemas.datasets import PeriodName
from chargeback.api.tenant_requests import CATEGORIES_HEADER, Facts
from chargeback.categories.resolve import Assignment, RuleName
from chargeback.model.inventory import ENVIRONMENT
from chargeback.model.money import difference, render
from chargeback.reports.answers import Exact, ResponseModel, Sum
from chargeback.reports.categories.answers import MOST_NAMED, Coverage, Moved, Preview, assignment_of, coverage
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.inventory_lists import IDENTITIES
from chargeback.store.control.lineage import read_lineages
from chargeback.store.control.names import names_of
from chargeback.store.queries.assignments import share_text
from chargeback.store.queries.category_lookup import CategoryIndex


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
    """What a category is asked about: the columns of a row of costs, as far as they are known."""

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


class AppliedRule(ResponseModel):
    """A rule of the category."""

    index: int = Field(description="Its place in the document, from 0.", examples=[0])
    id: str = Field(description="`rules[3]` where it has none.", examples=["reorg-42"])
    reason: str | None = Field(examples=["CHG-42"])


class AssignedPart(ResponseModel):
    """One value that is assigned, and its share."""

    value: str = Field(examples=["payments"])
    category_share: str = Field(description="1 where nothing is split.", examples=["0.6"])
    path: list[str] = Field(
        description="The value, what it belongs to, and so on up.", examples=[["payments", "retail"]]
    )


class AssignedAnswer(ResponseModel):
    """What a category assigns to one subject on one day."""

    subject: dict[str, str | None] = Field(examples=[{"identity_id": "sa-123abc", "resource_id": "lkc-abc123"}])
    date: str = Field(examples=["2026-01-31"])
    version: int = Field(description="The version of the category.")
    value: str | None = Field(
        description="Null where the cost is split; `parts` has the values.", examples=["payments"]
    )
    path: list[str] = Field(
        description="The value, what it belongs to, and so on up; empty where the cost is split.",
        examples=[["payments", "retail"]],
    )
    parts: list[AssignedPart]
    rule: AppliedRule | None = Field(description="The rule that decided; null: none, it is the default.")
    reason: str | None = Field(description="That of the rule.", examples=["CHG-42"])
    lost: list[AppliedRule] = Field(description="Rules after it that would have applied, in order.")


class RuleCoverage(ResponseModel):
    """What one rule assigned to one value."""

    rule: AppliedRule | None = Field(description="Null: what no rule applied to.")
    value: str
    amount: Exact


class UnassignedIdentity(ResponseModel):
    """An identity with costs that have no value."""

    identity_id: str = Field(examples=["sa-123abc"])
    display_name: str | None = Field(examples=["orders-service"])
    amount: Exact


class CoverageOf(ResponseModel):
    """How much of the costs of a period a category assigns, before values hand on what they have."""

    assigned: Exact
    unassigned: Exact = Field(description="What has the category's default.")
    percent: str | None = Field(description="`assigned`, of both; null where there are no costs.", examples=["92.31"])
    by_rule: list[RuleCoverage] = Field(description="By amount.")
    top_unassigned: list[UnassignedIdentity] = Field(description=f"By amount, at most {MOST_NAMED}.")


class CoverageAnswer(CoverageOf):
    """How much of the costs of a period a category assigns."""

    currency: str = Field(examples=["USD"])


class ValueChange(ResponseModel):
    """The total of a value before and after an edit."""

    value: str
    before: Sum
    after: Sum
    difference: Sum


class MovedAmount(ResponseModel):
    """What would have another value."""

    before: str
    after: str
    amount: Exact


class MovedItem(MovedAmount):
    """What would have another value, of one identity."""

    identity_id: str
    display_name: str | None


class NeverMatchingRule(ResponseModel):
    """A rule that applies to nothing, and why."""

    rule: AppliedRule
    why: str


class ShadowedRule(ResponseModel):
    """A rule that matches only what rules before it decide."""

    rule: AppliedRule
    by: list[AppliedRule]


class OverlappingRules(ResponseModel):
    """Two rules that assign different values to the same; the first one decides."""

    winner: AppliedRule
    loser: AppliedRule
    subjects: int = Field(description="To how many combinations of identity, resource and so on.")


class UnknownRuleValue(ResponseModel):
    """A value that a rule makes, and that the register does not have."""

    value: str
    rule: AppliedRule


class DryRunAnswer(ResponseModel):
    """What an edit would change in the costs of a period. Nothing was written."""

    currency: str = Field(examples=["USD"])
    coverage_before: CoverageOf | None = Field(description="Null for a new category.")
    coverage_after: CoverageOf
    values: list[ValueChange] = Field(description="The totals, with what values hand on.")
    moved: list[MovedAmount] = Field(description="What rules would assign to another value, by amount.")
    items: list[MovedItem] = Field(description=f"The same by identity, at most {MOST_NAMED}.")
    never_matching: list[NeverMatchingRule]
    shadowed: list[ShadowedRule]
    overlaps: list[OverlappingRules]
    unknown_values: list[UnknownRuleValue]


def preview_response(connection: Connection, found: Preview, currency: str) -> dict[str, Any]:
    """Return what an edit would change, as the API shows it."""
    before = found.coverage_before
    unassigned = [*found.coverage_after.top_unassigned, *(() if before is None else before.top_unassigned)]
    names = _names(connection, [*unassigned, *((each.identity_id, each.amount) for each in found.items)])
    analysis = found.analysis
    return {
        "currency": currency,
        "coverage_before": None if before is None else _coverage(before, names),
        "coverage_after": _coverage(found.coverage_after, names),
        "values": [
            {
                "value": value,
                "before": render(earlier),
                "after": render(later),
                "difference": render(difference(later, earlier)),
            }
            for value, earlier, later in found.values
        ],
        "moved": [_moved(each) for each in found.moved],
        "items": [
            {"identity_id": each.identity_id, "display_name": names.get(each.identity_id or ""), **_moved(each)}
            for each in found.items
        ],
        "never_matching": [{"rule": _rule(each.rule), "why": each.why} for each in analysis.never_matching],
        "shadowed": [{"rule": _rule(each.rule), "by": [_rule(by) for by in each.by]} for each in analysis.shadowed],
        "overlaps": [
            {"winner": _rule(each.winner), "loser": _rule(each.loser), "subjects": each.subjects}
            for each in analysis.overlaps
        ],
        "unknown_values": [{"value": each.value, "rule": _rule(each.rule)} for each in analysis.unknown_values],
    }


def assigned_response(found: Assignment) -> dict[str, Any]:
    """Return what one subject is assigned."""
    total = sum(weight for _, weight in found.parts)
    parts = [
        {"value": value, "category_share": share_text(weight, total), "path": list(path)}
        for (value, weight), path in zip(found.parts, found.paths, strict=True)
    ]
    one: dict[str, Any] = parts[0] if len(parts) == 1 else {"value": None, "path": []}
    return {
        "value": one["value"],
        "path": one["path"],
        "parts": parts,
        "rule": _rule(found.rule),
        "reason": None if found.rule is None else found.rule.reason,
        "lost": [_rule(each) for each in found.lost],
    }


def _rule(rule: RuleName | None) -> dict[str, Any] | None:
    return None if rule is None else {"index": rule.index, "id": rule.id, "reason": rule.reason}


def coverage_response(connection: Connection, found: Coverage) -> dict[str, Any]:
    """Return how much is assigned."""
    return _coverage(found, _names(connection, found.top_unassigned))


def _coverage(found: Coverage, names: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "assigned": render(found.assigned),
        "unassigned": render(found.unassigned),
        "percent": None if found.percent is None else f"{found.percent:f}",
        "by_rule": [
            {"rule": _rule(each.rule), "value": each.value, "amount": render(each.amount)} for each in found.by_rule
        ],
        "top_unassigned": [
            {"identity_id": identity, "display_name": names.get(identity), "amount": render(amount)}
            for identity, amount in found.top_unassigned
        ],
    }


def _moved(each: Moved) -> dict[str, str]:
    return {"before": each.before, "after": each.after, "amount": render(each.amount)}


def _names(connection: Connection, costs: Iterable[tuple[str | None, object]]) -> dict[str, str | None]:
    """Return the display names of identities."""
    ids = {identity for identity, _ in costs if identity is not None}
    return {identity: each.name for identity, each in names_of(connection, IDENTITIES, ids).items()}


router = Routes(prefix="/tenants/{tenant_name}/cost-categories/{category_key}", tags=["Cost categories"])

CategoryKey = Annotated[
    str, Path(description="The key of a cost category.", pattern=CATEGORY_KEY, examples=["cost_center"])
]

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
