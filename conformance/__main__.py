"""``python -m conformance PYTHON``: makes the checked bills, and runs the validator over them, in the environment of
the interpreter ``PYTHON``. Exits with 1 unless exactly the known rules fail."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.datasets import datasets


def main(interpreter: str) -> int:
    """Check all bills at once, as one file; return the exit code."""
    start, tables = time.monotonic(), []
    for name, rows in datasets():
        print(f"{name}: {rows.num_rows:,} rows", flush=True)
        tables.append(rows)
    print(f"made in {time.monotonic() - start:.0f} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "focus.parquet"
        pq.write_table(pa.concat_tables(tables), file)
        return subprocess.run([interpreter, "-m", "conformance.validate", str(file)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
