"""External costs, compared with the stored ones."""
