"""The billing lines of one day, before conversion to the provider's JSON.

Quantities follow the day's traffic; original amount = quantity × price, rounded to ten decimals, and
amount = original amount − discount.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal

from chargeback.demo.inventory import Cluster
from chargeback.demo.randomness import numbers
from chargeback.demo.traffic import Traffic

EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
TEN_PLACES = Decimal("1E-10")
HOURS = 24


@dataclass(frozen=True)
class BilledResource:
    """The resource of a line; ``environment`` is None for a resource outside environments."""

    id: str
    name: str
    environment: str | None


@dataclass(frozen=True)
class Line:
    """A billing line. Support and credits have no price, unit price or quantity, only an amount."""

    product: str | None
    line_type: str
    resource: BilledResource | None
    unit: str
    price: Decimal | None = None
    quantity: Decimal | None = None
    fixed: Decimal | None = None
    discount: int = 0
    access: str | None = None
    description: str | None = None
    tier: tuple[tuple[str, str], ...] = ()

    @property
    def original_amount(self) -> Decimal:
        """Return the amount before the discount, with ten decimals."""
        if self.fixed is not None:
            return self.fixed
        if self.price is None or self.quantity is None:
            return Decimal(0)
        return EXACT.quantize(EXACT.multiply(self.price, self.quantity), TEN_PLACES)

    @property
    def discount_amount(self) -> Decimal:
        """``discount`` is in per mille of the original amount."""
        part = EXACT.multiply(self.original_amount, Decimal(self.discount).scaleb(-3))
        return EXACT.quantize(part, TEN_PLACES)


def lines_of_day(traffic: Traffic, day: date) -> list[Line]:
    """Return every line of one day, credits and support last; empty before the organisation's first day."""
    if day < traffic.first_day:
        return []
    lines: list[Line] = []
    for cluster in traffic.inventory.clusters:
        if cluster.existed_on(day):
            lines.extend(_kafka(traffic, cluster, day))
    lines.extend(_links_and_tableflow(traffic, day))
    lines.extend(_governance(traffic, day))
    lines.extend(_connect(traffic, day))
    lines.extend(_processing(traffic, day))
    lines.extend(_oddities(traffic, day))
    lines.extend(_organisation(traffic, day, lines))
    return lines


def late_line(traffic: Traffic) -> Line:
    """Return a late line of a day's bill: data that was written to the first cluster, and that the provider had not
    counted."""
    cluster = traffic.inventory.clusters[0]
    resource = BilledResource(cluster.id, cluster.name, cluster.environment)
    price, quantity = Decimal("0.0275"), Decimal("9081.25")
    note = "Usage that was reported late"
    return Line("KAFKA", "KAFKA_NETWORK_WRITE", resource, "GB", price, quantity, description=note)


# Prices per kind: base per hour, partition-hour, storage per GB-hour, write and read per GB.
_KAFKA_PRICES: dict[str, tuple[str, str, str, str, str]] = {
    "Basic": ("0", "0.0040", "0.0001095890", "0.0500", "0.0500"),
    "Standard": ("1.50", "0.0040", "0.0001095890", "0.0400", "0.0385"),
    "Dedicated": ("0", "0", "0.0001369863", "0.0275", "0.0330"),
    "Enterprise": ("2.25", "0", "0.0001095890", "0.0310", "0.0310"),
    "Freight": ("2.10", "0", "0.0000410959", "0.0105", "0.0142"),
}
_ACCESS = {"Dedicated": "PEERED_VPC", "Enterprise": "PRIVATE_LINK", "Freight": "PRIVATE_LINK"}


def _kafka(traffic: Traffic, cluster: Cluster, day: date) -> Iterator[Line]:
    base, partition, storage, write, read = (Decimal(text) for text in _KAFKA_PRICES[cluster.kind])
    resource = BilledResource(cluster.id, cluster.name, cluster.environment)
    members, topics = traffic.members(cluster, day), traffic.topics(cluster, day)
    access = _ACCESS.get(cluster.kind, "INTERNET")
    discount = 100 if cluster.kind in ("Dedicated", "Enterprise") else 0
    if cluster.cku:
        quantity = Decimal(cluster.cku * HOURS)
        yield Line("KAFKA", "KAFKA_NUM_CKUS", resource, "CKU-hour", Decimal("2.7125"), quantity, discount=discount)
    if base:
        yield Line("KAFKA", "KAFKA_BASE", resource, "Hour", base, Decimal(HOURS))
    if partition:
        count = Decimal(6 * len(topics) * HOURS)
        yield Line("KAFKA", "KAFKA_PARTITION", resource, "Partition-hour", partition, count)
    kept = gigabytes(3 * HOURS * sum(retained for _, _, _, retained in topics))
    yield Line("KAFKA", "KAFKA_STORAGE", resource, "GB-hour", storage, kept, discount=discount)
    written = gigabytes(sum(written for _, written, _ in members))
    yield Line("KAFKA", "KAFKA_NETWORK_WRITE", resource, "GB", write, written, discount=discount, access=access)
    yield from _network_read(cluster, resource, read, gigabytes(sum(read for _, _, read in members)), access)
    if cluster.kind in ("Standard", "Enterprise"):
        share = EXACT.quantize(EXACT.multiply(written, Decimal("0.013")), TEN_PLACES)
        yield Line("KAFKA", "KAFKA_REST_PRODUCE", resource, "GB", Decimal("0.05"), share, access=access)
    if cluster.kind == "Enterprise":
        yield Line("KAFKA", "KAFKA_STREAMS", resource, "Hour", Decimal("0.0123456789"), Decimal(HOURS))


def _network_read(
    cluster: Cluster, resource: BilledResource, price: Decimal, quantity: Decimal, access: str
) -> Iterator[Line]:
    """Yield one line, or three tiers at decreasing prices on Standard clusters."""
    if cluster.kind != "Standard":
        yield Line("KAFKA", "KAFKA_NETWORK_READ", resource, "GB", price, quantity, access=access)
        return
    left, dimensions = quantity, (("provider", cluster.cloud), ("region", cluster.region))
    for size, cheaper in ((Decimal(20), "0"), (Decimal(60), "0.0050"), (None, "0.0115")):
        part = left if size is None else min(left, size)
        left = EXACT.subtract(left, part)
        if part:
            yield Line(
                "KAFKA",
                "KAFKA_NETWORK_READ",
                resource,
                "GB",
                EXACT.subtract(price, Decimal(cheaper)),
                part,
                access=access,
                tier=dimensions,
            )


def _links_and_tableflow(traffic: Traffic, day: date) -> Iterator[Line]:
    clusters = {cluster.id: cluster for cluster in traffic.inventory.clusters}
    for link in traffic.inventory.links:
        cluster = clusters[link.cluster]
        resource = BilledResource(cluster.id, cluster.name, cluster.environment)
        read = gigabytes(cluster.read * link.read_share // 10_000)
        written = gigabytes(cluster.written * link.write_share // 10_000)
        for line_type, unit, price, quantity in (
            ("CLUSTER_LINKING_PER_LINK", "Hour", "0.25", Decimal(HOURS)),
            ("CLUSTER_LINKING_READ", "GB", "0.0205", read),
            ("CLUSTER_LINKING_WRITE", "GB", "0.0305", written),
        ):
            yield Line("CLUSTER_LINK", line_type, resource, unit, Decimal(price), quantity)
    for cluster_id in traffic.inventory.tableflow:
        cluster = clusters[cluster_id]
        resource = BilledResource(cluster.id, cluster.name, cluster.environment)
        noise = numbers(1, traffic.seed, "tableflow", cluster_id, day)[0]
        data = gigabytes(noise * 11)
        for line_type, unit, price, quantity in (
            ("TABLEFLOW_NUM_TOPICS", "Topic-hour", "0.10", Decimal(3 * HOURS)),
            ("TABLEFLOW_DATA_PROCESSED", "GB", "0.0415", data),
            ("TABLEFLOW_STORAGE", "GB-hour", "0.0000315", EXACT.multiply(data, Decimal(700))),
        ):
            yield Line("TABLEFLOW", line_type, resource, unit, Decimal(price), quantity)


def _governance(traffic: Traffic, day: date) -> Iterator[Line]:
    for registry in traffic.inventory.registries:
        resource = BilledResource(registry.id, registry.name, registry.environment)
        advanced = registry.package == "ADVANCED"
        if advanced:
            yield Line("STREAM_GOVERNANCE", "GOVERNANCE_BASE", resource, "Hour", Decimal("1.00"), Decimal(HOURS))
        schemas = 100 + numbers(1, traffic.seed, "schemas", registry.id, day)[0] % 400
        price = Decimal("0.0002777778")
        quantity = Decimal(schemas * HOURS)
        yield Line("STREAM_GOVERNANCE", "SCHEMA_REGISTRY", resource, "Schema-hour", price, quantity)
        if advanced:
            yield Line("STREAM_GOVERNANCE", "NUM_RULES", resource, "Rule-hour", price, Decimal(12 * HOURS))


def _connect(traffic: Traffic, day: date) -> Iterator[Line]:
    for connector in traffic.inventory.connectors:
        if not connector.existed_on(day):
            continue
        custom = connector.auth == "custom"
        product, prefix = ("CUSTOM_CONNECT", "CUSTOM_CONNECT") if custom else ("CONNECT", "CONNECT")
        resource = BilledResource(connector.id, connector.name, connector.environment)
        price = Decimal("0.1389") if custom else Decimal("0.0347")
        tasks = Decimal(connector.tasks * HOURS)
        kind = (("connector_type", connector.plugin),)
        yield Line(product, f"{prefix}_NUM_TASKS", resource, "Task-hour", price, tasks, tier=kind)
        noise = numbers(1, traffic.seed, "connector", connector.id, day)[0]
        moved = gigabytes(connector.bytes_a_day * (700 + noise % 601) // 1000)
        yield Line(product, f"{prefix}_THROUGHPUT", resource, "GB", Decimal("0.025"), moved)


def _processing(traffic: Traffic, day: date) -> Iterator[Line]:
    """Yield the lines of ksqlDB and Flink; a pool is billed a little more than its statements consumed."""
    for ksql in traffic.inventory.ksql_clusters:
        if ksql.existed_on(day):
            resource = BilledResource(ksql.id, ksql.name, ksql.environment)
            quantity = Decimal(ksql.csu * HOURS)
            yield Line("KSQL", "KSQL_NUM_CSUS", resource, "CSU-hour", Decimal("0.23"), quantity)
    consumed = dict.fromkeys((pool.id for pool in traffic.inventory.compute_pools), 0)
    for statement, amount in traffic.statements(day):
        consumed[statement.pool] += amount
    for pool in traffic.inventory.compute_pools:
        if pool.existed_on(day):
            hours = EXACT.quantize(EXACT.divide(Decimal(consumed[pool.id]), Decimal(58_000)), Decimal("0.0001"))
            resource = BilledResource(pool.id, pool.name, pool.environment)
            yield Line("FLINK", "FLINK_NUM_CFUS", resource, "CFU-hour", Decimal("0.21"), hours)


def _oddities(traffic: Traffic, day: date) -> Iterator[Line]:
    """Yield unusual lines as on real bills: an undocumented product, a refund, two equal lines on one day."""
    age = (day - traffic.first_day).days
    cluster = traffic.inventory.clusters[0]
    resource = BilledResource(cluster.id, cluster.name, cluster.environment)
    if age % 17 == 4:
        yield Line("CONTEXT_ENGINE", "CONTEXT_ENGINE_TABLES", resource, "Table-hour", Decimal("0.07"), Decimal(24))
    if age % 13 == 6:
        note = "Refund for a service incident"
        price, quantity = Decimal("0.0330"), Decimal("-37.125")
        yield Line("KAFKA", "KAFKA_NETWORK_READ", resource, "GB", price, quantity, description=note)
    if age % 11 == 5:
        for _ in range(2):
            yield Line("KAFKA", "KAFKA_REST_PRODUCE", resource, "GB", Decimal("0.05"), Decimal("0.0000013"))


def _organisation(traffic: Traffic, day: date, lines: list[Line]) -> Iterator[Line]:
    """Yield the lines of the whole organisation: audit log, support (a share of the day), promotional credits."""
    age = (day - traffic.first_day).days
    audit = BilledResource("lkc-audit0", "audit log", None)
    noise = numbers(1, traffic.seed, "audit", day)[0]
    yield Line("AUDIT_LOG", "AUDIT_LOG_READ", audit, "GB", Decimal("0.0600"), gigabytes(noise // 7))
    if traffic.inventory.registries and age % 2 == 0:
        yield Line("USM", "USM_CONNECTED_NODE", None, "Node-hour", Decimal("0.04"), Decimal(3 * HOURS))
    total = Decimal(0)
    for line in lines:
        total = EXACT.add(total, EXACT.subtract(line.original_amount, line.discount_amount))
    support = EXACT.quantize(EXACT.multiply(total, Decimal("0.08")), TEN_PLACES)
    yield Line("SUPPORT_CLOUD_BUSINESS", "SUPPORT", None, "Day", fixed=support)
    if age % 7 == 3:
        yield Line(None, "PROMO_CREDIT", None, "", fixed=Decimal("-12.34"), description="KAFKA101")


def gigabytes(count: int) -> Decimal:
    """Return bytes as exact decimal gigabytes (10⁹), with nine decimals."""
    return Decimal(count).scaleb(-9, EXACT)
