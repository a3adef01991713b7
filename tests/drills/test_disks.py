"""Disks that fill up or become read-only: stored data stays complete and readable, and the next run does the rest."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from chargeback.demo.app import ServerOptions
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.recompute.verify import verify
from chargeback.store.facts.tables import SCHEMAS
from chargeback.store.tenant import TenantStore
from tests.drills.ledger import Drill, Ledger, StoredResult, tries
from tests.support.disks import Disk, disk
from tests.support.installations import Installation
from tests.support.processes import eventually

FULL = "disk full in the middle of a run"
READ_ONLY = "disk turned read-only in the middle of a run"

#: Limits of the disk size in KiB, by what is on the small disk: more than the empty database needs and less than all
#: days, so that a run stops at any of its stages except the first transaction and the last.
_TOO_SMALL = {"everything": (450, 1300), "database": (450, 650), "facts": (150, 420)}
_LARGE = 65536
_NO_SPACE = re.compile("No space left on device|database or disk is full|disk I/O error")
SLOW = 0.15


@pytest.fixture
def slow_server(organisation: Organisation) -> Iterator[DemoServer]:
    """Yield the organisation behind a slow provider, so that runs can be disturbed in the middle."""
    with DemoServer(organisation, options=ServerOptions(latency=SLOW)) as running:
        yield running


class Placed:
    """An installation with a disk for the database, the facts or everything; the rest is stored next to the disk."""

    def __init__(self, server: DemoServer, folder: Path, small: Disk, what: str) -> None:
        self.disk = small
        self._folder = folder
        rest = folder / "rest"
        rest.mkdir()
        self._database = (rest if what == "facts" else small.path) / "acme.db"
        self._facts = (rest if what == "database" else small.path) / "acme.facts"
        self._copies = 0
        self.installation = Installation(
            folder,
            server.info,
            data=small.path,
            connection_string=f"sqlite:///{self._database}",
            facts_path=self._facts,
            within=small.within,
        )

    def put(self, prepared: Path) -> None:
        """Copy the data of another tenant to the disk."""
        shutil.copytree(prepared, self.disk.from_here, dirs_exist_ok=True)

    @contextmanager
    def store(self) -> Iterator[TenantStore]:
        """Yield the present storage, copied to a folder that this process can see."""
        self._copies += 1
        copy = self._folder / f"copy-{self._copies}"
        copy.mkdir()
        for path in self._database.parent.iterdir():
            if path.is_file():
                shutil.copy(path, copy)
        if self._facts.is_dir():
            shutil.copytree(self._facts, copy / "acme.facts")
        self._copy_from_disk(copy)
        store = TenantStore.open(
            tenant_name="acme",
            tenant_id="acme",
            ecosystem="confluent_cloud",
            connection_string=f"sqlite:///{copy / 'acme.db'}",
            facts=copy / "acme.facts",
        )
        with closing(store):
            yield store

    def _copy_from_disk(self, copy: Path) -> None:
        shutil.copytree(self.disk.from_here, copy, dirs_exist_ok=True)


def _assert_whole(store: TenantStore) -> None:
    """Check that every calculated day sums to its bill, every file in a table exists with all rows, and no file is
    empty."""
    assert not [check for check in verify(store) if check.is_wrong]
    for name in SCHEMAS:
        files = {Path(file.path): file.rows for file in store.facts.snapshot(name).files}
        assert {path: pq.read_metadata(path).num_rows for path in files} == files
        assert not {path for path in (store.facts.root / name).rglob("part-*") if path.stat().st_size == 0}


@tries(0, 4)
def test_a_disk_that_fills_up(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """A run without disk space fails; calculated days stay readable, and the next run with space completes."""
    for number in range(tries):
        with ledger.drill(FULL) as drill:
            _fill_and_free(server, tmp_path / f"{number}", "everything", drill, undisturbed)


@pytest.mark.drill
@pytest.mark.timeout(900)
@pytest.mark.parametrize("what", ["database", "facts"])
def test_one_of_two_disks_fills_up(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, what: str
) -> None:
    """The same holds if database and facts are on two disks and only one of them is full."""
    for number in range(3):
        with ledger.drill(FULL) as drill:
            _fill_and_free(server, tmp_path / f"{number}", what, drill, undisturbed)


def _fill_and_free(server: DemoServer, folder: Path, what: str, drill: Drill, undisturbed: StoredResult) -> None:
    kibibytes = random.SystemRandom().randint(*_TOO_SMALL[what])
    print(f"{kibibytes} KiB for {what}")
    with disk(folder / "disk", kibibytes) as small:
        placed = Placed(server, folder, small, what)
        _runs_in_vain(placed)
        with placed.installation.serving("api") as service:
            assert service.reads() == {200}
            assert service.readiness() in {"ready", "no_data"}
        small.resize(_LARGE)
        code, said = placed.installation.run()
        assert code == 0, said
        with placed.store() as store:
            _assert_whole(store)
            drill.compare(undisturbed, store)


def _runs_in_vain(placed: Placed) -> None:
    """Check that runs fail with an error, and that later ones leave no more files than the second."""
    left = []
    for _ in range(3):
        code, said = placed.installation.run()
        assert code == 1
        assert _NO_SPACE.search(said), said
        left.append(placed.disk.files())
    assert left[1] == left[2]
    with placed.store() as store:
        _assert_whole(store)


@tries(0, 5)
def test_facts_that_turn_read_only(
    slow_server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """The run in progress fails with an error; the same service keeps responding, and completes the work when the disk
    is writable again."""
    for number in range(tries):
        folder = tmp_path / f"{number}"
        with disk(folder / "disk", _LARGE) as facts, ledger.drill(READ_ONLY) as drill:
            placed = Placed(slow_server, folder, facts, "facts")
            with placed.installation.serving("both") as service:
                eventually(lambda: service.calculated() >= 1)
                eventually(facts.make_read_only)
                eventually(service.is_idle)
                result = service.client.get("/tenants/acme/pipeline/status").json()["last_result"]
                assert "Read-only file system" in " ".join(result["errors"])
                assert service.reads() == {200}
                assert service.readiness() == "ready"
                resource = service.a_resource()
                assert service.tag(resource, "team").status_code == 201
                assert service.untag(resource, "team").status_code == 204
                with placed.store() as store:
                    _assert_whole(store)
                facts.make_writable()
                service.run()
            with placed.store() as store:
                drill.compare(undisturbed, store)
            assert placed.installation.run()[0] == 0


@tries(0, 3)
def test_a_service_on_a_read_only_disk(
    server: DemoServer, prepared: Path, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """A service started on a read-only disk serves the stored data and refuses writes; when the disk is writable, it
    does its work without a restart."""
    for number in range(tries):
        folder = tmp_path / f"{number}"
        with disk(folder / "disk", _LARGE) as everything, ledger.drill(READ_ONLY) as drill:
            placed = Placed(server, folder, everything, "everything")
            installation = placed.installation
            placed.put(prepared)
            assert everything.make_read_only()
            code, said = installation.run()
            assert code == 1
            assert "the control database cannot be used" in said
            with installation.serving("both") as service:
                resource = service.a_resource()
                assert service.reads() == {200}
                assert service.readiness() == "ready"
                for answer in (service.tag(resource, "team"), service.client.post("/tenants/acme/pipeline/run")):
                    assert answer.status_code == 503
                    assert answer.json()["type"] == "urn:chargeback:storage-unavailable"
                everything.make_writable()
                assert service.tag(resource, "team").status_code == 201
                assert service.untag(resource, "team").status_code == 204
                service.run()
            with placed.store() as store:
                drill.compare(undisturbed, store)


@pytest.mark.drill
def test_a_service_on_a_full_disk(server: DemoServer, prepared: Path, tmp_path: Path) -> None:
    """A service started on a full disk responds, and works once there is space."""
    with disk(tmp_path / "disk", _LARGE) as everything:
        placed = Placed(server, tmp_path, everything, "everything")
        placed.put(prepared)
        junk = everything.fill()
        with placed.installation.serving("both") as service:
            assert service.reads() == {200}
            assert service.readiness() == "ready"
            resource = service.a_resource()
            assert service.tag(resource, "team").status_code == 503
            junk.unlink()
            assert service.tag(resource, "team").status_code == 201
            service.run()
            assert service.reads() == {200}
