"""Tests of the outbound clients."""
