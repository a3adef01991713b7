"""``chargeback check --online``: test every credential and address once, and report the results."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property, partial
from typing import Final

from chargeback.ecosystems.confluent_cloud import objects
from chargeback.ecosystems.confluent_cloud.api import ControlPlane, ListRequest, required
from chargeback.ecosystems.confluent_cloud.costs import COSTS
from chargeback.ecosystems.confluent_cloud.flink import FlinkStatements
from chargeback.ecosystems.confluent_cloud.inventory import REQUIRED, InventoryListing
from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings, FlinkRegion
from chargeback.ecosystems.confluent_cloud.topics import topic_settings, usable_topic_settings
from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.ecosystems.findings import Check, CheckWarning, attempt_all
from chargeback.errors import ConfigurationError, SourceDataError, SourceError, SourceRejected, in_one_line
from chargeback.model.days import ONE_DAY
from chargeback.model.inventory import ListedInventory
from chargeback.sources.prometheus import PrometheusClient

#: The types that a run lists, and what they are called here. The organization and Flink have checks of their own.
LISTS: Final = {
    objects.ENVIRONMENT: "environments",
    objects.KAFKA_CLUSTER: "clusters",
    objects.SCHEMA_REGISTRY: "schema registries",
    objects.KSQLDB_CLUSTER: "ksqlDB clusters",
    objects.FLINK_POOL: "compute pools",
    objects.CONNECTOR: "connectors",
    objects.USER: "users",
    objects.SERVICE_ACCOUNT: "service accounts",
    objects.API_KEY: "API keys",
    objects.IDENTITY_PROVIDER: "identity providers",
    objects.IDENTITY_POOL: "identity pools",
}
#: Lists that are never empty: an organization has an environment and a user, and the key in use is in the list of keys.
_NEVER_EMPTY: Final = {objects.ENVIRONMENT, objects.USER, objects.API_KEY}
_COSTS_ARE_COMPLETE_AFTER = timedelta(days=4)


class Checks:
    """Lists the inventory as a run does, and sends one small request for costs, each Flink key and each metric."""

    def __init__(
        self,
        context: TenantContext,
        settings: ConfluentCloudSettings,
        control_plane: ControlPlane,
        metrics: PrometheusClient | None,
    ) -> None:
        self._context = context
        self._settings = settings
        self._control_plane = control_plane
        self._metrics = metrics
        # Without Flink keys: each of them has a check of its own.
        self._listing = InventoryListing(control_plane, FlinkStatements(control_plane, []))

    def run(self) -> Iterator[Finding]:
        """Yield one finding per credential, list and metric. If a server cannot be reached, or refuses its key, yield
        one finding for that, and one that names the checks that were skipped."""
        checks: dict[str, Check] = {"organization": self._organization}
        checks |= {subject: partial(self._list, kind) for kind, subject in LISTS.items()}
        checks |= {"costs": self._costs}
        checks |= {f"Flink region {key.region_id}": partial(self._flink, key) for key in self._settings.flink}
        yield from attempt_all(checks, lambda: self._control_plane.client.given_up is not None)
        yield from self._metric_findings()
        try:
            topic_settings(self._settings)
        except ConfigurationError as error:
            yield Finding("topic attribution", ok=True, detail=f"does not work: {in_one_line(error)}", warning=True)

    def _organization(self) -> str | CheckWarning:
        organization = self._control_plane.organization_id()
        if organization is None:
            return CheckWarning("not visible to this key; costs without a resource are billed to the tenant id")
        if (reason := self._listed.failures.get(objects.ORGANIZATION)) is not None:
            if self._control_plane.client.given_up is not None:
                raise SourceRejected(reason)
            return CheckWarning(f"{organization}, as configured, but {_every_run(reason)}")
        return organization

    @cached_property
    def _listed(self) -> ListedInventory:
        """The inventory, listed as a run lists it."""
        return self._listing.gather()

    def _list(self, kind: str) -> str | CheckWarning:
        """Report how many objects of a type there are.

        Raises:
            SourceRejected: a required list cannot be read: every run would fail.
        """
        if (reason := self._listed.failures.get(kind)) is not None:
            if kind in REQUIRED:
                raise SourceRejected(reason)
            return CheckWarning(_every_run(reason))
        inventory = self._listed.inventory
        types = [each.resource_type for each in inventory.resources]
        types += [each.identity_type for each in inventory.identities]
        found = types.count(kind)
        if not found and kind in _NEVER_EMPTY:
            return CheckWarning("the list is empty: does this key have permission to see them?")
        return f"{found} listed"

    def _first_page(self, listing: ListRequest) -> int:
        return len(next(iter(self._control_plane.pages(listing))))

    def _costs(self) -> str | CheckWarning:
        day = self._context.today - _COSTS_ARE_COMPLETE_AFTER
        params = {"start_date": day.isoformat(), "end_date": (day + ONE_DAY).isoformat()}
        found = self._first_page(ListRequest(COSTS, params, bucket="costs"))
        return f"{day}: {found} on the first page" if found else CheckWarning(f"{day}: nothing was billed")

    def _flink(self, key: FlinkRegion) -> str | CheckWarning:
        """List the statements of the environments that the key gives access to."""
        statements = FlinkStatements(self._control_plane, [key])
        organization = self._control_plane.organization_id()
        if organization is None:
            raise SourceRejected("statements need the organization's id: set organization_id", source="flink")
        region = next((each for each in statements.regions() if statements.keys_of(each)), None)
        if region is None:
            raise SourceRejected("the provider lists no such region", source="flink")
        refusal: SourceError = SourceRejected("there is no environment", source="flink")
        seen: list[str] = []
        for environment in self._control_plane.list("/org/v2/environments"):
            try:
                found = statements.list(key, region, organization, required(environment, "id"))
            except SourceRejected as refused:
                refusal = refused
            else:
                if found:
                    return f"{region.region_id}: {len(found)} statements in {environment['id']}"
                seen.append(environment["id"])
        if seen:
            return CheckWarning(f"{region.region_id}: no statements in {', '.join(seen)}, so its costs have no owners")
        raise refusal

    def _metric_findings(self) -> Iterator[Finding]:
        if self._metrics is None:
            yield Finding("metrics", ok=True, detail="no source: everything is split without usage", warning=True)
            return
        names = dict(self._settings.metric_names.model_dump())
        topics = usable_topic_settings(self._settings)
        if topics is not None:
            names |= topics.metric_name_overrides.model_dump()
        metrics = self._metrics
        series = {f"metric {measure}": partial(self._series, metrics, metric) for measure, metric in names.items()}
        yield from attempt_all(series, lambda: metrics.given_up)

    def _series(self, metrics: PrometheusClient, metric: str) -> str | CheckWarning:
        if found := metrics.instant(f"count(last_over_time({metric}[1d]))", self._context.now()):
            return f"{metric}: {found[0].value} series within the last day"
        if found := metrics.instant(f"count(last_over_time({metric}[15d]))", self._context.now()):
            return CheckWarning(f"{metric}: {found[0].value} series within 15 days, but no sample of the last day")
        raise SourceDataError(f"{metric}: no series within 15 days")


def _every_run(reason: str) -> str:
    return f"{reason}; every run completes with this error, and without these data"
