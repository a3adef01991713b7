"""The same organisation with another provider: the bill of one cluster as files in FOCUS, laid out as AWS does for MSK.

A folder per billing period has the data and a manifest. Brokers are billed by the hour, storage and traffic by the day,
support and tax by the month. A consumer of the metrics finds the same principals as on Confluent Cloud.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from chargeback.demo.config import CUTOFF_DAYS, MAX_LOOKBACK_DAYS, ServerInfo
from chargeback.demo.inventory import Cluster
from chargeback.demo.lines import EXACT, HOURS, TEN_PLACES, gigabytes
from chargeback.demo.metrics import REQUEST_BYTES, RESPONSE_BYTES
from chargeback.demo.organisation import Organisation
from chargeback.model.days import ONE_DAY, DayRange, month_of, start_of_day

_SERVICE: Final = "Amazon Managed Streaming for Apache Kafka"
_ACCOUNT: Final = "120000000042"
_BROKERS: Final = 3
_MONEY: Final = pa.decimal128(28, 10)
_INSTANT: Final = pa.timestamp("ms", tz="UTC")
_SCHEMA: Final = pa.schema(
    [
        ("BillingAccountId", pa.string()),
        ("SubAccountId", pa.string()),
        ("BillingCurrency", pa.string()),
        ("BillingPeriodStart", _INSTANT),
        ("BillingPeriodEnd", _INSTANT),
        ("ChargePeriodStart", _INSTANT),
        ("ChargePeriodEnd", _INSTANT),
        ("ChargeCategory", pa.string()),
        ("ChargeClass", pa.string()),
        ("ChargeDescription", pa.string()),
        ("ServiceName", pa.string()),
        ("ServiceCategory", pa.string()),
        ("SkuMeter", pa.string()),
        ("RegionId", pa.string()),
        ("ResourceId", pa.string()),
        ("ResourceName", pa.string()),
        ("ResourceType", pa.string()),
        ("PricingQuantity", _MONEY),
        ("PricingUnit", pa.string()),
        ("ListUnitPrice", _MONEY),
        ("ListCost", _MONEY),
        ("BilledCost", _MONEY),
        ("EffectiveCost", _MONEY),
        ("Tags", pa.map_(pa.string(), pa.string())),
    ]
)
_SUPPORT: Final = Decimal("49.00")
_TAX: Final = Decimal("0.07")
#: Committed use makes everything a tenth cheaper than on the list.
_DISCOUNT: Final = Decimal("0.9")
_POLICY: Final = [
    {"share": "0.70", "try": ["usage(bytes_in + bytes_out)", "even(active)", "even(period)"]},
    {"share": "0.30", "try": ["even(active)", "even(period)"]},
]


def billed_cluster(organisation: Organisation) -> Cluster:
    """Return the cluster that the bill is for: the one with the most traffic."""
    return max(
        organisation.listed(organisation.inventory.clusters), key=lambda each: (each.written + each.read, each.id)
    )


def write_bill(organisation: Organisation, folder: Path) -> None:
    """Write the files of all billing periods below ``folder``, each with its manifest."""
    spec, cluster = organisation.spec, billed_cluster(organisation)
    periods: dict[date, list[dict[str, Any]]] = defaultdict(list)
    for day in DayRange(spec.first_day, spec.last_cost_day + ONE_DAY):
        if cluster.existed_on(day):
            periods[day.replace(day=1)] += _rows_of_day(organisation, cluster, day)
    for first, of_days in periods.items():
        rows = [*of_days, *_rows_of_month(cluster, first, of_days)]
        partition = f"BILLING_PERIOD={first:%Y-%m}"
        data = folder / "data" / partition / "kafka-00001.snappy.parquet"
        data.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), data)
        manifest = folder / "metadata" / partition / "kafka-Manifest.json"
        manifest.parent.mkdir(parents=True, exist_ok=True)
        names = [f"s3://acme-bills/kafka/data/{partition}/{data.name}"]
        manifest.write_text(json.dumps({"exportName": "kafka", "dataFiles": names}) + "\n", encoding="utf-8")


def _rows_of_day(organisation: Organisation, cluster: Cluster, day: date) -> Iterator[dict[str, Any]]:
    """Yield an hourly row of each broker, and the day's storage and traffic."""
    traffic = organisation.traffic
    midnight = start_of_day(day)
    for hour in range(HOURS):
        period = midnight + timedelta(hours=hour), midnight + timedelta(hours=hour + 1)
        for broker in range(1, _BROKERS + 1):
            yield _row(cluster, period, "Kafka.m7g.large", Decimal(1), "Hrs", Decimal("0.204"), broker=broker)
    members, topics = traffic.members(cluster, day), traffic.topics(cluster, day)
    of_day = midnight, midnight + ONE_DAY
    stored = EXACT.divide(gigabytes(_BROKERS * sum(retained for *_, retained in topics)), Decimal(30))
    yield _row(cluster, of_day, "Kafka.Storage.GP2", stored, "GB-Mo", Decimal("0.10"))
    for name, amount in (
        ("DataTransfer-In-Bytes", sum(written for _, written, _ in members)),
        ("DataTransfer-Out-Bytes", sum(read for *_, read in members)),
    ):
        yield _row(cluster, of_day, name, gigabytes(amount), "GB", Decimal("0.01"))


def _rows_of_month(cluster: Cluster, first: date, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the support fee of a month, and the tax on all of it."""
    period = start_of_day(first), start_of_day(month_of(first).end)
    support = _row(cluster, period, "Support", Decimal(1), "Mo", _SUPPORT)
    yield support | {"ChargeCategory": "Purchase", "ServiceName": "AWS Support", "ResourceId": None}
    cost = sum((row["EffectiveCost"] for row in rows), _SUPPORT)
    tax = _row(cluster, period, "Tax", Decimal(1), "Mo", _rounded(cost * _TAX))
    no_sku = dict.fromkeys(("SkuMeter", "ResourceId", "PricingQuantity", "PricingUnit", "ListUnitPrice"))
    yield tax | {"ChargeCategory": "Tax", "ChargeDescription": "Sales tax"} | no_sku


def _row(
    cluster: Cluster,
    period: tuple[datetime, datetime],
    sku: str,
    quantity: Decimal,
    unit: str,
    price: Decimal,
    *,
    broker: int | None = None,
) -> dict[str, Any]:
    start, end = period
    first = start.date().replace(day=1)
    listed = _rounded(EXACT.multiply(quantity, price))
    cost = _rounded(EXACT.multiply(listed, _DISCOUNT))
    arn = f"arn:aws:kafka:us-east-1:{_ACCOUNT}:cluster/{cluster.name}/{cluster.id}"
    return {
        "BillingAccountId": _ACCOUNT,
        "SubAccountId": _ACCOUNT,
        "BillingCurrency": "USD",
        "BillingPeriodStart": start_of_day(first),
        "BillingPeriodEnd": start_of_day(month_of(first).end),
        "ChargePeriodStart": start,
        "ChargePeriodEnd": end,
        "ChargeCategory": "Usage",
        "ChargeClass": None,
        "ChargeDescription": f"{sku} of {cluster.name}",
        "ServiceName": _SERVICE,
        "ServiceCategory": "Analytics",
        "SkuMeter": f"USE1-{sku}" if unit != "Mo" else sku,
        "RegionId": "us-east-1",
        "ResourceId": arn,
        "ResourceName": cluster.name if broker is None else f"{cluster.name} broker {broker}",
        "ResourceType": "Cluster" if broker is None else "Broker",
        "PricingQuantity": _rounded(quantity),
        "PricingUnit": unit,
        "ListUnitPrice": price,
        "ListCost": listed,
        "BilledCost": cost,
        "EffectiveCost": cost,
        "Tags": [("kafka-cluster", cluster.name)],
    }


def focus_configuration(info: ServerInfo, organisation: Organisation, data_dir: Path, bill: Path, *, port: int) -> str:
    """Return the YAML of a service with one tenant, ``acme``, whose bill is the files below ``bill``."""
    cluster = billed_cluster(organisation)
    usage = {
        name: f'sum by (principal_id) (sum_over_time({metric}{{kafka_id="{cluster.id}"}}[{{step}}]))'
        for name, metric in (("bytes_in", REQUEST_BYTES), ("bytes_out", RESPONSE_BYTES))
    }
    settings = {
        "min_refresh_gap_seconds": 0,
        "cluster_id": cluster.name,
        "bill": {
            "files": str(bill),
            "filter": {"accounts": [_ACCOUNT]},
            "settle_seconds": 0,
            "product_type": {
                "from": "SkuMeter",
                "map": {"USE1-Kafka.m7g*": "BROKERS", "USE1-Kafka.Storage*": "STORAGE"},
            },
        },
        "metrics": {"url": info.prometheus_url},
        "metrics_step_seconds": 21_600,
        "identity_source": {
            "label": "principal_id",
            "discovery_query": f'{REQUEST_BYTES}{{kafka_id="{cluster.id}"}}',
            "discovery_window_hours": 24,
        },
        "usage": {name: {"query": query} for name, query in usage.items()},
        "allocation_policies": {
            "BROKERS": {"portions": _POLICY},
            "USE1-DataTransfer-In-Bytes": {"portions": [{"share": "1", "try": ["usage(bytes_in)", "even(active)"]}]},
            "USE1-DataTransfer-Out-Bytes": {"portions": [{"share": "1", "try": ["usage(bytes_out)", "even(active)"]}]},
            "*": {"portions": [{"share": "1", "try": ["even(active)", "even(period)"]}]},
        },
    }
    tenant = {
        "ecosystem": "focus",
        "tenant_id": "acme",
        "lookback_days": max(CUTOFF_DAYS + 1, min(info.days, MAX_LOOKBACK_DAYS)),
        "cutoff_days": CUTOFF_DAYS,
        "storage": {"connection_string": f"sqlite:///{data_dir / 'acme.db'}"},
        "plugin_settings": settings,
    }
    whole = {"api": {"host": "127.0.0.1", "port": port}, "tenants": {"acme": tenant}}
    return yaml.safe_dump(whole, sort_keys=False)


def _rounded(value: Decimal) -> Decimal:
    return EXACT.quantize(value, TEN_PLACES)
