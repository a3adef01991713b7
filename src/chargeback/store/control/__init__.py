"""Control: the state of days, the inventory, tags, runs and the lease of one tenant, in SQLite or PostgreSQL."""
