"""Simulations: other policies, tried on past days before they are applied."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Body, Path, Query, Request
from pydantic import BeforeValidator, Field, StringConstraints, field_validator
from starlette.responses import Response

from chargeback import __version__
from chargeback.access.caller import Right
from chargeback.allocation.policies import PolicyCatalogue
from chargeback.api.dependencies import CallerDep
from chargeback.api.documentation import csv_answer
from chargeback.api.parameters import CommonParameters, Day, StrictModel, When, check_order
from chargeback.api.problems import Conflict, InvalidParameter, InvalidRequest, NotFound
from chargeback.api.responses import csv_response, json_response
from chargeback.api.rewriting import prefix_of
from chargeback.api.routing import Routes
from chargeback.api.selecting import check_columns, groups_of
from chargeback.api.tenant_requests import Change, Control, ControlRequest
from chargeback.config.document import values_of
from chargeback.errors import CategoryError, ConfigurationError, NoRunner
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.answers import Instant, PageOf, ResponseModel
from chargeback.reports.simulation import SimulationAnswer
from chargeback.reports.tenant_view import SimulationOrder, SimulatorPort
from chargeback.store.control.closings import canonical, digest_of, state_of_books
from chargeback.store.control.simulations import (
    FAILED,
    KeptSimulation,
    add_simulation,
    find_simulation,
    list_simulations,
)
from chargeback.store.queries.datasets import CHARGEBACKS

#: The maximum number of days of a simulation.
MOST_DAYS = 400


def _policies(value: object) -> object:
    """Return the policies that were sent as an object or as YAML text."""
    if isinstance(value, str):
        try:
            value = values_of(value) or {}
        except ConfigurationError as error:
            raise ValueError(f"should be YAML: {error}") from None
    if value is not None and not isinstance(value, dict | list):
        message = "should be a mapping of product types to policies, or a list of versions of them"
        raise ValueError(message)
    return value


Policies = Annotated[
    Any,
    BeforeValidator(_policies),
    Field(
        description="The `allocation_policies` of the tenant to try: a mapping of product types to policies, a list "
        "of versions of such mappings, or a YAML text of either. Default: the policies in force. Versions that were "
        "applied from a plan are always included.",
        examples=[{"SUPPORT": {"portions": [{"share": "1", "try": ["even(period)", "unallocated"]}]}}],
        json_schema_extra={"anyOf": [{"type": "object"}, {"type": "array"}, {"type": "string"}]},
    ),
]


class TriedTag(StrictModel):
    """A tag of an identity or a resource."""

    entity_type: Literal["identity", "resource"]
    entity_id: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    tag_key: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    tag_value: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = Field(
        default=None, description="Null: the tag is removed."
    )


#: The fields with what is tried; at least one is needed.
_TRIED = ("policies", "cost_categories", "tags")


class SimulationBody(StrictModel):
    """Parameters of a simulation."""

    policies: Policies = None
    isolate: list[Annotated[str, StringConstraints(min_length=1, max_length=255)]] = Field(
        default=[],
        max_length=100,
        description="Try only the policies of these product types, by their names in `policies`; all other policies "
        "stay as they are in force.",
    )
    cost_categories: dict[Annotated[str, StringConstraints(max_length=64)], dict[str, Any]] = Field(
        default={},
        max_length=20,
        description="The documents of cost categories to try, by their keys.",
        examples=[{}],
    )
    tags: list[TriedTag] = Field(default=[], max_length=10_000, description="The tags to try, on all days.")
    start_date: Day = Field(description="The first UTC day to simulate.")
    end_date: Day = Field(description=f"The last UTC day to simulate, inclusive; at most {MOST_DAYS} days.")
    as_of: When | None = Field(default=None, description="Use the data as of this instant. Default: the present data.")
    group_by: list[str] = groups_of(CHARGEBACKS, "identity_id")

    @classmethod
    def cross_checks(cls, raw: dict[str, Any], now: datetime) -> list[InvalidParameter]:
        """Check the range, and that there is something to try."""
        wrong = check_order(raw) + super().cross_checks(raw, now)
        if raw.get("policies") is None and not any(map(raw.get, _TRIED[1:])):
            wrong.append(InvalidParameter("policies", f"is needed, or one of {', '.join(_TRIED[1:])}"))
        return wrong

    @field_validator("group_by")
    @classmethod
    def _are_columns(cls, names: list[str]) -> list[str]:
        check_columns(names, CHARGEBACKS.groups)
        return names

    @property
    def order(self) -> SimulationOrder:
        """The order for the simulator."""
        days = DayRange(self.start_date, self.end_date + ONE_DAY)
        tags = tuple((each.entity_type, each.entity_id, each.tag_key, each.tag_value) for each in self.tags)
        return SimulationOrder(
            self.policies, days, tuple(self.group_by), self.as_of, tuple(self.isolate), self.cost_categories, tags
        )


def order_of(asked: Mapping[str, Any]) -> SimulationOrder:
    """Return the order of a requested simulation."""
    return SimulationBody.model_validate(asked).order


class SimulationItem(ResponseModel):
    """A requested simulation."""

    id: str = Field(description="The same for equal requests, as long as the data that they use does not change.")
    state: Literal["running", "done", "failed"]
    days: int = Field(description="The number of days; 0 until it is known.")
    done: int = Field(description="The number of calculated days.")
    error: str | None = Field(description="Why it failed; null if it has not.")
    asked: dict[str, Any] = Field(description="The parameters of the request.", examples=[{"start_date": "2026-01-01"}])
    asked_by: str = Field(examples=["alice"])
    asked_at: Instant


class SimulationState(SimulationItem):
    """A simulation with its result."""

    answer: SimulationAnswer | None = Field(description="The result; null while it is running, and if it failed.")


router = Routes(prefix="/tenants/{tenant_name}/simulations", tags=["Policies"])

SimulationId = Annotated[
    str, Path(description="The `id` of a simulation."), StringConstraints(pattern="^[0-9a-f]{64}$")
]
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "URL of the simulation."}}
_FILE = "identity_id,before,after,delta,percent\r\nsa-1,2.00,1.00,-1.00,-50.00\r\n"
_NO_SIMULATION = {404: "There is no such tenant or simulation."}
_AMOUNTS = ("before", "after", "delta", "percent")
NO_SIMULATOR = "this process has no configuration of the tenant, and simulates nothing"


@router.post(
    "",
    status_code=202,
    response_model=SimulationItem,
    needs=Right.RUN,
    whole=True,
    answer="The simulation was started, or exists already.",
    problems={503: "The maximum number of simulations is waiting (`Retry-After`), or the storage is unavailable."},
    responses={202: {"headers": _LOCATION}},
)
def start_simulation(
    http: Request, request: Change, caller: CallerDep, params: Annotated[SimulationBody, Body()]
) -> Response:
    """Try other policies on past days, from stored evidence. Facts do not change, and runs are not affected.

    The simulation runs in a separate process when it is its turn; the result is kept for seven days. Equal requests get
    the same `id` and are calculated once, unless the data that they use has changed."""
    simulator, order = request.tenant.simulator, params.order
    if simulator is None:
        raise NoRunner(NO_SIMULATOR)
    if len(order.days) > MOST_DAYS:
        raise InvalidRequest([InvalidParameter("start_date", f"should be at most {MOST_DAYS} days before end_date")])
    candidate = checked(simulator, order)
    asked, present = params.model_dump(mode="json"), request.ruled().rules.catalogue
    with request.writing() as connection:
        made_of = [asked | {"policies": candidate.hash}, present.hash, __version__]
        number = digest_of(canonical([*made_of, state_of_books(connection)]))
        found = find_simulation(connection, number, request.now)
        if found is None or found.state == FAILED:
            found = add_simulation(connection, number, asked, caller.name, request.now)
            simulator.start(number, order, request.context.token.begin_commit)
    path = http.app.url_path_for("show_simulation", tenant_name=request.tenant.tenant_name, simulation_id=number)
    return json_response(_item(found), status=202, headers={"Location": f"{prefix_of(http.scope)}{path}"})


def checked(simulator: SimulatorPort, order: SimulationOrder) -> PolicyCatalogue:
    """Return the complete catalogue of the policies of an order.

    Raises:
        InvalidRequest: they are not valid.
    """
    try:
        return simulator.check(order)
    except ConfigurationError as error:
        raise InvalidRequest([InvalidParameter("policies", str(each)) for each in error.problems]) from None
    except CategoryError as error:
        raise InvalidRequest([InvalidParameter("cost_categories", str(each)) for each in error.problems]) from None


@router.get("", needs=Right.READ, whole=True)
def show_simulations(request: Control, params: Annotated[CommonParameters, Query()]) -> PageOf[SimulationItem]:
    """List the simulations of the last seven days, the newest first."""
    found = [_item(each) for each in list_simulations(request.connection, request.now)]
    return PageOf[SimulationItem].cut(found, params.paging)


@router.get("/{simulation_id}", needs=Right.READ, whole=True, problems=_NO_SIMULATION)
def show_simulation(
    request: Control, simulation_id: SimulationId, _params: Annotated[CommonParameters, Query()]
) -> SimulationState:
    """Return the progress of a simulation, and its result."""
    found = _kept(request, simulation_id)
    return SimulationState.like(_item(found), answer=_answer(found))


@router.get(
    "/{simulation_id}/items.csv",
    response_class=Response,
    needs=Right.EXPORT,
    whole=True,
    problems={**_NO_SIMULATION, 409: "It is not done."},
    responses={200: csv_answer("The file.", example=_FILE)},
)
def show_simulated_items(
    request: Control, simulation_id: SimulationId, _params: Annotated[CommonParameters, Query()]
) -> Response:
    """Return the groups whose cost would change as CSV, the largest change first."""
    answer = _answer(_kept(request, simulation_id))
    if answer is None:
        raise Conflict("The simulation has no result: it is running, or has failed.")
    items = [each.model_dump(mode="json") for each in answer.items]
    rows = [each["dimensions"] | {name: each[name] for name in _AMOUNTS} for each in items]
    return csv_response("simulation.csv", (*answer.group_by, *_AMOUNTS), rows, numbers=_AMOUNTS)


def _kept(request: ControlRequest, number: str) -> KeptSimulation:
    found = find_simulation(request.connection, number, request.now)
    if found is None:
        raise NotFound(f"There is no simulation {number}; they are kept for seven days.")
    return found


def _answer(found: KeptSimulation) -> SimulationAnswer | None:
    return None if found.answer is None else SimulationAnswer.model_validate_json(found.answer)


def _item(found: KeptSimulation) -> SimulationItem:
    return SimulationItem.like(found)
