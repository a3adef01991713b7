"""A self-managed cluster at work: its bill from rates and measurements, its inventory, its usage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from types import TracebackType
from typing import Self

from chargeback.ecosystems.constructed.bill import Account, gather
from chargeback.ecosystems.constructed.meter import Meter
from chargeback.ecosystems.constructed.usage import measured_usage
from chargeback.ecosystems.contract import Finding, GatheredDay, MeasuredUsage, TenantContext
from chargeback.ecosystems.self_managed_kafka.bill import DailyCharges
from chargeback.ecosystems.self_managed_kafka.brokers import BrokerMetrics
from chargeback.ecosystems.self_managed_kafka.check import Checks
from chargeback.ecosystems.self_managed_kafka.inventory import KAFKA_CLUSTER, ClusterInventory, connection
from chargeback.ecosystems.self_managed_kafka.policies import tenant_catalogue
from chargeback.ecosystems.self_managed_kafka.settings import ResourceSource, SelfManagedKafkaSettings
from chargeback.ecosystems.self_managed_kafka.usage import ClusterUsage
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, ListedInventory
from chargeback.sources.kafka_admin import AWAITED_SECONDS, PATIENCE_SECONDS, KafkaAdmin
from chargeback.sources.prometheus import PrometheusClient


class SelfManagedKafkaGatherer:
    """Implements :class:`chargeback.ecosystems.contract.Gatherer`; a context manager that closes its connections."""

    def __init__(self, context: TenantContext, settings: SelfManagedKafkaSettings) -> None:
        self._connections = ExitStack()
        client = self._connections.enter_context(
            PrometheusClient(settings.metrics, stop=context.stop, is_awaited=context.is_awaited)
        )
        meter = Meter(client, timedelta(seconds=settings.metrics_step_seconds))
        metrics = BrokerMetrics(settings)
        admin = _admin(context, settings.resource_source)
        self._charges = DailyCharges(settings, metrics, meter)
        self._inventory = ClusterInventory(settings, metrics, client, admin)
        self._usage = ClusterUsage(settings, metrics, meter, tenant_catalogue(settings).measures)
        self._checks = Checks(settings, metrics, client, admin)
        self._account = Account(
            resource_id=settings.cluster_id,
            resource_type=KAFKA_CLUSTER,
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
        return gather(days, self._charges.of, self._account)

    def inventory(self) -> ListedInventory:
        """See :meth:`.inventory.ClusterInventory.gather`."""
        return self._inventory.gather()

    def usage(self, day: date, inventory: Inventory) -> MeasuredUsage:
        """See :class:`.usage.ClusterUsage`."""
        return self._usage.of(day)

    def topics(self, day: date) -> MeasuredUsage:
        """Nothing: cost is not attributed to topics here."""
        return measured_usage(day, "", {})

    def check(self) -> Iterator[Finding]:
        """See :class:`.check.Checks`."""
        return self._checks.run()


def _admin(context: TenantContext, source: ResourceSource) -> KafkaAdmin | None:
    """The cluster's admin API, where it lists brokers and topics; a person who waits is not kept for long."""
    if source.source != "admin_api":
        return None
    patience = AWAITED_SECONDS if context.is_awaited else PATIENCE_SECONDS
    return KafkaAdmin(connection(source), stop=context.stop, patience_seconds=patience)
