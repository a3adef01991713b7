"""Gathers the data of a Confluent Cloud organization: the bill, the inventory, the usage, the topics.

Its policies are those of ``policies.yaml`` next to this file, with a tenant's changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date
from functools import cache
from importlib.resources import files
from types import TracebackType
from typing import Self

import yaml

from chargeback.allocation.policies import Policy, PolicyCatalogue, Portion, parse_policies
from chargeback.ecosystems.confluent_cloud.api import ControlPlane
from chargeback.ecosystems.confluent_cloud.check import Checks
from chargeback.ecosystems.confluent_cloud.costs import BillFetcher
from chargeback.ecosystems.confluent_cloud.flink import FlinkStatements
from chargeback.ecosystems.confluent_cloud.inventory import InventoryListing
from chargeback.ecosystems.confluent_cloud.settings import MEASURES, ConfluentCloudSettings
from chargeback.ecosystems.confluent_cloud.topics import usable_topic_settings
from chargeback.ecosystems.confluent_cloud.usage import UsageQueries, usage_table
from chargeback.ecosystems.contract import Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.sources.prometheus import PrometheusClient
from chargeback.sources.windows import WindowSums

CKUS = "KAFKA_NUM_CKUS"


@cache
def catalogue() -> PolicyCatalogue:
    """Return the built-in policies."""
    document = yaml.safe_load((files(__package__) / "policies.yaml").read_text("utf-8"))
    return PolicyCatalogue(parse_policies(document["policies"], "policies"), document["aliases"])


def tenant_catalogue(settings: ConfluentCloudSettings) -> PolicyCatalogue:
    """Return the policies with the changes of a tenant's ``allocator_params`` and then of ``allocation_policies``."""
    shipped = catalogue()
    params = settings.allocator_params
    usage, shared = shipped.policies[CKUS].portions
    portions = (
        Portion(params.kafka_cku_usage_ratio, usage.methods),
        Portion(params.kafka_cku_shared_ratio, shared.methods),
    )
    ckus = Policy(tuple(portion for portion in portions if portion.share))
    own = parse_policies(settings.allocation_policies, "allocation_policies")
    return shipped.override({CKUS: ckus}).override(own)


class ConfluentCloudGatherer:
    """Implements :class:`chargeback.ecosystems.contract.Gatherer`; a context manager that closes its connections."""

    def __init__(self, context: TenantContext, settings: ConfluentCloudSettings) -> None:
        self._context = context
        self._settings = settings
        self._measures = tenant_catalogue(settings).measures & MEASURES
        self._connections = ExitStack()
        self._control_plane = ControlPlane(context, settings)
        self._connections.callback(self._control_plane.close)
        self._metrics: PrometheusClient | None = None
        self._queries: UsageQueries | None = None
        if settings.metrics is not None:
            self._metrics = self._connections.enter_context(
                PrometheusClient(settings.metrics, stop=context.stop, interactive=context.is_awaited)
            )
            sums = WindowSums(self._metrics)
            self._queries = UsageQueries(sums, settings.metric_names, settings.label_names)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connections.close()

    def billing(self, days: DayRange) -> Iterator[GatheredDay]:
        """See :meth:`.costs.Costs.gather`."""
        costs = BillFetcher(self._control_plane, self._context, self._settings.billing_api.days_per_query)
        return costs.gather(days)

    def inventory(self) -> ListedInventory:
        """See :meth:`.inventory.InventoryListing.gather`."""
        statements = FlinkStatements(self._control_plane, self._settings.flink)
        return InventoryListing(self._control_plane, statements).gather()

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        """Return every measure of the tenant's policies; an empty table without a metrics source."""
        if self._queries is None:
            return MeasuredUsage(usage_table(day, {}))
        return self._queries.day(day, self._measures, inventory)

    def topics(self, day: date) -> MeasuredUsage:
        """Return topic measures; an empty table if topic attribution is disabled or cannot be used."""
        settings = usable_topic_settings(self._settings)
        if self._queries is None or settings is None:
            return MeasuredUsage(usage_table(day, {}))
        return self._queries.topics(day, settings)

    def check(self) -> Iterator[Finding]:
        """See :class:`.check.Checks`."""
        return Checks(self._context, self._settings, self._control_plane, self._metrics).run()
