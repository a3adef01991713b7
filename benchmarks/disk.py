"""How much disk a tenant takes over a year of daily runs.

Time is scaled: a simulated day lasts a fraction of a second, and so do the table's own limits (files that were removed
are kept for 7 days, logs for 30). Every day a new day is written to every table, older days are replaced because their
bill changed, and what they had goes to the history; a writer is killed now and then, and retention and upkeep are done
as a run does them.

``python -m benchmarks.disk`` prints what lies on the disk at the end of every month.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.storage import replace_tables
from chargeback.model.days import utc_now
from chargeback.store.control.catalogue import add, end_days, end_table, every_file, instant_of_change
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import DatasetState, DayDataset, delete_days, save_dataset, save_day
from chargeback.store.facts.dimensions import write_register
from chargeback.store.facts.published import publish, shorten_logs
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    DAY_TABLES,
    DIMENSIONS_TABLE,
    HISTORY_TABLES,
    MEMBERS_TABLE,
    SCHEMAS,
    TOPIC_USAGE_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
    FactTables,
)
from chargeback.store.facts.upkeep import compacted_dimensions, remove_unnamed

FIRST = date(2026, 1, 1)
#: How many days before today the replaced days are.
_CORRECTED = (1, 2, 9)
#: Rows per day of the usual tenant.
ROWS = {
    BILLING_TABLE: 60,
    USAGE_TABLE: 500,
    MEMBERS_TABLE: 500,
    CHARGEBACKS_TABLE: 2_000,
    TOPIC_USAGE_TABLE: 1_000,
    TOPICS_TABLE: 1_000,
}
KEPT_DAYS, LOG_DAYS = 7, 30


@dataclass(frozen=True)
class Use:
    """Disk usage at the end of a day: bytes and files of the facts, bytes of the control database. ``log_days`` are the
    days whose logs are kept: fewer than ``LOG_DAYS`` while days take longer than they should."""

    day: int
    facts: int
    files: int
    log_files: int
    log_days: int
    folders: int
    control: int


def simulate(folder: Path, *, days: int, retention_days: int, seconds: float, restated: float = 3.0) -> Iterator[Use]:
    """Simulate ``days`` days, each at least ``seconds`` long, and yield the disk usage after each. On average,
    ``restated`` older days are replaced every day."""
    chance = random.Random(7)
    with ControlDatabase(f"sqlite:///{folder / 'control.db'}") as control:
        control.upgrade()
        facts = FactTables(folder / "facts", control)
        scaled: set[str] = set()
        begun: list[float] = []
        for number in range(days):
            began = time.monotonic()
            begun.append(began)
            _live(facts, control, number, retention_days, seconds, _restated(number, restated, chance), chance)
            _scale_new(facts, scaled, seconds)
            oldest_log = time.monotonic() - LOG_DAYS * seconds
            yield _use(folder, number, sum(each >= oldest_log for each in begun))
            time.sleep(max(0.0, seconds - (time.monotonic() - began)))


def _restated(number: int, restated: float, chance: random.Random) -> list[int]:
    """Return the ages, in days, of the days that are replaced on the day ``number``."""
    count = int(restated) + (chance.random() < restated % 1)
    return [offset for offset in chance.sample(_CORRECTED, min(count, len(_CORRECTED))) if offset <= number]


def _scale_new(facts: FactTables, scaled: set[str], seconds: float) -> None:
    """Scale the limits of the tables that have been created since the last call."""
    for name in (*SCHEMAS, *HISTORY_TABLES.values()):
        if name not in scaled and (facts.root / name / "_delta_log").exists():
            _scale(facts, name, seconds)
            scaled.add(name)


def _scale(facts: FactTables, name: str, seconds: float) -> None:
    limits = {"delta.deletedFileRetentionDuration": KEPT_DAYS, "delta.logRetentionDuration": LOG_DAYS}
    scaled = {key: f"interval {int(each * seconds * 1000)} milliseconds" for key, each in limits.items()}
    DeltaTable(str(facts.root / name)).alter.set_table_properties(scaled)


def _live(
    facts: FactTables,
    control: ControlDatabase,
    number: int,
    retention_days: int,
    seconds: float,
    restated: list[int],
    chance: random.Random,
) -> None:
    today = FIRST + timedelta(days=number)
    oldest = today - timedelta(days=retention_days)
    for day in [today, *(today - timedelta(days=offset) for offset in restated)]:
        replace_tables(facts, day, {name: _rows(name, day, rows, chance) for name, rows in ROWS.items()})
        with control.write() as connection:
            save_day(connection, day, billing_gathered=True)
            save_dataset(connection, DayDataset.CHARGEBACKS, [day], state=DatasetState.CURRENT)
    register = write_register(facts, _rows(DIMENSIONS_TABLE, today, 3, chance))
    with control.write() as connection:
        add(connection, [(DIMENSIONS_TABLE, None, register)], instant_of_change(connection, utc_now()))
    if number % 10 == 0:
        for name in ("half.parquet#1", "orphan.parquet"):
            (facts.root / CHARGEBACKS_TABLE / f"date={today}" / f"{number}-{name}").write_bytes(b"x" * 50_000)
    with control.write() as connection:
        delete_days(connection, oldest)
        end_days(connection, DAY_TABLES, oldest, instant_of_change(connection, utc_now()))
    facts.changed()
    if (compacted := compacted_dimensions(facts)) is not None:
        with control.write() as connection:
            at = instant_of_change(connection, utc_now())
            end_table(connection, DIMENSIONS_TABLE, at)
            add(connection, [(DIMENSIONS_TABLE, None, compacted)], at)
    facts.changed()
    with control.read() as connection:
        publish(facts.place, every_file(connection, kept_only=True), {}, from_scratch=False)
    shorten_logs(facts.place)
    remove_unnamed(facts, utc_now(), timedelta(seconds=KEPT_DAYS * seconds))


def _rows(name: str, day: date, count: int, chance: random.Random) -> pa.Table:
    """Return rows of a table with values that compress about as badly as real ones."""
    schema = SCHEMAS[name]
    return pa.table({field.name: _column(field, day, count, chance) for field in schema}, schema=schema)


def _column(field: pa.Field, day: date, count: int, chance: random.Random) -> pa.Array:
    if field.name == "date":
        return pa.array([day] * count, field.type)
    if pa.types.is_timestamp(field.type):
        return pa.array([datetime(day.year, day.month, day.day, tzinfo=UTC)] * count, field.type)
    if pa.types.is_decimal(field.type):
        return pa.array([Decimal(chance.randrange(10**10)).scaleb(-field.type.scale) for _ in range(count)], field.type)
    if pa.types.is_integer(field.type):
        largest = 2**53 if field.type == pa.int64() else 2
        return pa.array([chance.randrange(largest) for _ in range(count)], field.type)
    return pa.array([f"{field.name}-{chance.randrange(200)}" for _ in range(count)], field.type)


def _use(folder: Path, number: int, log_days: int) -> Use:
    paths = [path for path in (folder / "facts").rglob("*") if path.exists()]
    files = [path for path in paths if path.is_file()]
    return Use(
        number + 1,
        sum(path.stat().st_size for path in files),
        len(files),
        sum("_delta_log" in path.parts for path in files),
        log_days,
        len(paths) - len(files),
        sum(path.stat().st_size for path in folder.glob("control.db*")),
    )


def main() -> None:
    """Simulate, and print one line per month."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.disk", description=__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--retention-days", type=int, default=120)
    parser.add_argument("--restated", type=float, default=3.0, help="how many older days are replaced every day")
    parser.add_argument("--seconds", type=float, default=1.5, help="how long a simulated day lasts at least")
    given = parser.parse_args()
    print(f"{'day':>4} {'facts MB':>9} {'files':>6} {'of logs':>8} {'folders':>8} {'control MB':>10}")
    with tempfile.TemporaryDirectory(prefix="chargeback-disk-") as folder:
        for use in simulate(
            Path(folder),
            days=given.days,
            retention_days=given.retention_days,
            seconds=given.seconds,
            restated=given.restated,
        ):
            if use.day % 30 == 0 or use.day == given.days:
                print(
                    f"{use.day:>4} {use.facts / 1e6:>9.1f} {use.files:>6} {use.log_files:>8} {use.folders:>8}"
                    f" {use.control / 1e6:>10.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
