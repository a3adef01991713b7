"""Tests of what lies under ``examples/``."""
