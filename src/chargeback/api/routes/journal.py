"""The journal of a month: its statements as entries of double-entry bookkeeping, in the format of an ERP system."""

from typing import Annotated

from fastapi import Path, Query
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.parameters import CSV_TYPE
from chargeback.api.problems import NotFound
from chargeback.api.responses import attachment
from chargeback.api.routes.statements import JournalQuery
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import CATEGORIES_HEADER, Facts, before_the_books
from chargeback.config.journal import MEDIA_TYPES, JournalProfile, JournalTemplate
from chargeback.model.accounting import PERIOD_ID, AccountingPeriod
from chargeback.reports.closing.statements import journal_for
from chargeback.reports.statements.content import JournalAnswer
from chargeback.reports.statements.journal import journal_csv
from chargeback.reports.statements.journal_templates import journal_by_template

router = Routes(prefix="/tenants/{tenant_name}", tags=["Statements"])

Month = Annotated[str, Path(description="The month, of UTC days.", pattern=PERIOD_ID, examples=["2026-10"])]

_FILE = {"type": "string", "format": "binary"}
_ANSWER = {
    200: {
        "description": "The journal; `text/csv` as a file. With a template, its file name determines the type.",
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
    needs=Right.EXPORT,
    whole=True,
    problems={
        400: "The request is invalid, or the template cannot write this journal; `detail` says why.",
        404: "There is no such tenant, cost category or template.",
    },
    responses=_ANSWER,
    keep=True,
    also=lambda request, _: [request.tenant.rules.catalogue.hash, request.tenant.journal],
)
def export_journal(request: Facts, period: Month, params: Annotated[JournalQuery, Query()]) -> JournalAnswer | Response:
    """Book a UTC month: debit each cost centre, team or service account with the cents of its statement, and credit the
    clearing account with their sum.

    Negative amounts are on the other side; what is zero in cents has no line. Corrections of earlier months and
    adjustments have lines of their own. The journal of a closed month never changes; until then it is `PROVISIONAL`.
    Dates, `timezone` and page parameters are ignored.
    """
    tenant = request.tenant
    profile = tenant.journal
    template = None if params.template is None else _template(profile, params.template)
    is_csv = template is None and (params.format or ("csv" if request.wants_csv else "json")) == "csv"
    posted = request.context.posted(tenant, request.reader, params.as_of)
    with before_the_books("basis"):
        month, by = AccountingPeriod.named(period), params.by or profile.by
        journal = journal_for(tenant, request.reader, posted, month, by, params.basis)
    if template is not None:
        return _file(journal, journal_by_template(journal, template), template.form)
    return _file(journal, journal_csv(journal).encode(), "csv") if is_csv else journal


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


def _file(journal: JournalAnswer, content: bytes, form: str) -> Response:
    headers = attachment(f"{journal.number}.{form}") | {"X-Content-Type-Options": "nosniff"}
    media_type = CSV_TYPE if form == "csv" else MEDIA_TYPES[form]
    return Response(content, media_type=media_type, headers=headers)
