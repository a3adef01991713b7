"""``python -m readers.read ENGINE REQUEST``: in the environment of the engines, which has nothing of ours, sum the
tables of a request by day. The last line printed is the answer as JSON: table → day → number of rows and exact sum."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Table = dict[str, Any]
#: Of each day: its date, the number of rows, and the sum of the money.
Rows = Iterable[tuple[Any, Any, Any]]


def duckdb_delta(tables: list[Table]) -> dict[str, Rows]:
    """DuckDB with its own reader of Delta's log, which shares no code with the library that wrote the tables."""
    import duckdb

    spec = find_spec("duckdb_extension_delta")
    assert spec is not None
    assert spec.submodule_search_locations
    (extension,) = Path(spec.submodule_search_locations[0]).glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    return {
        table["name"]: connection.execute(
            f"SELECT date, count(*), sum({table['money']}) FROM delta_scan('{table['path']}') GROUP BY date"
        ).fetchall()
        for table in tables
    }


def spark_files(tables: list[Table]) -> dict[str, Rows]:
    """Spark itself, on a Java of this machine, reading the files that the log names: it has no reader of the log."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as scratch:
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.local.dir": scratch,
            "spark.sql.warehouse.dir": scratch,
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.log.level": "ERROR",
        }
        session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        try:
            return {
                table["name"]: _summed(
                    session.read.option("basePath", table["path"]).parquet(*table["files"]), table["money"]
                )
                for table in tables
            }
        finally:
            session.stop()


def spark_connect_delta(tables: list[Table]) -> dict[str, Rows]:
    """Spark's client and ``format("delta")``, answered by a server of the Spark Connect protocol that is no Spark."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start()
    try:
        _, port = server.listening_address
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        try:
            return {
                table["name"]: _summed(session.read.format("delta").load(table["path"]), table["money"])
                for table in tables
            }
        finally:
            session.stop()
    finally:
        server.stop()


def _summed(frame: Any, money: str) -> Rows:
    from pyspark.sql import functions as f

    return [tuple(row) for row in frame.groupBy("date").agg(f.count("*"), f.sum(money)).collect()]


ENGINES: dict[str, Callable[[list[Table]], dict[str, Rows]]] = {
    "duckdb_delta": duckdb_delta,
    "spark_files": spark_files,
    "spark_connect_delta": spark_connect_delta,
}


def main(engine: str, request: str) -> None:
    """Let an engine read, and print what it found."""
    os.environ |= {"TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}
    found = ENGINES[engine](json.loads(Path(request).read_text(encoding="utf-8")))
    sums = {name: {str(day): [str(rows), str(total)] for day, rows, total in days} for name, days in found.items()}
    print(json.dumps(sums))


if __name__ == "__main__":
    main(*sys.argv[1:])
