"""What was seen of tables is used until something tells that they have changed, or for a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from chargeback.errors import StorageError
from chargeback.store.facts.buckets import Bucket
from chargeback.store.facts.copies import Copies
from chargeback.store.facts.places import LAST_CHECKPOINT, LOG, entry_name
from chargeback.store.facts.seen import SeenTables
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, DAY_TABLES, DIMENSIONS_TABLE, HISTORY_TABLES, FactTables
from tests.support.facts import Share, write_shares
from tests.support.network import Network, network
from tests.support.objects import object_server

pytestmark = pytest.mark.usefixtures("object_storage")

FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)
TABLES = (*DAY_TABLES, DIMENSIONS_TABLE)


@pytest.fixture
def way(tmp_path: Path) -> Iterator[Network]:
    """Counts the requests of :func:`seen`."""
    with network(object_server()) as found:
        yield found


@pytest.fixture
def bucket(way: Network, tmp_path: Path) -> Bucket:
    """An empty place, which forgets nothing while a test runs."""
    bucket = Bucket(way.server.location(), Copies(tmp_path / "copies", 10**9))
    bucket.fresh_seconds = 3600.0
    return bucket


@pytest.fixture
def writer(bucket: Bucket) -> FactTables:
    """The tables of a run, which has written a day."""
    tables = FactTables(bucket)
    tables.create()
    write_shares(tables, [Share(FIRST, "sa-1", "1")])
    return tables


@pytest.fixture
def seen(writer: FactTables) -> SeenTables:
    """The same tables as another process sees them; it has looked once."""
    seen = SeenTables(FactTables(writer.place))
    seen.snapshots(TABLES, 1)
    return seen


def rows(seen: SeenTables, revision: int) -> tuple[int, int]:
    """How many charges there are, and how many dimensions are registered."""
    found = seen.snapshots(TABLES, revision)
    return found[CHARGEBACKS_TABLE].rows, found[DIMENSIONS_TABLE].rows


def test_the_same_revision_needs_no_request(seen: SeenTables, way: Network) -> None:
    """What is known of all tables, or of some, is given without asking the store."""
    before = way.requests.total()
    assert rows(seen, 1) == (1, 1)
    assert seen.snapshots([CHARGEBACKS_TABLE], 1)[CHARGEBACKS_TABLE].days == [FIRST]
    assert way.requests.total() == before


def test_a_new_revision_shows_what_was_committed(seen: SeenTables, writer: FactTables, way: Network) -> None:
    """It costs one look at each table; whoever knows an earlier revision gets the new tables, too."""
    write_shares(writer, [Share(SECOND, "sa-2", "1")])
    assert rows(seen, 1) == (1, 1)
    assert rows(seen, 2) == (2, 2)
    before = way.requests.total()
    assert rows(seen, 1) == (2, 2)
    assert way.requests.total() == before


def test_a_commit_that_nobody_recorded_is_seen_after_a_while(
    seen: SeenTables, bucket: Bucket, writer: FactTables
) -> None:
    """Then all tables are looked at together."""
    write_shares(writer, [Share(SECOND, "sa-2", "1")])
    assert rows(seen, 1) == (1, 1)
    bucket.fresh_seconds = 0.0
    assert rows(seen, 1) == (2, 2)


def test_own_commits_are_seen_at_once(writer: FactTables) -> None:
    """A process that writes, and asks, needs no revision."""
    seen = SeenTables(writer)
    assert rows(seen, 1) == (1, 1)
    write_shares(writer, [Share(SECOND, "sa-2", "1")])
    assert rows(seen, 1) == (2, 2)


def test_a_table_that_is_asked_for_later_is_not_older(seen: SeenTables, writer: FactTables) -> None:
    """A history that is asked for has what has left its table since the others were seen; a table that does not exist
    is empty."""
    history = HISTORY_TABLES[CHARGEBACKS_TABLE]
    write_shares(writer, [Share(SECOND, "sa-2", "1")])
    assert seen.snapshots([history], 1)[history].version == -1
    assert rows(seen, 1) == (2, 2)


def test_a_damaged_table_is_told_to_those_who_ask_for_it(seen: SeenTables, bucket: Bucket) -> None:
    """Others go on; a look that fails is made again by the next one."""
    for entry in (entry_name(number) for number in range(2, 12)):
        bucket.put(f"{DIMENSIONS_TABLE}/{LOG}/{entry}", b"{")
    bucket.put(f"{DIMENSIONS_TABLE}/{LOG}/{LAST_CHECKPOINT}", b"{")
    assert seen.snapshots([CHARGEBACKS_TABLE], 2)[CHARGEBACKS_TABLE].rows == 1
    for _ in range(2):
        with pytest.raises(StorageError, match=DIMENSIONS_TABLE):
            seen.snapshots([DIMENSIONS_TABLE], 2)
