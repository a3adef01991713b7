"""What the bodies of events have, by their kind: the schemas of webhooks.

Amounts are texts with all digits. An event that is for some sinks alone names them (``notify``, ``owners``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from chargeback.config.notifications import EventKind


class EventBody(BaseModel):
    """What there is to say of an event."""

    model_config = ConfigDict(extra="forbid")

    notify: list[str] = Field(default=[], description="The sinks that receive it; empty for all that receive its kind.")
    owners: list[str] = Field(
        default=[], description="The sinks with a scope that it lies within; `*` if it has no numbers."
    )


class PeriodReady(EventBody):
    """All days of a month are calculated: it can be closed."""

    days: int


class PeriodChanged(EventBody):
    """A month was reopened or sealed."""

    period_id: str
    n: int = Field(description="The number of the receipt.")
    receipt_digest: str = Field(description="Its SHA-256.")


class PeriodClosed(PeriodChanged):
    """A month was closed."""

    posted: str = Field(description="What was booked.")
    currency: str


class CorrectionPosted(PeriodChanged):
    """What was learned of an earlier month was booked with a later one."""

    charge_period: str = Field(description="The earlier month.")
    amount: str
    currency: str


class StatementIssued(EventBody):
    """A month was closed: its statements are final."""

    period_id: str


class StatementDisputed(EventBody):
    """Who got a statement disputes it."""

    period_id: str
    value: str = Field(description="Whose statement it is.")
    by: str
    note: str


class InvoiceDiffers(EventBody):
    """The invoices of a month that is not closed are not what was billed for its days."""

    period_id: str
    invoices: list[str]
    invoiced: str = Field(description="Their total, without taxes.")
    billed: str
    difference: str = Field(description="`invoiced` less `billed`.")
    currency: str


class BudgetChanged(EventBody):
    """A threshold of a budget is reached, or no longer is."""

    name: str
    period_id: str
    on: Literal["actual", "forecast", "pace"]
    percent: str
    amount: str | None = Field(description="The budget of the month.")
    to_date: str
    expected: str | None = Field(description="What the month is expected to cost.")
    currency: str
    belongs_to: dict[str, str] = Field(description="The value of a cost category that all of it belongs to.")


class AnomalyChanged(EventBody):
    """Costs stand out."""

    identity_id: str | None
    category: str | None = Field(description="Of a value: its cost category.")
    value: str | None
    product_category: str | None = Field(description="Null for all product groups.")
    first_date: date
    last_date: date
    impact: str = Field(description="What was charged more than usual; an estimate.")
    sentence: str
    belongs_to: dict[str, str] = Field(description="The value of the cost category that all of it belongs to.")
    more: int = Field(description="How many more stories there are, which are not included.")
    currency: str


class AnomalyWithdrawn(EventBody):
    """What stood out does not, by what is known now."""

    first_date: date
    currency: str


class ShadowReady(EventBody):
    """A shadow has enough complete days to be looked at."""

    days: int


class ShadowEnded(EventBody):
    """A shadow has ended."""

    end: date


class RunFailed(EventBody):
    """A run has failed; once a day."""

    error: str = Field(description="The first error.")
    errors: int


class TenantSuspended(EventBody):
    """The bill of a tenant is no longer gathered."""

    reason: str


class CommitmentChanged(EventBody):
    """Less of a commitment is drawn than its days are for, or all of it is."""

    commitment: str
    start_date: date = Field(description="The first day of the interval.")
    end_date: date
    committed: str
    drawn: str
    shortfall: str | None
    unit: str | None = Field(description="Null for money.")
    currency: str
    pace: float | None


class ContractEnding(EventBody):
    """A contract ends soon."""

    issuer: str
    end_date: date


class SinkDead(EventBody):
    """A message to another sink was given up."""

    error: str
    kind: str
    subject: str


class DigestWeekly(EventBody):
    """A week."""

    start_date: date
    end_date: date
    currency: str
    amount: str
    before: str | None
    changes: list[dict[str, Any]]
    stands_out: list[str]
    budgets: list[dict[str, Any]]
    unused: list[dict[str, Any]]
    unused_more: int
    unused_cost: str
    unallocated: str


#: The bodies by the kinds of events.
BODIES: Final[Mapping[EventKind, type[EventBody]]] = {
    "period.ready": PeriodReady,
    "period.closed": PeriodClosed,
    "period.reopened": PeriodChanged,
    "period.sealed": PeriodChanged,
    "correction.posted": CorrectionPosted,
    "budget.crossed": BudgetChanged,
    "budget.cleared": BudgetChanged,
    "budget.late": BudgetChanged,
    "anomaly.opened": AnomalyChanged,
    "anomaly.grew": AnomalyChanged,
    "anomaly.resolved": AnomalyChanged,
    "anomaly.withdrawn": AnomalyWithdrawn,
    "shadow.ready": ShadowReady,
    "shadow.ended": ShadowEnded,
    "statement.issued": StatementIssued,
    "statement.disputed": StatementDisputed,
    "invoice.differs": InvoiceDiffers,
    "run.failed": RunFailed,
    "tenant.suspended": TenantSuspended,
    "contract.pace": CommitmentChanged,
    "contract.exhausted": CommitmentChanged,
    "contract.ending": ContractEnding,
    "sink.dead": SinkDead,
    "digest.weekly": DigestWeekly,
}


class _About(BaseModel):
    """What has happened to what, in a sentence, and where to look."""

    tenant: str
    subject: str = Field(examples=["budget/payments"])
    sentence: str
    link: str | None = Field(description="A page of the service, if it knows where people reach it.")


def message_model(kind: EventKind) -> type[BaseModel]:
    """Return the model of the JSON that a webhook gets for a kind of event."""
    name = "".join(part.capitalize() for part in kind.split("."))
    data = create_model(f"{name}Data", __base__=_About, body=(BODIES[kind], ...))
    return create_model(
        f"{name}Message",
        __doc__=BODIES[kind].__doc__,
        type=(cast(Any, Literal)[kind], ...),
        timestamp=(datetime, ...),
        data=(data, ...),
    )
