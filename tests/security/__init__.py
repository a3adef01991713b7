"""Tests of attacks that must fail."""
