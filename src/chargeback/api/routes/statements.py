"""Statements: what finance books for each cost category value, identity or tag value of a month."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from fastapi import Body, Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from chargeback.access.caller import Caller
from chargeback.access.rights import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.parameters import (
    CATEGORY_PARAMETER,
    CSV_TYPE,
    TAG_PARAMETER,
    FactsParameters,
    Id,
    Note,
    StrictModel,
    Text,
)
from chargeback.api.problems import Conflict, Forbidden, InvalidParameter, NotFound
from chargeback.api.responses import attachment, json_response
from chargeback.api.routes.tags import Author
from chargeback.api.routing import CSV, Routes
from chargeback.api.tenant_requests import CATEGORIES_HEADER, Calculation, CalculationRequest, Facts, FactsRequest
from chargeback.reports.answers import Exact, Instant, ResponseModel, Sum
from chargeback.reports.changes import ChangeEffects
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.reconciliation import ReconciledState
from chargeback.reports.statements.as_csv import statement_csv, statements_csv
from chargeback.reports.statements.as_html import content_policy, statement_html
from chargeback.reports.statements.as_json import reply_json, statement_json, statements_json
from chargeback.reports.statements.as_pdf import to_pdf
from chargeback.reports.statements.compile import compile_statements
from chargeback.reports.statements.content import Statement, Statements
from chargeback.store.control.statement_replies import (
    ACKNOWLEDGED,
    DISPUTED,
    StatementKey,
    add_reply,
    count_replies,
    last_reply,
)

#: Replies to the statement of a value of a month, to all of its contents together.
MOST_REPLIES = 100

_BY = "|".join(["identity_id", TAG_PARAMETER.strip("^$"), CATEGORY_PARAMETER.strip("^$")])
Verdict = Literal["acknowledged", "disputed"]
Cents = Annotated[
    str,
    Field(
        pattern=r"^-?\d+(\.\d{2,4})?$",
        description="Rounded to the minor unit of the currency, with its decimal places: two for most, none for JPY.",
        examples=["1234.57"],
    ),
]


Period = Annotated[
    str,
    StringConstraints(pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$"),
    Field(description="The month, of UTC days.", examples=["2026-10"]),
]
By = Annotated[
    str,
    StringConstraints(pattern=f"^({_BY})$"),
    Field(
        description="What each statement is about: `category:<key>`, `tag:<key>` or `identity_id`.",
        examples=["category:cost_center"],
    ),
]
Value = Annotated[
    Id,
    Field(
        description="Whose statement: the value of the category or tag, or the id of the identity.",
        examples=["payments"],
    ),
]


_DIGEST = "9b1e5d2c6f0a4b7d8c3e1f2a5b6c7d80"
Digest = Annotated[
    str,
    Field(
        description="The digest of the content: whose costs, of how many days, and the lines as they are exactly and "
        "in cents. A reply counts for as long as the statement has it.",
        examples=[_DIGEST],
    ),
]


class StatementsQuery(FactsParameters):
    """Parameters of the statements of a month."""

    period: Period
    by: By

    @property
    def month(self) -> date:
        """The first day of the month."""
        return date.fromisoformat(f"{self.period}-01")


class StatementQuery(StatementsQuery):
    """Parameters of one statement."""

    value: Value


class JournalQuery(FactsParameters):
    """Parameters of the journal of a month."""

    by: Annotated[str, StringConstraints(pattern=f"^({_BY})$")] | None = Field(
        default=None,
        description="Whose accounts are debited, as for statements: `category:<key>`, `tag:<key>` or `identity_id`. "
        "Default: `journal.by` of the tenant.",
        examples=["category:cost_center"],
    )
    format: Literal["json", "csv"] | None = Field(
        default=None, description="Default: `json`, or `csv` with `Accept: text/csv`. Not together with `template`."
    )
    template: Annotated[str, StringConstraints(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")] | None = Field(
        default=None,
        description="The name of a template in `journal.templates` of the tenant, which writes the file instead.",
        examples=["sap"],
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that a template is not given a format."""
        errors = super().cross_checks(raw, now)
        if "format" in raw and "template" in raw:
            errors.append(InvalidParameter("format", "should not be given together with template"))
        return errors


class StatedAmount(ResponseModel):
    """An amount, exactly and in cents. The cents of lines add up to those of their statement, and the cents of all
    statements to those of the month."""

    amount: Sum
    rounded: Cents


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
    status: Literal["PROVISIONAL"] = Field(description="The month is not closed: its statements may change.")
    basis: Literal["accrual"] = Field(description="Costs belong to the day of the usage.")
    currency: str = Field(examples=["USD"])
    revision: int = Field(
        description="1 when the first day is calculated, and one more for each time that days of the month were "
        "replaced together, or the cost category changed. New days do not change it."
    )
    category_version: int | None = Field(description="The version of the cost category; else null.")
    scope: dict[str, list[str]] | None = Field(description="What the caller may see; null if that is everything.")


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


class StatementRow(StatedAmount):
    """One statement in the list of a month."""

    number: str = Field(examples=["CB-acme-2026-10-cost_center.payments-r1"])
    digest: Digest
    recipient: StatementRecipient
    previous: Sum | None = Field(description="The amount of the month before; null if that has no costs at all.")
    delta: Sum | None
    verdict: Verdict | None = Field(description="What was said last of this content; null if nothing was.")


class NewReply(StrictModel):
    """What the recipient says of a statement."""

    note: Note = Field(description="For those who see it later.", examples=["Booked on 54100"])
    number: Text | None = Field(
        default=None,
        description="The number that the recipient has read. If the statement has another by now, the answer is 409.",
        examples=["CB-acme-2026-10-cost_center.payments-r1"],
    )
    digest: Text | None = Field(
        default=None,
        description="The `digest` of the content that the recipient has read. If the statement has another by now, the "
        "answer is 409, also where the number is the same: while the month goes on, a statement gets more days.",
        examples=[_DIGEST],
    )
    created_by: Author = "api"


class ReplyQuery(StrictModel):
    """Whose statement a reply is about."""

    period: Period
    by: By
    value: Value


class StatementReply(ResponseModel):
    """What a recipient said of a statement."""

    number: str
    revision: int
    digest: str | None = Field(
        description="That of the content that the statement had then; null if an earlier version recorded the reply."
    )
    is_current: bool = Field(
        description="Whether the statement still has that content. A reply to a former content does not count."
    )
    verdict: Verdict
    note: str
    data_through: date | None = Field(description="The last calculated day that the statement had then.")
    created_by: str = Field(examples=["alice"])
    created_at: Instant


class StatementTieOut(ResponseModel):
    """All statements of the month beside the provider's bill."""

    state: ReconciledState
    difference: Sum = Field(description="`statements` − `billed` − `outdated`: 0 if everything is accounted for.")
    statements: StatedAmount
    billed: StatedAmount = Field(description="Billed on the days that are calculated from their present bill.")
    outdated: StatedAmount = Field(description="Of days whose bill has changed, and that will be calculated again.")
    pending: StatedAmount = Field(description="Billed on days that are not calculated from their present bill yet.")


class StatementsAnswer(StatementHeading):
    """The statements of a month, by value; those for costs that belong to nobody come last."""

    items: list[StatementRow]
    total: StatedAmount
    tie_out: StatementTieOut | None = Field(description="Null for callers who see a part of the bill.")


class StatementLine(StatedAmount):
    """One line of a statement."""

    kind: Literal["direct", "shared_in", "shared_out"] = Field(
        description="Assigned to the value; handed on to it by others; handed on by it, which is negative."
    )
    product_category: str = Field(examples=["KAFKA"])
    product_type: str = Field(examples=["KAFKA_STORAGE"])


class PreviousStatement(ResponseModel):
    """The month before, and why this month's amount is another one."""

    period: str = Field(examples=["2026-09"])
    amount: Sum
    delta: Sum
    effects: ChangeEffects
    sentence: str


class RankedPart(StatedAmount):
    """Something that costs a part of a statement."""

    id: str
    name: str | None
    within: str | None = Field(description="The cluster of a topic.")


class OtherParts(StatedAmount):
    """All parts that are not named, together."""

    count: int


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

    source: str = Field(alias="from")
    by: str


class StatementSplit(ResponseModel):
    """How the statement came about. Rules and steps are null without a cost category, and for callers who see a part
    of the bill."""

    policies: list[StatementPolicy]
    rules: list[StatementRule] | None
    steps: list[StatementStep] | None


class StatementAnswer(StatementHeading, StatedAmount):
    """One statement. Its lines add up to it, exactly and in cents."""

    number: str
    supersedes: str | None = Field(
        description="The number of the revision before; null in the first, and in one that a version of the cost "
        "category began: its values may be others."
    )
    digest: Digest
    recipient: StatementRecipient
    lines: list[StatementLine]
    previous: PreviousStatement | None = Field(description="Null if the month before has no costs at all.")
    identities: StatementRanking | None = Field(description="Null for the statement of an identity.")
    resources: StatementRanking
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
    kind: Literal["expense", "clearing"]
    account: str = Field(
        description="Of an expense, the id of the value that `journal.account_id` names, else "
        "`journal.expense_account`; of the clearing line, `journal.clearing_account`.",
        examples=["54100"],
    )
    debit: Cents
    credit: Cents
    currency: str = Field(examples=["USD"])
    value: str | None = Field(description="Whose costs; null on the clearing line.", examples=["payments"])
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


router = Routes(prefix="/tenants/{tenant_name}", tags=["Statements"])

_NO_CATEGORY = {404: "There is no such tenant or cost category."}
_NO_STATEMENT = {404: "There is no such tenant, cost category or statement."}
_NO_REPLY = _NO_STATEMENT | {
    403: "The caller lacks the right `read` in the tenant, or sees a part of the statement only. Or: a web page of "
    "another origin sent the request.",
    409: "The statement has another number or content by now than the request names, or as many replies as it may "
    "have.",
}
_NO_PDF = {501: "What makes PDF files is not installed; `detail` says what to install."}
_LINES = "CSV (RFC 4180, UTF-8), with texts written as by the export"
_FILE = {"Content-Disposition": {"schema": {"type": "string"}, "description": "`inline`, with the number as name."}}


def _replied(request: FactsRequest, params: StatementsQuery) -> list[Any]:
    """Return what else decides statements: the policies, and the last reply to one of them."""
    with request.reading() as connection:
        return [request.tenant.rules.catalogue.hash, last_reply(connection, params.period, params.by)]


def _form(media_type: str, description: str) -> dict[int, Any]:
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"description": description, "content": content, "headers": _FILE | CATEGORIES_HEADER}}


@router.get(
    "/statements",
    response_model=StatementsAnswer,
    needs=Right.READ,
    problems=_NO_CATEGORY,
    responses={200: {"headers": CATEGORIES_HEADER}},
    keep=True,
    also=_replied,
    files=CSV,
)
def list_statements(request: Facts, params: Annotated[StatementsQuery, Query()]) -> Response:
    """List the statements of a UTC month, one for each value, and compare their sum with the provider's bill.

    Nothing is left out: what no rule or tag assigns has a statement, and what nobody is known to have caused one of its
    own. While no day of the month is calculated, there are no statements. Dates, `timezone` and page parameters are
    ignored.
    """

    found = _compiled(request, params)
    if request.wants_csv:
        return _csv(f"statements-{found.heading.period}", statements_csv(found))
    return json_response(statements_json(found))


@router.get(
    "/statement",
    response_model=StatementAnswer,
    needs=Right.READ,
    problems=_NO_STATEMENT,
    responses={200: {"headers": CATEGORIES_HEADER}},
    keep=True,
    also=_replied,
    files=CSV,
)
def show_statement(request: Facts, params: Annotated[StatementQuery, Query()]) -> Response:
    """Return the statement of one value for a UTC month: its lines, the month before, its largest parts, and how it was
    split. Dates, `timezone` and page parameters are ignored."""

    found, statement = _found(request, params)
    if request.wants_csv:
        return _csv(statement.number, statement_csv(found, statement))
    return json_response(statement_json(found, statement))


@router.get(
    "/statement.html",
    response_class=Response,
    needs=Right.READ,
    problems=_NO_STATEMENT,
    responses=_form("text/html", "A page that needs nothing else, and prints well."),
    keep=True,
    also=_replied,
)
def show_statement_page(request: Facts, params: Annotated[StatementQuery, Query()]) -> Response:
    """Return the statement of one value as a page to read, print and send."""

    found, statement = _found(request, params)
    headers = _named(f"{statement.number}.html") | {
        "Content-Security-Policy": content_policy(),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }
    return Response(statement_html(found, statement), media_type="text/html", headers=headers)


@router.get(
    "/statement.pdf",
    response_class=Response,
    needs=Right.EXPORT,
    problems=_NO_STATEMENT | _NO_PDF,
    responses=_form("application/pdf", "The page as PDF/UA."),
    keep=True,
    also=_replied,
)
def print_statement(request: Facts, params: Annotated[StatementQuery, Query()]) -> Response:
    """Download the statement of one value as PDF. Needs the extra `pdf` of the package."""

    found, statement = _found(request, params)
    document = to_pdf(statement_html(found, statement))
    return Response(document, media_type="application/pdf", headers=_named(f"{statement.number}.pdf"))


@router.post(
    "/statement/acknowledge", response_model=StatementReply, needs=Right.READ, answer="The reply.", problems=_NO_REPLY
)
def acknowledge_statement(
    request: Calculation,
    caller: CallerDep,
    address: Annotated[ReplyQuery, Query()],
    new: Annotated[NewReply, Body()],
) -> Response:
    """Acknowledge the present content of a statement, with a note. The last reply to a content counts; all are kept."""
    return _reply(request, caller, address, (ACKNOWLEDGED, new))


@router.post(
    "/statement/dispute", response_model=StatementReply, needs=Right.READ, answer="The reply.", problems=_NO_REPLY
)
def dispute_statement(
    request: Calculation,
    caller: CallerDep,
    address: Annotated[ReplyQuery, Query()],
    new: Annotated[NewReply, Body()],
) -> Response:
    """Dispute the present content of a statement, with a note. The last reply to a content counts; all are kept."""
    return _reply(request, caller, address, (DISPUTED, new))


def _reply(request: CalculationRequest, caller: Caller, address: ReplyQuery, said: tuple[str, NewReply]) -> Response:
    """Record a verdict and its note about the statement at an address.

    Raises:
        Conflict: the statement has another number or content by now, or as many replies as it may have.
        Forbidden: the caller sees a part of it.
        NotFound: there is none.
    """
    verdict, new = said
    month = date.fromisoformat(f"{address.period}-01")
    found = compile_statements(request.tenant, request.facts, month, address.by)
    statement = found.find(address.value)
    if statement is None:
        raise _missing(address, found)
    if statement.replies is None:
        raise Forbidden("You see a part of this statement only; who sees all of it can reply.")
    if new.number not in {None, statement.number}:
        raise Conflict(f"The statement is {statement.number} by now; read it again.")
    if new.digest not in {None, statement.digest}:
        raise Conflict(f"The statement {statement.number} says something else by now; read it again.")
    key = StatementKey(
        statement.number, address.period, address.by, address.value, found.heading.revision, statement.digest
    )
    through, author = found.heading.data_through, caller.signature(new.created_by)
    with request.writing() as connection:
        if count_replies(connection, address.period, address.by, address.value) >= MOST_REPLIES:
            raise Conflict(f"The statement {statement.number} has {MOST_REPLIES} replies already, and takes no more.")
        reply = add_reply(connection, key, verdict, new.note, through, author, who=caller.name)
    return json_response(reply_json(reply, is_current=True))


def _missing(address: StatementQuery | ReplyQuery, found: Statements) -> NotFound:
    why = "" if found.heading.calculated_days else ": no day of the month is calculated"
    return NotFound(f"There is no statement of {address.value!r} by {address.by} for {address.period}{why}.")


def _compiled(request: FactsRequest, params: StatementsQuery) -> Statements:
    """Return the statements of a month."""
    return compile_statements(request.tenant, request.reader, params.month, params.by)


def _found(request: FactsRequest, params: StatementQuery) -> tuple[Statements, Statement]:
    """Return the statements of a month, and that of a value.

    Raises:
        NotFound: there is none.
    """
    found = _compiled(request, params)
    statement = found.find(params.value)
    if statement is None:
        raise _missing(params, found)
    return found, statement


def _csv(name: str, text: str) -> Response:
    return Response(text, media_type=CSV_TYPE, headers=attachment(f"{name}.csv"))


def _named(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"inline; filename={name}"}
