"""The API on one host, the worker on another, PostgreSQL and S3 on a third: whatever happens to the worker or the
network, in the end every response equals that of a twin tenant, which has its data on a local disk and was calculated
without faults."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile

import httpx
import psycopg
import pypdfium2
import pytest
import yaml

from chargeback.demo.config import CUTOFF_DAYS, ServerInfo, demo_configuration
from tests.contract.documentation import Asker
from tests.contract.endpoints import ENDPOINTS, TENANT
from tests.contract.examples import EXAMPLES
from tests.contract.records import Client, Everything, needed_of
from tests.contract.seeded import SEED, SEEDED
from tests.drills.ledger import TODAY, Drill, Ledger, tries
from tests.support.databases import own_postgres_server
from tests.support.hosts import NamespaceHost, network
from tests.support.objects import OwnObjectServer
from tests.support.processes import eventually

#: Enough days for two batches.
DAYS: Final = 30
DUE: Final = DAYS - CUTOFF_DAYS
PORT: Final = 8080
PASSWORD: Final = "password-of-the-tests"
#: Slow enough that a run can be disturbed in the middle.
LATENCY: Final = "0.1"
CUT_SECONDS: Final = 4

KILLED: Final = "two hosts: the worker killed by SIGKILL, started again"
LOST: Final = "two hosts: the worker's host loses its power, another takes over"
CUT: Final = "two hosts: the network to PostgreSQL and S3 cut for seconds"

#: What differs between two tenants with the same data: instants to the microsecond (in a statement: to the minute),
#: which are those of processing, numbers of runs, and digests of table versions and of contents that include an
#: instant.
_BY_NATURE: Final = re.compile(
    rb'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z|\d\d:\d\d UTC|"run_id":"\d+"|"revision":"[0-9a-f]{32}"|"[0-9a-f]{64}"'
)
#: Responses with the number of runs and their results.
OF_RUNS: Final = frozenset(
    {
        "GET /api/v1/tenants/acme/runs?limit=1",
        "GET /api/v1/tenants/acme/pipeline/status",
        "GET /api/v1/tenants/acme/pipeline/log?page_size=2",
        f"GET {TENANT}/runs",
        f"GET {TENANT}/pipeline/status",
        f"GET {TENANT}/pipeline/log",
    }
)
#: Requests that fail: only mode `both` starts runs, no emitter publishes metrics, there are no simulations, shadows,
#: budgets, receivers or contracts, and there is only one note.
REFUSED: Final = frozenset(
    {
        "POST /api/v1/tenants/acme/pipeline/run",
        "GET /metrics/chargebacks",
        "GET /api/v1/tenants/acme/shadows/next?limit=1",
        "GET /api/v1/tenants/acme/contracts/provider",
        *(f"POST /api/v1/tenants/acme/notifications/finance-desk/{what}" for what in ("test", "retry")),
        f"GET {TENANT}/simulations/{{simulation_id}}",
        f"GET {TENANT}/simulations/{{simulation_id}}/items.csv",
        f"GET {TENANT}/shadows/{{shadow_name}}",
        f"GET {TENANT}/budgets/{{budget_id}}",
        f"GET {TENANT}/budgets/{{budget_id}}/status",
        f"GET {TENANT}/contracts/{{contract_id}}",
        f"GET {TENANT}/notes/{{note_id}}",
    }
)
#: The response with all chargeback rows.
ROWS: Final = f"GET {TENANT}/chargebacks.csv"

_HOLDS_A_TRANSACTION: Final = """
import sys, time
from pathlib import Path
from sqlalchemy import text
from chargeback.store.control.database import ControlDatabase
database, begin = ControlDatabase(sys.argv[1]), Path(sys.argv[2])
print("ready", flush=True)
while not begin.exists():
    time.sleep(0.01)
with database.write() as connection:
    connection.execute(text("UPDATE tenant SET stage = stage"))
    print("held", flush=True)
    time.sleep(600)
"""


@dataclass(frozen=True)
class Machine:
    """A host with its own configuration."""

    host: NamespaceHost
    folder: Path

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a ``chargeback`` command; its output is added to the log."""
        command = [sys.executable, "-m", "chargeback", *words, "--config", str(self.folder / "chargeback.yaml")]
        return self.host.start(*command, log=self.folder / "log")

    @contextmanager
    def serving(self) -> Iterator[Client]:
        """Serve the API during the ``with`` block; yield a client for it."""
        process = self.start("serve", "--mode", "api")
        with Client(base_url=f"http://127.0.0.1:{self.host.seen(PORT)}", timeout=120) as client:
            eventually(lambda: _is_healthy(client))
            yield client
        self.host.kill(process)


def _is_healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


class Site:
    """The network with the hosts that all tries share: one for the stores, one for the provider."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._network = stack.enter_context(network())
        self._folder = folder
        self.store = self._network.host("store")
        self._postgres = stack.enter_context(own_postgres_server(PASSWORD, self.store))
        (folder / "weed").mkdir()
        weed = OwnObjectServer(folder / "weed", self.store)
        stack.callback(weed.remove)
        self._objects = replace(weed.start(), endpoint=f"http://{self.store.address}:{weed.port}")
        provider = self._network.host("provider")
        options = {"host": provider.address, "size": "small", "days": DAYS, "today": TODAY, "latency": LATENCY}
        words = [f"--{name}={value}" for name, value in options.items()]
        provider.start(sys.executable, "-m", "chargeback.demo.server", *words, log=folder / "provider")
        eventually(lambda: (folder / "provider").read_text().endswith("\n"))
        self._info = ServerInfo.from_json((folder / "provider").read_text())

    def storage(self, name: str) -> dict[str, Any]:
        """Create a database; return the settings of new storage."""
        there = f"{self.store.address}:{self._postgres.port}"
        here = f"127.0.0.1:{self.store.seen(self._postgres.port)}"
        with psycopg.connect(self._postgres.address.replace(there, here), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return {
            "connection_string": self._postgres.address.removesuffix("/postgres") + f"/{name}",
            "facts_path": f"s3://{self._objects.bucket}/{name}",
            "object_store": self._objects.written | {"retry_seconds": 90},
        }

    def machine(self, name: str, storage: Mapping[str, Any] | None = None) -> Machine:
        """Return a new host with its own configuration and folder; without ``storage``, its data is there, too."""
        host, folder = self._network.host(name), self._folder / name
        folder.mkdir()
        written = yaml.safe_load(demo_configuration(self._info, folder))
        written["api"] = {"host": host.address, "port": PORT}
        written["access"] = {"allow_anonymous": True}
        if storage is not None:
            written["features"] = {"cache": {"path": "copies"}}
            written["tenants"]["acme"]["storage"] = dict(storage)
        (folder / "chargeback.yaml").write_text(yaml.safe_dump(written))
        return Machine(host, folder)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield the network with stores and provider."""
    with ExitStack() as stack:
        yield Site(tmp_path_factory.mktemp("site"), stack)


@dataclass(frozen=True)
class Answer:
    """A response without the times of events, the numbers of runs and the versions of tables."""

    status: int
    kind: str | None
    body: bytes

    @classmethod
    def of(cls, response: httpx.Response) -> Answer:
        """Return the parts of a response that must be equal; archives become their files, and compressed PDF files
        their text."""
        kind = response.headers.get("content-type")
        read = {"application/pdf": _text_of, "application/zip": _texts_of}.get(kind, bytes)
        return cls(response.status_code, kind, _BY_NATURE.sub(b"", read(response.content)))


def _text_of(printed: bytes) -> bytes:
    with closing(pypdfium2.PdfDocument(printed)) as document:
        return " ".join(sheet.get_textpage().get_text_range() for sheet in document).encode()


def _texts_of(archive: bytes) -> bytes:
    with ZipFile(io.BytesIO(archive)) as files:
        contents = {name: files.read(name) for name in files.namelist()}
    return b"\n".join(
        name.encode() + b"\n" + (_text_of(content) if name.endswith(".pdf") else content)
        for name, content in contents.items()
    )


@pytest.fixture(scope="module")
def twin(site: Site) -> Iterator[dict[str, Answer]]:
    """Yield the responses of a tenant whose SQLite database and facts are on the disk of its host."""
    machine = site.machine("twin")
    assert machine.start("run").wait(600) == 0
    with machine.serving() as client:
        yield asked(client)


def asked(client: Client) -> dict[str, Answer]:
    """Send every documented example, including changes; then make more changes, and send every GET request."""
    asker = Asker(client, "acme", TODAY)
    found = {f"{each.method} {each.path}": asker.ask(each) for each in EXAMPLES}
    everything = Everything(client, "acme")
    row = everything.chargebacks[0]
    resource = row["resource_id"]
    parts = {
        "entity_id": resource,
        "dimension_id": str(row["dimension_id"]),
        "date": row["timestamp"][:10],
        "period": row["timestamp"][:7],
        "category_key": SEEDED,
    }
    tag = {"tag_key": "team", "tag_value": "payments", "created_by": "alice"}
    found["tag"] = client.post(client.tag_path("acme", "resource", resource), json=tag)
    found["category"] = client.put(f"/api/v1/tenants/acme/cost-categories/{SEEDED}", json={"document": SEED})
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET":
            path = endpoint.of("acme", **parts)
            found[endpoint.name] = client.get(path, params=needed_of(endpoint, everything))
    return {name: Answer.of(response) for name, response in found.items()}


def calculated(client: httpx.Client) -> int:
    """Return the number of calculated days according to the API."""
    answer = client.get("/api/v1/tenants")
    return int(answer.json()[0]["dates_calculated"] or 0) if answer.status_code == 200 else 0


def runs(client: httpx.Client) -> list[dict[str, Any]]:
    """Return the runs of the tenant from the API, the newest first."""
    found: list[dict[str, Any]] = client.get("/api/v1/tenants/acme/runs").raise_for_status().json()["items"]
    return found


def is_complete(client: httpx.Client) -> bool:
    """Return whether the last run completed."""
    return [each["status"] for each in runs(client)[:1]] == ["completed"]


def _interrupted(worker: Machine, client: httpx.Client) -> subprocess.Popen[bytes]:
    """Start the worker; return its process when some days are calculated, but not all."""
    process = worker.start("serve", "--mode", "worker")
    eventually(lambda: 0 < calculated(client) < DUE)
    return process


def _kill(site: Site, worker: Machine, client: httpx.Client) -> Machine:
    """Kill the worker's process, and start another one on the same host."""
    worker.host.kill(_interrupted(worker, client))
    assert calculated(client) < DUE
    worker.start("serve", "--mode", "worker")
    return worker


def _cut(site: Site, worker: Machine, client: httpx.Client) -> Machine:
    """Cut the network between the stores and all other hosts for seconds; the same process continues."""
    process = _interrupted(worker, client)
    site.store.unplug()
    time.sleep(CUT_SECONDS)
    site.store.plug()
    assert calculated(client) < DUE
    assert process.poll() is None
    return worker


def _lose(site: Site, worker: Machine, client: httpx.Client) -> Machine:
    """Power off the worker's host in the middle of a transaction; another host takes over."""
    storage = yaml.safe_load((worker.folder / "chargeback.yaml").read_text())["tenants"]["acme"]["storage"]
    begin, said = worker.folder / "begin", worker.folder / "said"
    words = [sys.executable, "-c", _HOLDS_A_TRANSACTION, storage["connection_string"], str(begin)]
    worker.host.start(*words, log=said)
    eventually(lambda: said.read_text() == "ready\n")
    _interrupted(worker, client)
    begin.touch()
    eventually(lambda: said.read_text() == "ready\nheld\n")
    worker.host.power_off()
    assert calculated(client) < DUE
    other = site.machine(f"{worker.host.name}-b", storage)
    other.start("serve", "--mode", "worker")
    return other


#: The action on the worker, and the outcomes of its runs, the newest first.
FAULTS: Final[dict[str, tuple[Callable[[Site, Machine, httpx.Client], Machine], list[str]]]] = {
    KILLED: (_kill, ["completed", "interrupted"]),
    LOST: (_lose, ["completed", "interrupted"]),
    CUT: (_cut, ["completed"]),
}


@tries(0, 2, seconds=1800)
@pytest.mark.parametrize("fault", FAULTS)
def test_two_hosts(site: Site, twin: dict[str, Answer], ledger: Ledger, fault: str, tries: int) -> None:
    """A worker that is disturbed in the middle of a backfill, or its successor, continues, and the API on another host
    returns the responses of the twin, byte for byte. Each host sees the changes of the other."""
    for number in range(tries):
        name = f"{list(FAULTS).index(fault)}{number}"
        storage, (disturb, outcomes) = site.storage(f"try_{name}"), FAULTS[fault]
        worker, api = site.machine(f"worker-{name}", storage), site.machine(f"api-{name}", storage)
        assert worker.start("db", "upgrade").wait(120) == 0
        with ledger.drill(fault) as drill, api.serving() as client:
            worker = disturb(site, worker, client)
            eventually(lambda: is_complete(client), 600)
            assert [run["status"] for run in runs(client)] == outcomes
            found = asked(client)
            _compare(drill, twin, found, but=frozenset() if outcomes == ["completed"] else OF_RUNS)
            _share_changes(worker, client)


def _compare(drill: Drill, twin: Mapping[str, Answer], found: Mapping[str, Answer], *, but: frozenset[str]) -> None:
    """Check that every response equals the twin's, except those of ``but``."""
    wanted, there = (Counter(each[ROWS].body.splitlines()) for each in (twin, found))
    drill.lost_rows += (wanted - there).total() + (there - wanted).total()
    assert found.keys() == twin.keys()
    assert {name for name, answer in twin.items() if answer.status >= 400} == REFUSED
    assert [name for name in twin if found[name] != twin[name] and name not in but] == []


def _share_changes(worker: Machine, client: Client) -> None:
    """Check that a tag changed by the API is in the file that the worker's host exports afterwards."""
    resource = client.answer("/api/v1/tenants/acme/chargebacks", page_size=1)["items"][0]["resource_id"]
    changed = client.put(client.tag_path("acme", "resource", resource, "team"), json={"tag_value": "changed-by-put"})
    assert changed.status_code == 200
    file = worker.folder / "rows.csv"
    assert worker.start("export", "--tenant", "acme", "--to", str(file)).wait(120) == 0
    assert b"changed-by-put" in file.read_bytes()
    assert file.read_bytes() == client.post("/api/v1/tenants/acme/export").content
