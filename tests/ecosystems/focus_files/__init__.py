"""Tests of bills in FOCUS files."""
