"""The time of the browser page until its charts, compared with the time of the API for the same request."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.measure import Figure
from benchmarks.serving import HOST, Client, Service
from benchmarks.shapes import Shape

_WEB: Final = Path(__file__).parents[1] / "web"
_PERIOD: Final = timedelta(days=29)
_CHROMIUM: Final = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None
)
_SECONDS: Final = 300


def missing() -> str | None:
    """Return why the page's times cannot be taken here; None if they can."""
    if _CHROMIUM is None or not (_WEB / "node_modules" / ".all").exists():
        return "The page's times are skipped: they need Chromium and the page's test tools; `make test` installs both."
    return None


def page(service: Service, shape: Shape, *, repeats: int) -> Iterator[Figure]:
    """Measure the costs page over 30 days and the 30 before, with another end each time, so that no response is cached.

    The floor is the API's own time for the request of the page, with different end dates.
    """
    # The ends are two days apart, for the page; the ends between them are for the API.
    ends = [shape.last_day - timedelta(days=2 * number) for number in range(2 * repeats + 2)]
    client = service.client()
    # After this request there are partial aggregates of all days, and the processes are warm.
    question = _opened(service, shape, ends[:2])[0]["question"]
    client.answer("GET", _between(question, shape.dates()[0], shape.last_day))
    opened = _opened(service, shape, ends[2:])
    floor = median(
        _asked(client, _between(question, end - _PERIOD, end)) for end in (end - timedelta(days=1) for end in ends[2:])
    )
    for cold, name in ((True, "costs to the last chart, first visit"), (False, "costs to the last chart, files kept")):
        taken = [opening["drawn"] for opening in opened if opening["cold"] is cold]
        note = f"the slowest of {len(taken)}: {max(taken):,.0f} ms"
        yield Figure(f"page, {shape.name}", name, median(taken), "ms", floor=floor, note=note)


def far(service: Service, shape: Shape, *, repeats: int) -> Iterator[Figure]:
    """Measure the first chart of a first visit and the loaded bytes, on this machine and on a slow, distant phone."""
    ends = [shape.last_day - timedelta(days=2 * number) for number in range(2 * repeats + 2)]
    _opened(service, shape, ends[:2])
    loaded: list[dict[str, Any]] = []
    for slow in (False, True):
        opened = [each for each in _opened(service, shape, ends[2:], slow=slow) if each["cold"]]
        # A throttled browser does not report all sizes.
        loaded = loaded or opened
        taken = [each["first"] for each in opened]
        name = "first chart, first visit" + (" of a slow phone far away" if slow else "")
        note = f"the slowest of {len(taken)}: {max(taken):,.0f} ms"
        yield Figure(f"page, {shape.name}", name, median(taken), "ms", note=note)
    yield Figure(f"page, {shape.name}", "first load", max(each["bytes"] for each in loaded) / 1000, "kB")
    yield Figure(
        f"page, {shape.name}", "requests until the first chart", max(each["requests"] for each in loaded), "requests"
    )


def _opened(service: Service, shape: Shape, ends: Sequence[date], *, slow: bool = False) -> list[dict[str, Any]]:
    """Open the page with each of these end dates, an even number; ``slow`` simulates a distant phone."""
    paths = [f"{shape.name}/costs?start_date={end - _PERIOD}&end_date={end}" for end in ends]
    environment = os.environ | {
        "BASE": f"http://{HOST}:{service.port}/ui/",
        "PATHS": json.dumps(paths),
        "CHROMIUM": str(_CHROMIUM),
        "SLOW": "yes" if slow else "",
    }
    command = [str(Path(sys.executable).with_name("node")), "tests/browser/timing.ts"]
    done = subprocess.run(
        command, cwd=_WEB, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"the page cannot be timed: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _between(question: str, start: date, end: date) -> str:
    """Return the request with other dates."""
    question = re.sub(r"(?<=[?&]start_date=)[\d-]+", str(start), question)
    return re.sub(r"(?<=[?&]end_date=)[\d-]+", str(end), question)


def _asked(client: Client, question: str) -> float:
    start = time.perf_counter()
    client.answer("GET", question, headers={"Accept-Encoding": "gzip"})
    return (time.perf_counter() - start) * 1000
