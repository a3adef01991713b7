"""``python -m readers PYTHON``: makes a tenant, and lets each engine sum its tables by day, in the environment of the
interpreter ``PYTHON``. Exits with 1 unless every sum is equal to the last digit."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.support.clock import TODAY
from tests.support.readable import MONEY, Sums, own_sums, readable_tenant

from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.store.facts.tables import FactTables

ENGINES = ("duckdb_delta", "spark_files", "spark_connect_delta")
_DAYS = 12


def main(interpreter: str) -> int:
    """Let every engine read; print what it found, and return the exit code."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        organisation = Organisation.generate(DemoSpec(today=TODAY, size="small", days=_DAYS))
        with readable_tenant(organisation, Path(folder) / "tenant") as facts:
            ours, request = own_sums(facts), Path(folder) / "request.json"
            request.write_text(json.dumps(_tables(facts)), encoding="utf-8")
            for engine in ENGINES:
                command = [interpreter, "-m", "readers.read", engine, str(request)]
                said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                wrong += differences(engine, ours, _sums(json.loads(said.splitlines()[-1])))
    return 1 if wrong else 0


def _tables(facts: FactTables) -> list[dict[str, Any]]:
    """What an engine has to know: where a table is, its column of money, and its files for one that cannot read the
    log."""
    return [
        {
            "name": name,
            "path": str(facts.root / name),
            "money": money,
            "files": [file.path for file in facts.snapshot(name).files],
        }
        for name, money in MONEY.items()
    ]


def _sums(found: dict[str, dict[str, list[str]]]) -> Sums:
    return {
        name: {day: (int(rows), Decimal(total)) for day, (rows, total) in days.items()} for name, days in found.items()
    }


def differences(engine: str, ours: Sums, theirs: Sums) -> int:
    """Print a line for each table, and one for each day that differs; return the number of these."""
    count = 0
    for name, days in ours.items():
        other = theirs.get(name, {})
        differing = [day for day in sorted(days.keys() | other.keys()) if days.get(day) != other.get(day)]
        rows, total = sum(each[0] for each in days.values()), sum((each[1] for each in days.values()), Decimal(0))
        verdict = "DIFFERENT" if differing else f"equal on each of {len(days)} days"
        print(f"{engine:20} {name:20} {rows:>9,} rows {total:>24} {verdict}", flush=True)
        for day in differing:
            print(f"    {day}: here {days.get(day)}, there {other.get(day)}", flush=True)
        count += len(differing)
    return count


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
