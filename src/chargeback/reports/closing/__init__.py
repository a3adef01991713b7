"""Closing months: what would be booked, what is missing for it, and what was booked."""
