"""Facts: Delta Lake tables, one partition per UTC day, each day replaced whole."""
