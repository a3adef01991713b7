"""A tenant for the examples."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from chargeback.ecosystems.contract import TenantContext
from tests.support.clock import TODAY, FixedClock


@pytest.fixture
def context(tmp_path: Path) -> TenantContext:
    """A tenant, on the day of the tests."""
    return TenantContext("it", "it", "EUR", TODAY, Event(), str(tmp_path / "state"), is_awaited=True, now=FixedClock())
