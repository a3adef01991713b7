"""Invalid texts from the provider and the metrics fail no day and no run, on either database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from chargeback.demo.faults import Fault
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.days import ONE_DAY
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute.verify import verify
from chargeback.store.control.inventory import read_inventory
from tests.drills.ledger import TODAY, Ledger, StoredResult
from tests.support.databases import KINDS, scratch_database
from tests.support.deployments import DAYS, Deployment
from tests.support.runs import recorded_runs, run_to_its_end

WINDOW = [TODAY - timedelta(days=offset) for offset in range(DAYS, 5, -1)]

#: Half an emoji, NUL, control characters, and ids and names that are too long.
ODD = ("\ud83d", "nul\0nul", "bell\x07\x1b[31m\x1f", "x" * 600, "x" * 599 + "y", "e\u0301 \u202e \ufffe")


@contextmanager
def tenant_on(kind: str, server: DemoServer, folder: Path) -> Iterator[Deployment]:
    """Yield a tenant with a control database of this kind."""
    folder.mkdir()
    with scratch_database(kind, folder) as connection_string:
        deployment = Deployment(server, folder)
        if kind != "sqlite":
            document = yaml.safe_load(deployment.config_file.read_text())
            storage = document["tenants"]["acme"]["storage"]
            storage["connection_string"] = connection_string
            storage["facts_path"] = str(folder / "facts")
            deployment.config_file.write_text(yaml.safe_dump(document))
            deployment.reopen()
        try:
            yield deployment
        finally:
            deployment.store.close()


def odd_costs() -> str:
    """Return a bill on which every text is invalid: a dollar per text and day."""
    rows = [
        {
            "start_date": f"{day}",
            "end_date": f"{day + ONE_DAY}",
            "amount": 1,
            "product": "KAFKA",
            "line_type": text if number % 2 else "KAFKA_BASE",
            "unit": text,
            "description": text,
            "tier_dimensions": {text: text},
            "id": text,
            "resource": {"id": f"lkc-{text}", "display_name": text, "environment": {"id": text}},
        }
        for day in WINDOW
        for number, text in enumerate(ODD)
    ]
    return json.dumps({"data": rows, "metadata": {}})


def odd_accounts() -> str:
    """Return service accounts with invalid ids and names."""
    accounts = [{"id": f"sa-{text}", "display_name": text, "description": text} for text in ODD]
    return json.dumps({"data": accounts, "metadata": {}})


def odd_principals(cluster: str) -> str:
    """Return metrics with invalid principals on a cluster."""
    series = [
        {"metric": {"kafka_id": cluster, "principal_id": text, "topic": text}, "value": [1, f"{number + 1}"]}
        for number, text in enumerate(ODD)
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}})


@pytest.mark.drill
@pytest.mark.parametrize("kind", KINDS)
def test_odd_texts(
    kind: str, organisation: Organisation, tmp_path: Path, undisturbed: StoredResult, ledger: Ledger
) -> None:
    """Every day is gathered and calculated exactly; after valid texts return, no invalid one is left."""
    with (
        DemoServer(organisation) as server,
        tenant_on(kind, server, tmp_path / kind) as deployment,
        ledger.drill("provider sends odd texts") as drill,
    ):
        server.faults.add("/billing/v1/costs", Fault(status=200, body=odd_costs(), times=None))
        server.faults.add("/iam/v2/service-accounts", Fault(status=200, body=odd_accounts(), times=None))
        ended = run_to_its_end(deployment.config_file)
        assert ended.code == 0, ended.said
        assert recorded_runs(deployment.store)[0].errors == ()
        checks = list(verify(deployment.store))
        assert [check.day for check in checks if check.state == "calculated" and not check.difference] == WINDOW
        assert {state.billing_lines for state in deployment.states()} == {len(ODD)}
        with deployment.store.control.read() as connection:
            known = {resource.resource_id for resource in read_inventory(connection).resources}
        billed = set(deployment.all_rows()["resource_id"].to_pylist())
        assert billed <= known
        assert len(billed) == len(ODD)
        assert max(map(len, billed)) == 255
        server.faults.clear()
        # The evidence of a day is kept: identities listed under an invalid name are part of it.
        assert deployment.run(RunRequest(recalculate=True)).outcome is RunOutcome.COMPLETED
        drill.compare(undisturbed, deployment.store)


@pytest.mark.drill
@pytest.mark.parametrize("kind", KINDS)
def test_odd_principals(kind: str, organisation: Organisation, tmp_path: Path, ledger: Ledger) -> None:
    """Every principal in the metrics is charged under a name that can be stored, and is in the inventory."""
    with (
        DemoServer(organisation) as server,
        tenant_on(kind, server, tmp_path / kind) as deployment,
        ledger.drill("provider sends odd texts"),
    ):
        billed = [row["resource"]["id"] for row in organisation.cost_rows(WINDOW[0]) if row.get("resource")]
        clusters = [resource_id for resource_id in billed if resource_id.startswith("lkc-")]
        server.faults.add("/prometheus/api/v1/query", Fault(status=200, body=odd_principals(clusters[0]), times=None))
        ended = run_to_its_end(deployment.config_file)
        assert ended.code == 0, ended.said
        assert server.faults.hits("/prometheus/api/v1/query") > 0
        assert not [check for check in verify(deployment.store) if check.difference or check.state != "calculated"]
        charged = set(deployment.all_rows()["identity_id"].to_pylist())
        assert {"�", "nulnul", "bell��[31m�"} <= charged
        with deployment.store.control.read() as connection:
            known = {identity.identity_id for identity in read_inventory(connection).identities}
        assert charged <= known
