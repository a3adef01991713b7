"""Put each fault into a copy of the code and report the first test that fails: of ``make test``, then of all.

The table is printed; the exit code is 1 if no test notices a fault.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue

from tests.mutants.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
_COPIED = (
    "benchmarks",
    "conformance",
    "deploy",
    "docs",
    "examples",
    "pyproject.toml",
    "src",
    "tests",
    "web/openapi.json",
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def noticed(copy: Path, fault: Fault, *options: str) -> str | None:
    """Put a fault into a copy of the code; return the first test that fails, or None."""
    file = copy / "src" / "chargeback" / fault.path
    text = file.read_text(encoding="utf-8")
    assert text.count(fault.before) == 1, f"{fault.path} has {text.count(fault.before)} times {fault.before!r}"
    file.write_text(text.replace(fault.before, fault.after), encoding="utf-8")
    tests = [f"tests/{each}" for each in fault.tests.split()]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not drill", *options, *tests],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        file.write_text(text, encoding="utf-8")
    if done.returncode == 0:
        return None
    found = _FAILED.search(done.stdout)
    return found[1].removeprefix("tests/") if found else (done.stdout + done.stderr).strip().splitlines()[-1]


def copied(folder: Path) -> Path:
    """Copy what the tests need, and compile the code; a compiled module is valid while its source has the same hash."""
    for name in _COPIED:
        source = ROOT / name
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy(source, folder / name)
    compile_dir(folder / "src", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return folder


def main(chosen: Sequence[str]) -> int:
    """Try the faults in files whose path contains one of ``chosen``, or all; print a table."""
    faults = [fault for fault in FAULTS if not chosen or any(each in fault.path for each in chosen)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(os.cpu_count() or 1):
            copies.put(copied(Path(folder) / str(number)))

        def attempt(fault: Fault) -> tuple[str, str | None]:
            copy = copies.get()
            try:
                for run, options in (("make test", ["--everyday"]), ("make test-all", [])):
                    if found := noticed(copy, fault, *options):
                        return run, found
                return "nothing", None
            finally:
                copies.put(copy)

        print("| file | fault | noticed by | first test |\n|---|---|---|---|")
        results = []
        for fault, (run, test) in zip(faults, pool.map(attempt, faults), strict=True):
            results.append(run)
            shown = " → ".join(" ".join(each.split()) for each in (fault.before, fault.after))
            print(f"| {fault.path} | `{shown.replace('|', chr(92) + '|')}` | {run} | {test or ''} |", flush=True)
    print(f"\n{len(results)} faults: " + ", ".join(f"{results.count(each)} {each}" for each in dict.fromkeys(results)))
    return int("nothing" in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
