"""Tests of the folder ``examples/``."""
