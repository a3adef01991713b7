"""Ecosystems: each one gathers one kind of Kafka bill for the core. See :mod:`.contract`."""
