"""Object storage far away, where each request takes 30 ms: a run without news, and the first questions of a service.

The requests of the service pass through a network that delays and counts them; what the tenants have in the bucket is
uploaded without it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml
from sqlalchemy import delete, insert, select
from tests.support.databases import scratch_database
from tests.support.network import Network, network
from tests.support.objects import object_server

from benchmarks.backfill import used_by
from benchmarks.dashboard import costs_page
from benchmarks.measure import Figure
from benchmarks.serving import serving, target
from benchmarks.tenants import Generated
from chargeback.demo.config import CUTOFF_DAYS, demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.store.control import schema
from chargeback.store.control.database import ControlDatabase
from chargeback.store.facts.buckets import Bucket
from chargeback.store.facts.copies import Copies

#: The seconds by which each request is delayed.
_DELAY: Final = 0.03
#: How many days of bills the tenant of the run has, and about how many days the questions are.
_DAYS_OF_BILLS: Final = 6
_DAYS_ASKED: Final = 30
#: The seconds in which somebody reads an answer before asking on.
_READING: Final = 10
#: The copies of a process that only uploads.
_MOST_COPIED: Final = 10**6
#: The most kinds of requests in a note.
_MOST_LISTED: Final = 10
#: How many rows of a control database are copied at a time.
_ROWS: Final = 5000


def run_without_news(scratch: Path) -> Iterator[Figure]:
    """Measure the requests to the object storage of a second run of one tenant, and of the start before it."""
    folder = scratch / "far-run"
    folder.mkdir()
    spec = DemoSpec(today=datetime.now(UTC).date(), size="small", days=_DAYS_OF_BILLS + CUTOFF_DAYS)
    with (
        scratch_database("postgresql", folder) as database,
        DemoServer(Organisation.generate(spec)) as provider,
        network(object_server(), delay=_DELAY) as seen,
    ):
        document = yaml.safe_load(demo_configuration(provider.info, folder))
        document["logging"] = {"level": "ERROR"}
        document["features"] = {**document.get("features", {}), "cache": {"path": str(folder / "copies")}}
        document["tenants"]["acme"]["storage"] = {"connection_string": database, **_stored(seen)}
        config = folder / "chargeback.yaml"
        config.write_text(yaml.safe_dump(document), encoding="utf-8")

        def _requests(*words: str) -> Counter[str]:
            seen.requests.clear()
            used_by([sys.executable, "-m", "chargeback", *words, "--config", str(config)], folder / "run.log")
            return seen.requests.copy()

        _requests("run")
        # What a worker does once for each tenant: it checks that the storage is the tenant's and can be written.
        start = _requests("db", "upgrade")
        whole = _requests("run")
    yield Figure("far away", "requests of the start", start.total(), "", note=_listed(start))
    without = whole.total() - start.total()
    yield Figure("far away", "requests of a run without news", without, "", note=f"with the start: {_listed(whole)}")


def first_questions(tenant: Generated, scratch: Path) -> Iterator[Figure]:
    """Measure the first question of a service without any copies, the same again, and the first of the costs page."""
    folder = scratch / f"far-{tenant.shape.name}"
    folder.mkdir()
    name, last = tenant.shape.name, tenant.shape.last_day
    dates = {"start_date": str(last - timedelta(days=_DAYS_ASKED - 1)), "end_date": str(last)}
    path = f"/api/v1/tenants/{name}"
    sums = partial(target, f"{path}/chargebacks/aggregate", group_by=["identity_id"], time_bucket="day", **dates)
    page = partial(target, f"{path}/costs", **costs_page(tenant.shape))
    with scratch_database("postgresql", folder) as database, network(object_server(), delay=_DELAY) as seen:
        _move(tenant.database, database)
        storage = {"connection_string": database, **_stored(seen)}
        location = object_server().location(storage["facts_path"].rpartition("/")[2])
        Bucket(location, Copies(folder / "uploaded", _MOST_COPIED)).load(tenant.facts)
        with serving([tenant], folder, storage=storage, first="/health") as service:
            client = service.client()
            # Somebody reads the answers before asking for the page. The number of a page without effect keeps a
            # response from being one that is cached.
            for number, (question, asked) in enumerate(
                (
                    ("sums by identity and day of 30 days, first", sums),
                    ("sums by identity and day of 30 days, again", sums),
                    ("costs page of 30 days, first", page),
                    ("costs page of 30 days, again", page),
                ),
                start=1,
            ):
                if asked is page:
                    time.sleep(_READING)
                seen.requests.clear()
                start = time.perf_counter()
                client.answer("GET", asked(page_size=number))
                taken = (time.perf_counter() - start) * 1000
                note = f"{seen.requests.total()} requests: {_listed(seen.requests)}"
                yield Figure(f"far away, {name}", question, taken, "ms", note=note)


def _move(file: Path, database: str) -> None:
    """Copy all rows of a control database in a file into an empty database of a server: object storage needs one."""
    with ControlDatabase(f"sqlite:///{file}") as source, ControlDatabase(database) as to:
        to.upgrade()
        with source.read() as rows, to.write() as written:
            written.execute(delete(schema.tenant))
            for table in schema.metadata.sorted_tables:
                found = rows.execute(select(table)).mappings()
                while some := found.fetchmany(_ROWS):
                    written.execute(insert(table), [dict(row) for row in some])


def _stored(seen: Network) -> dict[str, Any]:
    """Return the settings of a place that no other tenant has, in a distant bucket."""
    location = seen.server.location()
    return {
        "facts_path": f"{location.scheme}://{location.bucket}/{location.prefix}",
        "object_store": seen.server.written,
    }


def _listed(requests: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in requests.most_common(_MOST_LISTED)) or "none"
