"""Generated tenants: calculated once by the real calculation, stored in a folder, and reused until the generator
changes."""

from __future__ import annotations

import json
import math
import multiprocessing
import shutil
import time
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from benchmarks.evidence import ECOSYSTEM, ORGANISATION, TENANT_ID, EvidenceMaker
from benchmarks.shapes import CONNECTORS, ENVIRONMENTS, Shape
from benchmarks.topics import topic_evidence, topic_plan
from chargeback.allocation.day import DayCalculator
from chargeback.allocation.topics import TopicAttributor, lines_of_clusters
from chargeback.ecosystems.confluent_cloud.policies import catalogue
from chargeback.model.days import utc_now
from chargeback.model.inventory import Identity, Inventory, ListedInventory, Resource
from chargeback.store.control import inventory as inventory_store
from chargeback.store.control import tags
from chargeback.store.control.days import save_day
from chargeback.store.control.lease import LeaseOwner, acquire
from chargeback.store.facts.dimensions import DimensionRegister
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    MEMBERS_TABLE,
    TOPICS_TABLE,
    USAGE_TABLE,
)
from chargeback.store.tenant import TenantStore

_DATABASE = "control.db"
_FACTS = "facts"
_DONE = "generated.json"
_TEAMS = 20
# The largest tenant needs a few GiB; nobody else's disk should become full.
_FREE_BYTES = 20 * 2**30


@dataclass(frozen=True)
class Generated:
    """A tenant on disk: its shape, the paths of its facts and its control database, its number of rows."""

    shape: Shape
    facts: Path
    database: Path
    rows: int
    seconds: float

    def files(self) -> list[str]:
        """The Parquet files of its chargebacks."""
        return sorted(str(path) for path in (self.facts / CHARGEBACKS_TABLE).glob("date=*/*.parquet"))


def generated(shape: Shape, below: Path, *, seconds: float = math.inf) -> Generated:
    """Return the tenant of that shape below a folder; if it does not exist, a separate process generates it.

    After ``seconds`` no further days are generated: then the returned shape has fewer of them.

    Raises:
        RuntimeError: it could not be generated, or there is too little space.
    """
    folder = below / shape.folder
    if not (folder / _DONE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        if shutil.disk_usage(below).free < _FREE_BYTES:
            raise RuntimeError(f"{below} has less than {_FREE_BYTES / 2**30:.0f} GiB of free space")
        making = multiprocessing.get_context("spawn").Process(target=generate, args=(shape, folder, seconds))
        making.start()
        making.join()
        if making.exitcode:
            raise RuntimeError(f"the tenant {shape.name} could not be generated")
    done = json.loads((folder / _DONE).read_text())
    shape = replace(shape, days=done.get("days", shape.days))
    return Generated(shape, folder / _FACTS, folder / _DATABASE, done["rows"], done["seconds"])


def generate(shape: Shape, folder: Path, seconds: float = math.inf) -> None:
    """Calculate every day, as long as there is time, and write it to the real tables; then write inventory and tags."""
    start = time.perf_counter()
    folder.mkdir(parents=True)
    store = TenantStore.open(
        tenant_name=shape.name,
        tenant_id=TENANT_ID,
        ecosystem=ECOSYSTEM,
        connection_string=f"sqlite:///{folder / _DATABASE}",
        facts=folder / _FACTS,
    )
    store.control.upgrade()
    store.facts.create()
    lease = acquire(store.control, LeaseOwner.this_process())
    with lease.heartbeat():
        rows = _calculate(store, shape, lease.epoch, start + seconds)
        with lease.write() as connection:
            inventory_store.merge_listing(connection, _listing(shape), utc_now(), empty_listings_to_delete=-1)
            inventory_store.ensure_known(connection, utc_now())
            tags.write_many(connection, TENANT_ID, _tags(shape), created_by="benchmarks", override=False)
            for day, (count, of_topics) in rows.items():
                save_day(
                    connection,
                    day,
                    billing_gathered=True,
                    resources_gathered=True,
                    chargeback_calculated=True,
                    chargeback_rows=count,
                    topic_attribution_calculated=True,
                    topic_rows=of_topics,
                )
    lease.release()
    store.close()
    count = sum(count for count, _ in rows.values())
    done = {"rows": count, "days": len(rows), "seconds": time.perf_counter() - start}
    (folder / _DONE).write_text(json.dumps(done))


def _calculate(store: TenantStore, shape: Shape, epoch: int, until: float) -> dict[date, tuple[int, int]]:
    """Return the numbers of chargeback and topic rows per day."""
    maker, calculator, attributor = EvidenceMaker(shape), DayCalculator(catalogue()), TopicAttributor(topic_plan())
    dimensions = DimensionRegister(store.facts, epoch=epoch)
    clusters = frozenset(f"lkc-{number}" for number in range(shape.clusters))
    counts: dict[date, tuple[int, int]] = {}
    for day in shape.dates():
        evidence = maker.day(day)
        calculated = calculator.calculate(evidence)
        tables = ((BILLING_TABLE, evidence.billing), (USAGE_TABLE, evidence.usage), (MEMBERS_TABLE, evidence.members))
        for name, table in tables:
            store.facts.replace_day(name, day, table, epoch=epoch)
        dimensions.register(calculated.dimensions)
        store.facts.replace_day(CHARGEBACKS_TABLE, day, calculated.rows, epoch=epoch)
        lines = lines_of_clusters(evidence.billing, clusters, topic_plan())
        topics = attributor.attribute(day, lines, topic_evidence(day, shape.clusters, shape.topics))
        store.facts.replace_day(TOPICS_TABLE, day, topics, epoch=epoch)
        counts[day] = calculated.rows.num_rows, topics.num_rows
        if time.perf_counter() > until:
            break
    for each in (maker, calculator, attributor):
        each.close()
    return counts


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
    """Write a team for most identities, an operator for every cluster."""
    of_identities = [
        tags.TagWrite(tags.IDENTITY, f"sa-{n:06d}", "team", f"team-{n % _TEAMS}")
        for n in range(shape.identities)
        if n % 19
    ]
    of_clusters = [tags.TagWrite(tags.RESOURCE, f"lkc-{n}", "team", "platform") for n in range(shape.clusters)]
    return of_identities + of_clusters
