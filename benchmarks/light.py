"""The weight of the service: its installed size, its start-up time, and the memory and disk space that it needs.

The service is started from an environment that has what an installation has, and nothing else: libraries import others
if they find them, such as NumPy, which only the tests need.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.measure import Figure, memory_mib
from benchmarks.serving import serving
from benchmarks.tenants import Generated

GROUP: Final = "light"
#: The group of the disk usage of a tenant's facts, by its size.
DISK: Final = "disk, "
IDLE: Final = "memory of an idle service with ten tenants"
_LOCK: Final = Path(__file__).parents[1] / "requirements" / "runtime.lock"
_PACKAGE: Final = Path(__file__).parents[1] / "src" / "chargeback"
#: The packages without which a service cannot start: no start is faster than theirs.
_LIBRARIES: Final = "import deltalake, duckdb, fastapi, httpx, pyarrow.parquet, sqlalchemy, uvicorn"
_TENANTS: Final = 10
_STARTS: Final = 7
#: The time after which a service has finished its start-up work.
_IDLE_SECONDS: Final = 2


def light(tenant: Generated, scratch: Path) -> Iterator[Figure]:
    """Measure the size of an installation, the start of the command line, and a service with ten such tenants."""
    yield Figure(GROUP, "installed, without Python", _installed_mib(), "MiB")
    python = _installed(scratch / "installed")
    nothing = _start_ms(python, "-c", "pass")
    yield Figure(GROUP, "chargeback --help", _start_ms(python, "-m", "chargeback", "--help"), "ms", floor=nothing)
    libraries = _start_ms(python, "-c", _LIBRARIES)
    copies = [_copy(tenant, scratch / f"light-{number}", f"t{number}") for number in range(_TENANTS)]
    with serving(copies, scratch / "light", python=python) as service:
        yield Figure(GROUP, "ready with ten tenants", service.start_ms, "ms", floor=libraries, reference=nothing)
        time.sleep(_IDLE_SECONDS)
        yield Figure(GROUP, IDLE, memory_mib(service.process.pid), "MiB")


def disk(tenants: Sequence[Generated]) -> Iterator[Figure]:
    """Measure the disk space that tenants need."""
    for tenant in tenants:
        size = _bytes_below(tenant.facts) + tenant.database.stat().st_size
        days = len(tenant.shape.dates())
        yield Figure(f"{DISK}{tenant.shape.name}", f"{days} days", size / 2**20, "MiB", note=f"{tenant.rows:,} rows")


def _installed_mib() -> float:
    """Return the size of the locked packages for this machine, and of the service's own package."""
    size = _bytes_below(_PACKAGE)
    for package in _locked():
        places = (Path(str(file.locate())) for file in package.files or [])
        size += sum(place.stat().st_size for place in places if place.is_file())
    return size / 2**20


def _locked() -> Iterator[Distribution]:
    """Yield the packages that an installation has on this machine."""
    for name in re.findall(r"^([A-Za-z0-9._-]+)==", _LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE):
        with suppress(PackageNotFoundError):  # it is for another system
            yield distribution(name)


def _installed(folder: Path) -> str:
    """Make an environment with the locked packages and the service, which are links; return its interpreter."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in (*_locked(), distribution("chargeback")):
        for top in {file.parts[0] for file in package.files or []} - {".."}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(package.locate_file(top))))
    return str(folder / "bin" / "python")


def _bytes_below(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file() and "__pycache__" not in each.parts)


def _start_ms(python: str, *words: str) -> float:
    """Return the median run time of a process whose modules are already in memory."""
    taken = []
    for _ in range(_STARTS):
        start = time.perf_counter()
        subprocess.run([python, *words], stdout=subprocess.DEVNULL, check=True)
        taken.append((time.perf_counter() - start) * 1000)
    return median(taken[1:])


def _copy(tenant: Generated, folder: Path, name: str) -> Generated:
    """Return a tenant of another name with the same files."""
    shutil.copytree(tenant.facts, folder, copy_function=os.link)
    return replace(tenant, shape=replace(tenant.shape, name=name), facts=folder)
