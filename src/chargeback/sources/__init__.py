"""Outbound clients: HTTP with retries, rate limits that processes share, Prometheus. They never see the store."""
