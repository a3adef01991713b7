"""A system known by its metrics, at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from functools import partial
from types import TracebackType
from typing import Final, Self

from chargeback.ecosystems.constructed.bill import Account, gather
from chargeback.ecosystems.constructed.check import attempt, range_warning, series_of
from chargeback.ecosystems.constructed.identities import Listing, list_discovered, list_static, seen_lately
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.constructed.usage import measured_usage
from chargeback.ecosystems.contract import Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.ecosystems.generic_metrics_only.measuring import Measuring
from chargeback.ecosystems.generic_metrics_only.policies import tenant_catalogue
from chargeback.ecosystems.generic_metrics_only.settings import Fixed, GenericMetricsSettings, summed_queries
from chargeback.errors import SourceDataError
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, ListedInventory, Resource
from chargeback.sources.prometheus import PrometheusClient

SYSTEM: Final = "metrics_system"


class GenericMetricsGatherer:
    """Implements :class:`chargeback.ecosystems.contract.Gatherer`; a context manager that closes its connections."""

    def __init__(self, context: TenantContext, settings: GenericMetricsSettings) -> None:
        self._settings = settings
        self._step = timedelta(seconds=settings.metrics_step_seconds)
        self._connections = ExitStack()
        self._client: PrometheusClient | None = None
        meter: Meter | None = None
        if settings.metrics is not None:
            self._client = self._connections.enter_context(
                PrometheusClient(settings.metrics, stop=context.stop, is_awaited=context.is_awaited)
            )
            meter = Meter(self._client, self._step)
        self._measuring = Measuring(settings, meter, tenant_catalogue(settings).measures)
        self._account = Account(
            resource_id=settings.cluster_id,
            resource_type=SYSTEM,
            resource_name=settings.display_name,
            currency=context.currency,
            granularity=settings.chargeback_granularity,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connections.close()

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        """See :func:`chargeback.ecosystems.constructed.bill.gather`."""
        return gather(days, self._measuring.charges, self._account)

    def inventory(self) -> ListedInventory:
        """The one resource, and who uses it."""
        settings, listing = self._settings, Listing()
        source = settings.identity_source
        name = settings.display_name or settings.cluster_id
        listing.resources.append(Resource(settings.cluster_id, SYSTEM, name))
        listing.complete.add(SYSTEM)
        if source.static_identities:
            list_static(listing, source, settings.cluster_id)
        if source.discovery_query and source.uses_metrics and self._client is not None:
            list_discovered(listing, source, self._client, source.discovery_query, settings.identity_label)
        return listing.listed(required=[SYSTEM])

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        """See :meth:`.measuring.Measuring.usage`."""
        return self._measuring.usage(day)

    def topics(self, day: date) -> MeasuredUsage:
        """Nothing: there are no topics here."""
        return measured_usage(day, "", {})

    def check(self) -> Iterator[Finding]:
        """Each query once, and a warning for each that is summed with a range of another length than the step."""
        if self._client is None:
            yield Finding("metrics", ok=True, detail="not needed: every cost is fixed and every identity static")
            return
        for each in self._settings.cost_types:
            if not isinstance(each.cost_quantity, Fixed):
                query = with_step(each.cost_quantity.query, self._step)
                yield attempt(f"{each.name} cost_quantity", partial(series_of, self._client, query))
            if each.allocation_query is not None:
                query = with_step(each.allocation_query, self._step)
                yield attempt(f"{each.name} allocation_query", partial(series_of, self._client, query))
        for subject, query in summed_queries(self._settings).items():
            if (warning := range_warning(subject, query, self._step)) is not None:
                yield warning
        if self._settings.identity_source.uses_metrics:
            yield attempt("identities", partial(self._identities, self._client))

    def _identities(self, client: PrometheusClient) -> str:
        source, label = self._settings.identity_source, self._settings.identity_label
        hours = source.discovery_window_hours
        found = seen_lately(client, source.discovery_query or "", label, hours)
        if not found:
            raise SourceDataError(f"discovery_query gives no series with the label {label} within {hours} h")
        return f"{len(found)} within {hours} h"
