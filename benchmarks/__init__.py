"""Benchmarks: what the service costs, measured beside what the machine could do (`python -m benchmarks`)."""
