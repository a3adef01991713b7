"""Contracts with the provider: commitments, and the costs that are drawn from them."""

from typing import Annotated

from fastapi import Path, Query

from chargeback.access.caller import Right
from chargeback.api.parameters import FactsParameters
from chargeback.api.problems import NotFound
from chargeback.api.routing import Routes
from chargeback.api.tenant_requests import Facts, FactsRequest
from chargeback.reports.answers import PageOf
from chargeback.reports.contracts import ContractItem, Standing
from chargeback.reports.reconciliation import states_seen

router = Routes(prefix="/tenants/{tenant_name}/contracts", tags=["Contracts"])


@router.get("", needs=Right.READ, whole=True, also=lambda request, _: configured(request))
def list_contracts(request: Facts, params: Annotated[FactsParameters, Query()]) -> PageOf[ContractItem]:
    """List the contracts of the configuration, each with the costs drawn from its commitments. Dates have no effect."""
    tenant, standing = request.tenant, standing_of(request, params)
    items = [standing.item(each, tenant.currency) for each in tenant.contracts]
    return PageOf[ContractItem].cut(items, params.paging)


@router.get(
    "/{contract_id}",
    needs=Right.READ,
    whole=True,
    problems={404: "There is no such tenant or contract."},
    also=lambda request, _: configured(request),
)
def show_contract(
    request: Facts,
    contract_id: Annotated[str, Path(description="Its id in the configuration.", examples=["confluent-2026"])],
    params: Annotated[FactsParameters, Query()],
) -> ContractItem:
    """Return the exact costs drawn from the commitments of a contract, by interval, for days that are calculated from
    their present bill. The costs applied to its commitments, to those of other contracts and to none sum to the bill of
    its days. Dates have no effect; `as_of` returns what was known at an earlier instant."""
    contract = next((each for each in request.tenant.contracts if each.id == contract_id), None)
    if contract is None:
        raise NotFound(f"There is no contract {contract_id}; the ids are in `contracts` of the configuration.")
    return standing_of(request, params).item(contract, request.tenant.currency)


def configured(request: FactsRequest) -> list[object]:
    """Return the further values that the state of contracts depends on: their settings, and the day."""
    return [request.now.date(), request.tenant.contracts]


def standing_of(request: FactsRequest, params: FactsParameters) -> Standing:
    """Return the state of the contracts of a tenant.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    with request.reading() as connection:
        states = states_seen(request.reader, connection)
    seen_on = (params.as_of or request.now).date()
    return Standing.of(request.reader, states, request.tenant.contracts, seen_on)
