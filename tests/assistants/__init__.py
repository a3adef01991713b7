"""Tests of :mod:`chargeback.assistants`."""
