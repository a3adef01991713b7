"""Files in FOCUS, and a tenant whose bill they are."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import pytest

from chargeback.ecosystems.constructed.plugin import ConstructedGatherer
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.focus_files import FocusFilesSettings, ecosystem
from chargeback.model.billing import BillingLine
from chargeback.model.days import DayRange
from tests.support.clock import NOW, TODAY, FixedClock

DAY = TODAY - timedelta(days=10)
DAYS = DayRange(DAY, DAY + timedelta(days=5))
STATIC = {"source": "static", "static_identities": [{"identity_id": "team-a", "identity_type": "team"}]}
Row = Mapping[str, Any]


def row(**changes: Any) -> dict[str, Any]:
    """Return a row of a bill: an hour of a broker."""
    return {
        "BilledCost": "0.21",
        "EffectiveCost": "0.18",
        "ListCost": "0.21",
        "BillingCurrency": "USD",
        "ChargePeriodStart": f"{DAY}T00:00:00Z",
        "ChargePeriodEnd": f"{DAY}T01:00:00Z",
        "ChargeCategory": "Usage",
        "ChargeDescription": "an hour of a broker",
        "ServiceName": "Amazon MSK",
        "SkuMeter": "USE1-Kafka.m5.large",
        "ResourceId": "arn:aws:kafka:us-east-1:1:cluster/orders/0",
        "PricingQuantity": "1",
        "PricingUnit": "Hours",
        "Tags": '{"team": "orders"}',
    } | changes


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows as CSV, dated an hour before the tests' clock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for each in rows for name in each)), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return settled(path)


def write_parquet(path: Path, rows: Sequence[Row], cost: str = "DECIMAL(28,14)") -> Path:
    """Write the same rows as Parquet, with timestamps and a map of tags; amounts have the type ``cost``."""
    source = write_csv(path.with_suffix(".written"), rows)
    types = {name: cost for name in rows[0] if name.endswith(("Cost", "Quantity"))}
    types |= {"ChargePeriodStart": "TIMESTAMPTZ", "ChargePeriodEnd": "TIMESTAMPTZ"}
    columns = ", ".join(
        f'CAST("{name}" AS {types.get(name, "VARCHAR")}) AS "{name}"' for name in rows[0] if name != "Tags"
    )
    tags = ", CAST(CAST(Tags AS JSON) AS MAP(VARCHAR, VARCHAR)) AS Tags" if "Tags" in rows[0] else ""
    with duckdb.connect() as engine:
        engine.execute(
            f"COPY (SELECT {columns}{tags} FROM read_csv('{source}', all_varchar=true, header=true))"
            f" TO '{path}' (FORMAT parquet)"
        )
    source.unlink()
    return settled(path)


def settled(path: Path) -> Path:
    """Set the modification time of a file to an hour before the tests' clock."""
    at = (NOW - timedelta(hours=1)).timestamp()
    os.utime(path, (at, at))
    return path


def settings_for(files: Path | str, **bill: Any) -> FocusFilesSettings:
    """Return settings with a bill."""
    return FocusFilesSettings.model_validate(
        {"cluster_id": "orders", "identity_source": STATIC, "bill": {"files": str(files), **bill}}
    )


@pytest.fixture
def context(tmp_path: Path) -> TenantContext:
    """A tenant, on the day of the tests."""
    return TenantContext(
        "msk", "msk-id", "USD", TODAY, Event(), str(tmp_path / "state"), is_awaited=True, now=FixedClock()
    )


@contextmanager
def gatherer(context: TenantContext, settings: FocusFilesSettings) -> Iterator[ConstructedGatherer]:
    """Open a gatherer with these settings."""
    with ecosystem.open(context, settings) as opened:
        yield opened


def lines(context: TenantContext, settings: FocusFilesSettings, days: DayRange = DAYS) -> list[BillingLine]:
    """Return the lines of some days; each day must be returned once and without an error."""
    with gatherer(context, settings) as opened:
        found = list(opened.billing(days))
    assert [each.day for each in found] == list(days)
    assert not [each.error for each in found if each.error]
    return [line for each in found for line in each.lines]


def total(found: Sequence[BillingLine]) -> Decimal:
    """Return the sum of the costs of lines."""
    return sum((line.total_cost for line in found), Decimal(0))
