"""Ecosystems: each knows one kind of Kafka bill, and hands what it gathers to the core. See :mod:`.contract`."""
