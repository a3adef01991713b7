"""Tests of `chargeback.ecosystems.self_managed_kafka`."""
