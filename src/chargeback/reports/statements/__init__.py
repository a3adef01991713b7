"""Statements: what finance books for each cost category value, identity or tag value of a month."""
