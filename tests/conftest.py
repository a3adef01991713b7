"""What all tests share: laws are tested without a time limit per example, since the machine may be busy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("chargeback", deadline=None, print_blob=True)
settings.load_profile("chargeback")

DRILL_REPORT = "--drill-report"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the table of the failure drills is kept."""
    parser.addoption(DRILL_REPORT, type=Path, metavar="PAGE", help="put the table of the failure drills in this page")
