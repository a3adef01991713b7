"""Statements: what finance books for each cost category value, identity or tag value of a month."""

from datetime import date
from typing import Annotated, Any

from fastapi import Body, Query
from starlette.responses import Response

from chargeback.access.caller import Caller
from chargeback.access.rights import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.parameters import CSV_TYPE
from chargeback.api.problems import Conflict, Forbidden, NotFound
from chargeback.api.responses import attachment, json_response
from chargeback.api.routing import CSV, Routes
from chargeback.api.schemas.statements import (
    NewReply,
    ReplyQuery,
    StatementAnswer,
    StatementQuery,
    StatementReply,
    StatementsAnswer,
    StatementsQuery,
)
from chargeback.api.tenant_requests import CATEGORIES_HEADER, Calculation, CalculationRequest, Facts, FactsRequest
from chargeback.service.statements.as_csv import statement_csv, statements_csv
from chargeback.service.statements.as_html import content_policy, statement_html
from chargeback.service.statements.as_json import reply_json, statement_json, statements_json
from chargeback.service.statements.as_pdf import to_pdf
from chargeback.service.statements.compile import compile_statements
from chargeback.service.statements.content import Statement, Statements
from chargeback.store.control.statement_replies import (
    ACKNOWLEDGED,
    DISPUTED,
    StatementKey,
    add_reply,
    last_reply,
)

router = Routes(prefix="/tenants/{tenant_name}", tags=["Statements"])

_NO_CATEGORY = {404: "There is no such tenant or cost category."}
_NO_STATEMENT = {404: "There is no such tenant, cost category or statement."}
_NO_REPLY = _NO_STATEMENT | {
    403: "The caller lacks the right `read` in the tenant, or sees a part of the statement only. Or: a web page of "
    "another origin sent the request.",
    409: "The statement has another number or content by now than the request names.",
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
        Conflict: the statement has another number or content by now.
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
