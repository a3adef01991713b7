"""ACME object storage: its invoice comes as CSV files in a folder."""

from .plugin import ecosystem

__all__ = ["ecosystem"]
