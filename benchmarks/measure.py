"""Figures, and how they are taken."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

#: What the service may cost beside the same question asked of the engine directly: so many times it, and so much more.
FLOOR_FACTOR: Final = 1.5
FLOOR_MARGIN_MS: Final = 10.0


@dataclass(frozen=True)
class Figure:
    """One measured value.

    ``floor`` is what the machine needs for the same work without the service, ``reference`` what the obvious
    implementation needs, both in the figure's unit and from the same run. ``bar`` is the value to reach: the largest
    for times and sizes, the smallest where ``more_is_better``.
    """

    group: str
    name: str
    value: float
    unit: str
    floor: float | None = None
    reference: float | None = None
    bar: float | None = None
    more_is_better: bool = False
    note: str = ""

    @property
    def key(self) -> str:
        """What the figure is compared by with another run."""
        return f"{self.group} / {self.name}"

    @property
    def meets_bar(self) -> bool | None:
        """Whether the bar is reached; none where there is none."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.more_is_better else self.value <= self.bar

    @property
    def is_near_floor(self) -> bool | None:
        """Whether the service adds no more than it may to its floor; none where there is no floor in milliseconds."""
        if self.floor is None or self.unit != "ms":
            return None
        return self.value <= FLOOR_FACTOR * self.floor + FLOOR_MARGIN_MS


def milliseconds(work: Callable[[], Any], *, repeats: int, seconds: float = 3.0) -> float:
    """The median of some runs after one that does not count; fewer runs where they would take longer than
    ``seconds``."""
    work()
    taken: list[float] = []
    ending = time.perf_counter() + seconds
    while len(taken) < repeats and (len(taken) < 3 or time.perf_counter() < ending):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken)


def percentile(values: list[float], share: float) -> float:
    """The smallest value that ``share`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def memory_mib(pid: int | None = None, *, peak: bool = False) -> float:
    """Resident memory of a process, now or at its highest since :func:`reset_peak`, in MiB."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    for line in Path(f"/proc/{pid or os.getpid()}/status").read_text().splitlines():
        if line.startswith(wanted):
            return int(line.split()[1]) / 1024
    raise OSError(f"the kernel does not tell the {wanted[:-1]} of process {pid}")


def reset_peak(pid: int | None = None) -> None:
    """Let the peak of a process's memory begin anew."""
    Path(f"/proc/{pid or os.getpid()}/clear_refs").write_text("5")


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processors so far, without those that it started."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
