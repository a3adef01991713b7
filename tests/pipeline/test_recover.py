"""The catalogue of a lost control database is rebuilt from the published tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from chargeback.errors import StorageError
from chargeback.model.days import utc_now
from chargeback.pipeline.publish import publish_tables
from chargeback.pipeline.recover import catalogue_from_tables
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute.verify import verify, verify_files
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.facts import tables
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, AddedColumn
from chargeback.store.tenant import TenantStore, open_store
from tests.pipeline.test_revise import DAYS, NINE_TO_ONE, Ticking, clock, of_three_days, served
from tests.support.sources import DAY, Laboratory, line

__all__ = ["clock"]


@pytest.fixture
def laboratory(tmp_path: Path, clock: Ticking) -> Iterator[Laboratory]:
    """Yield a tenant with three days, one of them with two successive contents."""
    with of_three_days(tmp_path, clock) as opened:
        opened.sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 3}}
        assert opened.run().errors == ()
        clock.tick()
        opened.sources.lines[DAY] = [line("110")]
        assert opened.run().errors == ()
        clock.tick()
        yield opened


def lose_the_database(laboratory: Laboratory) -> TenantStore:
    """Open the storage with a new database in the place of the lost one."""
    laboratory.store.close()
    for path in Path(laboratory.store.facts.root).parent.glob("acme.db*"):
        path.unlink()
    laboratory.store = open_store(laboratory.tenant)
    return laboratory.store


def test_what_was_published_is_known_again(laboratory: Laboratory, clock: Ticking) -> None:
    """The same bytes are served, now and as of an earlier run; the next run recalculates nothing, and publishes."""
    first = clock.now - timedelta(minutes=1, seconds=30)
    before, earlier = served(laboratory), served(laboratory, first)
    store = lose_the_database(laboratory)
    found = catalogue_from_tables(store)
    assert (found.days, found.unread) == (len(DAYS), 0)
    assert served(laboratory) == before
    assert served(laboratory, first) == earlier
    assert not [each for each in verify(store) if each.is_wrong or each.state != "calculated"]
    result = laboratory.run()
    assert (result.outcome, result.dates_calculated) == (RunOutcome.COMPLETED, 0)
    assert served(laboratory) == before
    assert publish_tables(store.facts, store.acquire(LeaseOwner.this_process())) == 0


def test_a_file_says_with_which_columns_it_was_written(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The column version of a file comes from its footer, because the log does not have it."""
    monkeypatch.setattr(tables, "ADDED", [AddedColumn(CHARGEBACKS_TABLE, "cost_type")])
    laboratory.sources.lines[DAY] = [line("120")]
    assert laboratory.run().errors == ()
    before = {file.path: file.schema_version for file in laboratory.store.facts.snapshot(CHARGEBACKS_TABLE).files}
    assert sorted(before.values()) == [0, 0, 1]
    store = lose_the_database(laboratory)
    catalogue_from_tables(store)
    found = store.facts.snapshot(CHARGEBACKS_TABLE).files
    assert {file.path: file.schema_version for file in found} == before
    assert not list(verify_files(store, utc_now()))


def test_a_catalogue_that_is_there_is_left_alone(laboratory: Laboratory) -> None:
    """An existing catalogue is not replaced."""
    with pytest.raises(StorageError, match="for a lost one"):
        catalogue_from_tables(laboratory.store)


def test_nothing_is_published(laboratory: Laboratory) -> None:
    """Without published tables, no catalogue can be built."""
    store = lose_the_database(laboratory)
    shutil.rmtree(store.facts.root)
    with pytest.raises(StorageError, match="has no published tables"):
        catalogue_from_tables(store)


def test_a_new_database_beside_old_tables_is_refused(laboratory: Laboratory) -> None:
    """A first run fails, because it would replace the published tables by empty ones and remove their files."""
    before = laboratory.store.facts.snapshot(CHARGEBACKS_TABLE).files
    store = lose_the_database(laboratory)
    store.prepare()
    result = laboratory.run()
    assert result.outcome is RunOutcome.FAILED
    assert "`chargeback restore --catalogue-from-tables`" in result.errors[0]
    with closing(open_store(laboratory.tenant)) as other:
        catalogue_from_tables(other)
        assert other.facts.snapshot(CHARGEBACKS_TABLE).files == before


def test_a_tenant_may_publish_nothing(tmp_path: Path) -> None:
    """``storage.publish: none`` writes no logs."""
    with Laboratory(tmp_path, days=1) as laboratory:
        storage = laboratory.tenant.settings.storage.model_copy(update={"publish": "none"})
        laboratory.configure(storage=storage)
        laboratory.sources.lines = {DAY: [line("100")]}
        laboratory.sources.totals = NINE_TO_ONE
        assert laboratory.run().errors == ()
        assert not list(laboratory.store.facts.root.rglob("_delta_log"))
        assert laboratory.charged() == {"sa-a": "90", "sa-b": "10"}
