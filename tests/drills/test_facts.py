"""A lost file of facts is reported, the rest is served meanwhile, and the next run restores it."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chargeback.demo.server import DemoServer
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute.verify import verify
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE
from chargeback.store.facts.upkeep import STAMP
from tests.drills.ledger import Ledger, StoredResult, tries
from tests.support.damage import DAMAGES, file_of
from tests.support.deployments import Deployment
from tests.support.installations import Installation, Service

ENDPOINTS = {BILLING_TABLE: "/tenants/acme/billing", CHARGEBACKS_TABLE: "/tenants/acme/chargebacks"}


@tries(0, 5)
@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_lost_file(
    server: DemoServer,
    prepared: Path,
    tmp_path: Path,
    undisturbed: StoredResult,
    ledger: Ledger,
    damage: str,
    tries: int,
) -> None:
    """A file of a random day, of chargebacks and bills in turn, is lost while the API runs."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    deployment = Deployment.copied(prepared, server, tmp_path)
    installation = Installation(tmp_path, server.info, data=tmp_path)
    with installation.serving("api") as service:
        for number in range(tries):
            name = (CHARGEBACKS_TABLE, BILLING_TABLE)[number % 2]
            day = chance.choice(deployment.store.facts.snapshot(name).days)
            with ledger.drill(f"facts file {damage}") as drill:
                _lose_and_find(deployment, installation, service, name, day, damage)
                drill.compare(undisturbed, deployment.store)
    deployment.store.close()


def _lose_and_find(
    deployment: Deployment, installation: Installation, service: Service, name: str, day: date, damage: str
) -> None:
    spoil, is_hidden = DAMAGES[damage]
    spoil(Path(file_of(deployment.store.facts, name, day).path))
    code, said = _said(installation, "verify")
    assert code == 1
    assert f"{day}: the file {name}/date={day}/" in said
    if not is_hidden:
        _served_but(service, name, day)
    (deployment.store.facts.root / STAMP).unlink()  # a day later
    code, said = installation.run()
    assert (code, f"{day}: {name}: the file " in said) == (1, True)
    assert not [check for check in verify(deployment.store) if check.is_wrong]
    assert deployment.run().outcome is RunOutcome.COMPLETED
    assert service.reads() == {200}


def _served_but(service: Service, name: str, lost: date) -> None:
    """Check that requests for the lost day fail with its date, and that every other day is served as before."""
    days = [date.fromisoformat(day) for day in service.client.get("/tenants/acme/chargebacks/dates").json()["dates"]]
    answers: dict[date, Any] = {
        day: service.client.get(ENDPOINTS[name], params={"start_date": str(day), "end_date": str(day)})
        for day in {*days, lost}
    }
    assert {day: answer.status_code for day, answer in answers.items()} == dict.fromkeys(answers, 200) | {lost: 503}
    problem = answers[lost].json()
    assert problem["type"] == "urn:chargeback:damaged-facts"
    assert f"the {name} of {lost} (UTC) is missing or damaged" in problem["detail"]


def _said(installation: Installation, word: str) -> tuple[int, str]:
    """Return the exit code of a command, and its output."""
    before = installation.log.stat().st_size if installation.log.exists() else 0
    code = installation.start(word).wait(120)
    return code, installation.log.read_bytes()[before:].decode()
