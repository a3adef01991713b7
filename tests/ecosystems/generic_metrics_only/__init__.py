"""Tests of `chargeback.ecosystems.generic_metrics_only`."""
