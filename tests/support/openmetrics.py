"""OpenMetrics text for tests: scraped series, minute by minute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from datetime import date as Date  # noqa: N812 - a field is called date

#: Minutes since the first scrape → the scraped value: a number as text or integer, or None.
Value = Callable[[int], int | str | None]

MINUTES_OF_A_DAY = 1440


@dataclass
class Scrapes:
    """All scrapes from the beginning of one day to the end of another (both inclusive), every ``every`` minutes."""

    first: Date
    last: Date
    every: int = 1
    families: dict[tuple[str, str], list[tuple[str, Value]]] = field(default_factory=dict)

    @property
    def start(self) -> datetime:
        """Return the time of the first scrape."""
        return datetime.combine(self.first, time(), tzinfo=UTC)

    @property
    def minutes(self) -> int:
        """Return the number of minutes."""
        return ((self.last - self.first) + timedelta(days=1)) // timedelta(minutes=1)

    def counter(self, name: str, labels: dict[str, str], value: Value) -> None:
        """Add a counter; the name of its family has no ``_total``."""
        self._add("counter", name, labels, value)

    def gauge(self, name: str, labels: dict[str, str], value: Value) -> None:
        """Add a gauge."""
        self._add("gauge", name, labels, value)

    def _add(self, kind: str, name: str, labels: dict[str, str], value: Value) -> None:
        rendered = ",".join(f'{key}="{text}"' for key, text in labels.items())
        self.families.setdefault((kind, name), []).append((rendered, value))

    def text(self) -> Iterator[str]:
        """Yield everything as OpenMetrics."""
        start = int(self.start.timestamp())
        for (kind, name), series in self.families.items():
            yield f"# TYPE {name.removesuffix('_total') if kind == 'counter' else name} {kind}\n"
            for labels, value in series:
                yield from _samples(name, labels, value, start, range(0, self.minutes, self.every))
        yield "# EOF\n"


def _samples(name: str, labels: str, value: Value, start: int, minutes: range) -> Iterable[str]:
    for minute in minutes:
        seen = value(minute)
        if seen is not None:
            yield f"{name}{{{labels}}} {seen} {start + 60 * minute}\n"


def steady(per_minute: int) -> Value:
    """Return the values of a counter that grows by the same amount every minute."""
    return lambda minute: per_minute * minute
