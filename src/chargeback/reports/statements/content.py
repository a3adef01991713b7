"""The content of statements: the responses of the API, from which files are made."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import Field, PlainSerializer, WithJsonSchema

from chargeback.config.settings import CurrencyPlace, Dates, Numbers
from chargeback.model.cents import render_cents, rounded_cents
from chargeback.model.money import total
from chargeback.reports.answers import Exact, Instant, ResponseModel, Sum, left_out
from chargeback.reports.changes import ChangeEffects
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.reconciliation import ReconciledState
from chargeback.store.control.statement_replies import RecordedReply

#: The kinds of lines: costs assigned to the value, costs reallocated to it, and (negative) costs that it reallocates.
DIRECT: Final = "direct"
SHARED_IN: Final = "shared_in"
SHARED_OUT: Final = "shared_out"
LINE_KINDS: Final = (DIRECT, SHARED_IN, SHARED_OUT)

Verdict = Literal["acknowledged", "disputed"]
Cents = Annotated[
    decimal.Decimal,
    PlainSerializer(render_cents, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^-?\d+(\.\d{2,4})?$"}, mode="serialization"),
    Field(
        description="Rounded to the minor unit of the currency, with its decimal places: two for most, none for JPY.",
        examples=["1234.57"],
    ),
]
EXAMPLE_DIGEST: Final = "9b1e5d2c6f0a4b7d8c3e1f2a5b6c7d80"
Digest = Annotated[
    str,
    Field(
        description="The digest of the content: the value, the number of days, and the lines exactly and in cents. A "
        "reply counts as long as the statement has this digest.",
        examples=[EXAMPLE_DIGEST],
    ),
]


class StatedAmount(ResponseModel):
    """An amount, exactly and in cents. The cents of lines sum to those of their statement, and the cents of all
    statements to those of the month."""

    amount: Sum
    rounded: Cents

    @classmethod
    def alone(cls, amount: decimal.Decimal, currency: str) -> Self:
        """Return an amount that is not a part of another one, rounded separately."""
        return cls(amount=amount, rounded=rounded_cents(amount, currency))

    @classmethod
    def sum(cls, parts: Iterable[_Stated], currency: str) -> Self:
        """Return the sum of some amounts, exactly and in cents."""
        added = list(parts)
        return cls(
            amount=total(each.amount for each in added),
            rounded=rounded_cents(total(each.rounded for each in added), currency),
        )


class _Stated(Protocol):
    """An object with an amount, exactly and in cents."""

    @property
    def amount(self) -> decimal.Decimal: ...

    @property
    def rounded(self) -> decimal.Decimal: ...


class StatementFormat(ResponseModel):
    """The format of the pages and PDF files of statements."""

    numbers: Numbers = "1,234.56"
    dates: Dates = "14 November 2026"
    currency: CurrencyPlace = Field(default="after", description="The position of the currency of an amount.")


class StatementHeading(ResponseModel):
    """The common fields of all statements of a month."""

    tenant_name: str = Field(examples=["acme"])
    by: str = Field(examples=["category:cost_center"])
    period: str = Field(examples=["2026-10"])
    start_date: date
    end_date: date
    days: int = Field(description="The number of UTC days of the month.")
    calculated_days: int = Field(description="The number of calculated days.")
    data_through: date | None = Field(description="The last calculated day.")
    issued_at: Instant | None = Field(
        description="The time of the last change of the statements: the newest revision of a day, or of the cost "
        "category."
    )
    status: Literal["PROVISIONAL", "CLOSED"] = Field(
        description="`PROVISIONAL`: the amounts may change. `CLOSED`: they are booked, and never change."
    )
    basis: Literal["accrual", "posted"] = Field(
        description="`accrual`: costs belong to the day of the usage. `posted`: to the month in which they are booked."
    )
    currency: str = Field(examples=["USD"])
    revision: int = Field(
        description="1 when the first day is calculated, and one more for each time that days of the month were "
        "replaced together, or the cost category changed. New days do not change it."
    )
    category_version: int | None = Field(description="The version of the cost category; null without one.")
    scope: dict[str, list[str]] | None = Field(description="The scope of the caller; null if it is everything.")
    closed_at: Instant | None = left_out("For a closed month: when it was closed.")
    times_closed: int | None = left_out("For a closed month: how often it was closed; 1 unless it was reopened.")
    issuer: str | None = left_out("The issuer of the statements, if one is configured.")
    format: StatementFormat | None = left_out(
        "The format of pages and PDF files, if one is configured; a closed month keeps its format."
    )
    invoices: list[str] | None = left_out("With `basis=posted`: the numbers of the provider's invoices of the month.")


class PathStep(ResponseModel):
    """A value of a cost category, and its name."""

    value: str
    name: str | None


class StatementRecipient(ResponseModel):
    """The recipient of a statement, from the register of the cost category."""

    value: str = Field(
        description="`UNALLOCATED` are costs without an identity that no rule or tag assigns.",
        examples=["payments"],
    )
    name: str | None
    path: list[PathStep] = Field(description="The value, its parent, and so on; empty if it is not registered.")
    gl: dict[str, str] = Field(description="Finance's own ids.", examples=[{"account": "54100"}])
    contacts: list[str]


class StatementReply(ResponseModel):
    """A recipient's reply to a statement."""

    number: str
    revision: int
    digest: str | None = Field(
        description="The digest of the content at that time; null if an earlier version of the service recorded the "
        "reply."
    )
    verdict: Verdict
    note: str
    data_through: date | None = Field(description="The last calculated day of the statement at that time.")
    created_by: str = Field(examples=["alice"])
    created_at: Instant
    is_current: bool = Field(
        description="Whether the statement still has this content. Replies to a former content do not count."
    )

    @classmethod
    def of(cls, reply: RecordedReply, digest: str) -> Self:
        """Return a reply to a statement whose content now has the ``digest``."""
        return cls(
            number=reply.number,
            revision=reply.revision,
            digest=reply.digest,
            verdict=reply.verdict,
            note=reply.note,
            data_through=reply.data_through,
            created_by=reply.created_by,
            created_at=reply.created_at,
            is_current=reply.digest == digest,
        )


class StatementRow(ResponseModel):
    """One statement in the list of a month."""

    number: str = Field(examples=["CB-acme-2026-10-cost_center.payments-r1"])
    digest: Digest
    recipient: StatementRecipient
    amount: Sum
    rounded: Cents
    previous: Sum | None = Field(description="The amount of the month before; null if that month has no costs.")
    delta: Sum | None
    verdict: Verdict | None = Field(description="The last reply to this content; null if there is none.")
    last_reply: StatementReply | None = Field(
        description="The last reply to this content or to an earlier one; null if there is none, and for callers who "
        "may see only a part of the statement."
    )
    regular: Sum | None = left_out("With `basis=posted`: the costs of the month itself.")
    corrections: Sum | None = left_out("With `basis=posted`: the corrections of earlier months.")
    adjustments: Sum | None = left_out("With `basis=posted`: the manual adjustments.")


class StatementTieOut(ResponseModel):
    """All statements of the month compared with the provider's bill."""

    state: ReconciledState
    difference: Sum = Field(
        description="`statements` − `billed` − `outdated` − `corrections` − `adjustments`: 0 if everything is "
        "accounted for."
    )
    statements: StatedAmount
    billed: StatedAmount = Field(description="The bill of the days that are calculated from their present bill.")
    outdated: StatedAmount = Field(
        description="The amount of days whose bill has changed, and that will be calculated again."
    )
    pending: StatedAmount = Field(description="The bill of days that are not calculated from their present bill yet.")
    corrections: StatedAmount | None = left_out("With `basis=posted`: the corrections of earlier months.")
    adjustments: StatedAmount | None = left_out("With `basis=posted`: the manual adjustments.")


class StatementsAnswer(StatementHeading):
    """The statements of a month, by value; the one for unallocated costs comes last."""

    items: list[StatementRow]
    total: StatedAmount
    tie_out: StatementTieOut | None = Field(description="Null for callers who may see only a part of the bill.")


class StatementLine(ResponseModel):
    """One line of a statement."""

    kind: Literal["direct", "shared_in", "shared_out"] = Field(
        description="Costs assigned to the value; reallocated to it by others; reallocated by it, which are negative."
    )
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_STORAGE"])
    amount: Sum
    rounded: Cents


class StatementCorrection(ResponseModel):
    """The changes of an earlier month since the previous month was closed."""

    period_id: str = Field(description="The corrected month.", examples=["2026-09"])
    start_date: date
    end_date: date
    amount: Sum
    rounded: Cents
    causes: list[str] = Field(description="The causes, the most frequent first.", examples=[["bill_changed"]])
    sentence: str


class StatementAdjustment(ResponseModel):
    """A manual adjustment; negative if the amount was moved to another value."""

    id: int
    kind: str = Field(examples=["reallocation"])
    amount: Sum
    rounded: Cents
    other: str | None = Field(
        description="The value on the other side of a reallocation, else null.", examples=["payments"]
    )
    applies_to: str | None = Field(description="The month to which it applies.", examples=["2026-09"])
    reason: str
    reference: str | None


class PreviousStatement(ResponseModel):
    """The month before, and the reasons of the difference."""

    period: str = Field(examples=["2026-09"])
    amount: Sum
    delta: Sum
    effects: ChangeEffects
    sentence: str


class RankedPart(ResponseModel):
    """An identity, resource or topic with its part of a statement."""

    id: str
    name: str | None
    within: str | None = Field(description="The cluster of a topic.")
    amount: Sum
    rounded: Cents


class OtherParts(ResponseModel):
    """The sum of all parts that are not named."""

    count: int
    amount: Sum
    rounded: Cents


class StatementRanking(ResponseModel):
    """The largest parts by one column; with the others they sum to `total`."""

    items: list[RankedPart]
    other: OtherParts | None
    total: StatedAmount


class StatementUnitCost(ResponseModel):
    """The cost of one unit of usage."""

    per: Literal["gib_in", "gib_out"] = Field(description="The traffic that identities wrote, or read.")
    unit: str = Field(examples=["GiB"])
    amount: Sum = Field(description="The part of the statement's amount on days with measurements.")
    usage: Exact = Field(description="The usage of these days, in units, rounded to six places.")
    unit_cost: Exact = Field(description="`amount` divided by the exact usage, rounded to twelve places.")


class StatementPolicy(ResponseModel):
    """How the lines of a product type were split among identities."""

    product_type: str
    hash: str
    portions: list[PolicyPortion]


class StatementRule(ResponseModel):
    """The costs that a rule of the cost category assigned."""

    id: str | None = Field(description="The id of the rule; null for costs to which no rule applies.")
    reason: str | None
    amount: Sum


class StatementStep(ResponseModel):
    """A step of `share` that reallocated costs to the value, or from it."""

    source: str = Field(serialization_alias="from")
    by: str


class StatementSplit(ResponseModel):
    """How the costs of a statement were split. Rules and steps are null without a cost category, and for callers who
    may see only a part of the bill."""

    policies: list[StatementPolicy]
    rules: list[StatementRule] | None
    steps: list[StatementStep] | None


def current_verdict(replies: Sequence[StatementReply]) -> Verdict | None:
    """Return the verdict of the last reply to the present content; None if there is none."""
    return next((each.verdict for each in reversed(replies) if each.is_current), None)


class StatementAnswer(StatementHeading):
    """One statement. Its lines, corrections and adjustments sum to it, exactly and in cents."""

    number: str
    supersedes: str | None = Field(
        description="The number of the previous revision; null for the first one, and after a new version of the cost "
        "category, which may have other values."
    )
    digest: Digest
    recipient: StatementRecipient
    amount: Sum
    rounded: Cents
    lines: list[StatementLine]
    regular: StatedAmount | None = left_out("With `basis=posted`: the sum of the lines.")
    corrections: list[StatementCorrection] | None = left_out("With `basis=posted`: the corrections by earlier month.")
    adjustments: list[StatementAdjustment] | None = left_out("With `basis=posted`: the manual adjustments.")
    previous: PreviousStatement | None = Field(description="Null if the month before has no costs.")
    identities: StatementRanking | None = Field(description="Null for the statement of an identity.")
    resources: StatementRanking
    bills: StatementRanking | None = Field(
        description="The amounts by the ecosystem of the bill; null if all costs are on the bill of one."
    )
    topics: StatementRanking | None = Field(
        description="Another view of the costs of clusters, not a part of the total; by cost category only."
    )
    unit_costs: list[StatementUnitCost] = Field(
        description="The costs of the units that it used; empty for costs without an identity."
    )
    split: StatementSplit
    verdict: Verdict | None = Field(description="The last reply to this content; null if there is none.")
    replies: list[StatementReply] | None = Field(
        description="The replies to this content and to earlier ones, the first one first; null for callers who may "
        "see only a part of the statement."
    )
    tie_out: StatementTieOut | None


class JournalLine(ResponseModel):
    """One line of a journal: a debit or a credit, in cents; the other side is 0.00."""

    line: int = Field(description="From 1.")
    kind: Literal["expense", "correction", "adjustment", "clearing"]
    account: str = Field(
        description="For an expense, the id of the value that `journal.account_id` names, else "
        "`journal.expense_account`; for the clearing line, `journal.clearing_account`.",
        examples=["54100"],
    )
    debit: Cents
    credit: Cents
    currency: str = Field(examples=["USD"])
    value: str | None = Field(description="The value of the costs; null on the clearing line.", examples=["payments"])
    charge_period: str | None = left_out("For a correction: the corrected month.", examples=["2026-09"])
    name: str | None
    gl: dict[str, str] = Field(description="Finance's own ids of the value.")
    contacts: list[str]
    statement: str | None = Field(description="The number of its statement.")
    text: str


class JournalAnswer(StatementHeading):
    """The journal of a month. Debits equal credits, in the cents of the statements."""

    number: str = Field(examples=["CBJ-acme-2026-10-cost_center-r1"])
    lines: list[JournalLine]
    debit: Cents = Field(description="The sum of all debits.")
    credit: Cents = Field(description="The sum of all credits: the same.")


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements of a month by one grouping, by value; those for unassigned and unallocated costs come last.
    ``tie_out`` is None for a reader with a scope; ``budgets`` are the budgets of values that have one: pages show them,
    but they are not a part of a statement."""

    heading: StatementHeading
    items: Sequence[StatementAnswer]
    total: StatedAmount
    tie_out: StatementTieOut | None
    budgets: Mapping[str, decimal.Decimal] = field(default_factory=dict)

    def find(self, value: str) -> StatementAnswer | None:
        """Return the statement of a value; None if there is none."""
        return next((each for each in self.items if each.recipient.value == value), None)

    def listed(self) -> StatementsAnswer:
        """Return a row for each statement, and their total."""
        return StatementsAnswer(
            **dict(self.heading),
            items=[
                StatementRow(
                    number=each.number,
                    digest=each.digest,
                    recipient=each.recipient,
                    amount=each.amount,
                    rounded=each.rounded,
                    previous=None if each.previous is None else each.previous.amount,
                    delta=None if each.previous is None else each.previous.delta,
                    verdict=each.verdict,
                    last_reply=each.replies[-1] if each.replies else None,
                    regular=None if each.regular is None else each.regular.amount,
                    corrections=_added(each.corrections),
                    adjustments=_added(each.adjustments),
                )
                for each in self.items
            ],
            total=self.total,
            tie_out=self.tie_out,
        )


def _added(parts: Sequence[StatementCorrection | StatementAdjustment] | None) -> decimal.Decimal | None:
    return None if parts is None else total(each.amount for each in parts)
