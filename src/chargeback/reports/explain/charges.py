"""Explanations of chargeback rows for the front ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field
from sqlalchemy import Connection

from chargeback.allocation.explain import OTHERS, Participant, PortionExplanation, ShareArithmetic, UsageSplit
from chargeback.allocation.methods import AllocationMethod
from chargeback.model.chargeback import CostType
from chargeback.model.money import render
from chargeback.recompute.explain import Explanation
from chargeback.recompute.stored_day import Explained
from chargeback.reports.answers import Exact, Instant, ResponseModel
from chargeback.reports.explain.links import ExplainLinks, links
from chargeback.reports.explain.sentence import sentence
from chargeback.reports.explain.visible import VisiblePart
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.wording import DisplayNames, money_text, rounded
from chargeback.store.control.day_revisions import CAUSES
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, names_of
from chargeback.store.queries.paging import Page


class ExplainedRow(ResponseModel):
    """The stored chargeback row."""

    timestamp: Instant
    line_id: str
    portion: int
    identity_id: str = Field(examples=["sa-123abc"])
    resource_id: str = Field(examples=["lkc-abc123"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    cost_type: CostType
    allocation_method: str = Field(examples=["usage_ratio"])
    allocation_detail: str = Field(examples=["USAGE_RATIO_ALLOCATION"])
    chain_position: int
    policy_hash: str
    amount: Exact
    portion_share: Exact
    identity_usage: Exact | None
    total_usage: Exact | None


class ExplainedLine(ResponseModel):
    """The billing line."""

    timestamp: Instant
    line_id: str
    resource_id: str = Field(examples=["lkc-abc123"])
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    currency: str = Field(examples=["USD"])
    granularity: str
    unit: str | None
    description: str | None
    resource_name: str | None
    quantity: Exact | None
    unit_price: Exact | None
    total_cost: Exact

    @classmethod
    def of(cls, line: Mapping[str, Any], names: Mapping[str, str]) -> Self:
        """Return a line (columns of BILLING); ``names`` are those of resources."""
        name = names.get(line["resource_id"]) or line["resource_name"]
        return cls.like(line, resource_name=name)


class ExplainedPolicy(ResponseModel):
    """The policy by which the line was split."""

    product_type: str = Field(examples=["KAFKA_NUM_CKUS"])
    matched: str | None = Field(description="Its name or pattern; null if it is no longer in a catalogue.")
    hash: str
    source: Literal["shipped", "configured", "recorded"] = Field(
        description="`shipped`: the ecosystem's own; `configured`: changed by the tenant's configuration; `recorded`: "
        "in force when the row was calculated, but no longer."
    )
    portions: list[PolicyPortion]


class ExplainedPortion(ResponseModel):
    """The explained portion: its share of the line, and its exact cost."""

    number: int
    share: Exact
    amount: Exact


class TriedMethod(ResponseModel):
    """A method of the portion's chain."""

    position: int
    method: str = Field(examples=["usage(bytes_in + bytes_out)"])
    applied: bool
    why_not: str | None = Field(description="Why it did not apply, and what it would have needed.")
    candidates: int | None = Field(description="The number of identities that it finds; null within a scope.")

    @classmethod
    def all_of(cls, portion: PortionExplanation | None, name: Callable[[AllocationMethod], str] = str) -> list[Self]:
        """Return the methods of a portion, if it is known; ``name`` says how one is called."""
        return [cls.like(each, method=name(each.method)) for each in (() if portion is None else portion.methods)]


Ratio = Annotated[
    str,
    Field(description="Its part of the total, rounded to six places.", pattern=r"^\d+\.\d{2,6}$", examples=["0.27"]),
]


class Contender(ResponseModel):
    """An identity that shares the portion; or the sum of those that the caller may not see."""

    identity_id: str | None = Field(description="The identity; null for the sum of others.")
    name: str | None
    value: Exact | None = Field(description="The measured or charged value; null if all parts are equal.")
    ratio: Ratio


class ExplainedEvidence(ResponseModel):
    """The evidence by which the portion was split."""

    measure: str | None = Field(examples=["bytes_in + bytes_out"])
    total: Exact | None = Field(description="The sum of all values; null if all parts are equal.")
    contenders: list[Contender] = Field(
        description="A page of the contenders, the largest first, equal ones by id; and the requested identity."
    )
    contenders_total: int = Field(description="The number of contenders on all pages; the sum of others counts as one.")
    members: int | None = Field(description="The number of active identities on the resource; null within a scope.")
    metrics_available: bool

    @classmethod
    def of(cls, found: UsageSplit, requested: str, page: Page, names: Mapping[str, str]) -> Self:
        """Return the evidence of a portion, with a page of the identities and their ``names``."""
        contenders = [
            Contender(
                identity_id=None if each.identity_id == OTHERS else each.identity_id,
                name=names.get(each.identity_id),
                value=each.value,
                ratio=render(rounded(each.ratio, 6)),
            )
            for each in listed_participants(found, requested, page)
        ]
        return cls(
            measure=found.measure,
            total=found.total,
            contenders=contenders,
            contenders_total=len(found.participants),
            members=found.members,
            metrics_available=found.metrics_available,
        )


class Arithmetic(ResponseModel):
    """How the amount follows from the portion, in units of 10⁻¹² of the absolute amount."""

    exact: str = Field(description="The exact share as a fraction.", pattern=r"^\d+/\d+$", examples=["10/3"])
    units_floor: str = Field(description="The share rounded down, as a text.", pattern=r"^\d+$")
    spare_units: int | None = Field(
        description="The number of units that remain when all shares are rounded down. The shares with the largest "
        "remainders get one each, equal ones by id. Null within a scope."
    )
    remainder_rank: int | None = Field(description="The rank of the identity's remainder, from 1; null within a scope.")
    extra_unit: bool = Field(description="Whether the identity got one of the spare units.")
    amount: Exact

    @classmethod
    def of(cls, found: ShareArithmetic) -> Self:
        """Return a calculated share."""
        return cls(
            exact=f"{found.exact.numerator}/{found.exact.denominator}",
            units_floor=str(found.units_floor),
            spare_units=found.spare_units,
            remainder_rank=found.remainder_rank,
            extra_unit=found.extra_unit,
            amount=found.amount,
        )


#: The field with the visible part of the row of an explanation.
VISIBLE: Final = Field(
    description="The part of the row that the caller's scope shows; null if all of it is visible, or there is no row. "
    "If there is a part, `row` and `revisions` have it, and the calculation has the whole amount."
)


class Siblings(ResponseModel):
    """All stored rows of the line."""

    rows: int | None = Field(description="The number of rows; null within a scope.")
    sum: Exact
    equals_line: bool | None = Field(description="Whether they sum to the line; null if the bill is lost.")


class RevisionAmount(ResponseModel):
    """The amount in one revision of the day."""

    revision: int
    calculated_at: Instant
    cause: str = Field(examples=["bill_changed"], json_schema_extra={"enum": list(CAUSES)})
    line_id: str | None = Field(
        description="The line in that revision: its id changes with its content. Null if there is none, or if it "
        "cannot be identified among several."
    )
    amount: Exact | None = Field(
        description="Zero without a line or a row; null if it is not known, because it is no longer kept, or because "
        "the line cannot be identified among several."
    )


class ExplainAnswer(ResponseModel):
    """Why an identity has an amount of a billing line: the line is calculated again from the stored evidence."""

    sentence: str = Field(description="The explanation in plain English, with rounded amounts.")
    date: date
    line_id: str
    identity_id: str
    identity_name: str | None
    row: ExplainedRow | None = Field(description="Null if the identity gets nothing.")
    why_nothing: str | None = Field(description="Why the identity gets nothing; null if it gets something.")
    line: ExplainedLine | None = Field(description="Null if the bill is lost.")
    policy: ExplainedPolicy | None = Field(description="Null if it is not recorded.")
    portion: ExplainedPortion | None = Field(description="Null if the evidence is missing.")
    methods: list[TriedMethod] = Field(description="All methods of the portion, in order.")
    arithmetic: Arithmetic | None = Field(description="Null if the identity does not share the portion.")
    evidence: ExplainedEvidence | None = Field(description="Null if it is missing, or the portion costs nothing.")
    evidence_missing: str | None = Field(description="Why the evidence is missing; null if it is there.")
    visible: VisiblePart | None = VISIBLE
    siblings: Siblings
    revision: int | None = Field(description="The revision of the day that was in force.")
    revisions: list[RevisionAmount]
    recomputed: Literal["same", "different"] | None = Field(
        description="Whether the calculation agrees with the stored row; null if the evidence is missing."
    )
    links: ExplainLinks


#: The page of participants that is listed by default: the largest ones.
USUAL_CONTENDERS: Final = Page(0, 20)


def names_of_explanation(
    connection: Connection,
    found: Explanation,
    page: Page = USUAL_CONTENDERS,
) -> DisplayNames:
    """Return the names of the ids in an explanation with a page of its participants."""
    usage_split = found.portion.usage_split if found.portion else None
    listed = listed_participants(usage_split, found.key.identity_id, page) if usage_split else ()
    identities = {found.key.identity_id, *(each.identity_id for each in listed)}
    resources = {found.billed["resource_id"]} if found.billed else set()
    named = {id_: each.name for id_, each in names_of(connection, RESOURCES, resources).items() if each.name}
    if found.line is not None and found.line["resource_name"]:
        named = {found.line["resource_id"]: found.line["resource_name"]} | named
    return DisplayNames(
        {id_: each.name for id_, each in names_of(connection, IDENTITIES, identities).items() if each.name}, named
    )


def listed_participants(usage_split: UsageSplit, requested: str, page: Page) -> Sequence[Participant]:
    """Return a page of the participants, and, if they are not on it, the requested one and the sum of others."""
    listed = usage_split.participants[page.offset : page.offset + page.limit]
    always = (each for each in usage_split.participants if each.identity_id in {requested, OTHERS})
    return (*listed, *(each for each in always if each not in listed))


def explained_charge(
    found: Explanation,
    names: DisplayNames,
    currency: str,
    page: Page = USUAL_CONTENDERS,
    part: VisiblePart | None = None,
) -> ExplainAnswer:
    """Return an explanation with a page of its participants; ``part`` is the visible part of the row, if not all of it
    is visible."""
    row, portion, policy, key = found.row, found.portion, found.policy, found.key
    usage_split = None if portion is None else portion.usage_split
    return ExplainAnswer(
        sentence=f"{sentence(found, names, currency)}{part_sentence(found, part, currency)}",
        date=key.day,
        line_id=key.line_id,
        identity_id=key.identity_id,
        identity_name=names.identities.get(key.identity_id),
        row=None if row is None else ExplainedRow.like(row),
        why_nothing=found.unknown if portion is None else portion.why_nothing,
        line=None if found.line is None else ExplainedLine.of(found.line, names.resources),
        policy=None
        if policy is None
        else ExplainedPolicy(
            product_type=policy.product_type,
            matched=policy.matched,
            hash=policy.policy.hash,
            source=policy.source,
            portions=PolicyPortion.all_of(policy.policy),
        ),
        portion=None if portion is None else ExplainedPortion.like(portion),
        methods=TriedMethod.all_of(portion),
        arithmetic=arithmetic_of(portion),
        evidence=None
        if usage_split is None
        else ExplainedEvidence.of(usage_split, key.identity_id, page, names.identities),
        evidence_missing=found.missing,
        **stored_fields(found, part),
        links=links(
            key.day,
            key.line_id,
            key.as_of,
            rows="chargebacks",
            policy=None if policy is None else policy.policy.hash,
        ),
    )


def arithmetic_of(portion: PortionExplanation | None) -> Arithmetic | None:
    """Return the calculation of an amount from a portion, if there is one."""
    return None if portion is None or portion.arithmetic is None else Arithmetic.of(portion.arithmetic)


def part_sentence(found: Explained, part: VisiblePart | None, currency: str) -> str:
    """Return the addition to the sentence of a calculation if only a ``part`` of the row is visible."""
    if part is None or found.portion is None:
        return ""
    return f" Of this, a cost category gives {money_text(part.amount, currency)} to what you see."


def stored_fields(found: Explained, part: VisiblePart | None) -> dict[str, Any]:
    """Return the fields of an explanation about stored data: the visible ``part`` of the row, if not all is visible,
    the rows of the line, the revisions, and whether they agree."""
    return {
        "visible": part,
        "siblings": Siblings.like(found.siblings),
        "revision": found.revision,
        "revisions": [
            RevisionAmount.like(each.revision, line_id=each.line_id, amount=each.amount) for each in found.revisions
        ],
        "recomputed": None if found.is_same is None else "same" if found.is_same else "different",
    }
