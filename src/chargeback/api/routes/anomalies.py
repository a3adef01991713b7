"""Anomalies in the costs of a period, and marks: what people know about them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Annotated, Any, Literal, Self

from fastapi import Body, Path, Query
from pydantic import Field, ValidationInfo, field_validator, model_validator
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.access.scope import CATEGORY, RowScope
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import COMMON_STATUSES
from chargeback.api.executor import entity_ids
from chargeback.api.parameters import Author, CommonParameters, Day, Note, StrictModel, Text
from chargeback.api.problems import Conflict, NotFound
from chargeback.api.routing import Routes
from chargeback.api.selecting import UsualPeriodQuery
from chargeback.api.tenant_requests import Change, Facts, FactsRequest
from chargeback.model.anomalies import Floors
from chargeback.reports.anomalies import AnomaliesAnswer, AnomaliesRequest, MarkItem, Remembered, anomalies
from chargeback.reports.answers import PageOf
from chargeback.reports.names import names_of_ids
from chargeback.reports.reconciliation import states_seen
from chargeback.store.control.anomalies import (
    MarkedDays,
    MarkStatus,
    add_mark,
    count_marks,
    find_mark,
    read_anomalies,
    read_marks,
    remove_mark,
)
from chargeback.store.control.catalogue import lock_tenant
from chargeback.store.control.given import EntityIds
from chargeback.store.control.inventory_lists import IDENTITIES, names_of
from chargeback.store.control.revisions import read_revisions
from chargeback.store.control.tags import IDENTITY
from chargeback.store.queries.lookups import read_categories

MAX_MARKS = 10_000
#: The longest range of days of a mark: something planned for longer is no exception.
_LONGEST = timedelta(days=366)


class AnomaliesQuery(UsualPeriodQuery):
    """Parameters of the anomalies: the days, the thresholds, and the parts of the response."""

    min_amount: Annotated[float, Field(ge=0, le=1e12)] = Field(
        default=1, description="The minimum difference of a day, in the currency of the bill."
    )
    min_percent: Annotated[float, Field(ge=0, le=1e6)] = Field(
        default=20, description="The minimum difference of a day, in percent of the expected cost."
    )
    limit: Annotated[int, Field(ge=1, le=1000)] = Field(default=100, description="The maximum number of entries.")
    category: Text | None = Field(
        default=None,
        description="The cost category whose values are examined in addition to identities; default: that of the "
        "configuration, or the only one.",
        examples=["team"],
    )
    id: list[Text] = Field(default=[], description="Only the anomaly with this id, repeatable.")
    include: list[Literal["contributors"]] = Field(
        default=[], description="`contributors`: the costs that each consists of, with links to their explanations."
    )


class NewMark(StrictModel):
    """What people know about days of the costs of an identity or a value."""

    identity_id: Text | None = Field(
        default=None,
        description="The identity whose costs these are; it must be in the inventory.",
        examples=["sa-123abc"],
    )
    category: Text | None = Field(
        default=None,
        description="Instead of an identity: the cost category of `value`.",
        json_schema_extra={"example": None},
    )
    value: Text | None = Field(default=None, description="Its value.", json_schema_extra={"example": None})
    product_category: Text | None = Field(default=None, description="Default: all product groups.", examples=["KAFKA"])
    status: MarkStatus = Field(
        description="`confirmed`, or one that excludes the days: `planned`, `expected`, `dismissed`.",
        examples=["planned"],
    )
    start_date: Day = Field(description="The first day.", examples=["2026-11-14"])
    end_date: Day = Field(description="The last day, a year later at most.", examples=["2026-11-20"])
    note: Note = Field(description="An explanation for later readers.", examples=["Load test of the new cluster"])
    created_by: Author = Field(default="api", description="The author of the mark.")

    @field_validator("end_date")
    @classmethod
    def _after_start(cls, value: date, info: ValidationInfo) -> date:
        first = info.data.get("start_date")
        if first is not None and not timedelta() <= value - first <= _LONGEST:
            raise ValueError(f"should be between start_date, {first}, and {_LONGEST.days} days later")
        return value

    @model_validator(mode="after")
    def _has_subject(self) -> Self:
        given = [self.identity_id is not None, self.category is not None, self.value is not None]
        if given not in ([True, False, False], [False, True, True]):
            raise ValueError("should have either identity_id, or category and value")
        return self


router = Routes(prefix="/tenants/{tenant_name}/anomalies", tags=["Anomalies"])

MarkNumber = Annotated[int, Path(description="The `id` of the mark.", ge=1, le=2**31 - 1, examples=[1])]
_NO_MARK = {404: "There is no such tenant or mark."}


def _remembered(request: FactsRequest) -> list[Any]:
    """Return the further values that anomalies depend on: marks, what was reported, and the configuration."""
    with request.reading() as connection:
        known = read_anomalies(connection)
        marks = read_marks(connection)
    request.extra = Remembered(marks, {each.id: each.told_at for each in known.values() if each.told_at is not None})
    criteria = request.tenant.criteria
    reported = [[number, at.isoformat()] for number, at in request.extra.reported.items()]
    return [[each.id for each in marks], reported, criteria.category, sorted(criteria.drivers.items())]


@router.get("", needs=Right.READ, keep=True, also=lambda request, _: _remembered(request))
def show_anomalies(request: Facts, params: Annotated[AnomaliesQuery, Query()]) -> AnomaliesAnswer:
    """List anomalies: days of a period on which the costs of an identity for a product group differ from the expected
    ones, the largest impact first; and those of the values of a cost category, for a product group and in total.
    Quantities are compared at their latest price, and by the latest assignment to values, so that changed prices and
    rules are no anomalies. Credits, and what is billed on three days of a month or less, are left out. The numbers are
    estimates."""
    tenant = request.tenant
    if params.category is not None:
        request.reader.categories.index.place(params.category)
    with request.reading() as connection:
        states = states_seen(request.reader, connection)
        last = read_revisions(connection).last_calculated
    period = params.chosen_period(tenant.lookback_days, last)

    def _named(column: str, ids: Collection[str]) -> Mapping[str, str]:
        with request.reading() as connection:
            return names_of_ids(connection, column, ids)

    floors = Floors(params.min_amount, params.min_percent / 100)
    query = AnomaliesRequest(
        period.day_range,
        replace(tenant.criteria, floors=floors, category=params.category or tenant.criteria.category),
        params.limit,
        params.id,
        "contributors" in params.include,
    )
    return anomalies(request.reader, states, query, tenant.currency, request.extra, _named)


@router.get("/marks", needs=Right.READ, also=lambda request, _: _remembered(request))
def list_marks(request: Facts, params: Annotated[CommonParameters, Query()]) -> PageOf[MarkItem]:
    """List the marks of days, the newest first; within a scope, those of visible identities. Dates have no effect."""
    visible, scope = entity_ids(request.reader.visible_entities()), request.access.scope
    marks = [each for each in request.extra.marks if _sees(visible, scope, each)]
    page = params.paging
    items = [MarkItem.of(each) for each in marks[page.offset : page.offset + page.limit]]
    return PageOf[MarkItem].of(items, len(marks), page)


@router.post(
    "/marks",
    needs=Right.TAG,
    status_code=201,
    answer="The mark.",
    problems={
        404: "There is no such tenant, identity or cost category.",
        409: f"There are {MAX_MARKS:,} marks already.",
    },
)
def mark_days(request: Change, caller: CallerDep, new: Annotated[NewMark, Body()]) -> MarkItem:
    """Mark days of the costs of an identity or a value, which may be in the future. Days that are `planned`, `expected`
    or `dismissed` are excluded: from the next run on, their anomalies are not reported, and no later day is compared
    with them. Earlier marks of the same days are kept, and the newest counts."""
    whose = {"category": new.category or "", "who": new.identity_id or new.value}
    values = new.model_dump(exclude={"identity_id", "category", "value"}) | whose
    marked = MarkedDays(**values | {"created_by": caller.signature(new.created_by)})
    with request.reading() as connection:
        if new.category is not None:
            is_known = new.category in read_categories(connection).by_key
        else:
            is_known = marked.who in names_of(connection, IDENTITIES, [marked.who])
    if not is_known or not _sees(request.visible_entities(), request.access.scope, marked):
        raise NotFound("There is no such cost category." if new.category else "The inventory has no such identity.")
    with request.writing() as connection:
        lock_tenant(connection)
        if count_marks(connection) >= MAX_MARKS:
            raise Conflict(f"There are {MAX_MARKS:,} marks already; remove some first.")
        return MarkItem.of(add_mark(connection, marked, who=caller.name))


@router.delete(
    "/marks/{number}",
    needs=Right.TAG,
    answer="The days are examined like all others.",
    only=(*COMMON_STATUSES, 403),
    problems=_NO_MARK,
)
def unmark_days(request: Change, caller: CallerDep, number: MarkNumber) -> Response:
    """Remove a mark; the audit log keeps it."""
    visible = request.visible_entities()
    with request.writing() as connection:
        mark = find_mark(connection, number)
        if mark is None or not _sees(visible, request.access.scope, mark):
            raise NotFound(f"There is no mark {number}.")
        remove_mark(connection, mark, who=caller.name)
    return Response(status_code=204)


def _sees(visible: EntityIds | None, scope: RowScope | None, days: MarkedDays) -> bool:
    """Return whether a caller sees the subject of a mark: a visible identity, or a value that the scope names."""
    if visible is None:
        return True
    if not days.category:
        return days.who in visible[IDENTITY]
    named = dict(scope.conditions) if scope else {}
    return days.who in named.get(f"{CATEGORY}{days.category}", ())
