"""The figures of a run, as the page about performance shows them: ``python -m benchmarks.page`` writes them there."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import FLOOR_FACTOR, FLOOR_MARGIN_MS, Figure
from benchmarks.report import RESULTS, number

PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"

#: Shown without a bar as well.
_ALSO: Final = ("topic overlay",)
_SIZES: Final = ("usual", "middle", "large")
#: What is followed over the sizes of tenants: group, name.
_GROWING: Final = (
    ("aggregate", "by identity_id and day, all"),
    ("aggregate", "by identity_id and day, 30 days"),
    ("topic aggregate", "by topic_name and day, 30 days"),
    ("list", "middle page"),
    ("list", "middle page, one identity"),
    ("small", "one dimension"),
)


def written(page: str, document: Mapping[str, Any]) -> str:
    """The page with the figures of a run in their places."""
    figures = [Figure(**each) for each in document["figures"]]
    for place, lines in (("figures", [*_about(document), "", *_bars(figures)]), ("growth", _growth(figures))):
        found = re.compile(rf"(?<=<!-- {place} -->\n).*(?=<!-- end of {place} -->)", re.DOTALL)
        if not found.search(page):
            raise ValueError(f"the page has no place for {place}")
        page = found.sub(lambda _: "\n".join(("", *lines, "", "")), page)  # noqa: B023 - called at once
    return page


def _about(document: Mapping[str, Any]) -> list[str]:
    machine, versions = document["machine"], document["versions"]
    return [
        f"Taken on {document['date']}, on {machine['cores']} cores ({machine['processor']}),",
        f"{machine['memory_gib']} GiB of memory,",
        f"{machine['system']}, Python {versions['python']}, DuckDB {versions['duckdb']},",
        f"deltalake {versions['deltalake']}; the machine's load over the last 15 minutes was {machine['load']}.",
    ]


def _bars(figures: Sequence[Figure]) -> list[str]:
    with_bars = [figure for figure in figures if figure.bar is not None]
    with_floors = [figure for figure in figures if figure.is_near_floor is not None]
    met, near = sum(bool(f.meets_bar) for f in with_bars), sum(bool(f.is_near_floor) for f in with_floors)
    lines = [
        f"{met} of {len(with_bars)} bars are met. Of {len(with_floors)} figures in milliseconds that have a floor, "
        f"{near} stay within {FLOOR_FACTOR:g} × of it and {FLOOR_MARGIN_MS:g} ms.",
        "",
    ]
    lines += [
        f"- Missed: {f.key}: {number(f.value)} {f.unit}, bar {number(f.bar)}, floor {number(f.floor) or 'none'}."
        for f in with_bars
        if not f.meets_bar
    ]
    lines += [f"- Far from its floor: {f.key}: {number(f.value)} ms over {number(f.floor)}." for f in _far(with_floors)]
    shown = [figure for figure in figures if figure.bar is not None or figure.group.startswith(_ALSO)]
    lines += ["", "| what | figure | bar | floor | reference |", "|---|---|---|---|---|"]
    return lines + [
        f"| {f.group}: {f.name} | {number(f.value)} {f.unit} | {_bar(f)} | {number(f.floor)} | {number(f.reference)} |"
        for f in shown
    ]


def _far(figures: Sequence[Figure]) -> list[Figure]:
    return [figure for figure in figures if not figure.is_near_floor]


def _bar(figure: Figure) -> str:
    return "" if figure.bar is None else f"{'≥' if figure.more_is_better else '≤'} {number(figure.bar)}"


def _growth(figures: Sequence[Figure]) -> list[str]:
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


def main() -> int:
    """Put the committed results into the page."""
    document = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), document), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
