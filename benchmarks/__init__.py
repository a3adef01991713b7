"""Benchmarks of the service, compared with the limits of the machine (`python -m benchmarks`)."""
