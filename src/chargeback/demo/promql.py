"""Parses the part of PromQL that the service sends; everything else is refused, and the error names it.

::

    query     = aggregate | function | selector | number
    aggregate = ("sum" | "count" | "group" | "min" | "max" | "avg") [by] "(" query ")" [by]
    by        = "by" "(" label, … ")"
    function  = ("sum" | "avg" | "last" | "count" | "min" | "max") "_over_time" "(" selector "[" duration "]" ")"
    selector  = metric [ "{" label ("=" | "!=" | "=~" | "!~") text, … "}" ]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

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
class Aggregate:
    """An aggregation of a vector by labels (by none: into one)."""

    operation: str
    by: tuple[str, ...]
    inner: Query


@dataclass(frozen=True)
class Number:
    """A number literal."""

    value: Decimal


Query = Selector | OverTime | Aggregate | Number


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

    def _aggregate(self, operation: str) -> Aggregate:
        by = self._by()
        self._expect("(")
        inner = self.query()
        self._expect(")")
        return Aggregate(operation, by if by is not None else self._by() or (), inner)

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
