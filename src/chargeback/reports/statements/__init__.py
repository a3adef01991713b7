"""Statements: the amounts that finance books for each cost category value, identity or tag value in a month."""
