"""What a statement says: the answers of the API, from which files are made."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Final, Literal, Protocol, Self

from pydantic import Field, PlainSerializer, WithJsonSchema

from chargeback.model.cents import render_cents, rounded_cents
from chargeback.model.formats import CurrencyPlace, Dates, Numbers
from chargeback.model.money import total
from chargeback.reports.answers import Exact, Instant, ResponseModel, Sum, left_out
from chargeback.reports.changes import ChangeEffects
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.reconciliation import ReconciledState
from chargeback.store.control.statement_replies import Reply

#: The kinds of lines: what was assigned to the value, what others handed on to it, and (negative) what it handed on.
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
        description="The digest of the content: whose costs, of how many days, and the lines as they are exactly and "
        "in cents. A reply counts for as long as the statement has it.",
        examples=[EXAMPLE_DIGEST],
    ),
]


class StatedAmount(ResponseModel):
    """An amount, exactly and in cents. The cents of lines add up to those of their statement, and the cents of all
    statements to those of the month."""

    amount: Sum
    rounded: Cents

    @classmethod
    def alone(cls, amount: decimal.Decimal, currency: str) -> Self:
        """Return an amount that is a part of nothing, rounded by itself."""
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
    """Something with an amount, exactly and in cents."""

    @property
    def amount(self) -> decimal.Decimal: ...

    @property
    def rounded(self) -> decimal.Decimal: ...


class StatementFormat(ResponseModel):
    """How the pages and PDF files of statements are written."""

    numbers: Numbers = "1,234.56"
    dates: Dates = "14 November 2026"
    currency: CurrencyPlace = Field(default="after", description="Where an amount with its currency has that.")


class StatementHeading(ResponseModel):
    """What all statements of a month have in common."""

    tenant_name: str = Field(examples=["acme"])
    by: str = Field(examples=["category:cost_center"])
    period: str = Field(examples=["2026-10"])
    start_date: date
    end_date: date
    days: int = Field(description="UTC days of the month.")
    calculated_days: int = Field(description="Those that are calculated.")
    data_through: date | None = Field(description="The last of these.")
    issued_at: Instant | None = Field(
        description="Since when the statements are as they are: the newest revision of a day, or of the cost category."
    )
    status: Literal["PROVISIONAL", "CLOSED"] = Field(
        description="`PROVISIONAL`: what is stated may change. `CLOSED`: it is booked, and never changes."
    )
    basis: Literal["accrual", "posted"] = Field(
        description="`accrual`: costs belong to the day of the usage. `posted`: to the month that they were booked in."
    )
    currency: str = Field(examples=["USD"])
    revision: int = Field(
        description="1 when the first day is calculated, and one more for each time that days of the month were "
        "replaced together, or the cost category changed. New days do not change it."
    )
    category_version: int | None = Field(description="The version of the cost category; else null.")
    scope: dict[str, list[str]] | None = Field(description="What the caller may see; null if that is everything.")
    closed_at: Instant | None = left_out("Of a closed month: when it was closed.")
    times_closed: int | None = left_out("Of a closed month: how often it was closed; 1 unless it was reopened.")
    issuer: str | None = left_out("Who issues the statements, if that is configured.")
    format: StatementFormat | None = left_out(
        "How pages and PDF files are written, if that is configured; a closed month keeps the format that it had."
    )
    invoices: list[str] | None = left_out("With `basis=posted`: the numbers of the provider's invoices of the month.")


class PathStep(ResponseModel):
    """A value of a cost category, and its name."""

    value: str
    name: str | None


class StatementRecipient(ResponseModel):
    """Whom a statement is for, as the register of the cost category has it."""

    value: str = Field(
        description="`UNALLOCATED` are costs without an identity, as far as no rule or tag assigns them.",
        examples=["payments"],
    )
    name: str | None
    path: list[PathStep] = Field(description="The value, its parent, and so on; empty if it is not registered.")
    gl: dict[str, str] = Field(description="Finance's own ids.", examples=[{"account": "54100"}])
    contacts: list[str]


class StatementReply(ResponseModel):
    """What a recipient said of a statement."""

    number: str
    revision: int
    digest: str | None = Field(
        description="That of the content that the statement had then; null if an earlier version recorded the reply."
    )
    verdict: Verdict
    note: str
    data_through: date | None = Field(description="The last calculated day that the statement had then.")
    created_by: str = Field(examples=["alice"])
    created_at: Instant
    is_current: bool = Field(
        description="Whether the statement still has that content. A reply to a former content does not count."
    )

    @classmethod
    def of(cls, reply: Reply, digest: str) -> Self:
        """Return a reply to the statement whose content has the ``digest`` by now."""
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
    previous: Sum | None = Field(description="The amount of the month before; null if that has no costs at all.")
    delta: Sum | None
    verdict: Verdict | None = Field(description="What was said last of this content; null if nothing was.")
    last_reply: StatementReply | None = Field(
        description="What was said last, of this content or of an earlier one; null if nothing was, and for callers "
        "who see a part of the statement."
    )
    regular: Sum | None = left_out("With `basis=posted`: the costs of the month itself.")
    corrections: Sum | None = left_out("With `basis=posted`: of earlier months.")
    adjustments: Sum | None = left_out("With `basis=posted`: made by hand.")


class StatementTieOut(ResponseModel):
    """All statements of the month beside the provider's bill."""

    state: ReconciledState
    difference: Sum = Field(
        description="`statements` − `billed` − `outdated` − `corrections` − `adjustments`: 0 if everything is "
        "accounted for."
    )
    statements: StatedAmount
    billed: StatedAmount = Field(description="Billed on the days that are calculated from their present bill.")
    outdated: StatedAmount = Field(description="Of days whose bill has changed, and that will be calculated again.")
    pending: StatedAmount = Field(description="Billed on days that are not calculated from their present bill yet.")
    corrections: StatedAmount | None = left_out("With `basis=posted`: what was learned of earlier months.")
    adjustments: StatedAmount | None = left_out("With `basis=posted`: what people added by hand.")


class StatementsAnswer(StatementHeading):
    """The statements of a month, by value; the one for unallocated costs comes last."""

    items: list[StatementRow]
    total: StatedAmount
    tie_out: StatementTieOut | None = Field(description="Null for callers who see a part of the bill.")


class StatementLine(ResponseModel):
    """One line of a statement."""

    kind: Literal["direct", "shared_in", "shared_out"] = Field(
        description="Assigned to the value; handed on to it by others; handed on by it, which is negative."
    )
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_STORAGE"])
    amount: Sum
    rounded: Cents


class StatementCorrection(ResponseModel):
    """What was learned of an earlier month since the month before was closed."""

    period_id: str = Field(description="The month that it is about.", examples=["2026-09"])
    start_date: date
    end_date: date
    amount: Sum
    rounded: Cents
    causes: list[str] = Field(description="Why, the most frequent first.", examples=[["bill_changed"]])
    sentence: str


class StatementAdjustment(ResponseModel):
    """What was added by hand; negative where it was taken."""

    id: int
    kind: str = Field(examples=["reallocation"])
    amount: Sum
    rounded: Cents
    other: str | None = Field(description="Who gave it, or got it; null if it was added.", examples=["payments"])
    applies_to: str | None = Field(description="The month that it is about.", examples=["2026-09"])
    reason: str
    reference: str | None


class PreviousStatement(ResponseModel):
    """The month before, and why this month's amount is another one."""

    period: str = Field(examples=["2026-09"])
    amount: Sum
    delta: Sum
    effects: ChangeEffects
    sentence: str


class RankedPart(ResponseModel):
    """Something that costs a part of a statement."""

    id: str
    name: str | None
    within: str | None = Field(description="The cluster of a topic.")
    amount: Sum
    rounded: Cents


class OtherParts(ResponseModel):
    """All parts that are not named, together."""

    count: int
    amount: Sum
    rounded: Cents


class StatementRanking(ResponseModel):
    """The largest parts by one column; with the others they add up to `total`."""

    items: list[RankedPart]
    other: OtherParts | None
    total: StatedAmount


class StatementUnitCost(ResponseModel):
    """What one unit of usage cost."""

    per: Literal["gib_in", "gib_out"] = Field(description="What identities wrote, or read.")
    unit: str = Field(examples=["GiB"])
    amount: Sum = Field(description="The part of the statement's amount that lies on days with measurements.")
    usage: Exact = Field(description="The usage of these days, in units, rounded to six places.")
    unit_cost: Exact = Field(description="`amount` divided by the exact usage, rounded to twelve places.")


class StatementPolicy(ResponseModel):
    """How the lines of a product type were split among identities."""

    product_type: str
    hash: str
    portions: list[PolicyPortion]


class StatementRule(ResponseModel):
    """What a rule of the cost category assigned."""

    id: str | None = Field(description="Null: no rule applies.")
    reason: str | None
    amount: Sum


class StatementStep(ResponseModel):
    """A step of `share` by which cost came to the value, or left it."""

    source: str = Field(serialization_alias="from")
    by: str


class StatementSplit(ResponseModel):
    """How the statement came about. Rules and steps are null without a cost category, and for callers who see a part
    of the bill."""

    policies: list[StatementPolicy]
    rules: list[StatementRule] | None
    steps: list[StatementStep] | None


def current_verdict(replies: Sequence[StatementReply]) -> Verdict | None:
    """Return what the last reply to the present content says; None if there is none."""
    return next((each.verdict for each in reversed(replies) if each.is_current), None)


class StatementAnswer(StatementHeading):
    """One statement. Its lines, with its corrections and adjustments, add up to it, exactly and in cents."""

    number: str
    supersedes: str | None = Field(
        description="The number of the revision before; null in the first, and in one that a version of the cost "
        "category began: its values may be others."
    )
    digest: Digest
    recipient: StatementRecipient
    amount: Sum
    rounded: Cents
    lines: list[StatementLine]
    regular: StatedAmount | None = left_out("With `basis=posted`: the sum of the lines.")
    corrections: list[StatementCorrection] | None = left_out("With `basis=posted`: of earlier months, by month.")
    adjustments: list[StatementAdjustment] | None = left_out("With `basis=posted`: made by hand.")
    previous: PreviousStatement | None = Field(description="Null if the month before has no costs at all.")
    identities: StatementRanking | None = Field(description="Null for the statement of an identity.")
    resources: StatementRanking
    bills: StatementRanking | None = Field(
        description="By the ecosystem of the bill; null where all costs are on the bill of one."
    )
    topics: StatementRanking | None = Field(
        description="Another view of the costs of clusters, which is not a part of the total; by cost category only."
    )
    unit_costs: list[StatementUnitCost] = Field(
        description="Those of the units that it used; none for costs that belong to nobody."
    )
    split: StatementSplit
    verdict: Verdict | None = Field(description="What was said last of this content; null if nothing was.")
    replies: list[StatementReply] | None = Field(
        description="What was said of this content and of earlier ones, the first first; null for callers who see a "
        "part of the statement."
    )
    tie_out: StatementTieOut | None


class JournalLine(ResponseModel):
    """One line of a journal: a debit or a credit, in cents; the other side is 0.00."""

    line: int = Field(description="From 1.")
    kind: Literal["expense", "correction", "adjustment", "clearing"]
    account: str = Field(
        description="Of an expense, the id of the value that `journal.account_id` names, else "
        "`journal.expense_account`; of the clearing line, `journal.clearing_account`.",
        examples=["54100"],
    )
    debit: Cents
    credit: Cents
    currency: str = Field(examples=["USD"])
    value: str | None = Field(description="Whose costs; null on the clearing line.", examples=["payments"])
    charge_period: str | None = left_out("Of a correction: the month that it is about.", examples=["2026-09"])
    name: str | None
    gl: dict[str, str] = Field(description="Finance's own ids of the value.")
    contacts: list[str]
    statement: str | None = Field(description="The number of its statement.")
    text: str


class JournalAnswer(StatementHeading):
    """The journal of a month. Debits are credits, in the cents of the statements."""

    number: str = Field(examples=["CBJ-acme-2026-10-cost_center-r1"])
    lines: list[JournalLine]
    debit: Cents = Field(description="The sum of all debits.")
    credit: Cents = Field(description="The sum of all credits: the same.")


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements of a month by one grouping, by value; those for unassigned and unallocated costs come last.
    ``tie_out`` is None for a reader who sees a part of the bill; ``budgets`` are what values may cost in the month,
    where they have a budget of their own: pages show them, and they are no part of a statement."""

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
