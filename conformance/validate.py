"""Runs the official validator over a Parquet file with data in FOCUS 1.2; exits with 1 unless exactly the expected
rules fail. It runs in the environment of the validator, without our packages.

The file is looked at three times: as it is; with a text in ChargeClass, because "unless ChargeClass is Correction" is
understood so that rules about prices look at no row where it is null, as it is in ours; and with columns that are
broken on purpose, which must be found.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import focus_validator
from focus_validator.validator import Validator

from conformance.expected import AS_EXPORTED, CRITERIA, MODEL, WITH_CHARGE_CLASS, differences, unseen

_CHARGE_CLASS: Final = {"ChargeClass": "'None'"}
#: SQL of columns that are wrong: a unit that FOCUS does not know, no currency, a price that is not that of the cost.
_BROKEN: Final = {
    "BillingCurrency": "'EURO'",
    "ListCost": "ListCost * 1.01",
    "PricingUnit": "if(PricingUnit IS NULL, NULL, 'GB-hour')",
}


@dataclass(frozen=True)
class Outcome:
    """How the rules ended that were applied to a file."""

    passed: int
    skipped: int
    failed: frozenset[str]
    seconds: float

    def __str__(self) -> str:
        return f"{self.passed} rules pass, {len(self.failed)} fail, {self.skipped} are skipped ({self.seconds:.0f} s)"


class _Silent:
    """Takes the results in place of a report."""

    def write(self, results: Any) -> Any:
        """Return the results."""
        return results


def validate(file: Path) -> Outcome:
    """Apply all rules to a file."""
    start = time.monotonic()
    # The validator reads its list of currencies relative to the working directory.
    with chdir(Path(focus_validator.__file__).parents[1]):
        validator = Validator(
            data_filename=str(file),
            data_format="parquet",
            output_destination=None,
            output_type="console",
            focus_dataset="CostAndUsage",
            rules_version=MODEL,
            rules_block_remote_download=True,
            applicability_criteria=",".join(CRITERIA),
        )
        validator.outputter = _Silent()
        rules = validator.validate().by_rule_id
    failed = frozenset(rule for rule, result in rules.items() if not result["ok"])
    skipped = sum(bool(result["details"].get("skipped")) for result in rules.values())
    return Outcome(len(rules) - len(failed) - skipped, skipped, failed, time.monotonic() - start)


@contextmanager
def changed(file: Path, columns: Mapping[str, str]) -> Iterator[Path]:
    """Return a copy of a file in which some columns have other values (SQL), for the length of the ``with``."""
    replaced = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        duckdb.sql(f"COPY (SELECT * REPLACE ({replaced}) FROM '{file}') TO '{copy}' (FORMAT parquet)")
        yield copy


def main(file: Path) -> int:
    """Look at a file in all three ways; return the exit code."""
    logging.disable(logging.CRITICAL)
    wrong: list[str] = []
    exported = validate(file)
    wrong += _report("as exported", exported, differences(exported.failed, AS_EXPORTED))
    with changed(file, _CHARGE_CLASS) as copy:
        classed = validate(copy)
    wrong += _report("with a text in ChargeClass", classed, differences(classed.failed, WITH_CHARGE_CLASS))
    with changed(file, _CHARGE_CLASS | _BROKEN) as copy:
        broken = validate(copy)
    wrong += _report(
        f"with {', '.join(_BROKEN)} broken on purpose", broken, unseen(broken.failed, WITH_CHARGE_CLASS, _BROKEN)
    )
    print("the official validator finds what is expected" if not wrong else f"{len(wrong)} differences")
    return 1 if wrong else 0


def _report(what: str, outcome: Outcome, wrong: list[str]) -> list[str]:
    print(f"FOCUS {MODEL} {what}: {outcome}", *(f"  {each}" for each in wrong), sep="\n", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
