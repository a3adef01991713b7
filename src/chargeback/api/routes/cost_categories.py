"""Cost categories: documents that map costs to cost centres, teams or whatever finance counts by."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.rights import Right
from chargeback.api.category_responses import preview_response
from chargeback.api.conditional import CACHE_CONTROL, ControlDep
from chargeback.api.dependencies import CallerDep, ContextDep, ServicesDep, TenantDep
from chargeback.api.documentation import ALWAYS, csv_answer, documented
from chargeback.api.parameters import CATEGORY_KEY, CSV_TYPE, SentBody, body, query, read_body, require_no_parameters
from chargeback.api.preconditions import Preconditions, PreconditionsDep
from chargeback.api.problems import Conflict, InvalidParameter, InvalidRequest, NotFound, PreconditionFailed
from chargeback.api.responses import attachment, json_response, page_response
from chargeback.api.schemas.category_answers import DryRunAnswer, EditQuery
from chargeback.api.schemas.common import PageOf
from chargeback.api.schemas.cost_categories import (
    CategoryBody,
    CategoryHistoryItem,
    CategoryItem,
    CategoryList,
    RemovalQuery,
    RulesFile,
    VersionQuery,
)
from chargeback.api.schemas.tenants import TenantsQuery
from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.category_sources.contract import SourceContent
from chargeback.category_sources.csv_file import decoded, read_entries
from chargeback.errors import CategoryError, ConfigurationError, EditConflict
from chargeback.model.days import ONE_DAY, DayRange, render_instant
from chargeback.service.category_answers import preview
from chargeback.service.category_entries import category_csv, with_csv
from chargeback.service.cost_categories import (
    TooManyCategories,
    check_measures,
    counts_of,
    document_of,
    etag_of,
    measures_in,
    parse_version,
    save_category,
    warnings_about,
)
from chargeback.service.executor import RequestContext
from chargeback.service.periods import named_period
from chargeback.service.tenant_view import TenantView
from chargeback.store.control import cost_categories as store
from chargeback.store.control.cost_categories import CategoryVersion, CategoryWrite
from chargeback.store.control.revisions import read_revisions
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection

router = APIRouter(prefix="/tenants/{tenant_name}/cost-categories", tags=["Cost categories"])

_NO_CATEGORY = {404: "There is no such tenant, cost category or version."}
_EDITS = {
    409: "There are too many cost categories, or this version of the service refuses what an earlier one wrote.",
    412: "Someone else was faster; `detail` says who.",
    428: "The category is there: send its ETag as `If-Match`.",
}
_CREATED = {201: {"description": "The new category.", "model": CategoryItem}}

CategoryKey = Annotated[
    str, Path(description="The key of a cost category.", pattern=CATEGORY_KEY, examples=["cost_center"])
]


@router.get("", response_model=CategoryList, **documented(needs=Right.READ, query=TenantsQuery, etag=True))
async def list_cost_categories(control: ControlDep, _params: Annotated[TenantsQuery, query(TenantsQuery)]) -> Response:
    """List the cost categories by key, without their documents. Within a scope, reasons of changes are left out: they
    may name others."""
    hidden = {} if control.access.scope is None else {"reason": None}

    def _read(connection: Connection) -> Response:
        return json_response(
            {
                "items": [
                    {"key": each.key, **_info(each), **counts_of(each)} | hidden
                    for each in store.list_categories(connection)
                ]
            }
        )

    return await control.of_anything(_read)


@router.get(
    "/{category_key}",
    response_model=CategoryItem,
    **documented(needs=Right.READ, whole=True, query=VersionQuery, etag=True, problems=_NO_CATEGORY),
)
async def get_cost_category(
    control: ControlDep, category_key: CategoryKey, params: Annotated[VersionQuery, query(VersionQuery)]
) -> Response:
    """Return a cost category, or an earlier version of it. The ETag of the present version is what `If-Match` of a
    change names."""

    def _read(connection: Connection) -> tuple[Response, str]:
        found = _present(connection, category_key)
        if params.version is not None:
            found = store.read_version(connection, category_key, params.version)
            if found is None:
                raise NotFound(f"There is no version {params.version} of the cost category {category_key}.")
            if found.is_removal:
                raise NotFound(f"Version {params.version} removed the cost category {category_key}.")
        return json_response(_item(_there(category_key, found))), etag_of(_there(category_key, found))

    return await control.of_version(_read)


@router.put(
    "/{category_key}",
    response_model=CategoryItem | DryRunAnswer,
    **documented(
        needs=Right.ADMIN,
        whole=True,
        query=EditQuery,
        body=CategoryBody,
        answer="The changed category or, with `dry_run`, what would change.",
        problems=_EDITS,
        extra=_CREATED,
    ),
)
async def put_cost_category(
    tenant: TenantDep,
    context: ContextDep,
    services: ServicesDep,
    caller: CallerDep,
    category_key: CategoryKey,
    preconditions: PreconditionsDep,
    params: Annotated[EditQuery, query(EditQuery)],
    new: Annotated[CategoryBody, body(CategoryBody, beside_query=True)],
) -> Response:
    """Create a cost category, or replace the version that `If-Match` names. The next answers use it; the versions
    before it are kept. A document that says the same as the present version makes no new one.

    With `dry_run`, nothing is written and `If-Match` is not needed: the answer tells what would change in the costs of
    `period`, and which rules do nothing."""

    def _parse() -> CostCategory:
        with _reported_document():
            return parse_category(category_key, new.document)

    category = await context.run_blocking(tenant, _parse)
    await _check_measures(tenant, context, category)
    if params.dry_run:
        return await _dry_run(tenant, context, params.period, category, services.clock().date())
    return await _edit(tenant, context, caller.name, category_key, preconditions, lambda _: category, new.reason)


@router.delete(
    "/{category_key}",
    status_code=204,
    response_class=Response,
    **documented(
        needs=Right.ADMIN,
        whole=True,
        query=RemovalQuery,
        answer="There is no such category any more.",
        only=(*ALWAYS, 403),
        problems={**_NO_CATEGORY, 412: _EDITS[412], 428: _EDITS[428]},
    ),
)
async def remove_cost_category(
    tenant: TenantDep,
    context: ContextDep,
    caller: CallerDep,
    category_key: CategoryKey,
    preconditions: PreconditionsDep,
    params: Annotated[RemovalQuery, query(RemovalQuery)],
) -> Response:
    """Remove the version of a cost category that `If-Match` names. Its history stays."""

    def _remove(connection: Connection) -> None:
        store.lock_categories(connection)
        present = _there(category_key, _present(connection, category_key))
        preconditions.check(etag_of(present), what=_called(present), faster=_faster(connection, category_key))
        write = CategoryWrite(category_key, None, params.reason or None)
        store.write_category(connection, write, expected=present.version, who=caller.name)

    await context.write_control(tenant, _remove)
    return Response(status_code=204)


@router.get(
    "/{category_key}/history",
    response_model=PageOf[CategoryHistoryItem],
    **documented(needs=Right.READ, whole=True, query=TenantsQuery, etag=True, problems=_NO_CATEGORY),
)
async def get_cost_category_history(
    control: ControlDep, category_key: CategoryKey, params: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """List every version of a cost category, the newest first; `version` of the category itself returns one."""
    page = params.paging

    def _read(connection: Connection) -> Response:
        found, total = store.category_history(connection, category_key, offset=page.offset, limit=page.limit)
        if not total:
            raise _missing(category_key)
        items = [{**_info(each), "removed": each.is_removal, **counts_of(each)} for each in found]
        return page_response(items, total, page=params.page, page_size=params.page_size)

    return await control.of_anything(_read)


@router.get(
    "/{category_key}/rules.csv",
    response_class=Response,
    **documented(
        needs=Right.READ,
        whole=True,
        query=TenantsQuery,
        etag=True,
        problems={**_NO_CATEGORY, 409: "This version of the service refuses what an earlier one wrote."},
        extra={
            200: csv_answer(
                "The file.",
                example="entity_type,entity_id,value,percent,valid_from,valid_to\r\n"
                "identity,sa-abc123,payments,,2026-03-01,\r\n",
            )
        },
    ),
)
async def get_rules_as_csv(
    control: ControlDep, category_key: CategoryKey, _params: Annotated[TenantsQuery, query(TenantsQuery)]
) -> Response:
    """Return the rules that assign values to single identities, resources or topics by their ids, as CSV: a line for
    each of them, or one for each part of a split. The file has the ETag of the category."""

    def _read(connection: Connection) -> tuple[Response, str]:
        found = _there(category_key, _present(connection, category_key))
        headers = attachment(f"{category_key}.csv")
        return Response(category_csv(_parsed(found)), media_type=CSV_TYPE, headers=headers), etag_of(found)

    return await control.of_version(_read)


@contextmanager
def _reported_document() -> Iterator[None]:
    """Convert mistakes in a document to an invalid request."""
    try:
        yield
    except CategoryError as error:
        raise InvalidRequest(
            [
                InvalidParameter(f"document.{each.path}" if each.path else "document", each.message)
                for each in error.problems
            ]
        ) from None


async def _check_measures(tenant: TenantView, context: RequestContext, category: CostCategory) -> None:
    """Check that what a category shares costs by is measured, or will be by the policies of the tenant."""
    known = tenant.rules.catalogue.measures
    if not measures_in(category) <= known:
        known |= await context.query_facts(tenant, lambda reader: reader.measured().measures(reader.cursor))
    with _reported_document():
        check_measures(category, known)


async def _dry_run(
    tenant: TenantView, context: RequestContext, period: str, category: CostCategory, today: date
) -> Response:
    """Return what would change."""

    def _preview(reader: TenantReader) -> Response:
        with tenant.store.control.read() as connection:
            chosen = named_period(period, read_revisions(connection).last_calculated or today)
            selection = Selection.of_days(DayRange(chosen.start, chosen.end + ONE_DAY))
            found = preview(reader, category.key, category, selection)
            return json_response(preview_response(connection, found, tenant.currency))

    return await context.query_facts(tenant, _preview)


@contextmanager
def _reported() -> Iterator[None]:
    """Convert mistakes in a CSV file to an invalid request."""
    try:
        yield
    except ConfigurationError as error:
        raise InvalidRequest([InvalidParameter("csv", str(problem)) for problem in error.problems]) from None


async def _rules_file(request: Request) -> RulesFile:
    """Read the file as JSON that contains it, or as itself."""
    sent = SentBody(await request.body(), request.headers.get("content-type", ""))
    sent_query = request.query_params.multi_items()
    if not sent.is_csv:
        return read_body(RulesFile, sent_query, sent, request.app.state.services.clock(), optional=False)
    require_no_parameters(sent_query)
    with _reported():
        return RulesFile.model_construct(csv=decoded(sent.content), reason=None)  # an empty file has a mistake, too


@router.put(
    "/{category_key}/rules.csv",
    response_model=CategoryItem,
    **documented(
        needs=Right.ADMIN, whole=True, body=RulesFile, answer="The changed category.", problems=_EDITS, extra=_CREATED
    ),
)
async def put_rules_as_csv(
    tenant: TenantDep,
    context: ContextDep,
    caller: CallerDep,
    category_key: CategoryKey,
    preconditions: PreconditionsDep,
    new: Annotated[RulesFile, Depends(_rules_file)],
) -> Response:
    """Replace the rules that assign values to single identities, resources or topics by those of a CSV file: in the
    order of the file, in front of all other rules, which stay.

    The file is sent as text in JSON, or as it is with `Content-Type: text/csv`. Commas, semicolons and tabs may
    separate its columns. Lines of one entity and the same days with a `percent` split its cost and sum to 100.
    `valid_to` is the first day without the rule.
    """

    def _read() -> SourceContent:
        with _reported():
            return SourceContent(read_entries(new.csv))

    content = await context.run_blocking(tenant, _read)

    def _change(present: CategoryVersion | None) -> CostCategory:
        category = CostCategory(category_key) if present is None else _parsed(present)
        with _reported():
            return with_csv(category, content)

    return await _edit(tenant, context, caller.name, category_key, preconditions, _change, new.reason)


async def _edit(
    tenant: TenantView,
    context: RequestContext,
    who: str,
    key: str,
    preconditions: Preconditions,
    change: Callable[[CategoryVersion | None], CostCategory],
    reason: str | None,
) -> Response:
    """Write what ``change`` makes of the present version, and return it."""

    def _write(connection: Connection) -> Response:
        store.lock_categories(connection)
        present = _present(connection, key)
        tag = None if present is None else etag_of(present)
        preconditions.check(tag, what=_called(present), faster=_faster(connection, key))
        category = change(present)
        try:
            done = save_category(connection, category, expected=present, who=who, reason=reason)
        except TooManyCategories as error:
            raise Conflict(_sentence(error.message)) from None
        headers = {"ETag": etag_of(done.after), "Cache-Control": CACHE_CONTROL}
        return json_response(_item(done.after), status=201 if present is None else 200, headers=headers)

    try:
        return await context.write_control(tenant, _write)
    except EditConflict as error:
        raise PreconditionFailed(f"{_sentence(error.message)} Read it again, and repeat your change.") from None


def _present(connection: Connection, key: str) -> CategoryVersion | None:
    return store.read_category(connection, key)


def _there(key: str, found: CategoryVersion | None) -> CategoryVersion:
    if found is None:
        raise _missing(key)
    return found


def _parsed(version: CategoryVersion) -> CostCategory:
    try:
        return parse_version(version)
    except CategoryError:
        raise Conflict(
            f"An earlier version of the service wrote version {version.version} of {version.key}, and this one refuses "
            "it: the warnings of the category say why. Put a corrected document first."
        ) from None


def _missing(key: str) -> NotFound:
    return NotFound(f"There is no cost category {key}.")


def _called(present: CategoryVersion | None) -> str:
    return "" if present is None else f"Version {present.version} of the cost category {present.key}"


def _faster(connection: Connection, key: str) -> str:
    last = store.last_version(connection, key)
    edit = store.describe_last_edit(key, last)
    return _sentence(edit if last is None else f"someone else was faster: {edit}")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _info(version: CategoryVersion) -> dict[str, Any]:
    return {
        "version": version.version,
        "who": version.who,
        "at": render_instant(version.at),
        "reason": version.reason,
    }


def _item(version: CategoryVersion) -> dict[str, Any]:
    return {
        "key": version.key,
        **_info(version),
        "document": document_of(version),
        "warnings": [{"path": each.path, "message": each.message} for each in warnings_about(version)],
    }
