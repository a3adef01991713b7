"""The service responds to any request without failing."""

from __future__ import annotations

import pytest

from tests.contract.deployment import Deployment
from tests.contract.invalid_requests import throw
from tests.contract.records import Client

#: ``python -m tests.contract.invalid_requests ADDRESS COUNT [SEED]`` sends more.
COUNT = 600


@pytest.mark.extensive
@pytest.mark.parametrize("seed", [1, 2])
def test_rubbish_is_refused_not_fallen_over(scratch: Client, deployment: Deployment, seed: int) -> None:
    """No random request gets a 5xx other than 504 or breaks the connection, and the service keeps running."""
    statuses, failures = throw(deployment.address, seed, COUNT, "scratch")
    assert not failures, f"seed {seed}:\n" + "\n".join(failures)
    assert sum(statuses.values()) == COUNT
    assert statuses[400] > 50
    assert statuses[200] > 20
    assert scratch.get("/health").status_code == 200
