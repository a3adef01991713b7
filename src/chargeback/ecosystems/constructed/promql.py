"""The small part of PromQL that is written or parsed here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from chargeback.sources.prometheus import render_duration

#: The placeholder for the step in a user's query.
STEP = "{step}"

_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`")
_RANGE = re.compile(r"\[\s*([^\[\]:]+?)\s*(:[^\[\]]*)?\]")
_PARTS = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": "0.001", "s": "1", "m": "60", "h": "3600", "d": "86400", "w": "604800", "y": "31536000"}


def select(series: str, *matchers: str) -> str:
    """Return a selector of ``series`` (a name, perhaps with matchers) with more matchers.

    >>> select('bytes{job="x"}', 'topic!=""', '')
    'bytes{job="x",topic!=""}'
    """
    name, _, own = series.strip().rstrip("}").partition("{")
    every = [part for part in (own.strip().rstrip(","), *matchers) if part]
    return f"{name.strip()}{{{','.join(every)}}}" if every else name.strip()


def mentions(series: str, label: str) -> bool:
    """Return whether the matchers of ``series`` have ``label``.

    >>> mentions('bytes{topic=~"a|b"}', "topic"), mentions('bytes{x="topic="}', "topic")
    (True, False)
    """
    return re.search(rf"[{{,]\s*{re.escape(label)}\s*[=!]", _STRING.sub('""', series)) is not None


def with_step(query: str, step: timedelta) -> str:
    """Return the query with its placeholder replaced.

    >>> with_step("increase(x[{step}])", timedelta(hours=1))
    'increase(x[3600s])'
    """
    return query.replace(STEP, render_duration(step))


def foreign_ranges(query: str, step: timedelta) -> list[str]:
    """Return the ranges of a query that are not as long as the step, as written.

    A sum over steps counts data in a longer range twice, and omits data between shorter ones. The ranges of subqueries
    are ignored, because they can have other purposes.

    >>> foreign_ranges('sum(increase(x{t=~"[5m]"}[1h])) + rate(y[5m]) + z[{step}]', timedelta(hours=1))
    ['5m']
    """
    return [written for written, length in _ranges(with_step(query, step)) if length != step]


def _ranges(query: str) -> Iterator[tuple[str, timedelta | None]]:
    for match in _RANGE.finditer(_STRING.sub('""', query)):
        if match[2] is None:
            yield match[1], _duration(match[1])


def _duration(text: str) -> timedelta | None:
    if re.fullmatch(r"\d+(\.\d+)?", text):  # seconds without a unit, since Prometheus 3
        return _of_seconds(Decimal(text))
    if "".join(f"{number}{unit}" for number, unit in _PARTS.findall(text)) != text:
        return None
    return _of_seconds(sum((int(number) * Decimal(_SECONDS[unit]) for number, unit in _PARTS.findall(text)), Decimal()))


def _of_seconds(seconds: Decimal) -> timedelta:
    return timedelta(milliseconds=int(seconds * 1000))
