"""Limits of control groups are found, in both versions, and the narrowest one holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chargeback.store.queries.engine import available_memory, available_processors

GIB = 2**30


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine of 8 GiB without control groups."""
    folder = tmp_path / "proc"
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(f"MemFree: 1 kB\nMemTotal:       {8 * GIB // 1024} kB\n")
    return folder


@pytest.fixture
def cgroups(tmp_path: Path) -> Path:
    """An empty tree of control groups."""
    folder = tmp_path / "cgroup"
    folder.mkdir()
    return folder


def _write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def test_this_machine_has_some() -> None:
    """Wherever the tests run there is memory and at least one processor, and not more than the machine has."""
    assert 2**27 < available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 1 <= available_processors() <= (os.cpu_count() or 1)


def test_without_control_groups_the_machine_counts(proc: Path, cgroups: Path) -> None:
    """All memory and every processor that the process may run on."""
    assert available_memory(proc, cgroups) == 8 * GIB
    assert available_processors(proc, cgroups) == len(os.sched_getaffinity(0))


def test_the_narrowest_group_of_version_2_holds(proc: Path, cgroups: Path) -> None:
    """A group without a limit of its own is bounded by those that contain it."""
    _write(proc / "self", cgroup="0::/pod/container")
    _write(cgroups / "pod", memory__max=str(2 * GIB), cpu__max="50000 100000")
    _write(cgroups / "pod" / "container", memory__max="max", cpu__max="max 100000")
    assert available_memory(proc, cgroups) == 2 * GIB
    assert available_processors(proc, cgroups) == 1


def test_a_container_finds_its_own_group_at_the_root(proc: Path, cgroups: Path) -> None:
    """The path of the host's group is not there in the container; its own limits lie at the root."""
    _write(proc / "self", cgroup="0::/../../system.slice/other")
    _write(cgroups, memory__max=str(GIB), cpu__max="max 100000")
    assert available_memory(proc, cgroups) == GIB


def test_limits_of_version_1(proc: Path, cgroups: Path) -> None:
    """Each controller has a tree of its own; -1 and a number beyond all memory are no limits."""
    _write(proc / "self", cgroup="5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n1:name=systemd:/docker/x")
    _write(cgroups / "memory" / "docker" / "x", memory__limit_in_bytes=str(3 * GIB))
    _write(cgroups / "memory", memory__limit_in_bytes="9223372036854771712")
    _write(cgroups / "cpu" / "docker" / "x", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    _write(cgroups / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    assert available_memory(proc, cgroups) == 3 * GIB
    assert available_processors(proc, cgroups) == 1
