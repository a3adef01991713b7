"""Gathers the data of a system that has only metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Final

from chargeback.ecosystems.constructed.bill import LineDefaults
from chargeback.ecosystems.constructed.check import range_warning, series_of
from chargeback.ecosystems.constructed.identities import InventoryBuilder, list_discovered, list_static, recently_seen
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.plugin import ConstructedGatherer
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.contract import Finding, TenantContext
from chargeback.ecosystems.findings import Check, attempt_all
from chargeback.ecosystems.generic_metrics_only.measuring import Measuring
from chargeback.ecosystems.generic_metrics_only.policies import tenant_catalogue
from chargeback.ecosystems.generic_metrics_only.settings import Fixed, GenericMetricsSettings, summed_queries
from chargeback.errors import SourceDataError
from chargeback.model.days import Clock
from chargeback.model.inventory import ListedInventory, Resource
from chargeback.sources.prometheus import PrometheusClient

SYSTEM: Final = "metrics_system"


def open_system(context: TenantContext, settings: GenericMetricsSettings) -> ConstructedGatherer:
    """Start work for the tenant of this system."""
    connections, client, meter = ExitStack(), None, None
    if settings.metrics is not None:
        client = connections.enter_context(
            PrometheusClient(settings.metrics, stop=context.stop, interactive=context.is_awaited)
        )
        meter = Meter(client, timedelta(seconds=settings.metrics_step_seconds))
    measuring = Measuring(settings, meter, tenant_catalogue(settings).measures)
    system = System(settings, client, context.now)
    return ConstructedGatherer(
        connections,
        LineDefaults.of(settings, SYSTEM, context.currency),
        charges_of=measuring.charges,
        usage_of=measuring.usage,
        listing=system.inventory,
        checks=system.check,
    )


class System:
    """Lists the users of the system and checks its queries. ``client`` may be None if nothing is measured."""

    def __init__(self, settings: GenericMetricsSettings, client: PrometheusClient | None, now: Clock) -> None:
        self._settings = settings
        self._client = client
        self._now = now
        self._step = timedelta(seconds=settings.metrics_step_seconds)

    def inventory(self) -> ListedInventory:
        """Return the one resource and its users."""
        settings, listing = self._settings, InventoryBuilder()
        source = settings.identity_source
        name = settings.display_name or settings.cluster_id
        listing.resources.append(Resource(settings.cluster_id, SYSTEM, name))
        listing.complete.add(SYSTEM)
        if source.static_identities:
            list_static(listing, source, settings.cluster_id)
        if source.discovery_query and source.uses_metrics and self._client is not None:
            query = source.discovery_query
            list_discovered(listing, source, self._client, query, settings.identity_label, self._now)
        return listing.listed(required=[SYSTEM])

    def check(self) -> Iterator[Finding]:
        """Check each query once; warn about each summed query with a range that is not as long as the step. If the
        metrics source cannot be reached, or refuses its key, yield one finding for that, and one that names the checks
        that were skipped."""
        client = self._client
        if client is None:
            yield Finding("metrics", ok=True, detail="not needed: every cost is fixed and every identity static")
            return
        checks: dict[str, Check] = {
            subject: partial(series_of, client, with_step(query, self._step), self._now)
            for subject, query in self._queries().items()
        }
        if self._settings.identity_source.uses_metrics:
            checks["identities"] = partial(self._identities, client)
        yield from attempt_all(checks, lambda: client.given_up)
        for subject, query in summed_queries(self._settings).items():
            if (warning := range_warning(subject, query, self._step)) is not None:
                yield warning

    def _queries(self) -> dict[str, str]:
        """Return every query of the cost types, by what it is for."""
        queries: dict[str, str] = {}
        for each in self._settings.cost_types:
            if not isinstance(each.cost_quantity, Fixed):
                queries[f"{each.name} cost_quantity"] = each.cost_quantity.query
            if each.allocation_query is not None:
                queries[f"{each.name} allocation_query"] = each.allocation_query
        return queries

    def _identities(self, client: PrometheusClient) -> str:
        source, label = self._settings.identity_source, self._settings.identity_label
        hours = source.discovery_window_hours
        found = recently_seen(client, source.discovery_query or "", label, hours, self._now)
        if not found:
            raise SourceDataError(f"discovery_query gives no series with the label {label} within {hours} h")
        return f"{len(found)} within {hours} h"
