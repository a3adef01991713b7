"""Every test of the control database runs on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.lease import Lease, LeaseOwner, acquire
from tests.support.databases import KINDS, SCHEMA, control_database, scratch_database


@pytest.fixture(params=[*KINDS, SCHEMA])
def connection_string(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield an empty database."""
    with scratch_database(request.param, tmp_path) as text:
        yield text


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlDatabase]:
    """Yield a migrated, empty control database."""
    with control_database(request.param, tmp_path) as database:
        yield database


@pytest.fixture
def lease(database: ControlDatabase) -> Lease:
    """Return the lease of the only worker."""
    return acquire(database, LeaseOwner.this_process())
