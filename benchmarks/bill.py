"""A bill in FOCUS files: rows to billing lines, and what the engine needs to scan and sum the same files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Final

import duckdb

from benchmarks.measure import Figure, memory_mib, milliseconds, reset_peak
from chargeback.ecosystems.contract import TenantContext
from chargeback.ecosystems.focus_files import FocusFilesSettings, ecosystem
from chargeback.model.days import ONE_DAY, DayRange

_TODAY: Final = date(2026, 11, 1)
_MONTH: Final = DayRange(date(2026, 10, 1), date(2026, 11, 1))
#: Hourly rows of a month, in files of a million, as exports have them.
_FILE_ROWS: Final = 1_000_000
_ROWS: Final = """
    SELECT 'USD' AS BillingCurrency, start AS ChargePeriodStart, start + INTERVAL 1 HOUR AS ChargePeriodEnd,
           'Usage' AS ChargeCategory, 'Amazon MSK' AS ServiceName, 'USE1-' || number % 40 AS SkuMeter,
           'arn:aws:kafka:us-east-1:1:cluster/' || number % 500 AS ResourceId, 'us-east-1' AS RegionId,
           '120000000042' AS SubAccountId, 'GB' AS PricingUnit,
           CAST(number % 97 AS DECIMAL(28, 10)) AS PricingQuantity,
           CAST('0.0123456789' AS DECIMAL(28, 10)) AS ListUnitPrice,
           CAST(number % 99991 AS DECIMAL(18, 0)) * CAST('0.0001234567' AS DECIMAL(18, 10)) AS EffectiveCost
    FROM (SELECT number, TIMESTAMPTZ '2026-10-01 00:00:00+00' + to_hours(CAST(number % 744 AS INTEGER)) AS start
          FROM range(?, ?) AS numbers(number))
"""


def bill(scratch: Path, *, rows: int) -> Iterator[Figure]:
    """Measure the lines of a month from Parquet files with a number of rows, compared with the engine's own scan and
    sum."""
    folder = scratch / "bill"
    folder.mkdir()
    with duckdb.connect(config={"threads": 2}) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        for first in range(0, rows, _FILE_ROWS):
            target = folder / f"{first // _FILE_ROWS:04d}.parquet"
            engine.execute(f"COPY ({_ROWS}) TO '{target}'", [first, min(first + _FILE_ROWS, rows)])

        def scan() -> None:
            engine.execute(
                f"SELECT CAST(ChargePeriodStart AS DATE), SkuMeter, sum(EffectiveCost), sum(PricingQuantity), count(*)"
                f" FROM read_parquet('{folder}/*.parquet') GROUP BY ALL"
            ).fetchall()

        floor = milliseconds(scan, repeats=3, seconds=30)
    context = TenantContext(
        "bench", "bench", "USD", _TODAY, Event(), str(scratch), now=lambda: datetime.now(UTC) + timedelta(hours=1)
    )
    settings = FocusFilesSettings.model_validate(
        {
            "cluster_id": "kafka",
            "identity_source": {"source": "static", "static_identities": [{"identity_id": "team"}]},
            "bill": {"files": str(folder)},
        }
    )
    lines = 0

    def read() -> None:
        nonlocal lines
        with ecosystem.open(context, settings) as gatherer:
            lines = sum(len(day.lines) for day in gatherer.billing(DayRange(_MONTH.start, _MONTH.end + ONE_DAY)))

    reset_peak()
    taken = milliseconds(read, repeats=3, seconds=30)
    group = f"bill, {rows:,} rows of Parquet"
    yield Figure(group, "billing lines of a month", taken, "ms", floor, note=f"{lines:,} lines")
    yield Figure(group, "peak memory", memory_mib(peak=True), "MiB")
    shutil.rmtree(folder)
