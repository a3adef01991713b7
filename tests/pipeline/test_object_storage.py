"""A tenant with facts in object storage and a PostgreSQL database has the responses of a local twin."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import httpx
import pytest

from chargeback.api.app_factory import create_app_from
from chargeback.api.executor import RequestExecutor
from chargeback.config import load_configuration
from chargeback.demo.server import DemoServer
from chargeback.pipeline import stage
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute.verify import verify
from chargeback.reports.tenant_view import TenantView
from chargeback.store.facts.buckets import Bucket
from chargeback.store.facts.copies import Copies
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, DAY_TABLES, TOPICS_TABLE, FactTables
from chargeback.store.facts.upkeep import STAMP
from chargeback.store.queries.datasets import DATASETS, Dataset
from chargeback.store.queries.engine import CancellationToken
from chargeback.store.queries.partials import lacks_partials
from tests.support.clock import TODAY, FixedClock
from tests.support.damage import DAMAGES, file_of
from tests.support.databases import scratch_database
from tests.support.deployments import Deployment
from tests.support.network import Network, network
from tests.support.objects import damage_object, new_bucket, object_server
from tests.support.serving import served
from tests.support.sources import DAY, Laboratory, line

pytestmark = pytest.mark.usefixtures("object_storage")

#: The revision in a response depends on the versions of the tables, and so on the number of commits.
_REVISION = re.compile(rb'"revision":"[0-9a-f]{32}"')
_ANSWERS = (
    ("GET", "chargebacks?page_size=1000"),
    ("GET", "chargebacks?page_size=20&page=3&timezone=Europe/Berlin"),
    ("GET", "chargebacks/dates"),
    ("GET", "chargebacks/aggregate?group_by=identity_id&time_bucket=day"),
    ("GET", "chargebacks/aggregate?group_by=product_type&group_by=environment_id&time_bucket=month"),
    ("GET", "chargebacks/aggregate?group_by=identity_id&time_bucket=day&as_of=2026-01-31T12:00:00Z"),
    ("GET", "chargebacks.csv"),
    ("GET", "billing?page_size=1000"),
    ("GET", "topic-attributions?page_size=1000"),
    ("GET", "topic-attributions/aggregate?group_by=topic_name&time_bucket=day"),
    ("GET", "costs?period=7d"),
    ("GET", "flow"),
    ("POST", "export"),
    ("POST", "topic-attributions/export"),
)


@pytest.fixture
def way() -> Iterator[Network]:
    """Yield a network that counts the requests to the bucket of :func:`remote`."""
    with network(object_server()) as found:
        yield found


@pytest.fixture
def remote(server: DemoServer, way: Network, tmp_path: Path) -> Iterator[Deployment]:
    """Yield a tenant that has never run, with its facts in a bucket."""
    deployment = Deployment.within(server, tmp_path / "remote")
    with scratch_database("postgresql", tmp_path) as connection_string:
        deployment.store_in(connection_string, way.server)
        yield deployment
        deployment.store.close()


def answers(deployment: Deployment, count: Callable[[], int] = lambda: 0) -> dict[str, tuple[int, bytes]]:
    """Return the API's responses about the tenant; repeated requests must not change ``count``."""
    configuration = load_configuration(deployment.config_file)
    app = create_app_from(configuration, "api", None, FixedClock())
    with served(app) as address, httpx.Client(base_url=f"{address}/api/v1/tenants/acme/", timeout=120) as client:

        def _ask() -> dict[str, tuple[int, bytes]]:
            found = [
                (path, client.request(method, path, json={} if method == "POST" else None)) for method, path in _ANSWERS
            ]
            return {path: (answer.status_code, _REVISION.sub(b"", answer.content)) for path, answer in found}

        asked = _ask()
        before = _settled(count)
        assert _ask() == asked
        assert count() == before
    return asked


def _settled(count: Callable[[], int]) -> int:
    """Return a count when what the first questions have set off has ended, and it rises no more."""
    before = -1
    while before != (before := count()):
        time.sleep(1)
    return before


@pytest.mark.timeout(900)
def test_the_answers_are_equal(
    remote: Deployment,
    calculated: Deployment,
    way: Network,
    tmp_path: Path,
) -> None:
    """After a run, every byte of verification and responses equals that of the local twin. A second run changes
    nothing, and queries need no request to the bucket for files that are cached on this machine."""
    result = remote.run()
    assert (result.outcome, result.errors) == (RunOutcome.COMPLETED, ())
    assert list(verify(remote.store)) == list(verify(calculated.store))
    for name in DAY_TABLES:
        one, other = remote.store.facts.snapshot(name), calculated.store.facts.snapshot(name)
        assert (one.days, one.rows) == (other.days, other.rows)
    there, here = answers(remote, way.requests.total), answers(calculated)
    assert {path: status for path, (status, _) in here.items()} == dict.fromkeys(here, 200)
    for path, answer in here.items():
        assert there[path] == answer, path
    assert list((tmp_path / "remote" / "copies" / "kept").rglob("chargebacks/date=*/*.parquet"))
    files = remote.store.facts.snapshot(CHARGEBACKS_TABLE).files
    assert remote.run().outcome is RunOutcome.COMPLETED
    assert remote.store.facts.snapshot(CHARGEBACKS_TABLE).files == files


@pytest.fixture
def in_bucket(calculated: Deployment, tmp_path: Path) -> Deployment:
    """Return the calculated tenant, with its facts moved into a bucket."""
    bucket = new_bucket(tmp_path / "cache")
    bucket.load(calculated.store.facts.root)
    calculated.store = replace(calculated.store, facts=FactTables(bucket, calculated.store.control))
    return calculated


@pytest.mark.parametrize("waits", [True, False], ids=["in peace", "until the service ends"])
def test_the_next_questions_are_prepared(in_bucket: Deployment, *, waits: bool) -> None:
    """After a question, the newest files of all datasets are copied and their partial aggregates made; the end of the
    service interrupts that."""
    store = in_bucket.store
    files = [file for each in DATASETS for file in store.facts.snapshot(each.table).files if file.rows]
    assert len({file.day for file in files}) > 1
    assert not any(Path(file.path).exists() for file in files)

    async def _ask() -> None:
        executor = RequestExecutor()
        tenant = TenantView("acme", "acme", "confluent_cloud", 200, store)
        await executor.context_for(CancellationToken()).query_version(tenant, lambda version, _: version)
        while waits and any(map(_lacks, DATASETS)):
            await asyncio.sleep(0.05)
        executor.close()

    def _lacks(dataset: Dataset) -> bool:
        return lacks_partials(store.facts.partials, dataset, store.facts.snapshot(dataset.table).files)

    asyncio.run(_ask())
    for thread in threading.enumerate():
        if thread.name.startswith("preparing"):
            thread.join(60)
            assert not thread.is_alive()
    assert all(Path(file.path).exists() for file in files) or not waits


def place_of(deployment: Deployment) -> Bucket:
    """Return the bucket of a tenant."""
    assert isinstance(deployment.store.facts.place, Bucket)
    return deployment.store.facts.place


def test_losses_are_made_good(in_bucket: Deployment, tmp_path: Path) -> None:
    """A bill, costs and topics that the bucket lost or damaged are reported and restored exactly, although queries
    still have copies of them."""
    bucket, days = place_of(in_bucket), [TODAY - timedelta(days=back) for back in (8, 9, 10)]
    before = {day: in_bucket.rows(day) for day in days}
    for (damage, _), name, day in zip(
        DAMAGES.values(), (BILLING_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE), days, strict=True
    ):
        file = file_of(in_bucket.store.facts, name, day)
        with bucket.copies.lent([file]):
            damage_object(bucket, file.path, damage, tmp_path)
    bucket.delete(STAMP)
    result = in_bucket.run()
    assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
    assert sorted(error.split(": ")[1] for error in result.errors) == [BILLING_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE]
    assert {day: in_bucket.rows(day) for day in days} == before
    assert in_bucket.run().errors == ()


def test_old_days_go(in_bucket: Deployment) -> None:
    """Days past their retention are removed from every table."""
    oldest = TODAY - timedelta(days=8)
    in_bucket.configure(retention_days=8)
    assert in_bucket.run().errors == ()
    for name in DAY_TABLES:
        assert min(in_bucket.store.facts.snapshot(name).days) >= oldest


def test_another_prefix_is_refused(in_bucket: Deployment, tmp_path: Path) -> None:
    """A tenant with days fails if the configured storage has no tables, and creates none there."""
    in_bucket.store = replace(in_bucket.store, facts=FactTables(new_bucket(tmp_path), in_bucket.store.control))
    result = in_bucket.run()
    assert result.outcome is RunOutcome.FAILED
    assert "is empty: is its disk mounted?" in result.errors[0]
    assert place_of(in_bucket).is_empty()


#: How many requests a run without news may make.
MOST_WITHOUT_NEWS = 5


def laboratory_days(count: int) -> list[date]:
    """Return the newest days of a laboratory."""
    return [DAY - timedelta(days=number) for number in range(count)]


def test_a_day_costs_few_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file is written once, and read once for each result derived from it: a bill for costs, topics and sums, rows
    for sums. All other requests are independent of the number of days, and a run without news makes almost none."""
    monkeypatch.setattr(stage, "MAX_SECONDS", 1000.0)
    asked: list[Counter[str]] = []
    for days in (2, 7):
        with network(object_server()) as seen, Laboratory(tmp_path / f"{days}", days=days) as laboratory:
            place = Bucket(seen.server.location(), Copies(tmp_path / f"copies of {days}", 10**9))
            laboratory.store = replace(laboratory.store, facts=FactTables(place, laboratory.store.control))
            laboratory.sources.lines = {day: [line("100", day=day)] for day in laboratory_days(days)}
            laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 90, ("lkc-1", "sa-b"): 10}}
            laboratory.sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 3}}
            assert laboratory.run().errors == ()
            asked.append(seen.requests.copy())
            seen.requests.clear()
            assert laboratory.run().dates_calculated == 0
            assert seen.requests.total() <= MOST_WITHOUT_NEWS, seen.requests
    of_five_days = asked[1] - asked[0]
    assert of_five_days == {
        "PUT billing/DATA": 5,
        "GET billing/DATA": 15,
        "PUT usage/DATA": 5,
        "PUT members/DATA": 5,
        "PUT chargebacks/DATA": 5,
        "GET chargebacks/DATA": 5,
        "PUT topic_usage/DATA": 5,
        "PUT topic_attributions/DATA": 5,
        "GET topic_attributions/DATA": 5,
    }
