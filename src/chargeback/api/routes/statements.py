"""Statements: the amounts that finance books for each cost category value, identity or tag value in a month."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Body, Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from chargeback.access.caller import Caller, Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.parameters import (
    CATEGORY_PARAMETER,
    TAG_PARAMETER,
    Author,
    FactsParameters,
    Id,
    Note,
    PeriodId,
    StrictModel,
    Text,
)
from chargeback.api.problems import Conflict, Forbidden, InvalidParameter, NotFound
from chargeback.api.responses import csv_file
from chargeback.api.routing import CSV, Routes
from chargeback.api.tenant_requests import (
    CATEGORIES_HEADER,
    Calculation,
    CalculationRequest,
    Export,
    Facts,
    FactsRequest,
    RowsFile,
    before_the_books,
    category_versions,
)
from chargeback.model.accounting import AccountingPeriod
from chargeback.reports.closing.statements import statements_of
from chargeback.reports.statements.as_csv import statement_csv, statements_csv
from chargeback.reports.statements.as_html import content_policy, statement_html
from chargeback.reports.statements.as_pdf import to_pdf
from chargeback.reports.statements.content import (
    EXAMPLE_DIGEST,
    StatementAnswer,
    StatementReply,
    Statements,
    StatementsAnswer,
)
from chargeback.reports.statements.files import zipped_statements
from chargeback.store.control.budgets import count_versions
from chargeback.store.control.statement_replies import (
    ACKNOWLEDGED,
    DISPUTED,
    StatementKey,
    add_reply,
    count_replies,
    last_reply,
)
from chargeback.store.queries.reader import TenantReader

#: Replies to the statement of a value of a month, to all of its contents together.
MOST_REPLIES = 100

_BY = "|".join(["identity_id", TAG_PARAMETER.strip("^$"), CATEGORY_PARAMETER.strip("^$")])

By = Annotated[
    str,
    StringConstraints(pattern=f"^({_BY})$"),
    Field(
        description="The grouping of the statements: `category:<key>`, `tag:<key>` or `identity_id`.",
        examples=["category:cost_center"],
    ),
]
Value = Annotated[
    Id,
    Field(
        description="The recipient of the statement: the value of the category or tag, or the id of the identity.",
        examples=["payments"],
    ),
]


StatementBasis = Annotated[
    Literal["accrual", "posted"] | None,
    Field(
        description="`accrual`: the present costs of the month. `posted`: the amounts booked in it, with corrections "
        "of earlier months and adjustments; for a closed month, the stored statements. Default: `posted` for months "
        "from the first closed one on, else `accrual`."
    ),
]


class StatementsQuery(FactsParameters):
    """Parameters of the statements of a month."""

    period: PeriodId
    by: By
    basis: StatementBasis = None

    @property
    def month(self) -> AccountingPeriod:
        """The month."""
        return AccountingPeriod.named(self.period)


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
    basis: StatementBasis = None
    format: Literal["json", "csv"] | None = Field(
        default=None, description="Default: `json`, or `csv` with `Accept: text/csv`. Not together with `template`."
    )
    template: Annotated[str, StringConstraints(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")] | None = Field(
        default=None,
        description="The name of a template in `journal.templates` of the tenant, which determines the file.",
        examples=["sap"],
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that a template and a format are not given together."""
        errors = super().cross_checks(raw, now)
        if "format" in raw and "template" in raw:
            errors.append(InvalidParameter("format", "should not be given together with template"))
        return errors


class NewReply(StrictModel):
    """The recipient's reply to a statement."""

    note: Note = Field(description="An explanation for later readers.", examples=["Booked on 54100"])
    number: Text | None = Field(
        default=None,
        description="The number that the recipient has read. If the statement has another one now, the response is "
        "409.",
        examples=["CB-acme-2026-10-cost_center.payments-r1"],
    )
    digest: Text | None = Field(
        default=None,
        description="The `digest` of the content that the recipient has read. If the statement has another one now, "
        "the response is 409, even if the number is the same: during its month, a statement gets more days.",
        examples=[EXAMPLE_DIGEST],
    )
    created_by: Author = Field(default="api", description="Who wrote the reply.")


class ReplyQuery(StrictModel):
    """The statement that a reply is about."""

    period: PeriodId
    by: By
    value: Value
    basis: StatementBasis = None


router = Routes(prefix="/tenants/{tenant_name}", tags=["Statements"])

_NO_CATEGORY = {404: "There is no such tenant or cost category."}
_NO_STATEMENT = {404: "There is no such tenant, cost category or statement."}
_NO_REPLY = _NO_STATEMENT | {
    403: "The caller lacks the right `read` in the tenant, or may see only a part of the statement. Or: a web page of "
    "another origin sent the request.",
    409: "The statement has another number or content now than the request names, or as many replies as it may have.",
}
_NO_PDF = {501: "The packages for PDF files are not installed; `detail` names them."}
_FILE = {"Content-Disposition": {"schema": {"type": "string"}, "description": "`inline`, with the number as name."}}


def _replied(request: FactsRequest, params: StatementsQuery) -> list[Any]:
    """Return the further values that statements depend on: policies, the last reply, budgets, and settings."""
    with request.reading() as connection:
        last, budgets = last_reply(connection, params.period, params.by), count_versions(connection)
    tenant = request.tenant
    request.extra = [tenant.rules.catalogue.hash, last, budgets, tenant.issuer, tenant.statement_format]
    return [*request.extra]


def _form(media_type: str, description: str) -> dict[int, Any]:
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"description": description, "content": content, "headers": _FILE | CATEGORIES_HEADER}}


@router.get(
    "/statements",
    needs=Right.READ,
    problems=_NO_CATEGORY,
    responses={200: {"headers": CATEGORIES_HEADER}},
    keep=True,
    also=_replied,
    files=CSV,
)
def list_statements(request: Facts, params: Annotated[StatementsQuery, Query()]) -> StatementsAnswer | Response:
    """List the statements of a UTC month, one for each value, and compare their sum with the provider's bill.

    Nothing is left out: costs that no rule or tag assigns have a statement, and costs without an identity have a
    separate one. Until a day of the month is calculated, there are no statements. Dates, `timezone` and page parameters
    are ignored.
    """

    found = _compiled(request, params)
    if request.wants_csv:
        return csv_file(f"statements-{found.heading.period}.csv", statements_csv(found))
    return found.listed()


@router.get(
    "/statement",
    needs=Right.READ,
    problems=_NO_STATEMENT,
    responses={200: {"headers": CATEGORIES_HEADER}},
    keep=True,
    also=_replied,
    files=CSV,
)
def show_statement(request: Facts, params: Annotated[StatementQuery, Query()]) -> StatementAnswer | Response:
    """Return the statement of one value for a UTC month: its lines, the month before, its largest parts, and how it was
    split. Dates, `timezone` and page parameters are ignored."""

    _, statement = _found(request, params)
    if request.wants_csv:
        return csv_file(f"{statement.number}.csv", statement_csv(statement))
    return statement


@router.get(
    "/statement.html",
    response_class=Response,
    needs=Right.READ,
    problems=_NO_STATEMENT,
    responses=_form("text/html", "A self-contained page that is suitable for printing."),
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


@router.get(
    "/statements.zip",
    response_class=Response,
    needs=Right.EXPORT,
    problems=_NO_CATEGORY | _NO_PDF,
    responses={
        200: {
            "description": "The PDF files of all statements, with an index as page and as CSV.",
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
            "headers": {
                "Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, with a name."}
            }
            | CATEGORIES_HEADER,
        }
    },
)
def print_statements(request: Export, params: Annotated[StatementsQuery, Query()]) -> RowsFile:
    """Download all statements of a month as PDF files in one ZIP file, which is sent while it is created. Equal
    statements result in equal bytes. Needs the extra `pdf` of the package.

    If the connection closes before the end of the transfer, the export has failed, and the file is incomplete.
    """

    tenant = request.ruled()

    def _pieces(reader: TenantReader) -> Iterator[memoryview]:
        file.headers.update(category_versions(reader))
        posted = request.context.posted(tenant, reader, params.as_of)
        with before_the_books("basis"):
            found = statements_of(tenant, reader, posted, params.month, params.by, params.basis)
        yield from zipped_statements(found, ["pdf"])

    file = RowsFile(f"statements-{params.period}.zip", "application/zip", _pieces)
    return file


@router.post("/statement/acknowledge", needs=Right.READ, answer="The reply.", problems=_NO_REPLY)
def acknowledge_statement(
    request: Calculation,
    caller: CallerDep,
    address: Annotated[ReplyQuery, Query()],
    new: Annotated[NewReply, Body()],
) -> StatementReply:
    """Acknowledge the present content of a statement, with a note. The last reply to a content counts; all are kept."""
    return _reply(request, caller, address, (ACKNOWLEDGED, new))


@router.post("/statement/dispute", needs=Right.READ, answer="The reply.", problems=_NO_REPLY)
def dispute_statement(
    request: Calculation,
    caller: CallerDep,
    address: Annotated[ReplyQuery, Query()],
    new: Annotated[NewReply, Body()],
) -> StatementReply:
    """Dispute the present content of a statement, with a note. The last reply to a content counts; all are kept."""
    return _reply(request, caller, address, (DISPUTED, new))


def _reply(
    request: CalculationRequest, caller: Caller, address: ReplyQuery, said: tuple[str, NewReply]
) -> StatementReply:
    """Record a verdict and its note about the statement at an address.

    Raises:
        Conflict: the statement has another number or content now, or as many replies as it may have.
        Forbidden: the caller may see only a part of it.
        NotFound: there is none.
    """
    verdict, new = said
    period, reader = AccountingPeriod.named(address.period), request.reader
    posted = request.context.posted(request.tenant, reader, None)
    with before_the_books("basis"):
        found = statements_of(request.tenant, reader, posted, period, address.by, address.basis)
    statement = found.find(address.value)
    if statement is None:
        raise _missing(address, found)
    if statement.replies is None:
        raise Forbidden("You may see only a part of this statement; replies need access to all of it.")
    if new.number not in {None, statement.number}:
        raise Conflict(f"The statement is now {statement.number}; read it again.")
    if new.digest not in {None, statement.digest}:
        raise Conflict(f"The content of statement {statement.number} has changed; read it again.")
    key = StatementKey(
        statement.number, address.period, address.by, address.value, found.heading.revision, statement.digest
    )
    through, author = found.heading.data_through, caller.signature(new.created_by)
    with request.writing() as connection:
        if count_replies(connection, address.period, address.by, address.value) >= MOST_REPLIES:
            raise Conflict(f"The statement {statement.number} has {MOST_REPLIES} replies already, and takes no more.")
        reply = add_reply(connection, key, verdict, new.note, through, author, who=caller.name)
    return StatementReply.of(reply, statement.digest)


def _missing(address: StatementQuery | ReplyQuery, found: Statements) -> NotFound:
    why = "" if found.heading.calculated_days else ": no day of the month is calculated"
    return NotFound(f"There is no statement of {address.value!r} by {address.by} for {address.period}{why}.")


def _compiled(request: FactsRequest, params: StatementsQuery) -> Statements:
    """Return the statements of a month; they are cached as long as nothing changes."""
    tenant, reader = request.tenant, request.reader

    def _compile() -> Statements:
        posted = request.context.posted(tenant, reader, params.as_of)
        return statements_of(tenant, reader, posted, params.month, params.by, params.basis)

    with before_the_books("basis"):
        return request.executor.statements.get(
            f"{tenant.tenant_name} {reader.scope_digest} {params.period} {params.by} {params.basis}",
            (request.version.digest, params.as_of, *request.extra),
            _compile,
        )


def _found(request: FactsRequest, params: StatementQuery) -> tuple[Statements, StatementAnswer]:
    """Return the statements of a month, and that of a value.

    Raises:
        NotFound: there is none.
    """
    found = _compiled(request, params)
    statement = found.find(params.value)
    if statement is None:
        raise _missing(params, found)
    return found, statement


def _named(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"inline; filename={name}"}
