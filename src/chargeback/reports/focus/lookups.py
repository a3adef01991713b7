"""The data of FOCUS rows that is not in the facts, as small tables of a query: products, names, places, tags, units."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, Final, Self

import pyarrow as pa
from sqlalchemy import Connection

from chargeback.allocation.methods import MethodKind
from chargeback.config import Tenant
from chargeback.config.contracts import ContractSettings
from chargeback.ecosystems.focus import PROGRAMME, FocusProfile
from chargeback.model.dated import DatedValue
from chargeback.model.focus import focus_unit
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.closings import ClosedPeriod
from chargeback.store.control.inventory_lists import (
    IDENTITIES,
    RESOURCES,
    InventoryFilter,
    Lineage,
    listed,
    names_of,
    read_lineages,
)
from chargeback.store.control.policies import used_policies
from chargeback.store.facts.places import Place
from chargeback.store.queries.pinned import FOCUS, digest_of_kept, read_document

#: The keys of a resource's metadata with its location; resources inherit it from the one that contains them.
REGION: Final = "region"
CLOUD: Final = "cloud"

_ACCOUNT: Final = pa.schema([("id", pa.string()), ("name", pa.string()), ("has_programme", pa.bool_())])
_RESOURCES: Final = pa.schema([(name, pa.string()) for name in ("id", "name", "type", REGION, CLOUD)])
_PAYERS: Final = pa.schema([(name, pa.string()) for name in ("id", "name", "type")])
_PRODUCTS: Final = pa.schema(
    [
        (name, pa.string())
        for name in ("bill", "category", "type", "issuer", "service", "service_category", "service_subcategory")
    ]
    + [("is_credit", pa.bool_()), ("is_recurring", pa.bool_())]
)
_UNITS: Final = pa.schema([("unit", pa.string()), ("focus_unit", pa.string())])
_MEASURES: Final = pa.schema(
    [("policy_hash", pa.string()), ("portion", pa.int16()), ("chain_position", pa.int16()), ("unit", pa.string())]
)
_TAGS: Final = pa.schema([("id", pa.string()), ("tags", pa.map_(pa.string(), pa.string()))])
#: The tables that are the same for all days.
_SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "account": _ACCOUNT,
    "resources": _RESOURCES,
    "payers": _PAYERS,
    "products": _PRODUCTS,
    "units": _UNITS,
    "measures": _MEASURES,
}

_Row = dict[str, Any]


@dataclass(frozen=True)
class FocusTenant:
    """The tenant of a bill: its name and id, the profile of its ecosystem with the tenant's changes, and the contracts
    with the provider."""

    name: str
    tenant_id: str
    profile: FocusProfile
    contracts: tuple[ContractSettings, ...] = ()

    @classmethod
    def of(cls, tenant: Tenant) -> Self:
        """Return the data of a configured tenant."""
        return cls(tenant.name, tenant.settings.tenant_id, tenant.focus, tenant.settings.contracts)

    @classmethod
    def of_view(cls, tenant: TenantView) -> Self:
        """Return the data of a tenant's view."""
        return cls(tenant.tenant_name, tenant.tenant_id, tenant.focus, tenant.contracts)


@dataclass(frozen=True)
class Occurring:
    """The ids and products in the bill and the charges of some days; ``products`` are the bill (the name of an
    additional one, or the empty text), category and type of each product."""

    resources: Collection[str]
    environments: Collection[str]
    identities: Collection[str]
    products: Collection[tuple[str, str, str]]
    units: Collection[str]

    @classmethod
    def nothing(cls) -> Self:
        """Return an empty object."""
        return cls(*(frozenset() for _ in fields(cls)))

    def __or__(self, other: Self) -> Self:
        """Return the union of both."""
        mine, others = (vars(each).values() for each in (self, other))
        return type(self)(*({*one, *another} for one, another in zip(mine, others, strict=True)))


#: The rows of the tables that are the same for all days, by the names of these.
Lookups = Mapping[str, Sequence[Mapping[str, Any]]]


def read_lookups(connection: Connection, tenant: FocusTenant, found: Occurring) -> Lookups:
    """Return the present lookups of some ids and products.

    Raises:
        StorageError: the control database cannot be read.
    """
    lineages = read_lineages(connection, {*found.resources, *found.environments})
    return {
        "account": [billed_account(connection, tenant)],
        "resources": list(_resources(lineages)),
        "payers": [
            {"id": identity_id, "name": each.name, "type": each.type}
            for identity_id, each in names_of(connection, IDENTITIES, found.identities).items()
        ],
        "products": [_product(tenant, *each) for each in sorted(found.products)],
        "units": [{"unit": unit, "focus_unit": focus_unit(unit)} for unit in sorted(found.units)],
        "measures": list(_measures(connection, tenant.profile)),
    }


def kept_lookups(place: Place, connection: Connection, closed: ClosedPeriod) -> Lookups | None:
    """Return the lookups that were stored when a month was closed; None if they were not.

    Raises:
        StorageError: the document is missing or cannot be read.
    """
    sha256 = digest_of_kept(connection, closed, FOCUS, None)
    return None if sha256 is None else json.loads(read_document(place, FOCUS, sha256))


def lookup_tables(lookups: Lookups) -> dict[str, pa.Table]:
    """Return the tables of a query, by their names."""
    return {name: pa.Table.from_pylist(list(lookups[name]), schema) for name, schema in _SCHEMAS.items()}


def tag_table(tags: Mapping[str, Mapping[str, Sequence[DatedValue]]], day: date) -> pa.Table:
    """Return the tags of entities on a UTC day; those without any are left out."""
    rows = []
    for entity, by_key in tags.items():
        held = {key: each.value for key, values in by_key.items() for each in values if day in each.during}
        if held:
            rows.append({"id": entity, "tags": sorted(held.items())})
    return pa.Table.from_pylist(rows, _TAGS)


def billed_account(connection: Connection, tenant: FocusTenant) -> _Row:
    """Return the billed account: the resource of the profile's type, or the tenant if there is none."""
    profile = tenant.profile
    found = None
    if profile.account_type is not None:
        accounts, _ = listed(connection, RESOURCES, InventoryFilter(type=profile.account_type), offset=0, limit=1)
        found = accounts[0] if accounts else None
    name = profile.billing_account_name or (found and found["display_name"]) or tenant.name
    return {
        "id": tenant.tenant_id if found is None else found["resource_id"],
        "name": name,
        "has_programme": profile.discount == PROGRAMME,
    }


def _resources(lineages: Mapping[str, Lineage]) -> Iterator[_Row]:
    for resource_id, each in lineages.items():
        yield {
            "id": resource_id,
            "name": each.name,
            "type": each.type,
            REGION: _inherited(lineages, resource_id, REGION),
            CLOUD: _inherited(lineages, resource_id, CLOUD),
        }


def _inherited(lineages: Mapping[str, Lineage], resource_id: str, key: str) -> str | None:
    """Return the value of a key in the metadata of a resource, or of the nearest one that contains it."""
    above: str | None = resource_id
    seen: set[str] = set()
    while above is not None and above in lineages and above not in seen:
        seen.add(above)
        value = lineages[above].metadata.get(key)
        if value:
            return str(value)
        above = lineages[above].parent_id
    return None


def _product(tenant: FocusTenant, bill: str, category: str, product_type: str) -> _Row:
    profile = tenant.profile.of_bill(bill)
    service = profile.service(category)
    return {
        "bill": bill,
        "issuer": profile.issuer or tenant.name,
        "category": category,
        "type": product_type,
        "service": service.name,
        "service_category": service.category,
        "service_subcategory": service.subcategory,
        "is_credit": profile.is_credit(product_type),
        "is_recurring": profile.is_recurring(product_type),
    }


def _measures(connection: Connection, profile: FocusProfile) -> Iterator[_Row]:
    """Yield the unit of the measure of each method of each recorded policy, if it is known. Portions and methods count
    from 1, as in rows."""
    policies = {used.hash: used.policy for used in used_policies(connection)}
    for policy_hash, policy in policies.items():
        for portion, each in enumerate(policy.portions, start=1):
            for position, method in enumerate(each.methods, start=1):
                unit = profile.unit(method.arguments) if method.kind is MethodKind.USAGE else None
                if unit is not None:
                    yield {"policy_hash": policy_hash, "portion": portion, "chain_position": position, "unit": unit}
