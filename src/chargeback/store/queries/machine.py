"""What this process may use of the machine: memory and processors, control groups respected.

A container sees the memory and the processors of its host; what it may use of them stands in its control groups
(versions 1 and 2), each of which may be narrower than the one that contains it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_CGROUPS: Final = Path("/sys/fs/cgroup")
_NO_LIMIT: Final = "max"


def available_memory(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int:
    """Return how many bytes of memory this process may use, itself and its neighbours in the control group."""
    found = [_total_memory(proc)]
    for name in ("memory.max", "memory.limit_in_bytes"):
        found += [int(text) for text in _limits(name, "memory", proc, cgroups) if text.isdigit()]
    return min(found)


def available_processors(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int:
    """Return how many processors this process may keep busy; part of a processor counts as one."""
    found = [float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)]
    for text in _limits("cpu.max", "cpu", proc, cgroups):
        quota, _, period = text.partition(" ")
        if quota != _NO_LIMIT:
            found.append(int(quota) / int(period))
    quotas = _limits("cpu.cfs_quota_us", "cpu", proc, cgroups)
    periods = _limits("cpu.cfs_period_us", "cpu", proc, cgroups)
    found += [int(quota) / int(period) for quota, period in zip(quotas, periods, strict=False) if int(quota) > 0]
    return max(1, math.ceil(min(found)))


def _total_memory(proc: Path) -> int:
    for line in _lines(proc / "meminfo"):
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return int(value.split()[0]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limits(name: str, controller: str, proc: Path, cgroups: Path) -> Iterator[str]:
    """Yield the contents of the files ``name`` of this process's control group and of those that contain it."""
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = cgroups / controller if controllers else cgroups
        group = root / path.lstrip("/")
        # Inside a container the path may be the host's, which is not there: the container's own group is the root.
        for folder in (group, *group.parents):
            yield from _lines(folder / name)[:1]
            if folder == root:
                break


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
