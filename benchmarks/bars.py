"""The bars that figures must reach: ratios to other figures of the same run on the same machine, and sizes.

Few bars are times, because machines differ in speed by more than a factor of two. A bar that is a time, or has a margin
in ms, is for a machine of nominal speed. On a slower machine it grows with the time of the yardstick.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.measure import Figure, number

ZONE_SUFFIX: Final = ", America/Denver"


@dataclass(frozen=True)
class Bar:
    """A limit: ``factor`` × ``base`` + ``margin``, where ``base`` is the value of the figure that ``of`` names."""

    of: str
    factor: float
    base: float
    margin: float = 0.0

    @property
    def limit(self) -> float:
        """Return the value to reach."""
        return self.factor * self.base + self.margin

    def text(self, figure: Figure) -> str:
        """Return the bar of ``figure`` as text: its terms and what they come to."""
        sign = "≥" if figure.more_is_better else "≤"
        if not self.of:
            return f"{sign} {number(self.limit)} {figure.unit}"
        margin = f" + {self.margin:.3g} {figure.unit}" if self.margin else ""
        return f"{sign} {self.factor:g} × {self.of}{margin} = {number(self.limit)}"


@dataclass(frozen=True)
class Judgement:
    """A figure and one of its bars."""

    figure: Figure
    bar: Bar

    @property
    def is_met(self) -> bool:
        """Return whether the figure reaches the bar: from below, or from above where more is better."""
        figure = self.figure
        return figure.value >= self.bar.limit if figure.more_is_better else figure.value <= self.bar.limit


@dataclass(frozen=True)
class _Rule:
    """The bar of all figures whose key matches ``keys``; None if the run has no value to compare with.

    ``of`` is the name of the base in texts, ``base`` finds it; ``margin`` is in ms on a machine of nominal speed.
    """

    keys: str
    factor: float
    of: str
    base: Callable[[Figure, Mapping[str, Figure]], float | None]
    margin: float = 0.0

    def bar_of(self, figure: Figure, run: Mapping[str, Figure]) -> Bar | None:
        if not re.fullmatch(self.keys, figure.key):
            return None
        base = self.base(figure, run)
        return None if base is None else Bar(self.of, self.factor, base, self.margin * figure.slowness)


def _at_floor(keys: str, factor: float, margin: float = 0.0) -> _Rule:
    return _Rule(keys, factor, "floor", lambda figure, _: figure.floor, margin)


def _at_reference(keys: str, factor: float, margin: float = 0.0) -> _Rule:
    return _Rule(keys, factor, "reference", lambda figure, _: figure.reference, margin)


def _at_figure(keys: str, factor: float, of: str, other: Callable[[str], str]) -> _Rule:
    """Return a rule whose base is another figure of the run; ``other`` makes its key."""

    def _value(figure: Figure, run: Mapping[str, Figure]) -> float | None:
        found = run.get(other(figure.key))
        return None if found is None else found.value

    return _Rule(keys, factor, of, _value)


def _at_size(keys: str, limit: float) -> _Rule:
    return _Rule(keys, limit, "", lambda *_: 1.0)


def _at_time(keys: str, limit: float) -> _Rule:
    """Return a rule whose limit is a time, in ms on a machine of nominal speed."""
    return _Rule(keys, limit, "", lambda figure, _: figure.slowness)


_MILLION: Final = r"calculate, [\d,]{9,} rows a day"
_RULES: Final = (
    _at_floor(r"bill, .* / billing lines of a month", 2.5),
    _at_size(r"bill, .* / peak memory", 1024),
    _at_floor(rf"{_MILLION} / a day like the one before", 0.7),
    _at_floor(rf"{_MILLION} / the first day, all dimensions new", 0.5),
    _at_reference(rf"{_MILLION} / a day like the one before", 5),
    _at_size(rf"{_MILLION} / peak memory", 1536),
    _at_figure(
        r"calculate, .* / growth of the peak, day by day",
        0.1,
        "peak",
        lambda key: f"{key.partition(' / ')[0]} / peak memory",
    ),
    _at_floor(r"(aggregate|topic aggregate|list|small), .*", 1.3, margin=8),
    # A tenant of a hundred million rows is answered like any other: at once.
    _at_time(r"aggregate, huge / .*, all(, .*)?", 1500),
    _at_time(r"aggregate, huge / .*, (30 days|1 day)(, .*)?", 500),
    _at_time(r"list, huge / .*", 50),
    # Sums of a large tenant take a tenth of the time to read its rows, plus the cost of every response. By identity and
    # by tag there are more sums to add up, and ten thousand buckets to write.
    _at_reference(r"sums, (large|huge) / by (product_type|resource_id|environment_id) and .*", 0.1, margin=12),
    _at_reference(r"sums, middle / by (product_type|resource_id|environment_id) and .*", 0.25, margin=12),
    _at_reference(r"sums, (large|huge) / by (identity_id|tag:team) and .*", 0.5, margin=12),
    _at_reference(r"sums, usual / by .*", 1, margin=5),
    _at_reference(r"sums, (middle|large|huge) / costs by .*", 0.6, margin=20),
    # A copy of an object is read like any other file, after it has been checked.
    _at_reference(r"copies, .* / .*(?<!, which fetches them)", 1.3, margin=12),
    # Far away, each request takes 30 ms: what counts is how many follow each other.
    _at_size(r"far away / requests of a run without news", 5),
    _at_time(r"far away, large / sums by identity and day of 30 days, first", 2000),
    # Sums within a scope read no more rows than sums of everything; the first query creates them.
    _at_reference(r"scopes, .* / by .*(?<!, first time)", 1.5, margin=8),
    # For days with replaced content, posted amounts are sums as of an instant.
    _at_reference(r"closing, .* / posted by .*, a month", 1.5, margin=2),
    # The first query also reads both sides of the corrections, and the state of the tables when each month was closed.
    _at_reference(r"closing, .* / posted by .*, first asked", 3, margin=50),
    # A simulation calculates its days, and a few sums.
    _at_reference(r"simulate, .* / .*", 1.3),
    # A method is good if it is rarely wrong and finds the changes; a forecast, if it beats the last week by a third.
    _at_size(r"stands out, .* / false alarms in 100 series-months", 5),
    _at_size(r"stands out, .* / .* found", 95),
    _at_time(r"stands out / [\d,]+ series of .*", 10),
    _at_reference(r"forecast, .* / (scatters|has spikes): .*", 0.7),
    _at_reference(r"forecast, (5|10)% noise / grows by half: .*", 0.7),
    _at_reference(r"forecast, .* / (grows by half|has had a step): .*", 0.85),
    # A response that the client already has, or that is cached, needs no query.
    _at_reference(r"dashboard, .*, (304|cached)", 0.1, margin=12),
    # A line is calculated again and compared in every revision of its day; the floor only finds its rows.
    _at_floor(r"trust, .* / explain, p95", 2, margin=30),
    _at_floor(r"trust, .* / aggregate as of an earlier instant", 1.3, margin=8),
    _at_floor(r"trust, .* / (difference of two instants|changes of .*)", 2, margin=20),
    _at_floor(r"trust, .* / reconciliation of .*", 1.3, margin=12),
    _at_time(r"categories / resolve .*", 200),
    # Values are the plain sums of their rows; a split and a share add few more.
    _at_reference(r"categories, .* / by category.* and day, all", 2, margin=8),
    _at_figure(rf"aggregate, .*{ZONE_SUFFIX}", 1.5, "UTC", lambda key: key.removesuffix(ZONE_SUFFIX)),
    _at_figure(
        r"list, large / (first|middle|last) page", 1.5, "usual", lambda key: key.replace("list, large", "list, usual")
    ),
    _at_floor(r"tags, .* / bulk by filter", 1.5, margin=10),
    _at_floor(r"export, large / rows to the socket", 0.6),
    _at_size(r"export, .* / growth of memory", 200),
    # On an otherwise idle machine, a bare server responds within about 5 ms under this load: the bar is 50 ms.
    _at_floor(r"while busy, .* / /health, p99", 2, margin=40),
    # In addition to the API's response: the page's files, its earlier requests, and drawing.
    _at_floor(r"page, .* / costs to the last chart, first visit", 1.5, margin=900),
    _at_floor(r"page, .* / costs to the last chart, files kept", 1.5, margin=500),
    # The time of a slow phone is mostly that of the simulated network, which is the same on every machine.
    _at_time(r"page, .* / first chart, first visit", 400),
    _at_time(r"page, .* / first chart, first visit of a slow phone far away", 2000),
    _at_size(r"page, .* / first load", 160),
    _at_size(r"page, .* / requests until the first chart", 12),
    _at_floor(r"limit, .* / 504 at a limit of 1 s", 1.2),
    _at_figure(
        r"requests, .* / chargebacks, page 1, 8 clients",
        0.025,
        "/health",
        lambda key: key.replace("chargebacks, page 1", "health"),
    ),
    _at_figure(r"requests, .* / tenants, 8 clients", 0.2, "/health", lambda key: key.replace("tenants", "health")),
    # A response that the client already has needs the state of the data, which is read once for requests in a row.
    _at_floor(r"dashboards, .* / .*\(304\)", 0.15),
    _at_floor(r"dashboards, .* / .*, p99", 8),
    _at_floor(r"backfill, 200 days / own CPU, without topics", 1.5),
    _at_time(r"light / chargeback --help", 150),
    # One second on a machine where Python alone starts in 8 ms.
    _at_reference(r"light / ready with ten tenants", 125),
)


def judge(figures: Sequence[Figure]) -> list[Judgement]:
    """Return every figure of a run with each of its bars, in the order of the figures."""
    run = {figure.key: figure for figure in figures}
    bars = ((figure, rule.bar_of(figure, run)) for figure in figures for rule in _RULES)
    return [Judgement(figure, bar) for figure, bar in bars if bar is not None]
