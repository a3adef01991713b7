"""Closing months: the preview of what would be booked, the blockers, and what was booked."""
