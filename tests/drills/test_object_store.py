"""An object store that is killed, or loses responses: the result is that of an undisturbed run."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from tests.drills.cases import cases
from tests.drills.ledger import Ledger, StoredResult, tries
from tests.support.databases import scratch_database
from tests.support.deployments import Deployment
from tests.support.network import Fault, network
from tests.support.objects import object_server, own_object_server
from tests.support.processes import command, eventually

KILLED = "object store killed for {} s while a run writes"
LOST = "object store loses every fifth answer to a write"
WRONG = "object store answers every fifth write with 500 or 503"
#: The default of the setting; other tests use a shorter time.
PATIENCE = 90


@tries(0, 1, seconds=1800)
@pytest.mark.parametrize("seconds", [4, 20])
def test_a_store_that_is_killed(
    deployment: Deployment, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, seconds: int, tries: int
) -> None:
    """The run waits until the store is available again, and otherwise runs as usual."""
    for number in range(tries):
        with (
            own_object_server(tmp_path / f"store-{number}") as (server, own),
            scratch_database("postgresql", tmp_path) as connection_string,
            ledger.drill(KILLED.format(seconds)) as drill,
        ):
            deployment.store_in(connection_string, replace(server, retry_seconds=PATIENCE))
            run = command(deployment.config_file, "run")
            place = deployment.store.facts.place
            eventually(lambda: next(place.files(CHARGEBACKS_TABLE), None) is not None, 600)  # noqa: B023 - called at once
            own.kill()
            time.sleep(seconds)
            own.resume(server)
            assert run.wait() == 0
            drill.compare(undisturbed, deployment.store)


@cases(
    [Fault(5)],
    [Fault(5, before=True), *(Fault(5, status, before) for status in (500, 503) for before in (False, True))],
)
def test_a_run_whose_answers_get_lost(
    deployment: Deployment, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger, case: Fault, tries: int
) -> None:
    """In the end, the rows and the export equal those of a tenant on a disk."""
    for _ in range(tries):
        with (
            network(replace(object_server(), retry_seconds=PATIENCE), fault=case) as seen,
            scratch_database("postgresql", tmp_path) as connection_string,
            ledger.drill(WRONG if case.status else LOST) as drill,
        ):
            deployment.store_in(connection_string, seen.server)
            assert command(deployment.config_file, "run").wait() == 0
            assert seen.disturbed
            drill.compare(undisturbed, deployment.store)
