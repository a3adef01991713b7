"""The diagrams of the documentation: ``python -m website.diagrams`` writes ``docs/diagrams/*.svg``.

Boxes stand in a grid; arrows run between them. The colours hold on light and on dark pages, and nothing is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "diagrams"
#: Pixels: the size of a box, and the distances between boxes.
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _EDGE = 160, 52, 50, 24, 12
_FILLS = {"source": "#fdf1dc", "step": "#e8ecfb", "store": "#e2f3ea", "front": "#f3e8f8"}
_STROKES = {"source": "#b7791f", "step": "#354cbd", "store": "#2f7d57", "front": "#7b3fa0"}


@dataclass(frozen=True)
class Box:
    """A box at a column and a row of the grid, both counted from 0; ``text`` has one line or two."""

    column: float
    row: float
    kind: str
    text: str

    @property
    def left(self) -> float:
        """The left edge, in pixels."""
        return _EDGE + self.column * (_WIDTH + _GAP_X)

    @property
    def middle(self) -> float:
        """The vertical middle, in pixels."""
        return _EDGE + self.row * (_HEIGHT + _GAP_Y) + _HEIGHT / 2

    def svg(self) -> str:
        """Draw the box."""
        corner = 18 if self.kind == "store" else 6
        lines = self.text.split("\n")
        first = self.middle + 5 - 8.5 * (len(lines) - 1)
        texts = "".join(
            f'<text class="{"small" if number else "bold"}" x="{self.left + _WIDTH / 2:g}" y="{first + 17 * number:g}">'
            f"{escape(line)}</text>"
            for number, line in enumerate(lines)
        )
        return (
            f'<rect x="{self.left:g}" y="{self.middle - _HEIGHT / 2:g}" width="{_WIDTH}" height="{_HEIGHT}"'
            f' rx="{corner}" fill="{_FILLS[self.kind]}" stroke="{_STROKES[self.kind]}"/>{texts}'
        )


@dataclass(frozen=True)
class Diagram:
    """Boxes by name, the arrows between them (``"a b"``), and a sentence for those who cannot see it."""

    title: str
    boxes: dict[str, Box]
    arrows: tuple[str, ...]

    def svg(self) -> str:
        """Return the picture as a file."""
        right = max(box.left for box in self.boxes.values()) + _WIDTH + _EDGE
        bottom = max(box.middle for box in self.boxes.values()) + _HEIGHT / 2 + _EDGE
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right:g} {bottom:g}" width="{right:g}"'
                f' height="{bottom:g}" role="img">',
                f"<title>{escape(self.title)}</title>",
                "<style>text{font:14px system-ui,sans-serif;fill:#1b2333;text-anchor:middle}.bold{font-weight:600}"
                ".small{font-size:12px}"
                "path{fill:none;stroke:#7d8aa8;stroke-width:1.6}</style>",
                '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
                '<polygon points="0,0 8,4 0,8" fill="#7d8aa8"/></marker>',
                *self._paths(),
                *(box.svg() for box in self.boxes.values()),
                "</svg>\n",
            ]
        )

    def _paths(self) -> Iterator[str]:
        for arrow in self.arrows:
            start, end = (self.boxes[name] for name in arrow.split())
            if start.column == end.column:
                x, sign = start.left + _WIDTH / 2, 1 if end.middle > start.middle else -1
                yield _path(f"M{x:g} {start.middle + sign * _HEIGHT / 2:g}V{end.middle - sign * _HEIGHT / 2:g}")
            else:
                x, y, to_x, to_y = start.left + _WIDTH, start.middle, end.left, end.middle
                half = (to_x - x) / 2
                yield _path(f"M{x:g} {y:g}C{x + half:g} {y:g} {to_x - half:g} {to_y:g} {to_x:g} {to_y:g}")


def _path(points: str) -> str:
    return f'<path d="{points}" marker-end="url(#tip)"/>'


DIAGRAMS = {
    "pipeline": Diagram(
        "Bill, inventory and metrics are gathered into tables of facts and a control database; policies allocate them "
        "to chargebacks, which the API, the page, files and statements show.",
        {
            "bill": Box(0, 0, "source", "Bill\nof the provider"),
            "inventory": Box(0, 1, "source", "Inventory\nwho owns what"),
            "metrics": Box(0, 2, "source", "Prometheus\nwho used what"),
            "gather": Box(1, 1, "step", "Gather\nevery run"),
            "facts": Box(2, 0.5, "store", "Facts\nDelta, by day"),
            "control": Box(2, 1.5, "store", "Control database\nstate, tags"),
            "policies": Box(3, 2, "source", "Policies\nper product"),
            "allocate": Box(3, 1, "step", "Allocate\nexactly"),
            "chargebacks": Box(3, 0, "store", "Chargebacks\nwho pays what"),
            "api": Box(4, 0, "front", "API and page\nJSON, CSV"),
            "files": Box(4, 1, "front", "Files, gauges\nParquet, FOCUS"),
            "statements": Box(4, 2, "front", "Statements\nand journals"),
        },
        (
            "bill gather",
            "inventory gather",
            "metrics gather",
            "gather facts",
            "gather control",
            "facts allocate",
            "control allocate",
            "policies allocate",
            "allocate chargebacks",
            "chargebacks api",
            "chargebacks files",
            "chargebacks statements",
        ),
    ),
    "processes": Diagram(
        "A worker writes the control database and the facts; API and command line read them. They share only storage.",
        {
            "provider": Box(0, 0, "source", "Provider\nbill, inventory"),
            "metrics": Box(0, 1, "source", "Prometheus\nusage"),
            "worker": Box(1, 0.5, "step", "Worker\npipeline"),
            "control": Box(2, 0, "store", "Control database\nSQLite, PostgreSQL"),
            "facts": Box(2, 1, "store", "Facts\na file a day, Delta"),
            "service": Box(3, 0.5, "step", "Service\nqueries, scopes"),
            "api": Box(4, 0, "front", "API\nand page"),
            "cli": Box(4, 1, "front", "Command line\nchargeback …"),
            "emitters": Box(1, 1.5, "front", "Emitters\nfiles, plugins"),
        },
        (
            "provider worker",
            "metrics worker",
            "worker control",
            "worker facts",
            "worker emitters",
            "control service",
            "facts service",
            "service api",
            "service cli",
        ),
    ),
    "calculation": Diagram(
        "Bill, usage and members of a day are its evidence; evidence and policies give the day's chargebacks.",
        {
            "bill": Box(0, 0, "store", "Bill\nbilling lines"),
            "usage": Box(0, 1, "store", "Usage\nper identity"),
            "members": Box(0, 2, "store", "Members\nactive, owners"),
            "evidence": Box(1, 1, "step", "Evidence\nof one day"),
            "policies": Box(2, 2, "source", "Policies\nper product"),
            "calculate": Box(2, 1, "step", "Calculate\nno I/O"),
            "chargebacks": Box(3, 1, "store", "Chargebacks\nof the day"),
        },
        (
            "bill evidence",
            "usage evidence",
            "members evidence",
            "evidence calculate",
            "policies calculate",
            "calculate chargebacks",
        ),
    ),
    "split": Diagram(
        "A line of 100.00 is divided into 70.00 by usage and 30.00 evenly; alice gets 57.00, bob 43.00: 100.00 again. "
        "Cost categories map them to cost centres.",
        {
            "line": Box(0, 0.5, "source", "Billing line\n100.00"),
            "usage": Box(1, 0, "step", "70 % by usage\nalice 3 : bob 2"),
            "even": Box(1, 1, "step", "30 % evenly\nwho was active"),
            "alice": Box(2, 0, "store", "alice\n42.00 + 15.00 = 57.00"),
            "bob": Box(2, 1, "store", "bob\n28.00 + 15.00 = 43.00"),
            "payments": Box(3, 0, "front", "payments\n57.00"),
            "search": Box(3, 1, "front", "search\n43.00"),
        },
        (
            "line usage",
            "line even",
            "usage alice",
            "usage bob",
            "even alice",
            "even bob",
            "alice payments",
            "bob search",
        ),
    ),
}


def main() -> None:
    """Write all diagrams."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, diagram in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(diagram.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
