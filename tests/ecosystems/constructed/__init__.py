"""Tests of `chargeback.ecosystems.constructed`."""
