"""Costs from elsewhere, compared with those stored here."""
