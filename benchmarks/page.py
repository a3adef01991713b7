"""The figures of a run in the documentation's page about performance: ``python -m benchmarks.page`` writes them
there."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.bars import judge
from benchmarks.measure import Figure, number
from benchmarks.report import RESULTS

PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"

#: Also shown if they have no bar.
_ALSO: Final = ("topic overlay", "categories")
_SIZES: Final = ("usual", "middle", "large")
#: The figures shown for all sizes of tenants: group, name.
_GROWING: Final = (
    ("aggregate", "by identity_id and day, all"),
    ("aggregate", "by identity_id and day, 30 days"),
    ("topic aggregate", "by topic_name and day, 30 days"),
    ("list", "middle page"),
    ("list", "middle page, one identity"),
    ("small", "one dimension"),
)


def written(page: str, document: Mapping[str, Any]) -> str:
    """Return the page with the figures of a run inserted."""
    figures = [Figure.from_json(each) for each in document["figures"]]
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
    """Write the committed results into the page."""
    document = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), document), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
