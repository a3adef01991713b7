"""The floor: the same queries sent to DuckDB directly over the same Parquet files.

They involve no tenants, tags, JSON, HTTP or formatting of amounts: the difference from the floor is the service's own
cost.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb

from chargeback.model.chargeback import ALLOCATION_ISSUES
from chargeback.store.queries.aggregate import MAX_BUCKETS

_SOURCE: Final = "read_parquet($files, hive_partitioning = true, hive_types = {'date': DATE})"


class Floors:
    """Direct queries of one tenant's files, run by two threads in this process."""

    def __init__(self, facts: Path) -> None:
        self._facts = facts
        self._db = duckdb.connect(config={"threads": 2})
        self._db.execute("SET parquet_metadata_cache = true")
        self._db.execute("SET TimeZone = 'UTC'")
        teams = "SELECT 'sa-' || lpad(n::VARCHAR, 6, '0') AS entity, 'team-' || (n % 20) AS value"
        self._db.execute(f"CREATE TABLE teams AS {teams} FROM range(5000) AS everybody(n) WHERE n % 19 <> 0")
        self._db.execute("CREATE TABLE operators AS SELECT 'lkc-' || n AS entity FROM range(20) AS clusters(n)")

    def close(self) -> None:
        """Release the engine's memory."""
        self._db.close()

    def files(self, table: str, first: date, last: date) -> list[str]:
        """Return the files of some days."""
        names = {f"date={first + timedelta(days=offset)}" for offset in range((last - first).days + 1)}
        return sorted(str(path) for name in names for path in (self._facts / table / name).glob("*.parquet"))

    def rows(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Return the result of any query as Python objects."""
        return self._db.execute(sql, parameters).fetchall()

    def table(self, sql: str, **parameters: Any) -> Any:
        """Return the result of any query as columns."""
        return self._db.sql(sql, params=parameters).to_arrow_table()

    def aggregate(self, column: str, unit: str, zone: str, first: date, last: date) -> list[tuple[Any, ...]]:
        """Return sums, the newest ten thousand; days of a zone are those of the database's calendar."""
        day = "date" if zone == "UTC" else f"timezone('{zone}', timestamp)::DATE"
        bucket = day if unit == "day" else f"date_trunc('{unit}', {day})"
        joins, key = "", column
        if column == "tag:team":
            key = "coalesce(teams.value, CASE WHEN operators.entity IS NULL THEN 'UNTAGGED' ELSE 'platform' END)"
            joins = (
                "LEFT JOIN teams ON teams.entity = identity_id LEFT JOIN operators ON operators.entity = resource_id"
            )
        return self.rows(
            f"""SELECT {bucket} AS bucket, {key} AS key, sum(amount), count(*),
                       sum(CASE WHEN cost_type = 'usage' THEN amount ELSE 0 END)
                FROM {_SOURCE} {joins} GROUP BY ALL ORDER BY bucket DESC, key LIMIT {MAX_BUCKETS}""",
            files=self.files("chargebacks", first, last),
        )

    def changes(self, days: int, last: date) -> list[tuple[Any, ...]]:
        """Return what the changes between so many days and those before them are made of: the charges of each identity
        and the bill, in both periods."""
        first, middle = last - timedelta(days=2 * days - 1), last - timedelta(days=days - 1)
        charges = self.rows(
            f"""SELECT identity_id, resource_id, product_type, allocation_method, list(DISTINCT policy_hash),
                       sum(amount) FILTER (date < $middle), sum(amount) FILTER (date >= $middle)
                FROM {_SOURCE} GROUP BY ALL""",
            files=self.files("chargebacks", first, last),
            middle=middle,
        )
        bill = self.rows(
            f"""SELECT resource_id, product_type, date >= $middle AS is_later, sum(quantity), min(unit), max(unit)
                FROM {_SOURCE} GROUP BY ALL""",
            files=self.files("billing", first, last),
            middle=middle,
        )
        return charges + bill

    def topics(self, first: date, last: date) -> list[tuple[Any, ...]]:
        """Return sums of topic rows by topic and day, the newest ten thousand."""
        return self.rows(
            f"""SELECT date, topic_name, sum(amount), count(*) FROM {_SOURCE} GROUP BY ALL
                ORDER BY date DESC, topic_name LIMIT {MAX_BUCKETS}""",
            files=self.files("topic_attributions", first, last),
        )

    def page(self, filters: dict[str, str], first: date, last: date, offset: int, limit: int) -> Any:
        """Return one page in list order, and the number of rows. The files are already in that order."""
        where = " AND ".join(f"{name} = ${name}" for name in filters) or "TRUE"
        files = self.files("chargebacks", first, last)
        self.rows(f"SELECT count(*) FROM {_SOURCE} WHERE {where}", files=files, **filters)
        return self.table(
            f"SELECT * FROM {_SOURCE} WHERE {where} LIMIT {limit} OFFSET {offset}", files=files, **filters
        ).to_pylist()

    def billing(self, first: date, last: date, limit: int) -> Any:
        """Return the first page of billing lines, and their number."""
        files = self.files("billing", first, last)
        self.rows(f"SELECT count(*) FROM {_SOURCE}", files=files)
        return self.table(f"SELECT * FROM {_SOURCE} LIMIT {limit}", files=files).to_pylist()

    def dimension(self, number: int) -> list[tuple[Any, ...]]:
        """Return one dimension."""
        files = sorted(str(path) for path in (self._facts / "dimensions").glob("*.parquet"))
        return self.rows("SELECT * FROM read_parquet($files) WHERE dimension_id = $id", files=files, id=number)

    def issues(self, first: date, last: date) -> list[tuple[Any, ...]]:
        """Return the sums of costs that were not allocated as intended."""
        return self.rows(
            f"""SELECT resource_id, product_type, identity_id, allocation_detail, count(*), sum(amount)
                FROM {_SOURCE} WHERE allocation_detail IN (SELECT unnest($details::VARCHAR[]))
                GROUP BY ALL LIMIT 100""",
            files=self.files("chargebacks", first, last),
            details=list(ALLOCATION_ISSUES),
        )

    def evidence(self, day: date, line_id: str) -> list[Any]:
        """Return the rows of a billing line, the line, and the measurements of its resource."""

        def _found(table: str, column: str, value: str) -> Any:
            files = self.files(table, day, day)
            return self.table(f"SELECT * FROM {_SOURCE} WHERE {column} = $value", files=files, value=value)

        line = _found("billing", "line_id", line_id)
        used = _found("usage", "resource_id", line["resource_id"][0].as_py())
        return [_found("chargebacks", "line_id", line_id), line, used]

    def entities(self, first: date, last: date) -> list[tuple[Any, ...]]:
        """Return the resources and identities."""
        return self.rows(
            f"SELECT DISTINCT resource_id, identity_id FROM {_SOURCE}", files=self.files("chargebacks", first, last)
        )

    def export(self, first: date, last: date, to: Path) -> None:
        """Write the default columns of the export as a CSV file."""
        columns = "timestamp, resource_id, product_category, product_type, identity_id, cost_type, amount"
        files = ", ".join(f"'{name}'" for name in self.files("chargebacks", first, last))
        source = _SOURCE.replace("$files", f"[{files}]")
        self._db.execute(f"COPY (SELECT {columns}, allocation_method, '' AS tags FROM {source}) TO '{to}' (FORMAT csv)")
