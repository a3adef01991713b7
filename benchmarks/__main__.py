"""``python -m benchmarks``: every figure, or with ``--quick`` those that take less than a minute."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks import browser, page, report
from benchmarks.backfill import backfill
from benchmarks.bill import bill
from benchmarks.calculation import calculation
from benchmarks.categories import resolving, sums_by_category
from benchmarks.closing import months, whole_month
from benchmarks.copies import copies
from benchmarks.dashboard import dashboard
from benchmarks.estimates import estimates
from benchmarks.far import first_questions, run_without_news
from benchmarks.fleet import fleet
from benchmarks.floors import Floors
from benchmarks.light import disk, light
from benchmarks.measure import Figure, yardstick
from benchmarks.questions import Asking, aggregates, lists, small, tagging, topics
from benchmarks.reference.star import Star
from benchmarks.scopes import scopes
from benchmarks.service import export, many_clients, open_dashboards, time_limit, while_busy
from benchmarks.serving import Service, serving
from benchmarks.shapes import HUGE, LARGE, MIDDLE, MONTH, USUAL
from benchmarks.simulation import simulation
from benchmarks.sums import sums
from benchmarks.tenants import Generated, generated
from benchmarks.topics import overlay
from benchmarks.trust import trust

_DATA: Final = Path(".bench-data")
_PLAIN_WIDTH: Final = 160
#: The parts that read generated tenants.
_OF_TENANTS: Final = (
    "questions",
    "sums",
    "copies",
    "far",
    "scopes",
    "closing",
    "simulate",
    "dashboard",
    "trust",
    "categories",
    "export",
    "clients",
    "busy",
    "page",
    "limit",
    "light",
)
#: Measured only on request: the round of a thousand tenants takes half an hour.
_FLEET: Final = "fleet"
_TENANTS: Final = 1000
#: The queries of the tenant of ``--huge``.
_OF_HUGE: Final = ("sums", "questions")
_PARTS: Final = ("calculate", "topics", "bill", *_OF_TENANTS, "estimates", "backfill")


def main() -> int:
    """Measure, print, compare and store the figures."""
    given = _arguments()
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    wanted = set(given.only or (_OF_HUGE if given.huge else _PARTS))
    if "page" in wanted and (why := browser.missing()) is not None:
        console.print(why)
        wanted.discard("page")
    start = time.perf_counter()
    scratch = Path(tempfile.mkdtemp(prefix="chargeback-bench-"))
    figures: list[Figure] = []
    try:
        for measured in _figures(given, wanted, scratch):
            figure = replace(measured, yardstick=yardstick())
            console.print(f"[dim]{time.perf_counter() - start:5.0f} s  {figure.key}: {figure.value:,.1f} {figure.unit}")
            figures.append(figure)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report.show(figures, console)
    report.summary(figures, console)
    _compare(figures, console)
    console.print(f"{time.perf_counter() - start:.0f} seconds in all; 15-minute load {os.getloadavg()[2]:.1f}")
    output = given.output or _committed(given)
    if output is not None:
        output.write_text(json.dumps(report.document(figures, quick=given.quick), indent=1) + "\n", encoding="utf-8")
        console.print(f"written to {output}")
    if output in {shown.results for shown in page.SHOWN}:
        page.main()
        console.print("written into the pages that show it")
    return 0


def _committed(given: argparse.Namespace) -> Path | None:
    """Return the committed file of the results, or None if the run differs from those in the repository."""
    if given.only == [_FLEET] and given.tenants == _TENANTS:
        return report.FLEET_RESULTS
    if given.quick or given.only:
        return None
    return report.LARGE_RESULTS if given.huge else report.RESULTS


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything; nothing is written")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=(*_PARTS, _FLEET),
        default=[],
        help=f"some parts alone; nothing is written, except of {_TENANTS} tenants",
    )
    parser.add_argument("--data", type=Path, default=_DATA, help=f"where generated tenants are kept ({_DATA})")
    parser.add_argument("--output", type=Path, help="write the figures there")
    parser.add_argument(
        "--huge", action="store_true", help=f"a tenant of 100 million rows, for {', '.join(_OF_HUGE)} (10 GiB)"
    )
    parser.add_argument(
        "--tenants", type=int, default=_TENANTS, help=f"with --only fleet: how many tenants ({_TENANTS})"
    )
    given = parser.parse_args()
    if given.huge and not set(given.only) <= set(_OF_HUGE):
        parser.error(f"--huge measures {', '.join(_OF_HUGE)} only")
    return given


def _figures(given: argparse.Namespace, wanted: set[str], scratch: Path) -> Iterator[Figure]:
    data = given.data.absolute()
    data.mkdir(parents=True, exist_ok=True)
    if given.huge:
        tenant = generated(HUGE, data)
        yield _size(tenant)
        yield from _read([tenant], wanted, scratch, quick=True)
        with serving([tenant], scratch / "served") as service:
            yield from _served(service, [tenant], wanted, data, scratch, quick=True)
        return
    yield from _alone(given, wanted, data, scratch)
    if wanted.intersection(_OF_TENANTS):
        tenants = [generated(shape, data) for shape in ((USUAL,) if given.quick else (USUAL, MIDDLE, LARGE))]
        for tenant in tenants:
            yield _size(tenant)
        yield from _read(tenants, wanted, scratch, quick=given.quick)
        yield from _start(tenants[0], scratch)
        if "light" in wanted:
            yield from disk(tenants)
            yield from light(tenants[0], scratch)
        with serving(tenants, scratch / "served") as service:
            yield from _served(service, tenants, wanted, data, scratch, quick=given.quick)
        if "clients" in wanted:
            with serving(tenants[:1], scratch / "alone") as service:
                yield from many_clients(service, tenants[0].shape, seconds=1 if given.quick else 4)
                yield from open_dashboards(service, tenants[0].shape, seconds=2 if given.quick else 8)
        if "limit" in wanted and not given.quick:
            yield from time_limit(tenants[-1], scratch)
    if "estimates" in wanted:
        yield from estimates()
    if "backfill" in wanted:
        for topics in (False,) if given.quick else (False, True):
            yield from backfill(scratch, days=20 if given.quick else 200, topics=topics)


def _alone(given: argparse.Namespace, wanted: set[str], data: Path, scratch: Path) -> Iterator[Figure]:
    """Measure everything that does not use the tenants of several sizes."""
    if _FLEET in wanted:
        yield from fleet(scratch, tenants=given.tenants)
    if "calculate" in wanted:
        yield from calculation(quick=given.quick)
    if "topics" in wanted:
        yield from overlay(scratch, clusters=5 if given.quick else 50, days=3)
    if "bill" in wanted:
        yield from bill(scratch, rows=10**6 if given.quick else 10**7)
    if "categories" in wanted:
        yield from resolving(quick=given.quick)
    if "closing" in wanted and not given.quick:
        yield from whole_month(generated(MONTH, data), scratch)


def _size(tenant: Generated) -> Figure:
    return Figure("generated", tenant.shape.name, tenant.rows, "rows", note=f"made in {tenant.seconds:.0f} s")


def _read(tenants: list[Generated], wanted: set[str], scratch: Path, *, quick: bool) -> Iterator[Figure]:
    """Measure readers, without the service around them."""
    for tenant in tenants if "sums" in wanted else ():
        yield from sums(tenant, scratch)
    for tenant in tenants if "copies" in wanted else ():
        yield from copies(tenant, scratch / f"copies-{tenant.shape.name}", repeats=3 if quick else 5)
    if "far" in wanted:
        yield from run_without_news(scratch)
        yield from first_questions(tenants[-1], scratch)
    for tenant in tenants if "scopes" in wanted else ():
        yield from scopes(tenant, scratch, repeats=3 if quick else 5)
    for tenant in tenants if "closing" in wanted else ():
        yield from months(tenant, scratch, repeats=3 if quick else 5)
    for tenant in tenants if "simulate" in wanted else ():
        yield from simulation(tenant, scratch)


def _start(tenant: Generated, scratch: Path) -> Iterator[Figure]:
    with serving([tenant], scratch / "started") as service:
        taken = service.start_ms
    yield Figure("start", "from nothing to the first page of rows", taken, "ms")


def _served(
    service: Service, tenants: list[Generated], wanted: set[str], data: Path, scratch: Path, *, quick: bool
) -> Iterator[Figure]:
    for tenant in tenants:
        star = Star(data / f"star-{tenant.shape.folder}.db", tenant.files()) if tenant.rows < 10**7 else None
        if "questions" in wanted:
            yield from _questions(service, tenant, star, repeats=3 if quick else 5)
        if "export" in wanted:
            yield from export(service, tenant, scratch, star)
        if star is not None:
            star.close()
    if "dashboard" in wanted:
        for tenant in tenants:
            yield from dashboard(Asking(service.client(), tenant, Floors(tenant.facts), None, 3 if quick else 9))
    if "trust" in wanted:
        for tenant in tenants:
            asking = Asking(service.client(), tenant, Floors(tenant.facts), None, 3 if quick else 5)
            yield from trust(asking)
            asking.floors.close()
    if "categories" in wanted:
        for tenant in tenants:
            yield from sums_by_category(Asking(service.client(), tenant, Floors(tenant.facts), None, 3 if quick else 5))
    if "page" in wanted:
        yield from browser.page(service, tenants[-1].shape, repeats=3 if quick else 7)
        yield from browser.far(service, tenants[0].shape, repeats=3 if quick else 5)
    if "busy" in wanted:
        yield from while_busy(service, tenants[-1], tenants[-1].shape, seconds=3 if quick else 15)


def _questions(service: Service, tenant: Generated, star: Star | None, *, repeats: int) -> Iterator[Figure]:
    asking = Asking(service.client(), tenant, Floors(tenant.facts), star, repeats)
    for part in (aggregates, topics, lists, small, tagging):
        yield from part(asking)
    asking.floors.close()


def _compare(figures: Iterable[Figure], console: Console) -> None:
    before = report.last_committed()
    if before is None:
        console.print("no committed results to compare with")
        return
    worse = report.regressions(list(figures), before)
    console.print(f"compared with the committed results of {before['date']}: {len(worse)} clearly worse")
    for sentence in worse:
        console.print(f"  {sentence}")


if __name__ == "__main__":
    raise SystemExit(main())
