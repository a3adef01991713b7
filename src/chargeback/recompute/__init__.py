"""Calculation and verification from stored evidence. This package reads a tenant's storage and never writes to it."""
