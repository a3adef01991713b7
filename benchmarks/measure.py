"""Figures, and functions that measure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

#: The result of :func:`yardstick` on the machine for which the margins of the bars were chosen, in ms.
NOMINAL_YARDSTICK_MS: Final = 4.0
_YARDSTICK_STEPS: Final = 30_000
_LEAST_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Figure:
    """One measured value.

    ``floor`` is what the machine needs for the same work without the service, ``reference`` what the obvious
    implementation needs, both in the figure's unit and from the same run. ``yardstick`` is the time in ms of a fixed
    piece of work right after. :mod:`benchmarks.bars` declares what the value must reach.
    """

    group: str
    name: str
    value: float
    unit: str
    floor: float | None = None
    reference: float | None = None
    more_is_better: bool = False
    note: str = ""
    yardstick: float | None = None

    @property
    def key(self) -> str:
        """The name that identifies the figure in all runs."""
        return f"{self.group} / {self.name}"

    @property
    def slowness(self) -> float:
        """Return how many times slower the machine was than the one for which the margins were chosen; 1 if not
        slower."""
        return max(1.0, (self.yardstick or 0.0) / NOMINAL_YARDSTICK_MS)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Figure:
        """Return a figure from a stored run; fields of other versions are ignored."""
        return cls(**{name: value for name, value in kept.items() if name in cls.__dataclass_fields__})


def yardstick() -> float:
    """Return the milliseconds that a fixed piece of work takes on this machine now: the median of several runs."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        sums: dict[int, int] = {}
        for step in range(_YARDSTICK_STEPS):
            sums[step % 97] = sums.get(step % 97, 0) + step
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken)


def milliseconds(work: Callable[[], Any], *, repeats: int, seconds: float = 3.0) -> float:
    """Return the median of several runs after one warm-up run: of ``repeats``, of fewer if they would take longer than
    ``seconds``, or of as many as fit in a fifth of a second, which other work of the machine rarely fills."""
    work()
    taken: list[float] = []
    begin = time.perf_counter()
    while (spent := time.perf_counter() - begin) < _LEAST_SECONDS or (
        len(taken) < repeats and (len(taken) < 3 or spent < seconds)
    ):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken)


def number(value: float | None) -> str:
    """Return a value as text: an integer from 100 on, else with one decimal place; an empty text for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that ``share`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def memory_mib(pid: int | None = None, *, peak: bool = False) -> float:
    """Return the resident memory of a process in MiB, now or its peak since :func:`reset_peak`."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    for line in Path(f"/proc/{pid or os.getpid()}/status").read_text().splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) / 1024
    raise OSError(f"the kernel does not tell the {wanted[:-1]} of process {pid}")


def reset_peak(pid: int | None = None) -> None:
    """Reset the peak of a process's memory."""
    Path(f"/proc/{pid or os.getpid()}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
