"""What a statement says, before it is written in any form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from chargeback.allocation.policies import Policy
from chargeback.model.cents import rounded_cents
from chargeback.model.days import DayRange
from chargeback.model.money import difference, total
from chargeback.store.control.statement_replies import Reply

#: The kinds of lines: what was assigned to the value, what others handed on to it, and (negative) what it handed on.
DIRECT: Final = "direct"
SHARED_IN: Final = "shared_in"
SHARED_OUT: Final = "shared_out"
LINE_KINDS: Final = (DIRECT, SHARED_IN, SHARED_OUT)

#: Months are not closed, so every statement may change.
PROVISIONAL: Final = "PROVISIONAL"
#: Amounts belong to the month of the usage.
ACCRUAL: Final = "accrual"


@dataclass(frozen=True, slots=True)
class Stated:
    """An amount as it is exactly, and in cents: rounded to the minor unit of its currency. Cents of the parts of a
    whole add up to the cents of the whole."""

    exact: Decimal
    cents: Decimal

    @classmethod
    def alone(cls, amount: Decimal, currency: str) -> Stated:
        """Return an amount that is a part of nothing, rounded by itself."""
        return cls(amount, rounded_cents(amount, currency))

    @classmethod
    def sum(cls, amounts: Iterable[Stated], currency: str) -> Stated:
        """Return the sum of some amounts, exactly and in cents."""
        parts = list(amounts)
        return cls(total(each.exact for each in parts), rounded_cents(total(each.cents for each in parts), currency))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a statement: what it costs by product, and by one of :data:`LINE_KINDS`."""

    kind: str
    product_category: str
    product_type: str
    amount: Stated


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whom a statement is for: the value with its name, what it belongs to (``path``: values and names, the value
    itself first), finance's own ids for it, and whom to ask."""

    value: str
    name: str | None = None
    path: Sequence[tuple[str, str | None]] = ()
    gl: Sequence[tuple[str, str]] = ()
    contacts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Previous:
    """The month before: its amount, and why this month's is another one. The effects sum to :attr:`delta`."""

    period: str
    amount: Decimal
    delta: Decimal
    effects: Mapping[str, Decimal]
    sentence: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """Something that costs a part of a statement. ``within`` is the cluster of a topic."""

    id: str
    name: str | None
    amount: Stated
    within: str | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The largest parts by one column, and how many others there are, with their amount. They sum to ``total``."""

    items: Sequence[Ranked]
    other_count: int
    other: Stated
    total: Stated


@dataclass(frozen=True, slots=True)
class CostPerUnit:
    """What one unit of usage cost.

    Attributes:
        per: what it is asked for as, see :data:`~chargeback.reports.unit_costs.UNIT_MEASURES`.
        unit: what the usage is counted in.
        amount: the part of the statement that lies on days with measurements.
        usage: the usage of these days.
        cost: the amount divided by the usage.
    """

    per: str
    unit: str
    amount: Decimal
    usage: Decimal
    cost: Decimal


@dataclass(frozen=True, slots=True)
class RuleShare:
    """What a rule of the cost category assigned to the value; without an id, what no rule matches."""

    id: str | None
    reason: str | None
    amount: Decimal


@dataclass(frozen=True, slots=True)
class HandedOnBy:
    """A step that hands cost on: whose it was, and by what it is divided."""

    source: str
    by: str


@dataclass(frozen=True, slots=True)
class ProductPolicy:
    """How the lines of a product type were split among identities."""

    product_type: str
    policy: Policy


@dataclass(frozen=True, slots=True)
class StatementSplit:
    """How a statement came about. ``rules`` and ``steps`` are None for a reader who sees a part of the bill, and
    without a cost category."""

    policies: Sequence[ProductPolicy]
    rules: Sequence[RuleShare] | None
    steps: Sequence[HandedOnBy] | None


@dataclass(frozen=True, slots=True)
class TieOut:
    """All statements of a month beside the provider's bill.

    Attributes:
        statements: the sum of all statements.
        billed: what was billed on the days that are calculated from their present bill.
        outdated: what statements have of days whose bill has changed since, and that will be calculated again.
        pending: what is billed on days that are not calculated yet, or not from their present bill.
        state: that of the worst day, as the reconciliation says it.
    """

    statements: Stated
    billed: Stated
    outdated: Stated
    pending: Stated
    state: str

    @property
    def difference(self) -> Decimal:
        """What the statements have beyond the bill: 0 if everything is accounted for."""
        return difference(self.statements.exact, total([self.billed.exact, self.outdated.exact]))


@dataclass(frozen=True, slots=True)
class Heading:
    """What all statements of a month and grouping have in common.

    Attributes:
        tenant: its name.
        by: what each statement is about: ``identity_id``, ``tag:<key>`` or ``category:<key>``.
        period: the month, ``YYYY-MM``.
        days: its UTC days.
        calculated_days: how many of them are calculated.
        data_through: the last of these; None if there is none.
        issued_at: since when the statements are as they are, as far as days and cost categories are concerned; None
            while no day is calculated.
        currency: that of all amounts.
        revision: see :func:`~chargeback.reports.statements.numbering.revision_of`.
        category_version: the version of the cost category; None for other groupings.
        scope: what the reader may see, by name; None if that is everything.
        supersedes: the revision that this one replaces, with the same values; None if there is none.
    """

    tenant: str
    by: str
    period: str
    days: DayRange
    calculated_days: int
    data_through: date | None
    issued_at: datetime | None
    currency: str
    revision: int
    category_version: int | None
    scope: Mapping[str, Sequence[str]] | None
    basis: str = ACCRUAL
    status: str = PROVISIONAL
    supersedes: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """What one value costs in a month. ``identities`` is None where the statement is about one, ``topics`` where they
    are not attributed to values, ``previous`` where the month before has no costs. ``unit_costs`` are those of the
    units that it used. ``digest`` is that of its content, see
    :func:`~chargeback.reports.statements.numbering.content_digest`. ``replies`` are those to this content and earlier
    ones, the first first; None for a reader who sees a part of the statement, whose amounts are not those that were
    replied to."""

    number: str
    supersedes: str | None
    digest: str
    recipient: Recipient
    amount: Stated
    lines: Sequence[Line]
    previous: Previous | None
    identities: Ranking | None
    resources: Ranking
    topics: Ranking | None
    unit_costs: Sequence[CostPerUnit]
    split: StatementSplit
    replies: Sequence[Reply] | None = ()

    @property
    def verdict(self) -> str | None:
        """What was said last of this content; None if nothing was."""
        return next((each.verdict for each in reversed(self.replies or ()) if self.is_about(each)), None)

    def is_about(self, reply: Reply) -> bool:
        """Return whether a reply was to the content that the statement has."""
        return reply.digest == self.digest


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements of a month by one grouping, by value; those for unassigned and unallocated costs come last.
    ``tie_out`` is None for a reader who sees a part of the bill."""

    heading: Heading
    items: Sequence[Statement]
    total: Stated
    tie_out: TieOut | None

    def find(self, value: str) -> Statement | None:
        """Return the statement of a value; None if there is none."""
        return next((each for each in self.items if each.recipient.value == value), None)
