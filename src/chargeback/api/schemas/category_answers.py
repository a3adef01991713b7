"""What a cost category assigns, and what an edit of it would change."""

from pydantic import Field

from chargeback.api.parameters import CommonParameters, Day, Id, StrictModel, Text
from chargeback.api.schemas.chargebacks import ChargebackFilters
from chargeback.api.schemas.common import Decimal, ResponseModel, Sum
from chargeback.api.schemas.datasets import PeriodName
from chargeback.service.category_answers import MOST_NAMED


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
    amount: Decimal


class UnassignedIdentity(ResponseModel):
    """An identity with costs that have no value."""

    identity_id: str = Field(examples=["sa-123abc"])
    display_name: str | None = Field(examples=["orders-service"])
    amount: Decimal


class CoverageOf(ResponseModel):
    """How much of the costs of a period a category assigns, before values hand on what they have."""

    assigned: Decimal
    unassigned: Decimal = Field(description="What has the category's default.")
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
    amount: Decimal


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
