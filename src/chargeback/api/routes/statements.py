"""Statements: what finance books for each cost category value, identity or tag value of a month."""

from collections.abc import Callable
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.caller import Caller
from chargeback.access.rights import Right
from chargeback.api.dependencies import CallerDep, ContextDep, TenantDep
from chargeback.api.documentation import csv_answer, documented
from chargeback.api.facts import CATEGORIES_HEADER, FactsDep, FactsRequest
from chargeback.api.parameters import CSV_TYPE, body, query
from chargeback.api.problems import Conflict, Forbidden, NotFound
from chargeback.api.responses import attachment, json_response
from chargeback.api.schemas.statements import (
    NewReply,
    ReplyQuery,
    StatementAnswer,
    StatementQuery,
    StatementReply,
    StatementsAnswer,
    StatementsQuery,
)
from chargeback.service.executor import RequestContext
from chargeback.service.statements.as_csv import statement_csv, statements_csv
from chargeback.service.statements.as_html import content_policy, statement_html
from chargeback.service.statements.as_json import reply_json, statement_json, statements_json
from chargeback.service.statements.as_pdf import to_pdf
from chargeback.service.statements.compile import compile_statements
from chargeback.service.statements.content import Statement, Statements
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.statement_replies import (
    ACKNOWLEDGED,
    DISPUTED,
    Reply,
    StatementKey,
    add_reply,
    last_reply,
)
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Statements"])

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


def _form(media_type: str, description: str) -> dict[int, Any]:
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {200: {"description": description, "content": content, "headers": _FILE | CATEGORIES_HEADER}}


@router.get(
    "/statements",
    response_model=StatementsAnswer,
    **documented(
        needs=Right.READ,
        query=StatementsQuery,
        problems=_NO_CATEGORY,
        extra={200: {"headers": CATEGORIES_HEADER}},
        etag=True,
    ),
)
async def list_statements(facts: FactsDep, params: Annotated[StatementsQuery, query(StatementsQuery)]) -> Response:
    """List the statements of a UTC month, one for each value, and compare their sum with the provider's bill.

    Nothing is left out: what no rule or tag assigns has a statement, and what nobody is known to have caused one of its
    own. While no day of the month is calculated, there are no statements. Dates, `timezone` and page parameters are
    ignored.
    """

    def _write(found: Statements) -> Response:
        if facts.wants_csv:
            return _csv(f"statements-{found.heading.period}", statements_csv(found))
        return json_response(statements_json(found))

    return await _compiled(facts, params, _write)


@router.get(
    "/statements.csv",
    response_class=Response,
    **documented(
        needs=Right.EXPORT,
        query=StatementsQuery,
        problems=_NO_CATEGORY,
        extra={200: csv_answer(f"{_LINES}: a line for each statement.", headers=CATEGORIES_HEADER)},
        etag=True,
    ),
)
async def download_statements(facts: FactsDep, params: Annotated[StatementsQuery, query(StatementsQuery)]) -> Response:
    """Download the list of the statements of a month as CSV."""
    return await list_statements(facts, params)


@router.get(
    "/statement",
    response_model=StatementAnswer,
    **documented(
        needs=Right.READ,
        query=StatementQuery,
        problems=_NO_STATEMENT,
        extra={200: {"headers": CATEGORIES_HEADER}},
        etag=True,
    ),
)
async def show_statement(facts: FactsDep, params: Annotated[StatementQuery, query(StatementQuery)]) -> Response:
    """Return the statement of one value for a UTC month: its lines, the month before, its largest parts, and how it was
    split. Dates, `timezone` and page parameters are ignored."""

    def _write(found: Statements, statement: Statement) -> Response:
        if facts.wants_csv:
            return _csv(statement.number, statement_csv(found, statement))
        return json_response(statement_json(found, statement))

    return await _found(facts, params, _write)


@router.get(
    "/statement.html",
    response_class=Response,
    **documented(
        needs=Right.READ,
        query=StatementQuery,
        problems=_NO_STATEMENT,
        extra=_form("text/html", "A page that needs nothing else, and prints well."),
        etag=True,
    ),
)
async def show_statement_page(facts: FactsDep, params: Annotated[StatementQuery, query(StatementQuery)]) -> Response:
    """Return the statement of one value as a page to read, print and send."""

    def _write(found: Statements, statement: Statement) -> Response:
        headers = _named(f"{statement.number}.html") | {
            "Content-Security-Policy": content_policy(),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
        }
        return Response(statement_html(found, statement), media_type="text/html", headers=headers)

    return await _found(facts, params, _write)


@router.get(
    "/statement.csv",
    response_class=Response,
    **documented(
        needs=Right.EXPORT,
        query=StatementQuery,
        problems=_NO_STATEMENT,
        extra={200: csv_answer(f"{_LINES}: the lines of the statement.", headers=CATEGORIES_HEADER)},
        etag=True,
    ),
)
async def download_statement(facts: FactsDep, params: Annotated[StatementQuery, query(StatementQuery)]) -> Response:
    """Download the lines of the statement of one value as CSV."""
    return await show_statement(facts, params)


@router.get(
    "/statement.pdf",
    response_class=Response,
    **documented(
        needs=Right.EXPORT,
        query=StatementQuery,
        problems=_NO_STATEMENT | _NO_PDF,
        extra=_form("application/pdf", "The page as PDF/UA."),
        etag=True,
    ),
)
async def print_statement(facts: FactsDep, params: Annotated[StatementQuery, query(StatementQuery)]) -> Response:
    """Download the statement of one value as PDF. Needs the extra `pdf` of the package."""

    def _write(found: Statements, statement: Statement) -> Response:
        document = to_pdf(statement_html(found, statement))
        return Response(document, media_type="application/pdf", headers=_named(f"{statement.number}.pdf"))

    return await _found(facts, params, _write)


@router.post(
    "/statement/acknowledge",
    response_model=StatementReply,
    **documented(needs=Right.READ, query=ReplyQuery, body=NewReply, answer="The reply.", problems=_NO_REPLY),
)
async def acknowledge_statement(
    tenant: TenantDep,
    context: ContextDep,
    caller: CallerDep,
    address: Annotated[ReplyQuery, query(ReplyQuery)],
    new: Annotated[NewReply, body(NewReply, beside_query=True)],
) -> Response:
    """Acknowledge the present content of a statement, with a note. The last reply to a content counts; all are kept."""
    return await _reply(tenant, context, caller, address, (ACKNOWLEDGED, new))


@router.post(
    "/statement/dispute",
    response_model=StatementReply,
    **documented(needs=Right.READ, query=ReplyQuery, body=NewReply, answer="The reply.", problems=_NO_REPLY),
)
async def dispute_statement(
    tenant: TenantDep,
    context: ContextDep,
    caller: CallerDep,
    address: Annotated[ReplyQuery, query(ReplyQuery)],
    new: Annotated[NewReply, body(NewReply, beside_query=True)],
) -> Response:
    """Dispute the present content of a statement, with a note. The last reply to a content counts; all are kept."""
    return await _reply(tenant, context, caller, address, (DISPUTED, new))


async def _reply(
    tenant: TenantView, context: RequestContext, caller: Caller, address: ReplyQuery, said: tuple[str, NewReply]
) -> Response:
    """Record a verdict and its note about the statement at an address.

    Raises:
        Conflict: the statement has another number or content by now.
        Forbidden: the caller sees a part of it.
        NotFound: there is none.
    """
    verdict, new = said
    month = date.fromisoformat(f"{address.period}-01")
    found = await context.query_facts(tenant, lambda each: compile_statements(tenant, each, month, address.by))
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

    def _add(connection: Connection) -> Reply:
        return add_reply(connection, key, verdict, new.note, through, author, who=caller.name)

    return json_response(reply_json(await context.write_control(tenant, _add), is_current=True))


def _missing(address: StatementQuery | ReplyQuery, found: Statements) -> NotFound:
    why = "" if found.heading.calculated_days else ": no day of the month is calculated"
    return NotFound(f"There is no statement of {address.value!r} by {address.by} for {address.period}{why}.")


async def _compiled(facts: FactsRequest, params: StatementsQuery, write: Callable[[Statements], Response]) -> Response:
    """Return what ``write`` makes of the statements of a month."""
    tenant = facts.tenant
    replied = await facts.context.read_control(tenant, lambda each: last_reply(each, params.period, params.by))

    def _make(reader: TenantReader, _version: DataVersion) -> Response:
        return write(compile_statements(tenant, reader, params.month, params.by))

    return await facts.versioned_answer(params, _make, keep=True, also=[tenant.rules.catalogue.hash, replied])


async def _found(
    facts: FactsRequest, params: StatementQuery, write: Callable[[Statements, Statement], Response]
) -> Response:
    """Return what ``write`` makes of the statement of a value.

    Raises:
        NotFound: there is none.
    """

    def _write(found: Statements) -> Response:
        statement = found.find(params.value)
        if statement is None:
            raise _missing(params, found)
        return write(found, statement)

    return await _compiled(facts, params, _write)


def _csv(name: str, text: str) -> Response:
    return Response(text, media_type=CSV_TYPE, headers=attachment(f"{name}.csv"))


def _named(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"inline; filename={name}"}
