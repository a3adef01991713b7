"""Fixtures for the tests of queries."""

from __future__ import annotations

from tests.support.readers import ask, engine, facts, read

__all__ = ["ask", "engine", "facts", "read"]
