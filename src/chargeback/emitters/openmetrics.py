"""OpenMetrics text, in which Prometheus reads gauges from an endpoint or a file.

https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md, version 1.0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from chargeback.model.days import start_of_day
from chargeback.model.money import render

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
END: Final = "# EOF\n"


@dataclass(frozen=True, slots=True)
class Gauge:
    """A family of gauges: its name, and a sentence of help."""

    name: str
    help: str
    unit: str | None = None

    def header(self) -> str:
        """The lines before its samples."""
        lines = [f"# TYPE {self.name} gauge"]
        if self.unit is not None:
            lines.append(f"# UNIT {self.name} {self.unit}")
        lines.append(f"# HELP {self.name} {_escaped(self.help)}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class GaugeSample:
    """One value of a family. ``labels`` are (name, value); ``day`` is the UTC day at whose start it is stamped, or None
    if it is valid now."""

    labels: tuple[tuple[str, str], ...]
    value: Decimal | int
    day: date | None = None

    def line(self, family: str) -> str:
        """Return the sample as a line; the value in plain decimal notation, with all digits.

        >>> GaugeSample((("team", 'a"b'),), Decimal("1.5"), date(1970, 1, 2)).line("cost")
        'cost{team="a\\\\"b"} 1.50 86400\\n'
        """
        value = str(self.value) if isinstance(self.value, int) else render(self.value)
        labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in self.labels)
        stamp = "" if self.day is None else f" {seconds(start_of_day(self.day))}"
        return f"{family}{{{labels}}} {value}{stamp}\n"


def family(gauge: Gauge, samples: Iterable[GaugeSample]) -> Iterator[str]:
    """Yield the text of one family, line by line; samples of one series are consecutive and ordered by time."""
    yield gauge.header()
    for sample in samples:
        yield sample.line(gauge.name)


def seconds(instant: datetime) -> int:
    """Return whole seconds since 1970."""
    return int(instant.timestamp())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
