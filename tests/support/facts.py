"""Small days of facts for tests, written to the real tables."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from chargeback.model.billing import BillingLine, billing_table
from chargeback.model.chargeback import (
    CHARGEBACK_ORDER,
    CHARGEBACKS,
    DIMENSION_COLUMNS,
    DIMENSIONS,
    USAGE_COST,
    dimension_id,
)
from chargeback.model.days import utc_now
from chargeback.store.control.catalogue import (
    NamedFile,
    NewContent,
    add,
    end_days,
    every_file,
    instant_of_change,
    replace_days,
)
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.tags import IDENTITY, RESOURCE, TagWrite, write_many
from chargeback.store.facts.dimensions import write_register
from chargeback.store.facts.places import Place
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, DIMENSIONS_TABLE, FactTables
from chargeback.store.tenant import TenantStore
from tests.support.databases import migrated_database, place_migrated

TENANT_ID = "acme-id"
ECOSYSTEM = "test_cloud"


@dataclass(frozen=True)
class Share:
    """One chargeback row; amounts are given as texts."""

    day: date
    identity: str
    amount: str
    resource: str = "lkc-1"
    product: str = "KAFKA_NUM_CKUS"
    cost_type: str = USAGE_COST
    hour: int = 0
    detail: str = "USAGE_RATIO_ALLOCATION"
    environment: str | None = "env-1"
    line: str = "line-1"
    portion: int = 0
    usage: str | None = "1.5"
    policy: str = "abc123"
    product_category: str = "KAFKA"

    def row(self) -> dict[str, Any]:
        """Return the row in the table's form."""
        usage = None if self.usage is None else Decimal(self.usage)
        row: dict[str, Any] = {
            "date": self.day,
            "timestamp": datetime(self.day.year, self.day.month, self.day.day, self.hour, tzinfo=UTC),
            "line_id": self.line,
            "portion": self.portion,
            "ecosystem": ECOSYSTEM,
            "tenant_id": TENANT_ID,
            "resource_id": self.resource,
            "environment_id": self.environment,
            "product_category": self.product_category,
            "product_type": self.product,
            "identity_id": self.identity,
            "cost_type": self.cost_type,
            "amount": Decimal(self.amount),
            "allocation_method": "usage_ratio" if self.cost_type == USAGE_COST else "even_split",
            "allocation_detail": self.detail,
            "portion_share": Decimal("0.7"),
            "chain_position": 0,
            "identity_usage": usage,
            "total_usage": usage,
            "policy_hash": self.policy,
        }
        row["dimension_id"] = dimension_id(tuple(row[name] for name in DIMENSION_COLUMNS))
        return row


def in_list_order(shares: Iterable[Share]) -> list[dict[str, Any]]:
    """Return the rows of ``shares`` in list order."""
    return sorted((share.row() for share in shares), key=lambda row: tuple(row[name] for name in CHARGEBACK_ORDER))


def write_shares(facts: FactTables, shares: Iterable[Share]) -> None:
    """Replace the days of ``shares``, and register their dimensions."""
    by_day: dict[date, list[Share]] = defaultdict(list)
    for share in shares:
        by_day[share.day].append(share)
    dimensions: dict[int, dict[str, Any]] = {}
    for day, of_day in by_day.items():
        rows = in_list_order(of_day)
        dimensions |= {row["dimension_id"]: row for row in rows}
        replace_day(facts, CHARGEBACKS_TABLE, day, pa.Table.from_pylist(rows, schema=CHARGEBACKS))
    known = [{name: row[name] for name in DIMENSIONS.names} for row in dimensions.values()]
    append_dimensions(facts, pa.Table.from_pylist(known, schema=DIMENSIONS))


def replace_day(facts: FactTables, name: str, day: date, rows: pa.Table, at: datetime | None = None) -> NewContent:
    """Replace the content of a day of a table by rows, as of ``at``."""
    content = facts.prepare_day(name, day, rows)
    commit_contents(facts, [content], at)
    return content


def commit_contents(facts: FactTables, contents: Sequence[NewContent], at: datetime | None = None) -> None:
    """Commit contents as those of their days."""
    with facts.control.write() as connection:
        replace_days(connection, contents, instant_of_change(connection, at or utc_now()))
    facts.changed()


def append_dimensions(facts: FactTables, dimensions: pa.Table) -> None:
    """Add a file to the register of dimensions."""
    file = write_register(facts, dimensions)
    with facts.control.write() as connection:
        add(connection, [(DIMENSIONS_TABLE, None, file)], instant_of_change(connection, utc_now()))
    facts.changed()


def write_lines(facts: FactTables, lines: Iterable[BillingLine]) -> None:
    """Replace the days of billing lines."""
    by_day: dict[date, list[BillingLine]] = defaultdict(list)
    for line in lines:
        by_day[line.day].append(line)
    for day, of_day in by_day.items():
        table = billing_table(of_day, ecosystem=ECOSYSTEM, tenant_id=TENANT_ID)
        replace_day(facts, BILLING_TABLE, day, table)


def line(day: date, cost: str, *, resource: str = "lkc-1", product: str = "KAFKA_NUM_CKUS", **more: Any) -> BillingLine:
    """Return a daily billing line."""
    hour = more.pop("hour", 0)
    return BillingLine(
        day=day,
        timestamp=datetime(day.year, day.month, day.day, hour, tzinfo=UTC),
        resource_id=resource,
        product_category="KAFKA",
        product_type=product,
        total_cost=Decimal(cost),
        currency="USD",
        **more,
    )


def days_from(first: date, count: int) -> list[date]:
    """Return ``count`` consecutive days."""
    return [first + timedelta(days=offset) for offset in range(count)]


def new_facts(folder: Path) -> FactTables:
    """Return empty tables with a catalogue next to their folder, copied from one that is created once for all tests."""
    folder.mkdir(parents=True, exist_ok=True)
    place_migrated(f"sqlite:///{folder.with_suffix('.db')}")
    return known_facts(folder)


def facts_in(place: Place, folder: Path) -> FactTables:
    """Return empty tables in a location, whose catalogue is in a new database in a folder."""
    place_migrated(f"sqlite:///{folder / 'catalogue.db'}")
    return FactTables(place, ControlDatabase(f"sqlite:///{folder / 'catalogue.db'}"))


def remove_days(facts: FactTables, before: date, *tables: str, at: datetime | None = None) -> None:
    """Remove current and former content of the days before ``before``."""
    with facts.control.write() as connection:
        end_days(connection, tables, before, instant_of_change(connection, at or utc_now()))
    facts.changed()


def catalogue_of(facts: FactTables) -> list[NamedFile]:
    """Return all files in the catalogue, including those that are no longer kept."""
    with facts.control.read() as connection:
        return every_file(connection)


def known_facts(folder: Path) -> FactTables:
    """Return the tables in a folder, with the catalogue next to it, as opened by another process."""
    return FactTables(folder, ControlDatabase(f"sqlite:///{folder.with_suffix('.db')}"))


def hold_tags(store: TenantStore, keys: Iterable[str]) -> None:
    """Give an identity and a resource a tag of each key: sums by the tags then look at both of each row."""
    tags = [TagWrite(kind, entity, key, "x") for key in keys for kind, entity in ((IDENTITY, "sa"), (RESOURCE, "lkc"))]
    with store.control.write() as connection:
        write_many(connection, store.tenant_id, tags, created_by="test", override=False)


@contextmanager
def tenant_store(
    folder: Path, *, name: str = "acme", kind: str = "sqlite", fill: Callable[[TenantStore], None] | None = None
) -> Iterator[TenantStore]:
    """Create the storage of a tenant with a database of a given kind, and fill it; with SQLite, it is a copy of storage
    that was filled once."""
    place = folder / name
    if kind == "sqlite":
        shutil.copytree(_filled(name, fill), place, dirs_exist_ok=True)
        with closing(_opened(place, name, f"sqlite:///{place / 'control.db'}")) as store:
            yield store
        return
    place.mkdir(parents=True, exist_ok=True)
    (place / "facts").mkdir()
    with (
        migrated_database(kind, place) as connection_string,
        closing(_opened(place, name, connection_string)) as store,
    ):
        if fill is not None:
            fill(store)
        yield store


@cache
def _filled(name: str, fill: Callable[[TenantStore], None] | None) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="chargeback-store-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "facts").mkdir()
    with migrated_database("sqlite", folder) as address, closing(_opened(folder, name, address)) as store:
        if fill is not None:
            fill(store)
    return folder


def _opened(place: Path, name: str, connection_string: str) -> TenantStore:
    return TenantStore.open(
        tenant_name=name,
        tenant_id=TENANT_ID,
        ecosystem=ECOSYSTEM,
        connection_string=connection_string,
        facts=place / "facts",
    )
