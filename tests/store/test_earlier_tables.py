"""Storage of earlier versions opens automatically, returns the same bytes, and can be continued."""

from __future__ import annotations

import hashlib
import json
import tarfile
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from chargeback.store.backup import restore
from chargeback.store.facts.tables import BILLING_TABLE
from chargeback.store.tenant import TenantStore
from tests.pipeline.test_revise import DAYS, HALF, Ticking, served
from tests.support.databases import scratch_database
from tests.support.facts import catalogue_of
from tests.support.objects import new_bucket
from tests.support.sources import Laboratory, line

#: Made by the last version with logs instead of a catalogue, with its responses at that time, and as of each run: a
#: folder with SQLite whose days had up to three contents, one whose last run was killed between its commit and its
#: confirmation, and a backup of such storage from a bucket and PostgreSQL.
EARLIER = Path(__file__).parent / "earlier"


def extracted(name: str, folder: Path) -> dict[str, list[str]]:
    """Extract a storage; return the responses of its version."""
    with tarfile.open(EARLIER / f"18cc878-{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    answers: dict[str, list[str]] = json.loads((folder / "answers.json").read_text())
    return answers


def digests(laboratory: Laboratory, at: str) -> list[str]:
    """Return the digests of the charges and topics served at an instant; an empty text is now."""
    return [hashlib.sha256(each).hexdigest() for each in served(laboratory, datetime.fromisoformat(at) if at else None)]


def check(laboratory: Laboratory, answers: dict[str, list[str]]) -> None:
    """Check that the same bytes are served before and after a run, whose changes are added."""
    clock = Ticking()
    clock.now = datetime.fromisoformat(max(answers)) + timedelta(minutes=5)
    laboratory.clock = clock
    assert {at: digests(laboratory, at) for at in answers} == answers
    laboratory.sources.lines = {day: [line("100", day=day)] for day in DAYS}
    laboratory.sources.totals = HALF
    laboratory.sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 5, ("lkc-1", "pay"): 1}}
    assert laboratory.run().errors == ()
    assert digests(laboratory, "") != answers[""]
    earlier = {at: each for at, each in answers.items() if at}
    assert {at: digests(laboratory, at) for at in earlier} == earlier
    assert {each.gone_at for each in catalogue_of(laboratory.store.facts)} == {None}


@pytest.mark.parametrize("name", ["history", "killed"])
def test_a_folder_with_sqlite(name: str, tmp_path: Path) -> None:
    """One transaction creates the catalogue from the logs and revisions."""
    answers = extracted(name, tmp_path)
    with Laboratory(tmp_path, days=len(DAYS)) as laboratory:
        check(laboratory, answers)


@pytest.mark.usefixtures("object_storage")
def test_a_backup_of_a_bucket_with_postgresql(tmp_path: Path, postgresql: str) -> None:
    """A backup of an earlier version is restored as one of this version."""
    answers = extracted("bucket", tmp_path / "backup")
    with Laboratory(tmp_path, days=len(DAYS)) as laboratory, scratch_database("postgresql", tmp_path) as address:
        own = laboratory.store
        with closing(
            TenantStore.open(
                tenant_name=own.tenant_name,
                tenant_id=own.tenant_id,
                ecosystem=own.ecosystem,
                connection_string=address,
                facts=new_bucket(tmp_path),
            )
        ) as store:
            restore(tmp_path / "backup", store, address)
            laboratory.store = store
            check(laboratory, answers)
            laboratory.store = own


def test_who_comes_first_makes_the_catalogue(tmp_path: Path) -> None:
    """Others that open the storage at the same time find the catalogue; nothing is read before it exists."""
    extracted("history", tmp_path)
    with Laboratory(tmp_path, days=len(DAYS)) as one, Laboratory(tmp_path, days=len(DAYS)) as other:
        before = catalogue_of(one.store.facts)
        other.store.prepare()
        assert catalogue_of(other.store.facts) == before
        assert one.store.facts.snapshot(BILLING_TABLE).days == sorted(DAYS)
