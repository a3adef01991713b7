"""Questions to a tenant's facts: one DuckDB query over exactly the Parquet files of the days asked for."""
