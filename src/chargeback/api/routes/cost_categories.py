"""Cost categories: documents that map costs to cost centres, teams or other units of finance."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, ClassVar

from fastapi import Body, Query
from pydantic import Field, StringConstraints
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES, csv_answer
from chargeback.api.parameters import CSV_TYPE, CommonParameters, Reason, Restating
from chargeback.api.preconditions import Preconditions, PreconditionsDep
from chargeback.api.problems import (
    Conflict,
    InvalidParameter,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    sentence,
)
from chargeback.api.responses import attachment, json_response
from chargeback.api.routes.category_answers import CategoryKey, EditQuery
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import CACHE_CONTROL, Change, ChangeRequest, Control, Versioned
from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import parse_category
from chargeback.category_sources.contract import SourceContent
from chargeback.category_sources.csv_file import decoded, read_entries
from chargeback.errors import CategoryError, ConfigurationError, EditConflict
from chargeback.model.edits import present_version
from chargeback.reports.answers import Instant, PageOf, ResponseModel
from chargeback.reports.categories.answers import DryRunAnswer, display_names, preview
from chargeback.reports.categories.editing import (
    TooManyCategories,
    check_measures,
    counts_of,
    document_of,
    measures_in,
    parse_version,
    save_category,
    warnings_about,
)
from chargeback.reports.categories.entries import category_csv, with_csv
from chargeback.reports.periods import named_period
from chargeback.store.control import cost_categories as store
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.cost_categories import CategoryVersion, CategoryWrite
from chargeback.store.control.revisions import read_revisions
from chargeback.store.queries.selection import Selection

_EXAMPLE: dict[str, Any] = {
    "default": "UNASSIGNED",
    "values": {"payments": {"name": "Payments", "parent": "retail"}, "retail": {"name": "Retail"}},
    "rules": [
        {"id": "reorg-42", "match": {"identity": ["sa-abc123"]}, "assign": "payments", "valid_from": "2026-03-01"},
        {"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}},
    ],
}


class RestatingWithReason(Restating):
    """A change of a cost category, with its reason."""

    reason: Reason = Field(default=None, description="Why the category is changed; stored with the version.")


class CategoryBody(RestatingWithReason):
    """A cost category to create, or the new version of one."""

    document: dict[str, Any] = Field(
        description="The category: `default`, `values`, `rules` and `share`, as under its key in a YAML file.",
        examples=[_EXAMPLE],
    )


@contextmanager
def reported_csv() -> Iterator[None]:
    """Convert mistakes in a CSV file to an invalid request."""
    try:
        yield
    except ConfigurationError as error:
        raise InvalidRequest([InvalidParameter("csv", str(problem)) for problem in error.problems]) from None


class RulesFile(RestatingWithReason):
    """A CSV file of rules."""

    takes_csv: ClassVar[bool] = True

    csv: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="The file: `entity_type,entity_id,value,percent,valid_from,valid_to`, one line for each entity, or "
        "one for each part of a split.",
        examples=[
            "entity_type,entity_id,value,percent,valid_from,valid_to\nidentity,sa-abc123,payments,,2026-03-01,\n"
        ],
    )

    @classmethod
    def from_csv(cls, content: bytes) -> "RulesFile":
        """Return the sent file unchanged; mistakes are reported when it is parsed."""
        with reported_csv():
            text = decoded(content)
        return cls.model_construct(csv=text, reason=None, restate_closed=False)


class RemovalQuery(RestatingWithReason):
    """Parameters of a removal."""

    reason: Reason = Field(default=None, description="Why the category is removed; stored with the version.")


class VersionQuery(CommonParameters):
    """Parameters of one cost category."""

    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="This version. Default: the present one.", examples=[1]
    )


class CategoryVersionInfo(ResponseModel):
    """The author, time and reason of a version."""

    version: int = Field(description="From 1, one more with each change.", examples=[3])
    who: str = Field(
        description="`api` for a caller of the API, `command line` for a user of the command line.", examples=["api"]
    )
    at: Instant
    reason: str | None = Field(examples=["CHG-42"])


class OfCategory(ResponseModel):
    """The key of a cost category."""

    key: str = Field(examples=["cost_center"])


class CategoryListItem(CategoryVersionInfo, OfCategory):
    """A cost category, without its document."""

    rules: int = Field(description="How many rules it has.")
    values: int = Field(description="How many values its register has; 0 if it has none.")


class CategoryList(ResponseModel):
    """All cost categories of a tenant."""

    items: list[CategoryListItem]


class CategoryHistoryItem(CategoryVersionInfo):
    """One version of a cost category, without its document."""

    removed: bool = Field(description="Whether this version removed the category.")
    rules: int
    values: int


class CategoryWarning(ResponseModel):
    """Something that is allowed but probably not intended."""

    path: str = Field(description="The place in the document.", examples=["rules[1].assign"])
    message: str = Field(examples=["the values payments and Payments differ only in case"])


class CategoryItem(CategoryVersionInfo, OfCategory):
    """A cost category."""

    document: dict[str, Any] = Field(description="In canonical form.")
    warnings: list[CategoryWarning]


router = Routes(prefix="/tenants/{tenant_name}/cost-categories", tags=["Cost categories"])

_NO_CATEGORY = {404: "There is no such tenant, cost category or version."}
_EDITS = {
    409: "There are too many cost categories, or this version of the service refuses a document of an earlier version.",
    412: "Someone else was faster; `detail` says who.",
    428: "The category exists: send its ETag as `If-Match`.",
}
_CREATED = {201: {"description": "The new category.", "model": CategoryItem}}


@router.get("", needs=Right.READ)
def list_cost_categories(request: Control, _params: Annotated[CommonParameters, Query()]) -> CategoryList:
    """List the cost categories by key, without their documents. Within a scope, reasons of changes are left out,
    because they may name others."""
    hidden = {} if request.access.sees_everything else {"reason": None}
    return CategoryList(
        items=[
            CategoryListItem(**{"key": each.key, **_info(each), **counts_of(each), **hidden})
            for each in store.list_categories(request.connection)
        ]
    )


@router.get("/{category_key}", response_model=CategoryItem, needs=Right.READ, whole=True, problems=_NO_CATEGORY)
def get_cost_category(
    request: Versioned, category_key: CategoryKey, params: Annotated[VersionQuery, Query()]
) -> Response:
    """Return a cost category, or an earlier version of it. Send the ETag of the present version as `If-Match` to change
    it."""
    connection = request.connection
    found = store.read_category(connection, category_key)
    if params.version is not None:
        found = store.read_version(connection, category_key, params.version)
        if found is None:
            raise NotFound(f"There is no version {params.version} of the cost category {category_key}.")
        if found.is_removal:
            raise NotFound(f"Version {params.version} removed the cost category {category_key}.")
    present = _there(category_key, found)
    return json_response(_item(present), headers={"ETag": present.etag})


@router.put(
    "/{category_key}",
    response_model=CategoryItem | DryRunAnswer,
    needs=Right.ADMIN,
    whole=True,
    answer="The changed category or, with `dry_run`, what would change.",
    problems=_EDITS,
    responses=_CREATED,
)
def put_cost_category(
    request: Change,
    caller: CallerDep,
    category_key: CategoryKey,
    preconditions: PreconditionsDep,
    params: Annotated[EditQuery, Query()],
    new: Annotated[CategoryBody, Body()],
) -> DryRunAnswer | Response:
    """Create a cost category, or replace the version that `If-Match` names. It is used immediately, and earlier
    versions are kept. A document equal to the present version creates no new version.

    With `dry_run`, nothing is written and `If-Match` is not needed: the response has the changes in the costs of
    `period`, and the rules without effect."""

    with _reported_document():
        category = parse_category(category_key, new.document)
    _check_measures(request, category)
    if params.dry_run:
        return _dry_run(request, params.period, category)
    return _edit(request, caller.name, category_key, preconditions, lambda _: category, new)


@router.delete(
    "/{category_key}",
    needs=Right.ADMIN,
    whole=True,
    answer="The category is removed.",
    only=(*COMMON_STATUSES, 403),
    problems={**_NO_CATEGORY, 412: _EDITS[412], 428: _EDITS[428]},
)
def remove_cost_category(
    request: Change,
    caller: CallerDep,
    category_key: CategoryKey,
    preconditions: PreconditionsDep,
    params: Annotated[RemovalQuery, Query()],
) -> Response:
    """Remove the version of a cost category that `If-Match` names. Its history stays."""

    with request.changing(caller.name, params) as connection:
        lock_tenant(connection)
        present = _there(category_key, store.read_category(connection, category_key))
        preconditions.check(f"cost category {category_key}", present)
        write = CategoryWrite(category_key, None, params.reason or None)
        store.write_category(connection, write, expected=present.version, who=caller.name)
    return Response(status_code=204)


@router.get(
    "/{category_key}/history",
    needs=Right.READ,
    whole=True,
    problems=_NO_CATEGORY,
)
def get_cost_category_history(
    request: Control, category_key: CategoryKey, params: Annotated[CommonParameters, Query()]
) -> PageOf[CategoryHistoryItem]:
    """List every version of a cost category, the newest first; `version` of the category itself returns one."""
    page = params.paging
    connection = request.connection
    found, total = store.category_history(connection, category_key, offset=page.offset, limit=page.limit)
    if not total:
        raise _missing(category_key)
    items = [CategoryHistoryItem(**_info(each), removed=each.is_removal, **counts_of(each)) for each in found]
    return PageOf[CategoryHistoryItem].of(items, total, page)


@router.get(
    "/{category_key}/rules.csv",
    response_class=Response,
    needs=Right.READ,
    whole=True,
    problems={**_NO_CATEGORY, 409: "This version of the service refuses a document of an earlier version."},
    responses={
        200: csv_answer(
            "The file.",
            example="entity_type,entity_id,value,percent,valid_from,valid_to\r\n"
            "identity,sa-abc123,payments,,2026-03-01,\r\n",
        )
    },
)
def get_rules_as_csv(
    request: Versioned, category_key: CategoryKey, _params: Annotated[CommonParameters, Query()]
) -> Response:
    """Return the rules that assign values to single identities, resources or topics by their ids, as CSV: a line for
    each of them, or one for each part of a split. The file has the ETag of the category."""
    connection = request.connection
    found = _there(category_key, store.read_category(connection, category_key))
    headers = attachment(f"{category_key}.csv") | {"ETag": found.etag}
    return Response(category_csv(_parsed(found)), media_type=CSV_TYPE, headers=headers)


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


def _check_measures(request: ChangeRequest, category: CostCategory) -> None:
    """Check that the measures by which a category shares costs are stored, or will be by the policies of the tenant."""
    known = request.ruled().rules.catalogue.measures
    if not measures_in(category) <= known:
        with request.facts_reader() as reader:
            known |= reader.measured().measures(reader.cursor)
    with _reported_document():
        check_measures(category, known)


def _dry_run(request: ChangeRequest, period: str, category: CostCategory) -> DryRunAnswer:
    """Return the changes that a category would make."""
    tenant = request.tenant
    with request.facts_reader() as reader:
        with tenant.store.control.read() as connection:
            last = read_revisions(connection).last_calculated
        selection = Selection.of_days(named_period(period, last or request.now.date()).day_range)
        return preview(reader, category.key, category, selection, tenant.currency, partial(display_names, tenant))


@router.put(
    "/{category_key}/rules.csv",
    response_model=CategoryItem,
    needs=Right.ADMIN,
    whole=True,
    answer="The changed category.",
    problems=_EDITS,
    responses=_CREATED,
)
def put_rules_as_csv(
    request: Change,
    caller: CallerDep,
    category_key: CategoryKey,
    preconditions: PreconditionsDep,
    new: Annotated[RulesFile, Body()],
) -> Response:
    """Replace the rules that assign values to single identities, resources or topics by those of a CSV file: in the
    order of the file, before all other rules, which stay.

    The file is sent as a text in JSON, or unchanged with `Content-Type: text/csv`. Commas, semicolons and tabs may
    separate its columns. Lines of one entity and the same days with a `percent` split its cost, and sum to 100.
    `valid_to` is the first day without the rule.
    """

    with reported_csv():
        content = SourceContent(read_entries(new.csv))

    def _change(present: CategoryVersion | None) -> CostCategory:
        category = CostCategory(category_key) if present is None else _parsed(present)
        with reported_csv():
            return with_csv(category, content)

    return _edit(request, caller.name, category_key, preconditions, _change, new)


def _edit(
    request: ChangeRequest,
    who: str,
    key: str,
    preconditions: Preconditions,
    change: Callable[[CategoryVersion | None], CostCategory],
    restating: RestatingWithReason,
) -> Response:
    """Apply ``change`` to the present version; write and return the new one."""
    try:
        with request.changing(who, restating) as connection:
            lock_tenant(connection)
            last = store.last_version(connection, key)
            preconditions.check(f"cost category {key}", last)
            present = present_version(last)
            done = save_category(connection, change(present), expected=present, who=who, reason=restating.reason)
            item = _item(done.after)
    except TooManyCategories as error:
        raise Conflict(sentence(error.message)) from None
    except EditConflict as error:
        raise PreconditionFailed(f"{sentence(error.message)} Read it again, and repeat your change.") from None
    headers = {"ETag": done.after.etag, "Cache-Control": CACHE_CONTROL}
    return json_response(item, status=201 if present is None else 200, headers=headers)


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


def _info(version: CategoryVersion) -> dict[str, Any]:
    return {"version": version.version, "who": version.who, "at": version.at, "reason": version.reason}


def _item(version: CategoryVersion) -> CategoryItem:
    warnings = [CategoryWarning(path=each.path, message=each.message) for each in warnings_about(version)]
    return CategoryItem(key=version.key, **_info(version), document=document_of(version), warnings=warnings)
