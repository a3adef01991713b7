"""Policies, described in words."""

from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Body, Path, Query
from pydantic import Field
from sqlalchemy import Connection
from starlette.responses import Response

from chargeback.access.caller import Right
from chargeback.api.dependencies import CallerDep
from chargeback.api.parameters import CommonParameters, Day, Note, StrictModel, Text
from chargeback.api.problems import Conflict, InvalidParameter, NotFound, sentence
from chargeback.api.routes.simulations import NO_SIMULATOR, checked, order_of
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Change, Control
from chargeback.errors import NoRunner
from chargeback.model.days import DayRange, utc_today
from chargeback.reports.answers import PageOf
from chargeback.reports.changes import policies_used
from chargeback.reports.plan import AppliedPlan, Plan, PlanOrder, apply_plan, withdraw
from chargeback.reports.policies import PolicyItem, PolicyVersionItem, applies_to, list_policies, list_versions
from chargeback.reports.simulation import SimulationAnswer
from chargeback.store.control.day_revisions import read_policy_versions
from chargeback.store.control.policies import UsedPolicy, read_applied, used_policies
from chargeback.store.control.simulations import find_simulation
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection


class PoliciesQuery(CommonParameters):
    """Parameters of the list of policies."""

    hash: Text | None = Field(
        default=None, description="Only the policy with this hash, `policy` in the metadata of a chargeback row."
    )
    date: Day | None = Field(default=None, description="The policies in force on this UTC day. Default: today.")
    product_type: Text | None = Field(
        default=None, description="Only policies of this product type, also by a pattern or an alias."
    )


router = Routes(prefix="/tenants/{tenant_name}", tags=["Policies"])


@router.get("/policies", needs=Right.READ)
def show_policies(request: Control, params: Annotated[PoliciesQuery, Query()]) -> PageOf[PolicyItem]:
    """List how each product type is split: the policies in force on a day, then those by which other days were
    calculated.

    Within a scope, the uses are those of visible rows."""
    rules = request.ruled().rules
    seen = None
    if request.context.scope is not None:
        with request.facts_reader() as reader:
            seen = _seen(reader)
    found = [
        each
        for each in list_policies(rules, _used(request.connection, seen), params.date or utc_today())
        if params.hash in {None, each.hash}
        and (params.product_type is None or applies_to(rules, each, params.product_type))
    ]
    return PageOf[PolicyItem].cut(found, params.paging)


@router.get("/policies/history", needs=Right.READ)
def show_policy_versions(request: Control, params: Annotated[CommonParameters, Query()]) -> PageOf[PolicyVersionItem]:
    """List the versions of the tenant's own policies, and those that an upgrade has changed: the first day on which
    each is in force, the reason, and the number of days that were calculated by it. Policies without dates have no
    versions."""
    is_scoped = request.context.scope is not None
    calculated = None if is_scoped else read_policy_versions(request.connection, None)
    applied = read_applied(request.connection)
    found = list_versions(request.ruled().rules, calculated, applied)
    return PageOf[PolicyVersionItem].cut(found, params.paging)


class ApplyBody(StrictModel):
    """The plan to apply, and its first day."""

    simulation: str = Field(
        description="The `id` of a simulation of policies that is done.", pattern="^[0-9a-f]{64}$", examples=["0" * 64]
    )
    expected_digest: str = Field(
        description="The `digest` of its reviewed `answer`.", max_length=64, examples=["0" * 64]
    )
    effective_from: Day | None = Field(
        default=None,
        description="The first UTC day on which the policies are in force; needed if they have no dates themselves.",
        examples=["2027-01-01"],
    )
    reason: Note | None = Field(
        default=None,
        description="Why they change; needed with `effective_from` and with `restate_closed`.",
        examples=["The base fee is shared by all active identities"],
    )
    restate_closed: bool = Field(
        default=False,
        strict=True,
        description="Whether days of closed months may be calculated again; what moves is posted as a correction.",
    )

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check that there is a reason if one is needed."""
        wrong = super().cross_checks(raw, now)
        if (raw.get("effective_from") or raw.get("restate_closed")) and not raw.get("reason"):
            wrong.append(InvalidParameter("reason", "is needed with effective_from and with restate_closed"))
        return wrong


@router.post(
    "/policies/apply",
    needs=Right.ADMIN,
    whole=True,
    answer="The policies are in force from their day on.",
    problems={
        404: "There is no such tenant or simulation.",
        409: "The policies cannot begin on this day (`plan-refused`), the data of the simulation has changed "
        "(`plan-stale`, with the changes), or closed months would change (`reaches-into-closed`).",
    },
)
def apply_policies(request: Change, caller: CallerDep, params: Annotated[ApplyBody, Body()]) -> AppliedPlan:
    """Put simulated policies in force, as long as the data of the simulation has not changed.

    Calculated days from `effective_from` on are calculated again by the next run; each of them must have been
    simulated. Applied policies are in force in addition to those of the configuration, and `GET …/policies/history`
    lists them."""
    simulator = request.tenant.simulator
    if simulator is None:
        raise NoRunner(NO_SIMULATOR)
    with request.writing() as connection:
        found = find_simulation(connection, params.simulation, request.now)
        if found is None:
            raise NotFound(f"There is no simulation {params.simulation}; they are kept for seven days.")
        if found.answer is None:
            raise Conflict("The simulation has no result: it is running, or has failed.")
        plan = Plan(asked=dict(found.asked), answer=SimulationAnswer.model_validate_json(found.answer))
        candidate = checked(simulator, order_of(found.asked))
        order = PlanOrder(
            params.expected_digest, params.effective_from, params.reason, params.restate_closed, caller.name
        )
        return apply_plan(connection, request.tenant, candidate, plan, order, request.now)


@router.delete(
    "/policies/applied/{effective_from}",
    needs=Right.ADMIN,
    whole=True,
    answer="The version is withdrawn.",
    problems={404: "There is no such tenant, or no such version was applied.", 409: "It has calculated days."},
)
def withdraw_policies(
    request: Change,
    caller: CallerDep,
    effective_from: Annotated[date, Path(description="The first day of the version.", examples=["2027-01-01"])],
) -> Response:
    """Withdraw a version that was applied and has calculated no day yet."""
    with request.writing() as connection:
        try:
            withdraw(connection, request.tenant, effective_from, caller.name)
        except LookupError as error:
            raise NotFound(sentence(str(error))) from None
    return Response(status_code=204)


def _seen(reader: TenantReader) -> dict[str, list[str]]:
    """Return the hashes of the policies of visible rows, by product type."""
    days = reader.dates(CHARGEBACKS)
    return policies_used(reader, Selection.of_days(DayRange.spanning(days)).window) if days else {}


def _used(connection: Connection, seen: Mapping[str, Collection[str]] | None) -> list[UsedPolicy]:
    """Return the policies that were used, for rows that are ``seen``; None: for all rows."""
    found = used_policies(connection)
    return found if seen is None else [each for each in found if each.hash in seen.get(each.product_type, ())]
