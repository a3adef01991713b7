"""Suspensions of tenants, as a worker keeps them."""

from __future__ import annotations

from pathlib import Path

from chargeback.pipeline.supervisor import Suspensions
from chargeback.store.control.runs import suspend
from tests.support.facts import tenant_store


def test_a_start_forgives_once(tmp_path: Path) -> None:
    """What was suspended before a worker started is active again; what is suspended while it runs remains so."""
    with tenant_store(tmp_path) as store:
        suspensions = Suspensions({"acme": store})
        for expected in (None, "the bill cannot be had"):
            with store.control.write() as connection:
                suspend(connection, "the bill cannot be had")
            suspensions.clear_at_start("acme")
            assert suspensions.reason("acme") == expected
