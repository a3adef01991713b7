"""Budgets: what the rows of a scope may cost in a month, and how far they are."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from fastapi import Body, Path, Query
from pydantic import AfterValidator, Field, StringConstraints, ValidationError
from starlette.responses import Response

from chargeback.access.caller import Right, TenantAccess
from chargeback.access.scope import RowScope
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES
from chargeback.api.parameters import CommonParameters, Note, PeriodId, Reason, StrictModel, Text
from chargeback.api.preconditions import PreconditionsDep
from chargeback.api.problems import Conflict, InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import csv_file, json_response
from chargeback.api.routes.budget_files import budget_table, check_no_problems, problems_of, read_budgets
from chargeback.api.routing import CSV, Routes
from chargeback.api.tenant_requests import CACHE_CONTROL, Change, Facts, FactsRequest, Versioned
from chargeback.categories.cycles import arrow_path, cycles
from chargeback.config.notifications import SinkName
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.budgets import Budget, Threshold, ThresholdKind
from chargeback.model.edits import present_version
from chargeback.reports.answers import PageOf, ResponseModel
from chargeback.reports.budgets import BudgetItem, BudgetListItem, BudgetReport, BudgetStatus, is_within
from chargeback.store.control import budgets as store
from chargeback.store.control.budgets import BudgetVersion
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.days import read_days
from chargeback.store.queries.lookups import CategoryIndex

MAX_BUDGETS = 1_000
_AMOUNT = r"^[0-9]{1,15}(\.[0-9]{1,12})?$"

BudgetId = Annotated[
    str, Path(description="The id of the budget.", pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", examples=["payments"])
]
_Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


def _positive(text: str) -> str:
    if not Decimal(text):
        raise ValueError("should be above 0")
    return text


_Positive = Annotated[str, StringConstraints(pattern=_AMOUNT), AfterValidator(_positive)]


def _choosing(scope: dict[str, list[str]]) -> dict[str, list[str]]:
    if scope:
        RowScope.of(scope)
    if any(not values for values in scope.values()):
        raise ValueError("should have at least one value of each condition")
    return scope


class ThresholdBody(StrictModel):
    """A share of the budget that is reported when it is reached."""

    on: ThresholdKind = Field(
        description="`actual`: charged costs; `forecast`: the expected costs of the month; `pace`: charged costs, in "
        "relation to the part of the budget for the same days."
    )
    percent: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,4}(\.[0-9]{1,2})?$"), AfterValidator(_positive)] = (
        Field(description="The percentage of the budget.", examples=["80"])
    )


class BudgetBody(StrictModel):
    """A budget to create, or the new version of one."""

    name: Note = Field(description="The name for people.", examples=["Payments"])
    scope: Annotated[dict[Text, list[Text]], AfterValidator(_choosing)] = Field(
        default_factory=dict,
        max_length=20,
        description="The rows that count: conditions as in the scope of a token; a row must have one of the values of "
        "each. Without conditions, all rows count.",
        examples=[{"category:cost_center": ["payments"]}],
    )
    parent: _Id | None = Field(default=None, description="The budget that this one is a part of.")
    amounts: dict[PeriodId, _Positive] = Field(
        default_factory=dict,
        max_length=1200,
        description="The amounts of single months.",
        examples=[{"2026-12": "1500"}],
        json_schema_extra={"additionalProperties": False},
    )
    monthly: _Positive | None = Field(
        default=None, description="The amount of all other months, in the currency of the bill.", examples=["1000"]
    )
    thresholds: list[ThresholdBody] = Field(
        default_factory=list,
        max_length=20,
        description="The shares of the budget that are reported when they are reached.",
    )
    notify: list[SinkName] = Field(
        default_factory=list,
        max_length=20,
        description="The sinks of `notifications` that get its events; by default all that accept events of budgets.",
    )
    expected: dict[PeriodId, _Positive] = Field(
        default_factory=dict,
        max_length=1200,
        description="The expected costs of single months, which replace the forecast, each with a `reason`.",
        examples=[{}],
        json_schema_extra={"additionalProperties": False},
    )
    reason: Reason = Field(default=None, description="Why the budget is changed; stored with the version.")

    def budget(self, budget_id: str) -> Budget:
        """Return the budget."""
        thresholds = {each.key: each for each in (Threshold(t.on, Decimal(t.percent)) for t in self.thresholds)}
        return Budget(
            budget_id,
            self.name,
            {name: tuple(sorted(set(values))) for name, values in sorted(self.scope.items())},
            self.parent,
            {month: Decimal(amount) for month, amount in self.amounts.items()},
            None if self.monthly is None else Decimal(self.monthly),
            tuple(thresholds.values()),
            tuple(dict.fromkeys(self.notify)),
            {month: Decimal(amount) for month, amount in self.expected.items()},
        )


class BudgetsFile(StrictModel):
    """A CSV file of budgets."""

    csv: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="The format of `…/budgets.csv`: `id,name`, and optionally `parent,scope,thresholds,notify,monthly` "
        "and months such as `2026-12`. Commas, semicolons and tabs may separate the columns.",
        examples=["id,name,monthly,2026-12\npayments,Payments,1000,1500\n"],
    )
    dry_run: bool = Field(default=False, strict=True, description="Change nothing; only report the changes.")
    reason: Reason = Field(default=None, description="Why the budgets are changed; stored with each version.")


class ImportedBudgets(ResponseModel):
    """The changes that a file of budgets has made or would make. Budgets that are not in the file do not change."""

    created: list[str]
    changed: list[str]
    unchanged: int


class StatusQuery(CommonParameters):
    """Parameters of a status."""

    month: PeriodId | None = Field(default=None, description="Default: the month of the last calculated day.")


class RemovalOfBudget(StrictModel):
    """Parameters of a removal."""

    reason: Reason = Field(default=None, description="Why the budget is removed; stored with the version.")


router = Routes(prefix="/tenants/{tenant_name}/budgets", tags=["Budgets"])

_NO_BUDGET = {404: "There is no such tenant or budget."}
_EDITS = {412: "Someone else was faster; `detail` says who.", 428: "The budget exists: send its ETag as `If-Match`."}


def _versions(request: FactsRequest) -> list[object]:
    """Return the further values that the status of budgets depends on: their versions, and the day."""
    with request.reading() as connection:
        request.extra = store.list_budgets(connection)
    return [request.now.date(), [(each.id, each.etag) for each in request.extra]]


@router.get("", needs=Right.READ, files=CSV, also=lambda request, _: _versions(request))
def show_budgets(request: Facts, params: Annotated[StatusQuery, Query()]) -> PageOf[BudgetListItem] | Response:
    """List the tenant's budgets by id, each with its status in a month; within a scope, those whose rows are all
    visible, without reasons, parents and sinks, which may name others. The file has the budgets without their status;
    `POST …/budgets` accepts it."""
    index, page, versions = request.reader.categories.index, params.paging, request.extra
    visible = [
        (each, each.budget)
        for each in versions
        if each.budget is not None and is_within(each.budget, request.access.scope, index)
    ]
    if request.wants_csv:
        budgets = [budget for _, budget in visible]
        if not request.access.sees_everything:
            budgets = [replace(each, parent=None, notify=()) for each in budgets]
        return csv_file("budgets.csv", budget_table(budgets))
    status = _status_in(request, params.month)
    items = [
        BudgetListItem.like(_item(version, budget, request.access), status=status(budget))
        for version, budget in visible[page.offset : page.offset + page.limit]
    ]
    return PageOf[BudgetListItem].of(items, len(visible), page)


@router.get("/{budget_id}", response_model=BudgetItem, needs=Right.READ, problems=_NO_BUDGET)
def get_budget(request: Versioned, budget_id: BudgetId, _params: Annotated[CommonParameters, Query()]) -> Response:
    """Return a budget. Send its ETag as `If-Match` to change it."""
    found = store.read_budget(request.connection, budget_id)
    with request.facts_reader() as reader:
        seen, budget = _seen(found, budget_id, request.access.scope, reader.categories.index)
    return json_response(_item(seen, budget, request.access), headers={"ETag": seen.etag})


@router.get(
    "/{budget_id}/status",
    needs=Right.READ,
    problems=_NO_BUDGET,
    also=lambda request, _: _versions(request),
)
def show_budget_status(request: Facts, budget_id: BudgetId, params: Annotated[StatusQuery, Query()]) -> BudgetStatus:
    """Return the status of a budget in a month: the exact costs charged on the days that count, the part of the budget
    for the same days, the expected costs of the month, and the thresholds that are reached."""
    found = next((each for each in request.extra if each.id == budget_id), None)
    _, budget = _seen(found, budget_id, request.access.scope, request.reader.categories.index)
    return _status_in(request, params.month)(budget)


@router.put(
    "/{budget_id}",
    response_model=BudgetItem,
    needs=Right.ADMIN,
    whole=True,
    answer="The changed budget.",
    problems={409: f"There are {MAX_BUDGETS:,} budgets already.", **_EDITS},
    responses={201: {"description": "The new budget.", "model": BudgetItem}},
)
def put_budget(
    request: Change,
    caller: CallerDep,
    budget_id: BudgetId,
    preconditions: PreconditionsDep,
    new: Annotated[BudgetBody, Body()],
) -> Response:
    """Create a budget, or replace the version that `If-Match` names. The audit log keeps earlier versions. From the
    next run on, its thresholds are reported as events `budget.crossed`, `budget.cleared` and `budget.late`."""
    budget = new.budget(budget_id)
    with request.writing() as connection:
        lock_tenant(connection)
        last = store.last_version(connection, budget_id)
        preconditions.check(f"budget {budget_id}", last)
        present = present_version(last)
        others = [each.budget for each in store.list_budgets(connection) if each.budget is not None]
        if present is None and len(others) >= MAX_BUDGETS:
            raise Conflict(f"There are {MAX_BUDGETS:,} budgets already; remove one first.")
        _check_parent(budget, others)
        _check_sinks(budget, request.tenant.sinks)
        if present is not None and present.budget == budget:
            done = present
        else:
            expected = None if present is None else present.version
            done = store.write_budget(
                connection, budget_id, budget, expected=expected, who=caller.name, reason=new.reason or None
            )
    headers = {"ETag": done.etag, "Cache-Control": CACHE_CONTROL}
    return json_response(BudgetItem.of(done, budget), status=201 if present is None else 200, headers=headers)


@router.post(
    "",
    needs=Right.ADMIN,
    whole=True,
    answer="What has changed.",
    problems={409: f"There would be more than {MAX_BUDGETS:,} budgets."},
)
def import_budgets(request: Change, caller: CallerDep, new: Annotated[BudgetsFile, Body()]) -> ImportedBudgets:
    """Create and replace budgets from a CSV file: all of its lines, or none. Budgets that are not in the file do not
    change."""
    found = _read(new.csv)
    with request.writing() as connection:
        lock_tenant(connection)
        present = {each.id: each for each in store.list_budgets(connection)}
        before = {each.id: each.budget for each in present.values() if each.budget is not None}
        # A file has the amounts of months, not the expected costs, which stay.
        found = {
            place: replace(each, expected=before[each.id].expected) if each.id in before else each
            for place, each in found.items()
        }
        after = before | {budget.id: budget for budget in found.values()}
        if len(after) > MAX_BUDGETS:
            raise Conflict(f"There would be {len(after):,} budgets; {MAX_BUDGETS:,} are the most.")
        check_no_problems([*_wrong_places(found, after, request.tenant.sinks)])
        moved = [each for each in found.values() if before.get(each.id) != each]
        if not new.dry_run:
            for each in moved:
                expected = present[each.id].version if each.id in present else None
                store.write_budget(
                    connection, each.id, each, expected=expected, who=caller.name, reason=new.reason or None
                )
    return ImportedBudgets(
        created=[each.id for each in moved if each.id not in before],
        changed=[each.id for each in moved if each.id in before],
        unchanged=len(found) - len(moved),
    )


@router.delete(
    "/{budget_id}",
    needs=Right.ADMIN,
    whole=True,
    answer="The budget is removed.",
    only=(*COMMON_STATUSES, 403),
    problems={**_NO_BUDGET, 409: "Other budgets are parts of it.", **_EDITS},
)
def remove_budget(
    request: Change,
    caller: CallerDep,
    budget_id: BudgetId,
    preconditions: PreconditionsDep,
    params: Annotated[RemovalOfBudget, Query()],
) -> Response:
    """Remove the version of a budget that `If-Match` names. The audit log keeps it."""
    with request.writing() as connection:
        lock_tenant(connection)
        present = store.read_budget(connection, budget_id)
        if present is None:
            raise _missing(budget_id)
        preconditions.check(f"budget {budget_id}", present)
        parts = [each.id for each in store.list_budgets(connection) if each.budget and each.budget.parent == budget_id]
        if parts:
            raise Conflict(f"{', '.join(parts[:10])} {'is a part' if len(parts) == 1 else 'are parts'} of {budget_id}.")
        store.write_budget(
            connection, budget_id, None, expected=present.version, who=caller.name, reason=params.reason or None
        )
    return Response(status_code=204)


class _Line(BudgetBody):
    """A line of a file."""

    id: _Id


def _read(text: str) -> dict[str, Budget]:
    """Return the budgets of a file, by their lines.

    Raises:
        InvalidRequest: with every mistake, by its line.
    """
    found: dict[str, Budget] = {}
    wrong: list[str] = []
    for place, cells in read_budgets(text):
        try:
            line = _Line.model_validate(cells)
        except ValidationError as error:
            wrong += problems_of(place, error)
            continue
        if any(each.id == line.id for each in found.values()):
            wrong.append(f"{place}: id: {line.id} occurs twice")
        found[place] = line.budget(line.id)
    check_no_problems(wrong)
    return found


def _wrong_places(found: Mapping[str, Budget], after: Mapping[str, Budget], sinks: Collection[str]) -> Iterator[str]:
    """Yield the mistakes in the parents and the sinks of the budgets of a file."""
    for place, budget in found.items():
        try:
            _check_parent(budget, [each for each in after.values() if each.id != budget.id])
            _check_sinks(budget, sinks)
        except InvalidRequest as error:
            yield from (f"{place}: {each.parameter}: {each.message}" for each in error.errors)


def _status_in(request: FactsRequest, month: str | None) -> Callable[[Budget], BudgetStatus]:
    """Return a function that returns the status of a budget in a month, by default that of the last calculated day."""
    tenant, today = request.tenant, request.now.date()
    with request.reading() as connection:
        states = {each.tracking_date: each for each in read_days(connection)}
    calculated = [day for day, state in states.items() if state.was_calculated]
    period = AccountingPeriod.of(max(calculated, default=today)) if month is None else AccountingPeriod.named(month)
    due_before = today - timedelta(days=tenant.closing.cutoff_days)
    report = BudgetReport(request.reader, states, tenant.currency, due_before)
    return lambda budget: report.of(budget, period).status


def _item(version: BudgetVersion, budget: Budget, access: TenantAccess) -> BudgetItem:
    """Return a budget; within a scope without fields that may name others."""
    item = BudgetItem.of(version, budget)
    return item if access.sees_everything else item.model_copy(update={"reason": None, "parent": None, "notify": []})


def _missing(budget_id: str) -> NotFound:
    return NotFound(f"There is no budget {budget_id}.")


def _seen(
    found: BudgetVersion | None, budget_id: str, scope: RowScope | None, categories: CategoryIndex
) -> tuple[BudgetVersion, Budget]:
    """Return a budget whose rows are all visible; others are not found."""
    if found is None or found.budget is None or not is_within(found.budget, scope, categories):
        raise _missing(budget_id)
    return found, found.budget


def _check_sinks(budget: Budget, sinks: Collection[str]) -> None:
    """Check that the sinks of a budget exist."""
    for name in budget.notify:
        if name not in sinks:
            raise InvalidRequest([InvalidParameter("notify", f"there is no sink {name} in the configuration")])


def _check_parent(budget: Budget, others: Sequence[Budget]) -> None:
    """Check that the parent of a budget exists, and is not a part of the budget."""
    if budget.parent is None:
        return
    parents = {each.id: (each.parent,) for each in (*others, budget) if each.parent is not None}
    if budget.parent not in {each.id for each in others}:
        raise InvalidRequest([InvalidParameter("parent", f"there is no budget {budget.parent}")])
    for cycle in cycles(parents):
        raise InvalidRequest([InvalidParameter("parent", f"the parents form a cycle: {arrow_path(cycle)}")])
