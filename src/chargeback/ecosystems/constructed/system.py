"""One system and its users, known from the user's own queries only: its inventory, its usage, its checks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from chargeback.ecosystems.constructed.admin import KAFKA_BROKER, KAFKA_TOPIC, describe, list_parts
from chargeback.ecosystems.constructed.identities import InventoryBuilder, list_discovered, list_static, recently_seen
from chargeback.ecosystems.constructed.meter import Meter, Shares, shares_of
from chargeback.ecosystems.constructed.plugin import measured_usage, range_warning, series_of
from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.constructed.settings import PRESENCE, ConstructedSettings
from chargeback.ecosystems.contract import Finding, MeasuredUsage, TenantContext
from chargeback.ecosystems.findings import Check, attempt, attempt_all
from chargeback.errors import SourceDataError
from chargeback.model.inventory import ListedInventory, Resource
from chargeback.sources.kafka_admin import KafkaAdmin
from chargeback.sources.prometheus import PrometheusClient


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """PromQL that gives the increase of each step, and the label that names an identity. With ``kind``, a label and
    one of its values, only series with that value count."""

    query: str
    label: str
    kind: tuple[str, str] | None = None


class QueriedSystem:
    """A system of type ``resource_type``; without a metrics source nothing is measured and all identities are static.
    Threads may share one object.

    ``queries`` are those that ``check --online`` tries, by subject; a query in ``summed`` is added up over the steps of
    a day.
    """

    def __init__(
        self,
        context: TenantContext,
        settings: ConstructedSettings,
        resource_type: str,
        connections: ExitStack,
        *,
        queries: Mapping[str, str],
        summed: Collection[str],
    ) -> None:
        self._settings = settings
        self._resource_type = resource_type
        self._now = context.now
        self._queries = queries
        self._summed = summed
        self._step = timedelta(seconds=settings.metrics_step_seconds)
        self._client: PrometheusClient | None = None
        self.meter: Meter | None = None
        if settings.metrics is not None:
            self._client = connections.enter_context(
                PrometheusClient(settings.metrics, stop=context.stop, interactive=context.is_awaited)
            )
            self.meter = Meter(self._client, self._step)

    def inventory(self, admin: KafkaAdmin | None = None) -> ListedInventory:
        """Return the one resource and its users; with its ``admin`` API also its brokers and topics."""
        settings, listing = self._settings, InventoryBuilder()
        source = settings.identity_source
        name = settings.display_name or settings.cluster_id
        listing.resources.append(Resource(settings.cluster_id, self._resource_type, name))
        listing.complete.add(self._resource_type)
        if admin is not None:
            listing.attempt([KAFKA_BROKER, KAFKA_TOPIC], lambda: list_parts(listing, admin, settings.cluster_id))
        if source.static_identities:
            list_static(listing, source, settings.cluster_id)
        if source.discovery_query and source.uses_metrics and self._client is not None:
            query = source.discovery_query
            list_discovered(listing, source, self._client, query, settings.identity_label, self._now)
        return listing.listed(required=[self._resource_type])

    def usage(self, day: date, queries: Mapping[str, UsageQuery]) -> MeasuredUsage:
        """Return the usage of a day by measure, and presence: with a discovery query, every identity that it found that
        day is active."""
        settings, meter = self._settings, self.meter
        if meter is None:
            return measured_usage(day, settings.cluster_id, {})
        points = {
            query: list(meter.points(with_step(query, meter.step), day))
            for query in dict.fromkeys(each.query for each in queries.values())
        }
        measures: dict[str, Shares] = {
            measure: shares_of(points[each.query], each.label, each.kind) for measure, each in queries.items()
        }
        source = settings.identity_source
        if source.uses_metrics and source.discovery_query:
            query = with_step(source.discovery_query, meter.step)
            measures[PRESENCE] = meter.presence(query, settings.identity_label, day)
        return measured_usage(day, settings.cluster_id, measures)

    def check(self, admin: KafkaAdmin | None = None) -> Iterator[Finding]:
        """Check the admin API and each query once; warn about each summed query with a range that is not as long as the
        step. If the metrics source cannot be reached, or refuses its key, yield one finding for that, and one that
        names the checks that were skipped."""
        if admin is not None:
            yield attempt("admin API", partial(describe, admin))
        client = self._client
        if client is None:
            yield Finding("metrics", ok=True, detail="not needed: nothing is measured and every identity is static")
            return
        checks: dict[str, Check] = {
            subject: partial(series_of, client, with_step(query, self._step), self._now)
            for subject, query in self._queries.items()
        }
        if self._settings.identity_source.uses_metrics:
            checks["identities"] = partial(self._identities, client)
        yield from attempt_all(checks, lambda: client.given_up)
        for subject in self._summed:
            if (warning := range_warning(subject, self._queries[subject], self._step)) is not None:
                yield warning

    def _identities(self, client: PrometheusClient) -> str:
        source, label = self._settings.identity_source, self._settings.identity_label
        hours = source.discovery_window_hours
        found = recently_seen(client, source.discovery_query or "", label, hours, self._now)
        if not found:
            raise SourceDataError(f"discovery_query gives no series with the label {label} within {hours} h")
        return f"{len(found)} within {hours} h"
