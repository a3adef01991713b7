"""The summary that the demo prints."""

from __future__ import annotations

from decimal import Decimal

import pytest

from chargeback.cli.demo_summary import summarise
from chargeback.pipeline.run_messages import RunOutcome
from tests.support.deployments import Deployment, deployment, organisation, server

__all__ = ["deployment", "organisation", "server"]


def test_a_tenant_that_never_ran(deployment: Deployment) -> None:
    """The summary of a tenant that has never run is empty."""
    summary = summarise(deployment.tenant)
    assert (summary.days, summary.by_identity, summary.by_product) == ((), (), ())


@pytest.mark.extensive
@pytest.mark.usefixtures("server")
def test_everything_billed_is_charged_to_someone_for_something(deployment: Deployment) -> None:
    """The bill, the chargebacks, and the sums by identity and by product type are equal; the largest come first."""
    assert deployment.run().outcome is RunOutcome.COMPLETED
    summary = summarise(deployment.tenant)
    assert summary.billed == summary.charged > 0
    for groups in (summary.by_identity, summary.by_product):
        amounts = [amount for _, amount in groups]
        assert sum(amounts, Decimal(0)) == summary.billed
        assert amounts == sorted(amounts, reverse=True)
