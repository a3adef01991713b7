"""A tenant with broken storage or a broken provider affects no other: the other tenants of the process are calculated,
served and monitored as usual, and the service reports the problem and the tenant."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from chargeback.demo.server import DemoServer
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE
from tests.drills.cases import cases
from tests.drills.ledger import Ledger, StoredResult
from tests.support.deployments import Deployment
from tests.support.installations import readiness, runs_ended, serving
from tests.support.processes import eventually, free_port

FAULT = "another tenant of the process is broken"
BROKEN = "broken"
WRONG_SECRET = "wrong-secret-of-the-drill"


@dataclass(frozen=True)
class Case:
    """One way to break a tenant, given its configuration and the folder of the deployment.

    Attributes:
        status: the readiness status of the service.
        tables_ready: whether readiness reports a usable control database of the broken tenant.
        answer: the HTTP status of a list of the broken tenant.
        error: the error of its run, if it has one.
    """

    name: str
    break_it: Callable[[dict[str, Any], Path], None]
    status: str
    tables_ready: bool
    answer: int
    error: str = ""

    def __str__(self) -> str:
        return self.name


def _rubbish_database(tenant: dict[str, Any], folder: Path) -> None:
    (folder / "broken.db").write_bytes(b"this is no database " * 1000)


def _no_folder_for_the_database(tenant: dict[str, Any], folder: Path) -> None:
    (folder / "taken").write_text("a file where a folder should be")
    tenant["storage"]["connection_string"] = f"sqlite:///{folder / 'taken' / 'broken.db'}"


#: A complete log, of a future format.
_LOG_OF_ANOTHER_AGE = '{"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}}\n{"metaData": {"id": "x"}}\n'


def _rubbish_facts(tenant: dict[str, Any], folder: Path) -> None:
    for table in (BILLING_TABLE, CHARGEBACKS_TABLE):
        log = folder / "broken.facts" / table / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020}.json").write_text(_LOG_OF_ANOTHER_AGE)


def _wrong_credentials(tenant: dict[str, Any], folder: Path) -> None:
    tenant["plugin_settings"]["ccloud_api"]["secret"] = WRONG_SECRET


CASES = (
    Case("a rubbish database", _rubbish_database, "error", tables_ready=False, answer=503),
    Case("wrong credentials", _wrong_credentials, "ready", tables_ready=True, answer=200, error="HTTP 401"),
    # A run writes nothing next to unreadable tables; the catalogue has no files of the tenant.
    Case("rubbish facts", _rubbish_facts, "ready", tables_ready=True, answer=200, error="the log of billing cannot be"),
    Case("no folder for the database", _no_folder_for_the_database, "error", tables_ready=False, answer=503),
)


@cases([], CASES)
def test_a_broken_neighbour(
    case: Case, server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, tries: int
) -> None:
    """The healthy tenant is calculated and served, whatever problem the other one has."""
    for number in range(tries):
        healthy = Deployment.within(server, tmp_path / f"{number}")
        with ledger.drill(FAULT) as drill:
            with serving(_beside_a_broken_one(healthy, case)) as api:
                eventually(lambda: runs_ended(api, "acme") == 1)
                _the_healthy_one_answers(api, undisturbed)
                _the_truth_is_told(api, case)
                _a_trigger_is_accepted(api)
            drill.compare(undisturbed, healthy.store)
        healthy.store.close()


@pytest.mark.drill
def test_broken_while_it_is_served(
    server: DemoServer, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger
) -> None:
    """Storage of a tenant that is lost while the service runs does not affect the other tenant."""
    healthy = Deployment.within(server, tmp_path / "both")
    folder = healthy.config_file.parent
    with ledger.drill(FAULT) as drill:
        with serving(_beside_a_broken_one(healthy, None)) as api:
            eventually(lambda: [runs_ended(api, name) for name in ("acme", BROKEN)] == [1, 1])
            for file in folder.glob("broken.db*"):
                file.write_bytes(b"this is no database " * 1000)
            shutil.rmtree(folder / "broken.facts")
            eventually(lambda: readiness(api)["status"] == "error")
            _the_healthy_one_answers(api, undisturbed)
            _the_truth_is_told(api, CASES[0])
            _a_trigger_is_accepted(api)
        drill.compare(undisturbed, healthy.store)
    healthy.store.close()


def _beside_a_broken_one(healthy: Deployment, case: Case | None) -> Path:
    """Write the configuration of a service with both tenants."""
    folder = healthy.config_file.parent
    document = yaml.safe_load(healthy.config_file.read_text())
    neighbour = yaml.safe_load(healthy.config_file.read_text())["tenants"]["acme"]
    neighbour["tenant_id"] = BROKEN
    neighbour["storage"] = {"connection_string": f"sqlite:///{folder / 'broken.db'}"}
    if case is not None:
        case.break_it(neighbour, folder)
    # The broken tenant comes first in any order.
    document["tenants"] = {BROKEN: neighbour, **document["tenants"]}
    document["api"]["port"] = free_port()
    file = folder / "both.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


def _the_healthy_one_answers(api: httpx.Client, undisturbed: StoredResult) -> None:
    rows = undisturbed.rows.num_rows
    listed = api.get("/api/v1/tenants/acme/chargebacks", params={"page_size": 10}).raise_for_status().json()
    assert (listed["total"], len(listed["items"])) == (rows, 10)
    summed = api.get("/api/v1/tenants/acme/chargebacks/aggregate").raise_for_status().json()
    assert summed["total_rows"] == rows
    exported = api.post("/api/v1/tenants/acme/export").raise_for_status()
    assert exported.content == undisturbed.exported
    (status,) = [each for each in api.get("/api/v1/tenants").json() if each["tenant_name"] == "acme"]
    assert (status["dates_pending"], status["dates_calculated"]) == (0, 7)


def _the_truth_is_told(api: httpx.Client, case: Case) -> None:
    if case.tables_ready:
        eventually(lambda: runs_ended(api, BROKEN) == 1)
        result = api.get(f"/api/v1/tenants/{BROKEN}/pipeline/status").raise_for_status().json()["last_result"]
        assert case.error in result["errors"][0]
        assert WRONG_SECRET not in str(result)
        eventually(lambda: _told_of(api, BROKEN)["last_run_status"] == "failed")
    assert api.get("/health").json()["status"] == "ok"
    healthy, broken = (_told_of(api, name) for name in ("acme", BROKEN))
    assert readiness(api)["status"] == case.status
    assert (healthy["tables_ready"], healthy["has_data"], healthy["last_run_status"]) == (True, True, "completed")
    assert (broken["tables_ready"], broken["has_data"]) == (case.tables_ready, False)
    refused = api.get(f"/api/v1/tenants/{BROKEN}/chargebacks")
    assert refused.status_code == case.answer, refused.text
    assert WRONG_SECRET not in refused.text
    assert "Traceback" not in refused.text


def _told_of(api: httpx.Client, tenant: str) -> dict[str, Any]:
    """Return the readiness of one tenant."""
    (found,) = [each for each in readiness(api)["tenants"] if each["tenant_name"] == tenant]
    assert isinstance(found, dict)
    return found


def _a_trigger_is_accepted(api: httpx.Client) -> None:
    before = runs_ended(api, "acme")
    api.post("/api/v1/tenants/acme/pipeline/run").raise_for_status()
    eventually(lambda: runs_ended(api, "acme") == before + 1)
    result = api.get("/api/v1/tenants/acme/pipeline/status").raise_for_status().json()["last_result"]
    assert (result["errors"], result["dates_calculated"]) == ([], 0)
