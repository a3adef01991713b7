"""Fixtures for the tests of reports."""

from __future__ import annotations

from tests.support.readers import ask, engine, facts, read

__all__ = ["ask", "engine", "facts", "read"]
