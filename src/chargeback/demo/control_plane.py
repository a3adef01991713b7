"""The provider's endpoints: lists, their parameters, and access."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from chargeback.demo.changes import OrganisationChanges
from chargeback.demo.faults import PagingFault
from chargeback.demo.inventory import ProviderObject
from chargeback.demo.organisation import Organisation
from chargeback.demo.responses import Family, Listing, ListKind, Refusal, Response, dumps, invalid, page
from chargeback.demo.shapes import Json, Shapes
from chargeback.demo.sizes import FLINK_REGIONS, OTHER_REGIONS

Query = Mapping[str, str]
#: "Maximum one month" and "up to one year back" (provider's page on invoices and costs).
MAX_WINDOW_DAYS = 31
MAX_AGE_DAYS = 365
PAGING = frozenset({"page_size", "page_token"})


@dataclass(frozen=True)
class ApiRequest:
    """One request: its path's parts, its query, and the fault of its paging, if any."""

    path: str
    parts: tuple[str, ...]
    query: Query
    raw_query: tuple[tuple[str, str], ...] = ()
    fault: PagingFault | None = None


@dataclass(frozen=True)
class DemoEndpoint:
    """A path and its query parameters; an unknown parameter is refused."""

    pattern: re.Pattern[str]
    family: Family
    parameters: frozenset[str]
    answer: Callable[[DemoControlPlane, ApiRequest], Response]


class DemoControlPlane:
    """Responds in the provider's shapes. ``base`` is the URL under which it is served; pages have at most
    ``largest_page`` entries."""

    def __init__(
        self, changes: OrganisationChanges, base: str, *, null_when_empty: bool = False, largest_page: int | None = None
    ) -> None:
        self.changes = changes
        self.base = base
        self._null_when_empty = null_when_empty
        self._largest_page = largest_page
        inventory = changes.organisation.inventory
        self.shapes = Shapes(inventory.organization_id, inventory.organization_name, base)

    @property
    def organisation(self) -> Organisation:
        """The organisation served now."""
        return self.changes.organisation

    def gateway(self, region_id: str) -> str:
        """Return the host of a Flink region (``aws.us-east-1``)."""
        return f"{self.base}/flink/{region_id}"

    def find(self, path: str) -> tuple[DemoEndpoint, tuple[str, ...]] | None:
        """Return the endpoint of ``path`` and the variable parts of the path."""
        for endpoint in ENDPOINTS:
            found = endpoint.pattern.fullmatch(path)
            if found is not None:
                return endpoint, found.groups()
        return None

    def listing(self, items: Iterable[Any], shape: Callable[[Any], Json]) -> Listing:
        """Return a listing of the objects that the provider lists today."""
        found = [item for item in self.organisation.listed(items) if not self.changes.hidden(item.id)]
        return Listing(len(found), lambda first, end: [dumps(shape(item)) for item in found[first:end]])

    def page(self, kind: ListKind, listing: Listing, request: ApiRequest, base: str | None = None) -> Response:
        """Return one page of ``listing``."""
        return page(
            kind,
            listing,
            base or self.base + request.path,
            request.query,
            fault=request.fault,
            null_when_empty=self._null_when_empty,
            largest=self._largest_page,
        )

    def environment(self, request: ApiRequest) -> str:
        """Return the required parameter ``environment``.

        Raises:
            Refusal: 400 if it is missing, 403 for an unknown environment.
        """
        given = request.query.get("environment")
        if not given:
            raise invalid("environment", "environment is required")
        if not self.is_listed(self.organisation.inventory.environments, given):
            detail = f"The user is not allowed to access the environment '{given}'"
            raise Refusal(403, "user_unauthorized", "User Access Unauthorized", detail)
        return given

    def is_listed(self, items: Iterable[ProviderObject], object_id: str) -> bool:
        """Return whether an object of that id is listed today."""
        listed = self.organisation.listed(items)
        return any(item.id == object_id and not self.changes.hidden(object_id) for item in listed)


def _costs(plane: DemoControlPlane, request: ApiRequest) -> Response:
    start, end = _day(request.query, "start_date"), _day(request.query, "end_date")
    today = plane.organisation.spec.today
    if end <= start:
        raise invalid("end_date", "end_date must be after start_date")
    if (end - start).days > MAX_WINDOW_DAYS:
        raise invalid("end_date", "the date range must not exceed one month")
    if start < today - timedelta(days=MAX_AGE_DAYS):
        raise invalid("start_date", "start date is too far in the past")
    texts = [
        text
        for offset in range((end - start).days)
        for text in plane.changes.cost_texts(start + timedelta(days=offset))
    ]
    return plane.page(COSTS, Listing(len(texts), lambda first, end: texts[first:end]), request)


def _day(query: Query, name: str) -> date:
    text = query.get(name, "")
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise invalid(name, f"{name} must be a date like 2026-01-31")


def _organizations(plane: DemoControlPlane, request: ApiRequest) -> Response:
    created = plane.organisation.created
    listing = Listing(1, lambda first, end: [dumps(plane.shapes.organization(created))][first:end])
    return plane.page(ListKind("org/v2", "OrganizationList", last_next="null"), listing, request)


def _environments(plane: DemoControlPlane, request: ApiRequest) -> Response:
    listing = plane.listing(plane.organisation.inventory.environments, plane.shapes.environment)
    return plane.page(ListKind("org/v2", "EnvironmentList", last_next="null"), listing, request)


def _in_environment(
    kind: ListKind, items: Callable[[DemoControlPlane], Iterable[Any]], shape: Callable[[Shapes], Callable[[Any], Json]]
) -> Callable[[DemoControlPlane, ApiRequest], Response]:
    def answer(plane: DemoControlPlane, request: ApiRequest) -> Response:
        environment = plane.environment(request)
        region = request.query.get("spec.region")
        found = [
            item
            for item in items(plane)
            if item.environment == environment and (region is None or item.region == region)
        ]
        return plane.page(kind, plane.listing(found, shape(plane.shapes)), request)

    return answer


def _users(plane: DemoControlPlane, request: ApiRequest) -> Response:
    listing = plane.listing(plane.organisation.inventory.users, plane.shapes.user)
    return plane.page(ListKind("iam/v2", "UserList", last_next="empty"), listing, request)


def _service_accounts(plane: DemoControlPlane, request: ApiRequest) -> Response:
    names = {value for name, value in request.raw_query if name == "display_name"}
    accounts = [item for item in plane.organisation.inventory.service_accounts if not names or item.name in names]
    listing = plane.listing(accounts, plane.shapes.service_account)
    return plane.page(ListKind("iam/v2", "ServiceAccountList"), listing, request)


def _api_keys(plane: DemoControlPlane, request: ApiRequest) -> Response:
    owner, resource = request.query.get("spec.owner"), request.query.get("spec.resource")
    keys = [
        item
        for item in plane.organisation.inventory.api_keys
        if owner in (None, item.owner) and resource in (None, item.resource)
    ]
    listing = plane.listing(keys, plane.shapes.api_key)
    return plane.page(ListKind("iam/v2", "ApiKeyList", last_next="null"), listing, request)


def _providers(plane: DemoControlPlane, request: ApiRequest) -> Response:
    listing = plane.listing(plane.organisation.inventory.providers, plane.shapes.provider)
    return plane.page(ListKind("iam/v2", "IdentityProviderList"), listing, request)


def _pools(plane: DemoControlPlane, request: ApiRequest) -> Response:
    (provider,) = request.parts
    if not plane.is_listed(plane.organisation.inventory.providers, provider):
        raise Refusal(404, "not_found", "Not Found", f"identity provider {provider} not found")
    pools = [pool for pool in plane.organisation.inventory.pools if pool.provider == provider]
    listing = plane.listing(pools, plane.shapes.pool)
    return plane.page(ListKind("iam/v2", "IdentityPoolList", last_next="empty"), listing, request)


def _regions(plane: DemoControlPlane, request: ApiRequest) -> Response:
    cloud, name = request.query.get("cloud"), request.query.get("region_name")
    texts = [
        dumps(plane.shapes.region(one, region, plane.gateway(f"{one.lower()}.{region}")))
        for one, region in (*FLINK_REGIONS, *OTHER_REGIONS)
        if cloud in (None, one) and name in (None, region)
    ]
    listing = Listing(len(texts), lambda first, end: texts[first:end])
    return plane.page(ListKind("fcpm/v2", "RegionList"), listing, request)


def _statements(plane: DemoControlPlane, request: ApiRequest) -> Response:
    region, organization, environment = request.parts
    inventory = plane.organisation.inventory
    if organization != inventory.organization_id:
        raise Refusal(404, "not_found", "Not Found", f"organization {organization} not found")
    if not plane.is_listed(inventory.environments, environment):
        raise Refusal(404, "not_found", "Not Found", f"environment {environment} not found")
    wanted = request.query.get("spec.compute_pool_id")
    here = {pool.id for pool in inventory.compute_pools if pool.region_id == region}
    found = [
        item
        for item in inventory.statements
        if item.listed and item.environment == environment and item.pool in here and wanted in (None, item.pool)
    ]
    listing = plane.listing(found, lambda item: plane.shapes.statement(item, plane.gateway(region)))
    kind = ListKind("sql/v1", "StatementList", last_next="empty")
    return plane.page(kind, listing, request, plane.base + request.path)


def _connectors(plane: DemoControlPlane, request: ApiRequest) -> Response:
    """Return a list of names, or with ``expand`` a map by name. Not paged."""
    environment, cluster = request.parts
    inventory = plane.organisation.inventory
    homes = [item for item in inventory.clusters if item.environment == environment]
    if not plane.is_listed(homes, cluster):
        raise Refusal(404, "not_found", "Not Found", f"cluster {cluster} not found")
    found = [item for item in inventory.connectors if item.cluster == cluster and not plane.changes.hidden(item.id)]
    listed = plane.organisation.listed(found)
    asked = [value for name, value in request.raw_query if name == "expand"]
    parts = {part for value in asked for part in value.split(",")}
    unknown = sorted(parts - {"id", "info", "status"})
    if unknown:
        raise Refusal(400, "invalid_filter", "Invalid Filter", f"expand={unknown[0]} is not supported", "expand")
    if not asked:
        return Response(200, dumps([item.name for item in listed]).encode())
    return Response(200, dumps({item.name: plane.shapes.connector(item, parts) for item in listed}).encode())


COSTS = ListKind("billing/v1", "CostList", default_size=5000, max_size=10_000)


def _endpoint(
    pattern: str,
    answer: Callable[[DemoControlPlane, ApiRequest], Response],
    *parameters: str,
    family: Family = "control",
) -> DemoEndpoint:
    known = frozenset(parameters) | (frozenset() if family == "connect" else PAGING)
    return DemoEndpoint(re.compile(pattern), family, known, answer)


ENDPOINTS: tuple[DemoEndpoint, ...] = (
    _endpoint(r"/billing/v1/costs", _costs, "start_date", "end_date"),
    _endpoint(r"/org/v2/organizations", _organizations),
    _endpoint(r"/org/v2/environments", _environments),
    _endpoint(
        r"/cmk/v2/clusters",
        _in_environment(
            ListKind("cmk/v2", "ClusterList"),
            lambda plane: plane.organisation.inventory.clusters,
            lambda shapes: shapes.cluster,
        ),
        "environment",
        "spec.network",
        "spec.deletion_protection",
    ),
    _endpoint(r"/iam/v2/users", _users),
    _endpoint(r"/iam/v2/service-accounts", _service_accounts, "display_name"),
    _endpoint(r"/iam/v2/api-keys", _api_keys, "spec.owner", "spec.resource"),
    _endpoint(r"/iam/v2/identity-providers", _providers),
    _endpoint(r"/iam/v2/identity-providers/([^/]+)/identity-pools", _pools),
    _endpoint(
        r"/srcm/v3/clusters",
        _in_environment(
            ListKind("srcm/v3", "ClusterList", last_next="empty"),
            lambda plane: plane.organisation.inventory.registries,
            lambda shapes: shapes.registry,
        ),
        "environment",
    ),
    _endpoint(
        r"/ksqldbcm/v2/clusters",
        _in_environment(
            ListKind("ksqldbcm/v2", "ClusterList", last_next="null"),
            lambda plane: plane.organisation.inventory.ksql_clusters,
            lambda shapes: shapes.ksql_cluster,
        ),
        "environment",
    ),
    _endpoint(
        r"/fcpm/v2/compute-pools",
        _in_environment(
            ListKind("fcpm/v2", "ComputePoolList"),
            lambda plane: plane.organisation.inventory.compute_pools,
            lambda shapes: shapes.compute_pool,
        ),
        "environment",
        "spec.region",
        "spec.network",
    ),
    _endpoint(r"/fcpm/v2/regions", _regions, "cloud", "region_name"),
    _endpoint(r"/connect/v1/environments/([^/]+)/clusters/([^/]+)/connectors", _connectors, "expand", family="connect"),
    _endpoint(
        r"/flink/([^/]+)/sql/v1/organizations/([^/]+)/environments/([^/]+)/statements",
        _statements,
        "spec.compute_pool_id",
        "label_selector",
        family="flink",
    ),
)
