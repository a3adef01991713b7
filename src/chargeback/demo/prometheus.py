"""A query endpoint over the generated metrics that responds like Prometheus (version 3: ranges exclude their start).

Source of the shapes and of the 11,000 points rule: prometheus/prometheus, ``web/api/v1/api.go``. Of PromQL it knows
what the service sends; everything else is refused, and the error names it.

::

    query     = aggregate | function | selector | number
    aggregate = ("sum" | "count" | "group" | "min" | "max" | "avg") [by] "(" query ")" [by]
    by        = "by" "(" label, … ")"
    function  = ("sum" | "avg" | "last" | "count" | "min" | "max") "_over_time" "(" selector "[" duration "]" ")"
    selector  = metric [ "{" label ("=" | "!=" | "=~" | "!~") text, … "}" ]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation

from chargeback.demo.metrics import METRICS, Series
from chargeback.demo.organisation import Organisation
from chargeback.demo.shapes import Json
from chargeback.demo.traffic import MINUTES
from chargeback.errors import SourceRejected

AGGREGATES = ("sum", "count", "group", "min", "max", "avg")
FUNCTIONS = tuple(f"{name}_over_time" for name in ("sum", "avg", "last", "count", "min", "max"))
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_TOKEN = re.compile(
    r"""\s*(?:(?P<duration>\d+(?:ms|[smhdw])(?:\d+(?:ms|[smhdw]))*\b)|(?P<number>\d+(?:\.\d+)?)
    |(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<sign>=~|!~|!=|[=(){}\[\],]))""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

MINUTE_MS = 60_000
LOOKBACK_MS = 5 * MINUTE_MS
MAX_POINTS = 11_000
#: Prometheus calculates in binary floating point: about 17 digits.
_DIGITS = Context(prec=17)
_EPOCH = date(1970, 1, 1)

Vector = list[tuple[Mapping[str, str], Decimal]]


@dataclass(frozen=True)
class Matcher:
    """One condition on a label; a label that is missing counts as empty, regular expressions match the whole."""

    label: str
    sign: str
    text: str
    matches: Callable[[str], bool]


@dataclass(frozen=True)
class Selector:
    """A metric and conditions on its labels."""

    metric: str
    matchers: tuple[Matcher, ...] = ()


@dataclass(frozen=True)
class OverTime:
    """A function over a range of samples; ``range_ms`` in milliseconds."""

    function: str
    selector: Selector
    range_ms: int


@dataclass(frozen=True)
class VectorAggregate:
    """An aggregation of a vector by labels (by none: into one)."""

    operation: str
    by: tuple[str, ...]
    inner: Query


@dataclass(frozen=True)
class Number:
    """A number literal."""

    value: Decimal


Query = Selector | OverTime | VectorAggregate | Number


def parse(text: str) -> Query:
    """Parse the query in ``text``.

    >>> parse('sum by (topic) (sum_over_time(bytes{kafka_id="lkc-1"}[1d]))').by
    ('topic',)

    Raises:
        SourceRejected: for anything outside the grammar above; the message names what is not understood.
    """
    parser = _Parser(text)
    query = parser.query()
    parser.end()
    return query


def duration_ms(text: str) -> int:
    """Return a duration such as ``1d``, ``1h30m`` or ``90s`` in milliseconds; 0 for anything else.

    >>> duration_ms("1h30m"), duration_ms("x")
    (5400000, 0)
    """
    if not re.fullmatch(r"(?:\d+(?:ms|[smhdw]))+", text):
        return 0
    return sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)(ms|[smhdw])", text))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._tokens: list[tuple[str, str]] = []
        position, stripped = 0, text.rstrip()
        while position < len(stripped):
            found = _TOKEN.match(stripped, position)
            if found is None:
                raise _refused(f'"{stripped[position : position + 20].strip()}" is not understood')
            self._tokens.append((str(found.lastgroup), found.group(str(found.lastgroup))))
            position = found.end()

    def query(self) -> Query:
        kind, word = self._next()
        if kind == "number":
            return Number(Decimal(word))
        if kind != "name":
            raise _refused(f'"{word}" is not understood where a metric, a function or a number is expected')
        if word in AGGREGATES:
            return self._aggregate(word)
        if self._peek() == "(":
            if word not in FUNCTIONS:
                raise _refused(f'function "{word}" is not served here')
            return self._over_time(word)
        return self._selector(word)

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise _refused(f'"{self._peek()}" is not understood after the end of the query')

    def _aggregate(self, operation: str) -> VectorAggregate:
        by = self._by()
        self._expect("(")
        inner = self.query()
        self._expect(")")
        return VectorAggregate(operation, by if by is not None else self._by() or (), inner)

    def _by(self) -> tuple[str, ...] | None:
        word = self._peek()
        if word == "without":
            raise _refused('"without" is not served here')
        if word != "by":
            return None
        self._at += 1
        self._expect("(")
        labels: list[str] = []
        while self._peek() != ")":
            labels.append(self._name())
            if self._peek() == ",":
                self._at += 1
        self._expect(")")
        return tuple(labels)

    def _over_time(self, function: str) -> OverTime:
        self._expect("(")
        selector = self._selector(self._name())
        self._expect("[")
        kind, word = self._next()
        length = duration_ms(word) if kind == "duration" else 0
        if not length:
            raise _refused(f'"{word}" is no duration')
        self._expect("]")
        self._expect(")")
        return OverTime(function, selector, length)

    def _selector(self, metric: str) -> Selector:
        matchers: list[Matcher] = []
        if self._peek() == "{":
            self._at += 1
            while self._peek() != "}":
                matchers.append(self._matcher())
                if self._peek() == ",":
                    self._at += 1
            self._expect("}")
        return Selector(metric, tuple(matchers))

    def _matcher(self) -> Matcher:
        label = self._name()
        _, sign = self._next()
        kind, quoted = self._next()
        if sign not in ("=", "!=", "=~", "!~") or kind != "text":
            raise _refused(f'"{label}{sign}{quoted}" is not understood as a label matcher')
        text = _ESCAPE.sub(r"\1", quoted[1:-1])
        return Matcher(label, sign, text, _condition(sign, text))

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise _refused("unexpected end of input")
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _name(self) -> str:
        kind, word = self._next()
        if kind != "name":
            raise _refused(f'"{word}" is not understood where a name is expected')
        return word

    def _expect(self, sign: str) -> None:
        _, word = self._next()
        if word != sign:
            raise _refused(f'"{word}" is not understood where "{sign}" is expected')


def _condition(sign: str, text: str) -> Callable[[str], bool]:
    if sign == "=":
        return lambda value: value == text
    if sign == "!=":
        return lambda value: value != text
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise _refused(f'"{text}" is no regular expression: {error}') from error
    if sign == "=~":
        return lambda value: pattern.fullmatch(value) is not None
    return lambda value: pattern.fullmatch(value) is None


def _refused(what: str) -> SourceRejected:
    return SourceRejected(f'invalid parameter "query": parse error: {what}', status=400)


@dataclass(frozen=True)
class Evaluator:
    """Evaluates queries over one organisation.

    ``oldest`` is the first day that is still kept, ``max_samples`` the number of points that a query may have in
    memory.
    """

    organisation: Organisation
    oldest: date | None = None
    max_samples: int = 50_000_000

    def instant(self, text: str, time_ms: int) -> Json:
        """Return the ``data`` of a response to ``/api/v1/query``.

        Raises:
            SourceRejected: with status 400 or 422, for a query that cannot be answered.
        """
        query = parse(text)
        if isinstance(query, Number):
            return {"resultType": "scalar", "result": [_seconds(time_ms), _text(query.value)]}
        budget = _Budget(self.max_samples)
        result = [
            {"metric": dict(labels), "value": [_seconds(time_ms), _text(value)]}
            for labels, value in self._vector(query, time_ms, budget)
        ]
        return {"resultType": "vector", "result": result}

    def range(self, text: str, start_ms: int, end_ms: int, step_ms: int) -> Json:
        """Return the ``data`` of a response to ``/api/v1/query_range``; both ends are included.

        Raises:
            SourceRejected: with status 400 or 422, for a query that cannot be answered.
        """
        query, budget = parse(text), _Budget(self.max_samples)
        found: dict[tuple[tuple[str, str], ...], list[list[object]]] = {}
        for time_ms in range(start_ms, end_ms + 1, step_ms):
            points: Iterable[tuple[Mapping[str, str], Decimal]]
            points = [({}, query.value)] if isinstance(query, Number) else self._vector(query, time_ms, budget)
            for labels, value in points:
                found.setdefault(tuple(sorted(labels.items())), []).append([_seconds(time_ms), _text(value)])
        result = [{"metric": dict(labels), "values": values} for labels, values in sorted(found.items())]
        return {"resultType": "matrix", "result": result}

    def _vector(self, query: Query, time_ms: int, budget: _Budget) -> Vector:
        if isinstance(query, Selector):
            return self._latest(query, time_ms, budget)
        if isinstance(query, OverTime):
            return self._over_time(query, time_ms, budget)
        if isinstance(query, VectorAggregate):
            groups = _aggregated(query, self._vector(query.inner, time_ms, budget))
            budget.take(len(groups), 0)
            return groups
        raise SourceRejected("expected type instant vector in aggregation expression, got scalar", status=400)

    def _latest(self, selector: Selector, time_ms: int, budget: _Budget) -> Vector:
        """Return the last sample within five minutes, with the metric's name."""
        found = _by_labels(self._windows(selector, time_ms - LOOKBACK_MS, time_ms, budget))
        return [
            ({"__name__": selector.metric, **parts[-1].series.labels}, _last(parts, METRICS[selector.metric].scale))
            for parts in found
        ]

    def _over_time(self, query: OverTime, time_ms: int, budget: _Budget) -> Vector:
        scale = METRICS[query.selector.metric].scale if query.selector.metric in METRICS else 1
        windows = self._windows(query.selector, time_ms - query.range_ms, time_ms, budget)
        function = _FUNCTIONS[query.function]
        # The last sample keeps the metric's name; calculated values have no name.
        name = {"__name__": query.selector.metric} if query.function == "last_over_time" else {}
        return [({**name, **parts[0].series.labels}, function(parts, scale)) for parts in _by_labels(windows)]

    def _windows(self, selector: Selector, after_ms: int, until_ms: int, budget: _Budget) -> list[_Window]:
        """Return the samples stamped in ``(after_ms, until_ms]``, by series and day."""
        first, end = after_ms // MINUTE_MS + 1, until_ms // MINUTE_MS + 1
        windows: list[_Window] = []
        for number in range(first // MINUTES, (end - 1) // MINUTES + 1):
            day = _EPOCH + timedelta(days=number)
            if self.oldest is not None and day < self.oldest:
                continue
            lower, upper = max(first - number * MINUTES, 0), min(end - number * MINUTES, MINUTES)
            windows.extend(
                _Window(series, lower, upper)
                for series in self.organisation.series(selector.metric, day)
                if all(one.matches(series.labels.get(one.label, "")) for one in selector.matchers)
            )
        budget.take(len({id(window.series.labels) for window in windows}), end - first)
        return windows


@dataclass(frozen=True, slots=True)
class _Window:
    """Part of one day of one series: its minutes ``[lower, upper)``."""

    series: Series
    lower: int
    upper: int

    @property
    def sum(self) -> int:
        return self.series.sum(self.lower, self.upper)

    @property
    def count(self) -> int:
        return self.upper - self.lower

    def samples(self) -> Iterable[int]:
        return (self.series.at(minute) for minute in range(self.lower, self.upper))


class _Budget:
    """Points in memory: those of the response so far, and one series' window at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0

    def take(self, series: int, window: int) -> None:
        self._taken += series
        if series and self._taken + window > self._limit:
            message = "query processing would load too many samples into memory in query execution"
            raise SourceRejected(message, status=422)


def _by_labels(windows: list[_Window]) -> list[list[_Window]]:
    """Group windows by series, in order of time. Labels are shared objects, so comparing identity suffices."""
    found: dict[int, list[_Window]] = {}
    for window in windows:
        found.setdefault(id(window.series.labels), []).append(window)
    return list(found.values())


def _scaled(value: int, scale: int) -> Decimal:
    return Decimal(value) if scale == 1 else Decimal(value).scaleb(-(len(str(scale)) - 1))


def _sum(parts: list[_Window], scale: int) -> Decimal:
    return _scaled(sum(part.sum for part in parts), scale)


def _count(parts: list[_Window], _scale: int) -> Decimal:
    return Decimal(sum(part.count for part in parts))


def _mean(parts: list[_Window], scale: int) -> Decimal:
    return _DIGITS.divide(_sum(parts, scale), _count(parts, scale))


def _last(parts: list[_Window], scale: int) -> Decimal:
    return _scaled(parts[-1].series.at(parts[-1].upper - 1), scale)


def _least(parts: list[_Window], scale: int) -> Decimal:
    return _scaled(min(min(part.samples()) for part in parts), scale)


def _most(parts: list[_Window], scale: int) -> Decimal:
    return _scaled(max(max(part.samples()) for part in parts), scale)


_FUNCTIONS: dict[str, Callable[[list[_Window], int], Decimal]] = {
    "sum_over_time": _sum,
    "avg_over_time": _mean,
    "last_over_time": _last,
    "count_over_time": _count,
    "min_over_time": _least,
    "max_over_time": _most,
}


def _aggregated(query: VectorAggregate, vector: Vector) -> Vector:
    groups: dict[tuple[str, ...], list[Decimal]] = {}
    for labels, value in vector:
        groups.setdefault(tuple(labels.get(name, "") for name in query.by), []).append(value)
    found: Vector = []
    for key, values in groups.items():
        labels = {name: value for name, value in zip(query.by, key, strict=True) if value}
        found.append((labels, _combined(query.operation, values)))
    return found


def _combined(operation: str, values: list[Decimal]) -> Decimal:
    match operation:
        case "sum":
            return sum(values, Decimal(0))
        case "count":
            return Decimal(len(values))
        case "group":
            return Decimal(1)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case _:
            return _DIGITS.divide(sum(values, Decimal(0)), Decimal(len(values)))


def _text(value: Decimal) -> str:
    plain = f"{value:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def _seconds(time_ms: int) -> int | Decimal:
    whole, part = divmod(time_ms, 1000)
    return Decimal(time_ms).scaleb(-3) if part else whole


def parse_time(name: str, text: str) -> int:
    """Return a time in Unix seconds (with decimals) or RFC 3339 as milliseconds.

    Raises:
        SourceRejected: when it is neither.
    """
    try:
        return int((Decimal(text) * 1000).to_integral_value())
    except (InvalidOperation, ValueError, OverflowError):
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        message = f'invalid parameter "{name}": cannot parse "{text}" to a valid timestamp'
        raise SourceRejected(message, status=400)
    return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def parse_step(text: str) -> int:
    """Return a step in seconds or as a duration, in milliseconds.

    Raises:
        SourceRejected: when it is not positive or cannot be read.
    """
    found = duration_ms(text)
    if not found:
        try:
            found = int(Decimal(text) * 1000)
        except (InvalidOperation, ValueError, OverflowError) as error:
            message = f'invalid parameter "step": cannot parse "{text}" to a valid duration'
            raise SourceRejected(message, status=400) from error
    if found <= 0:
        message = (
            'invalid parameter "step": zero or negative query resolution step widths are not accepted.'
            " Try a positive integer"
        )
        raise SourceRejected(message, status=400)
    return found


def check_resolution(start_ms: int, end_ms: int, step_ms: int) -> None:
    """Refuse a range query as Prometheus does.

    Raises:
        SourceRejected: when it ends before it starts or has more than 11,000 points.
    """
    if end_ms < start_ms:
        raise SourceRejected('invalid parameter "end": end timestamp must not be before start time', status=400)
    if (end_ms - start_ms) // step_ms > MAX_POINTS:
        message = (
            "exceeded maximum resolution of 11,000 points per timeseries."
            " Try decreasing the query resolution (?step=XX)"
        )
        raise SourceRejected(message, status=400)
