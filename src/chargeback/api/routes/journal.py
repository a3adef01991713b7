"""The journal of a month: its statements as entries of double-entry bookkeeping, as finance's own system wants them."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.documentation import documented
from chargeback.api.facts import CATEGORIES_HEADER, FactsDep
from chargeback.api.parameters import CSV_TYPE, query
from chargeback.api.problems import NotFound
from chargeback.api.responses import attachment, json_response
from chargeback.api.schemas.statements import JournalAnswer, JournalQuery
from chargeback.config.journal import MEDIA_TYPES, JournalProfile, JournalTemplate
from chargeback.service.statements.compile import compile_statements
from chargeback.service.statements.journal import Journal, journal_csv, journal_json, journal_of
from chargeback.service.statements.journal_templates import journal_by_template
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.version import DataVersion

router = APIRouter(prefix="/tenants/{tenant_name}", tags=["Statements"])

Month = Annotated[str, Path(description="The month, of UTC days.", pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$")]

_FILE = {"type": "string", "format": "binary"}
_ANSWER = {
    200: {
        "description": "The journal; `text/csv` as a file. A template decides the type by the name of its file.",
        "content": {"text/csv": {"schema": {"type": "string"}}}
        | {each: {"schema": _FILE} for form, each in MEDIA_TYPES.items() if form in {"xml", "txt"}},
        "headers": {
            "Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, of files."},
            **CATEGORIES_HEADER,
        },
    }
}


@router.get(
    "/periods/{period}/journal",
    response_model=JournalAnswer,
    **documented(
        needs=Right.EXPORT,
        whole=True,
        query=JournalQuery,
        problems={
            400: "The request is invalid, or the template cannot write this journal; `detail` says why.",
            404: "There is no such tenant, cost category or template.",
        },
        extra=_ANSWER,
        etag=True,
    ),
)
async def export_journal(
    facts: FactsDep, period: Month, params: Annotated[JournalQuery, query(JournalQuery)]
) -> Response:
    """Book a UTC month: debit each cost centre, team or service account with the cents of its statement, and credit the
    clearing account with their sum.

    Negative amounts are on the other side; what is zero in cents has no line. The month is `PROVISIONAL`: months are
    not closed, so a later journal of it can differ, and then has another revision. Dates, `timezone` and page
    parameters are ignored.
    """
    tenant = facts.tenant
    profile = tenant.journal
    template = None if params.template is None else _template(profile, params.template)
    is_csv = template is None and (params.format or ("csv" if facts.wants_csv else "json")) == "csv"

    def _make(reader: TenantReader, _version: DataVersion) -> Response:
        found = compile_statements(tenant, reader, date.fromisoformat(f"{period}-01"), params.by or profile.by)
        journal = journal_of(found, profile)
        if template is not None:
            return _file(journal, journal_by_template(journal, template), template.form)
        return _file(journal, journal_csv(journal).encode(), "csv") if is_csv else json_response(journal_json(journal))

    return await facts.versioned_answer(params, _make, keep=True, also=[tenant.rules.catalogue.hash, profile])


def _template(profile: JournalProfile, name: str) -> JournalTemplate:
    found = profile.templates.get(name)
    if found is None:
        known = ", ".join(sorted(profile.templates))
        raise NotFound(
            f"There is no template {name!r}; journal.templates of the tenant has {known}."
            if known
            else f"There is no template {name!r}; journal.templates of the tenant names none."
        )
    return found


def _file(journal: Journal, content: bytes, form: str) -> Response:
    headers = attachment(f"{journal.number}.{form}") | {"X-Content-Type-Options": "nosniff"}
    media_type = CSV_TYPE if form == "csv" else MEDIA_TYPES[form]
    return Response(content, media_type=media_type, headers=headers)
