"""Tests of the ecosystems."""
