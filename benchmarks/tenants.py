"""Generated tenants: calculated once by the real code, stored in a folder, and reused until the generator changes."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.evidence import ECOSYSTEM, ORGANISATION, TENANT_ID, EvidenceMaker
from benchmarks.shapes import CONNECTORS, ENVIRONMENTS, Shape
from benchmarks.storage import replace_tables, tables_in
from benchmarks.topics import topic_evidence, topic_plan
from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.allocation.topics import TopicAttributor, lines_of_clusters
from chargeback.ecosystems.confluent_cloud.gatherer import catalogue
from chargeback.model.days import ONE_DAY, start_of_day, utc_now
from chargeback.model.inventory import Identity, Inventory, ListedInventory, Resource
from chargeback.model.money import total
from chargeback.store.control import inventory as inventory_store
from chargeback.store.control import tags
from chargeback.store.control.day_revisions import (
    BILL_CHANGED,
    FIRST,
    Revision,
    record_revision,
)
from chargeback.store.control.days import DatasetState, DayDataset, save_dataset, save_day
from chargeback.store.control.lease import Lease, LeaseOwner, acquire
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.owner import claim
from chargeback.store.facts.partial_files import by_week
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
    FactTables,
)
from chargeback.store.queries.as_of import REVISED
from chargeback.store.queries.datasets import DATASETS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.partials import make_partials
from chargeback.store.tenant import TenantStore

_DATABASE = "control.db"
_FACTS = "facts"
_DONE = "generated.json"
_TEAMS = 20
# The largest tenant needs a few GiB, and must not fill the disk.
_FREE_BYTES = 20 * 2**30
#: The share of days that are calculated again after their bill changed.
RESTATED_SHARE = 0.03


@dataclass(frozen=True)
class Generated:
    """A tenant on disk: its shape, the paths of its facts and its control database, and its number of rows."""

    shape: Shape
    facts: Path
    database: Path
    rows: int
    seconds: float

    def files(self) -> list[str]:
        """Return the Parquet files of its chargebacks."""
        return [file.path for file in self.tables().snapshot(CHARGEBACKS_TABLE).files]

    def tables(self) -> FactTables:
        """Open its fact tables."""
        return tables_in(self.facts, self.database)


def generated(shape: Shape, below: Path) -> Generated:
    """Return the tenant of that shape below a folder; if it does not exist, a separate process generates it.

    Raises:
        RuntimeError: it cannot be generated, or disk space is low.
    """
    folder = below / shape.folder
    if not (folder / _DONE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        if shutil.disk_usage(below).free < _FREE_BYTES:
            raise RuntimeError(f"{below} has less than {_FREE_BYTES / 2**30:.0f} GiB of free space")
        making = multiprocessing.get_context("spawn").Process(target=generate, args=(shape, folder))
        making.start()
        making.join()
        if making.exitcode:
            raise RuntimeError(f"the tenant {shape.name} could not be generated")
    store = _open(shape, folder)
    store.control.upgrade()
    # The owner is recorded, as by the first run of a tenant, so that opening the storage does not read all bills.
    claim(store.facts.place, store.owner)
    store.close()
    done = json.loads((folder / _DONE).read_text())
    return Generated(shape, folder / _FACTS, folder / _DATABASE, done["rows"], done["seconds"])


def generate(shape: Shape, folder: Path) -> None:
    """Calculate every day and write it to the real tables; then write inventory and tags."""
    start = time.perf_counter()
    folder.mkdir(parents=True)
    store = _open(shape, folder)
    store.control.upgrade()
    lease = acquire(store.control, LeaseOwner.this_process())
    with lease.heartbeat():
        count = _calculate(store, shape, lease)
        with lease.write() as connection:
            inventory_store.merge_listing(connection, _listing(shape), utc_now(), empty_listings_to_delete=-1)
            inventory_store.ensure_known(connection, utc_now())
            tags.write_many(connection, TENANT_ID, _tags(shape), created_by="benchmarks", override=False)
    _make_partials(store.facts)
    lease.release()
    store.close()
    done = {"rows": count, "seconds": time.perf_counter() - start}
    (folder / _DONE).write_text(json.dumps(done))


def opened(tenant: Generated, database: Path, facts: Path | None = None, *, copied: bool = False) -> TenantStore:
    """Open a tenant with a writable copy of its control database, which is made at ``database`` unless ``copied``.
    ``facts`` is another folder with its facts."""
    if not copied:
        shutil.copy(tenant.database, database)
    return _store(tenant.shape, database, facts or tenant.facts)


def _open(shape: Shape, folder: Path) -> TenantStore:
    return _store(shape, folder / _DATABASE, folder / _FACTS)


def _store(shape: Shape, database: Path, facts: Path) -> TenantStore:
    return TenantStore.open(
        tenant_name=shape.name,
        tenant_id=TENANT_ID,
        ecosystem=ECOSYSTEM,
        connection_string=f"sqlite:///{database}",
        facts=facts,
    )


def _make_partials(facts: FactTables) -> None:
    """Make the partial aggregates, as runs do."""
    with QueryEngine() as engine, engine.cursor(CancellationToken()) as cursor:
        for dataset in DATASETS:
            for of_week in by_week(facts.snapshot(dataset.table).files).values():
                make_partials(cursor, facts.partials, dataset, of_week)


class _DayWriter:
    """Calculates days of a shape, and writes them and their revisions."""

    def __init__(self, store: TenantStore, shape: Shape, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self._calculator = DayCalculator(catalogue())
        self._attributor = TopicAttributor(topic_plan())
        self._dimensions = DimensionRegister(store.facts)
        self._clusters = frozenset(f"lkc-{number}" for number in range(shape.clusters))
        self._shape = shape
        self.rows = 0

    def close(self) -> None:
        """Release the engines' memory."""
        self._calculator.close()
        self._attributor.close()

    def write(self, evidence: Evidence, number: int, at: datetime) -> None:
        """Write a day as a revision calculated at an instant."""
        day = evidence.day
        calculated = self._calculator.calculate(evidence)
        self._dimensions.add(calculated.dimensions)
        measured = topic_evidence(day, self._shape.clusters, self._shape.topics)
        lines = lines_of_clusters(evidence.billing, self._clusters, topic_plan())
        topics = self._attributor.attribute(day, lines, measured)
        tables = {
            BILLING_TABLE: evidence.billing,
            USAGE_TABLE: evidence.usage,
            MEMBERS_TABLE: evidence.members,
            CHARGEBACKS_TABLE: calculated.rows,
            TOPICS_TABLE: topics,
        }
        replace_tables(self._store.facts, day, tables, self._dimensions, at)
        self._record(Revision(DayDataset.CHARGEBACKS, day, number, at, FIRST if number == 1 else BILL_CHANGED), tables)
        self._record(Revision(DayDataset.TOPICS, day, number, at, FIRST if number == 1 else BILL_CHANGED), tables)
        with self._lease.write() as connection:
            save_day(
                connection,
                day,
                billing_gathered=True,
                resources_gathered=True,
                billing_lines=evidence.billing.num_rows,
            )
            for dataset, rows in ((DayDataset.CHARGEBACKS, calculated.rows), (DayDataset.TOPICS, topics)):
                current = DatasetState.CURRENT
                save_dataset(connection, dataset, [day], state=current, rows=rows.num_rows, revision=number)
        if number == 1:
            self.rows += calculated.rows.num_rows

    def _record(self, revision: Revision, tables: Mapping[str, pa.Table]) -> None:
        rows = tables[REVISED[revision.dataset].table]
        whole = replace(revision, rows=rows.num_rows, total=total(rows["amount"].to_pylist()))
        with self._lease.write() as connection:
            record_revision(connection, whole)


def _calculate(store: TenantStore, shape: Shape, lease: Lease) -> int:
    """Write the days; :data:`RESTATED_SHARE` of them get a second revision a week after the last day. Return the number
    of chargeback rows."""
    maker, writer = EvidenceMaker(shape), _DayWriter(store, shape, lease)
    for day in shape.dates():
        writer.write(maker.day(day), 1, start_of_day(day + 2 * ONE_DAY))
    every = round(1 / RESTATED_SHARE)
    for day in shape.dates()[every // 2 :: every]:
        evidence = maker.day(day)
        writer.write(replace(evidence, billing=dearer(evidence.billing)), 2, restated_at(shape))
    maker.close()
    writer.close()
    return writer.rows


def restated_at(shape: Shape) -> datetime:
    """Return when some days of a tenant got their second revision."""
    return start_of_day(shape.last_day + 7 * ONE_DAY)


def dearer(billing: pa.Table) -> pa.Table:
    """Return a bill in which every line costs a tenth more."""
    factor = pa.scalar(Decimal("1.1"), pa.decimal128(2, 1))
    column = billing.schema.get_field_index("total_cost")
    costs = pc.multiply(billing["total_cost"].cast(pa.decimal128(30, 12)), factor).cast(pa.decimal128(38, 12))
    return billing.set_column(column, "total_cost", costs)


def _listing(shape: Shape) -> ListedInventory:
    resources = [Resource(ORGANISATION, "organization", "Benchmarks")]
    resources += [Resource(f"env-{n}", "environment", f"Environment {n}", ORGANISATION) for n in range(ENVIRONMENTS)]
    resources += [Resource(f"lsrc-{n}", "schema_registry", f"Registry {n}", f"env-{n}") for n in range(ENVIRONMENTS)]
    resources += [
        Resource(f"lkc-{n}", "kafka_cluster", f"Cluster {n}", f"env-{n % ENVIRONMENTS}") for n in range(shape.clusters)
    ]
    resources += [Resource(f"lcc-{n}", "connector", f"Connector {n}", "lkc-0") for n in range(CONNECTORS)]
    resources += [
        Resource(f"lkc-0:topic:events-{n:06d}", "kafka_topic", f"events-{n:06d}", "lkc-0")
        for n in range(shape.resources)
    ]
    identities = [
        Identity(f"sa-{n:06d}", "service_account", f"Service {n} of team {n % _TEAMS}") for n in range(shape.identities)
    ]
    complete = {resource.resource_type for resource in resources} | {"service_account"}
    return ListedInventory(Inventory(resources, identities), frozenset(complete))


def _tags(shape: Shape) -> list[tags.TagWrite]:
    """Return a team tag for most identities, and an operator tag for every cluster."""
    of_identities = [
        tags.TagWrite(tags.IDENTITY, f"sa-{n:06d}", "team", f"team-{n % _TEAMS}")
        for n in range(shape.identities)
        if n % 19
    ]
    of_clusters = [tags.TagWrite(tags.RESOURCE, f"lkc-{n}", "team", "platform") for n in range(shape.clusters)]
    return of_identities + of_clusters
