"""The figures of runs in pages of the documentation: ``python -m benchmarks.page`` updates the pages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from benchmarks.bars import judge
from benchmarks.fleet import CORRECTED, ROUNDS_PER_HOUR
from benchmarks.light import DISK, GROUP, IDLE
from benchmarks.measure import Figure, number
from benchmarks.report import FLEET_RESULTS, LARGE_RESULTS, RESULTS

_DOCS: Final = Path(__file__).parents[1] / "docs"

#: Figures that are shown even if they have no bar.
_ALSO: Final = ("topic overlay", "categories")
_SIZES: Final = ("usual", "middle", "large")
#: Numbers of tenants for which figures are extrapolated from a smaller round.
_TENANTS: Final = (1_000, 10_000, 100_000, 1_000_000)
#: The calculations of days, and the tenant whose rows need as much disk space.
_CALCULATED: Final = {
    "calculate, 2,077 rows a day": "usual",
    "calculate, 50,552 rows a day": "large",
    "calculate, 1,015,830 rows a day": "large",
}
#: The prices of docs/running-costs.md, in USD: an hour of a core and of a GiB of memory, a month of a GiB of disk.
_CORE_HOUR: Final = 0.04
_GIB_HOUR: Final = 0.005
_GIB_MONTH: Final = 0.10
_HOURS: Final = 730
_KEPT_DAYS: Final = 400
#: A machine has twice the measured resources, as a reserve.
_SPARE: Final = 2
_ROWS_OF_A_CORE: Final = 100_000
#: The figures that are shown for all sizes of tenants: group, name.
_GROWING: Final = (
    ("aggregate", "by identity_id and day, all"),
    ("aggregate", "by identity_id and day, 30 days"),
    ("topic aggregate", "by topic_name and day, 30 days"),
    ("list", "middle page"),
    ("list", "middle page, one identity"),
    ("small", "one dimension"),
)


@dataclass(frozen=True)
class Shown:
    """Results on a page: for each place, a function that makes its lines from the document and figures of a run."""

    results: Path
    page: Path
    places: Mapping[str, Callable[[Mapping[str, Any], Sequence[Figure]], Sequence[str]]]

    def written(self, page: str) -> str:
        """Return the page with the figures inserted.

        Raises:
            ValueError: the page lacks a place for some of them.
        """
        document = json.loads(self.results.read_text(encoding="utf-8"))
        figures = [Figure.from_json(each) for each in document["figures"]]
        for place, lines_of in self.places.items():
            found = re.compile(rf"(?<=<!-- {place} -->\n).*(?=<!-- end of {place} -->)", re.DOTALL)
            if not found.search(page):
                raise ValueError(f"the page has no place for {place}")
            text = "\n".join(("", *lines_of(document, figures), "", ""))
            page = found.sub(lambda _: text, page)  # noqa: B023 - called at once
        return page


def _measured(document: Mapping[str, Any], figures: Sequence[Figure]) -> list[str]:
    return [*_about(document), "", *_bars(figures)]


def _about(document: Mapping[str, Any]) -> list[str]:
    machine, versions = document["machine"], document["versions"]
    return [
        f"Taken on {document['date']}, on {machine['cores']} cores ({machine['processor']}),",
        f"{machine['memory_gib']} GiB of memory,",
        f"{machine['system']}, Python {versions['python']}, DuckDB {versions['duckdb']},",
        f"deltalake {versions['deltalake']}; the machine's load over the last 15 minutes was {machine['load']}.",
    ]


def _bars(figures: Sequence[Figure]) -> list[str]:
    judgements = judge(figures)
    missed = [each for each in judgements if not each.is_met]
    lines = [f"{len(judgements) - len(missed)} of {len(judgements)} bars are met.", ""]
    lines += [
        f"- Missed: {f.key}: {number(f.value)} {f.unit}, bar {each.bar.text(f)}."
        for each in missed
        for f in [each.figure]
    ]
    lines += ["", "| what | figure | bar | floor | reference |", "|---|---|---|---|---|"]
    for f in figures:
        bars = "; ".join(each.bar.text(f) for each in judgements if each.figure is f)
        if bars or f.group.startswith(_ALSO):
            value = f"{number(f.value)} {f.unit}"
            lines.append(f"| {f.group}: {f.name} | {value} | {bars} | {number(f.floor)} | {number(f.reference)} |")
    return lines


def _growth(_document: Mapping[str, Any], figures: Sequence[Figure]) -> list[str]:
    known = {(figure.group, figure.name): figure.value for figure in figures}
    rows = {size: known["generated", size] for size in _SIZES}
    lines = [
        f"Milliseconds at {', '.join(f'{rows[size] / 1e6:.1f}' for size in _SIZES)} million rows.",
        "With an exponent of 1 time grows as the rows do, with 0 not at all.",
        "",
        f"| question | {' | '.join(_SIZES)} | exponent |",
        "|---|---|---|---|---|",
    ]
    for group, name in _GROWING:
        values = [known[f"{group}, {size}", name] for size in _SIZES]
        exponent = math.log(values[-1] / values[0]) / math.log(rows["large"] / rows["usual"])
        lines.append(f"| {group}: {name} | {' | '.join(map(number, values))} | {exponent:.2f} |")
    peaks = [f for f in figures if f.group.startswith("calculate, ") and f.name == "peak memory"]
    growths = [f for f in figures if f.group.startswith("calculate, ") and f.name.startswith("growth of the peak")]
    lines += ["", "| memory of a calculation | highest peak | growth |", "|---|---|---|"]
    for peak, growth in zip(peaks, growths, strict=True):
        day = peak.group.removeprefix("calculate, ")
        lines.append(f"| {day} | {number(peak.value)} MiB | {number(growth.value)} MiB {growth.note} |")
    return lines


def _large(document: Mapping[str, Any], figures: Sequence[Figure]) -> list[str]:
    """Return two tables: processor time of sums with and without partial aggregates, and the time of queries."""
    rows = next(f for f in figures if f.group == "generated").value
    lines = [*_about(document), "", f"{rows:,.0f} chargeback rows. Processor time of sums:", ""]
    lines += ["| sums of all time | kept sums | rows | times |", "|---|---|---|---|"]
    for f in figures:
        if f.group.startswith("sums, ") and f.reference:
            taken = f"{number(f.value)} ms | {number(f.reference)} ms | {f.reference / f.value:.0f}"
            lines.append(f"| {f.name} | {taken} |")
    lines += ["", "Elapsed time of questions to the service; the floor is a bare DuckDB over the same files:", ""]
    lines += ["| question | figure | floor |", "|---|---|---|"]
    lines += [
        f"| {f.group.partition(',')[0]}: {f.name} | {number(f.value)} ms | {number(f.floor)} ms |"
        for f in figures
        if f.group.startswith(("aggregate, ", "list, ")) and f.floor
    ]
    return lines


def _fleet(document: Mapping[str, Any], figures: Sequence[Figure]) -> list[str]:
    """Return the figures of each round of each fleet, and the extrapolated ones for other numbers of tenants."""
    lines, seconds, requests = [*_about(document)], dict[str, float](), 0.0
    for group, of in groupby(figures, key=lambda f: f.group):
        rounds: dict[str, dict[str, str]] = {}
        for f in of:
            name, _, what = f.name.partition(": ")
            rounds.setdefault(name, {})[what] = f"{number(f.value)} {f.unit}".rstrip()
            if CORRECTED in name and what == "own CPU of a tenant":
                seconds[group.partition(", ")[2]] = f.value / 1000
            if CORRECTED in name and what == "requests of a tenant":
                requests = f.value
        columns = list(dict.fromkeys(what for each in rounds.values() for what in each))
        lines += ["", f"A {group}:", "", f"| round | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        lines += [f"| {name} | {' | '.join(each.get(what, '') for what in columns)} |" for name, each in rounds.items()]
    lines += ["", "From the last rounds follows, with a round every half hour:", ""]
    heads = ["tenants", *(f"cores of workers, {each}" for each in seconds), "requests to the provider"]
    lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for tenants in _TENANTS:
        a_second = tenants * ROUNDS_PER_HOUR / 3600
        cores = " | ".join(number(a_second * each) for each in seconds.values())
        lines.append(f"| {tenants:,} | {cores} | {number(a_second * requests)} a second |")
    return lines


def _running(document: Mapping[str, Any], figures: Sequence[Figure]) -> list[str]:
    """Return the resources of tenants of three sizes, and their cost at the prices on the page."""
    known = {f.key: f for f in figures}
    idle = known[f"{GROUP} / {IDLE}"].value
    lines = [*_about(document), "", "| rows of a day | calculating a day | memory | disk | machine | a month |"]
    lines.append("|---|---|---|---|---|---|")
    for group, size in _CALCULATED.items():
        rows = int(re.sub(r"\D", "", group))
        seconds = rows / known[f"{group} / a day like the one before"].value
        peak = known[f"{group} / peak memory"].value
        kept = next(f for f in figures if f.group == f"{DISK}{size}")
        disk = kept.value / known[f"generated / {size}"].value * rows * _KEPT_DAYS / 1024
        memory = 2 ** math.ceil(math.log2(_SPARE * (idle + peak) / 1024))
        room = max(10, math.ceil(_SPARE * disk / 10) * 10)
        cores = 1 if rows < _ROWS_OF_A_CORE else 2
        month = cores * _HOURS * _CORE_HOUR + memory * _HOURS * _GIB_HOUR + room * _GIB_MONTH
        machine = f"{cores} core{'s' if cores > 1 else ''}, {memory} GiB, {room} GiB of disk"
        needs = f"{seconds * 1000:,.0f} ms | {idle + peak:,.0f} MiB | {disk:,.1f} GiB"
        lines.append(f"| {rows:,} | {needs} | {machine} | {month:,.0f} USD |")
    lines += ["", "What it is before it does anything:", "", "| what | figure |", "|---|---|"]
    lines += [f"| {f.name} | {number(f.value)} {f.unit} |" for f in figures if f.group == GROUP]
    return lines


#: The results on each page.
SHOWN: Final = (
    Shown(RESULTS, _DOCS / "figures.md", {"figures": _measured, "growth": _growth}),
    Shown(RESULTS, _DOCS / "running-costs.md", {"running": _running}),
    Shown(LARGE_RESULTS, _DOCS / "scaling.md", {"large": _large}),
    Shown(FLEET_RESULTS, _DOCS / "scaling.md", {"fleet": _fleet}),
)


def main() -> int:
    """Write the committed results into the pages."""
    for shown in SHOWN:
        shown.page.write_text(shown.written(shown.page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
