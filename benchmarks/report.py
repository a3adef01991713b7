"""A run's figures as a table and as JSON, and the comparison with the last committed run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.bars import Judgement, judge
from benchmarks.measure import Figure, number

RESULTS: Final = Path(__file__).parent / "results.json"
LARGE_RESULTS: Final = RESULTS.with_name("results-large.json")
FLEET_RESULTS: Final = RESULTS.with_name("results-fleet.json")
_PACKAGES: Final = ("duckdb", "deltalake", "pyarrow", "sqlalchemy", "fastapi", "uvicorn", "chargeback")
# Smaller differences are noise.
_WORSE: Final = 1.3
_WORSE_BY: Final = {"ms": 5.0, "MiB": 25.0}
#: The units of what a slower machine makes worse; sizes, counts and shares are what they are.
_OF_SPEED: Final = {"ms", "s", "1/s", "rows/s"}


def document(figures: Sequence[Figure], *, quick: bool) -> dict[str, Any]:
    """Return a run's results as a document."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "quick": quick,
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        "figures": [_rounded(asdict(figure)) for figure in figures],
    }


def machine() -> dict[str, Any]:
    """Return the description of this machine."""
    models = [line for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = [line for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    return {
        "processor": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(int(memory[0].split()[1]) / 2**20) if memory else None,
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[2], 1),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _rounded(figure: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in figure.items()}


def last_committed() -> dict[str, Any] | None:
    """Return the results of the last commit that has any; None outside a repository."""
    command = ["git", "show", "HEAD:./results.json"]
    found = subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True, check=False)
    if found.returncode:
        return None
    committed: dict[str, Any] = json.loads(found.stdout)
    return committed


def regressions(figures: Sequence[Figure], before: dict[str, Any]) -> list[str]:
    """Return a sentence for each figure that is clearly worse than before.

    A figure is compared by its ratio to its floor or, without one, to the yardstick. Sizes, counts and shares are
    compared directly; a time or a rate without floor and yardstick in both runs is left out.
    """
    known = {figure.key: figure for figure in map(Figure.from_json, before["figures"])}
    found = []
    for now in figures:
        then = known.get(now.key)
        if then is None or then.unit != now.unit or not now.value or not then.value:
            continue
        ratio = then.value / now.value if now.more_is_better else now.value / then.value
        if now.floor and then.floor:
            ratio *= now.floor / then.floor if now.more_is_better else then.floor / now.floor
        elif now.unit in _OF_SPEED:
            if not (now.yardstick and then.yardstick):
                continue
            ratio *= then.yardstick / now.yardstick
        if ratio > _WORSE and abs(now.value - then.value) > _WORSE_BY.get(now.unit, 0.0):
            found.append(f"{now.key}: {number(now.value)} {now.unit}, was {number(then.value)} ({ratio:.1f} × worse)")
    return found


def show(figures: Sequence[Figure], console: Console) -> None:
    """Print the figures as a table."""
    table = Table(title="Benchmarks")
    for name, justify in (
        ("", "left"),
        ("value", "right"),
        ("floor", "right"),
        ("reference", "right"),
        ("bar", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("")
    judgements = judge(figures)
    for group, members in groupby(figures, key=lambda figure: figure.group):
        table.add_section()
        table.add_row(f"[bold]{group}")
        for figure in members:
            table.add_row(
                f"  {figure.name}",
                f"{number(figure.value)} {figure.unit}",
                number(figure.floor),
                number(figure.reference),
                "\n".join(_coloured(judgement) for judgement in judgements if judgement.figure is figure),
                figure.note,
            )
    console.print(table)


def _coloured(judgement: Judgement) -> str:
    return f"[{'green' if judgement.is_met else 'red'}]{judgement.bar.text(judgement.figure)}[/]"


def summary(figures: Sequence[Figure], console: Console) -> None:
    """Print how many bars are met, and which ones are missed."""
    judgements = judge(figures)
    missed = [judgement for judgement in judgements if not judgement.is_met]
    console.print(f"{len(judgements) - len(missed)} of {len(judgements)} bars are met.")
    for each in missed:
        figure = each.figure
        console.print(f"  missed: {figure.key}: {number(figure.value)} {figure.unit}, bar {each.bar.text(figure)}")
