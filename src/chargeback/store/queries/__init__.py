"""Queries of a tenant's facts: each reads exactly the Parquet files of the days it is about."""
