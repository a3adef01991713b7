"""A tenant to try the examples with."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from chargeback.ecosystems.contract import TenantContext
from chargeback.model.days import utc_today


@pytest.fixture
def context(tmp_path: Path) -> TenantContext:
    """A tenant of today."""
    return TenantContext("it", "it", "EUR", utc_today(), Event(), str(tmp_path / "state"), is_awaited=True)
