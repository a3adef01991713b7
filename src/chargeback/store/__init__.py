"""One tenant's storage: ``control`` (state, inventory, tags, runs), ``facts`` (Delta tables), ``queries`` (DuckDB)."""
