"""A client of Prometheus-compatible servers. Numbers in responses remain texts.

Facts about the HTTP API: Prometheus 3.14, ``web/api/v1/api.go``. Compatible servers (Thanos, Mimir, VictoriaMetrics)
have other texts for some errors.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Event
from typing import Any, Self

from chargeback.errors import SourceDataError, SourceError, SourcePartial, SourceTooLarge, SourceUnavailable
from chargeback.sources.credentials import Credentials, MetricsSettings
from chargeback.sources.replies import Reply, classify_response
from chargeback.sources.requests import INTERACTIVE_LIMITS, Call, Limits

logger = logging.getLogger(__name__)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOO_LARGE = re.compile(
    r"too many samples|maximum resolution|timed out|timeout|exceed\w*[\w ,-]*limit|limit[\w ,-]*exceeded"
    r"|err-mimir-max|max number of|maxSamplesPerQuery|maxUniqueTimeseries",
    re.IGNORECASE,
)
#: Makes Thanos and VictoriaMetrics fail instead of returning a partial response; other servers ignore it.
_WHOLE = {"partial_response": "false", "deny_partial_response": "1"}
#: The beginnings of Prometheus' warnings about the query itself. Any other warning means that data is missing.
_ANNOTATION = "PromQL"
#: Prometheus' own timeout of a query is two minutes; this one is slightly longer. One response has every series of a
#: day.
_LIMITS = Limits(
    attempts=4,
    deadline_seconds=300,
    exchange_seconds=150,
    silence_seconds=140,
    longest_backoff_seconds=10,
    largest_body=64 * 1024 * 1024,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One series at one instant: its labels and its value, in the server's own text."""

    labels: Mapping[str, str]
    value: str


@dataclass(frozen=True, slots=True)
class Series:
    """One series over time: its labels and its points, (instant, value as text), oldest first."""

    labels: Mapping[str, str]
    points: tuple[tuple[datetime, str], ...]


class PrometheusClient:
    """Queries one metrics source. May be used from several threads; every wait ends when ``stop`` is set.

    All queries are sent as forms (POST), so that their length is not limited and none appears in an access log.
    """

    def __init__(
        self, settings: MetricsSettings, *, stop: Event, limits: Limits = _LIMITS, interactive: bool = False
    ) -> None:
        from chargeback.sources.http import HttpClient

        self._client = HttpClient(
            settings.url,
            source="metrics",
            stop=stop,
            credentials=_credentials(settings),
            limits=INTERACTIVE_LIMITS if interactive else limits,
        )
        self._warned: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def instant(self, query: str, at: datetime) -> list[Sample]:
        """Return the series of ``query`` at one instant. A scalar is a series without labels.

        Raises:
            SourceRejected: the query is not valid, or access is denied.
            SourceTooLarge: it reads more than the server allows; query a shorter time.
            SourceUnavailable: no valid response, or (SourcePartial) one that the server reports as incomplete.
            SourceDataError: the response has another shape.
            Stopped: ``stop`` was set.
        """
        with self._addressed(path := "/api/v1/query"):
            kind, result = self._ask(path, {"query": query, "time": _render(at)})
            if kind == "scalar":
                return [Sample({}, _text(result))]
            if kind != "vector":
                raise _unexpected(f"a {kind} instead of a vector")
            return [Sample(_labels(each), _text(each["value"])) for each in _entries(result, "value")]

    def range(self, query: str, start: datetime, end: datetime, step: timedelta) -> list[Series]:
        """Return the series of ``query`` from ``start`` to ``end`` (both inclusive) every ``step``; errors as for
        :meth:`instant`."""
        form = {"query": query, "start": _render(start), "end": _render(end), "step": render_duration(step)}
        with self._addressed(path := "/api/v1/query_range"):
            kind, result = self._ask(path, form)
            if kind != "matrix":
                raise _unexpected(f"a {kind} instead of a matrix")
            return [
                Series(_labels(each), tuple((_instant(pair), _text(pair)) for pair in each["values"]))
                for each in _entries(result, "values")
            ]

    @property
    def given_up(self) -> bool:
        """Return whether every further query would fail with the error of an earlier one."""
        return self._client.given_up is not None

    @contextmanager
    def _addressed(self, path: str) -> Iterator[None]:
        """Add the address to errors about a response."""
        try:
            yield
        except SourceDataError as error:
            raise SourceDataError(f"{self._client.address_of(path)}: {error.message}", source=error.source) from None

    def _ask(self, path: str, form: Mapping[str, str]) -> tuple[str, Any]:
        document = self._client.read_json(Call(path, form={**form, **_WHOLE}, classify=_classify))
        data = document.get("data")
        if not isinstance(data, dict) or not isinstance(data.get("resultType"), str):
            raise _unexpected("a response without data")
        self._log_warnings(document)
        _reject_partial(path, document)
        return data["resultType"], data.get("result")

    def _log_warnings(self, document: Mapping[str, Any]) -> None:
        """Log the server's warnings on the query, each one once, because it is repeated with every query."""
        for warning in _warnings(document):
            if warning not in self._warned:
                self._warned.add(warning)
                logger.warning("the metrics source warns: %s", warning)


def render_duration(length: timedelta) -> str:
    """Return a duration in PromQL's notation, in the largest unit that is exact.

    >>> render_duration(timedelta(days=1)), render_duration(timedelta(milliseconds=1500))
    ('86400s', '1500ms')
    """
    milliseconds = length // timedelta(milliseconds=1)
    return f"{milliseconds}ms" if milliseconds % 1000 else f"{milliseconds // 1000}s"


def _render(at: datetime) -> str:
    seconds, milliseconds = divmod((at - _EPOCH) // timedelta(milliseconds=1), 1000)
    return f"{seconds}.{milliseconds:03d}"


def _credentials(settings: MetricsSettings) -> Credentials | None:
    if settings.auth_type == "basic" and settings.username and settings.password:
        return Credentials.basic(settings.username, settings.password.get_secret_value())
    if settings.auth_type == "bearer" and settings.bearer_token:
        return Credentials.bearer(settings.bearer_token.get_secret_value())
    return None


def _classify(reply: Reply) -> SourceError | None:
    """Classify a response: distinguish errors that a smaller query avoids from those that a retry may solve."""
    document: Any = None
    try:
        document = reply.json()
    except SourceUnavailable as unreadable:
        if 200 <= reply.status < 300:
            return unreadable
    if isinstance(document, dict) and document.get("status") == "success" and 200 <= reply.status < 300:
        return None
    message = reply.explanation()
    if isinstance(document, dict) and document.get("status") == "error":
        too_large = document.get("errorType") == "timeout" or _TOO_LARGE.search(str(document.get("error")))
        if too_large and reply.status != 429:
            return SourceTooLarge(message)
    elif reply.status in {413, 422} and _TOO_LARGE.search(message):
        return SourceTooLarge(message)
    return classify_response(reply) or SourceUnavailable(f"{message}: not a response of Prometheus")


def _reject_partial(path: str, document: Mapping[str, Any]) -> None:
    """Refuse a response that is reported as incomplete: Thanos, Mimir and remote reads add a warning, VictoriaMetrics
    sets a flag. The query is not retried at once, because such failures last longer."""
    missing = [warning for warning in _warnings(document) if not warning.startswith(_ANNOTATION)]
    if document.get("isPartial") is True:
        missing.append("isPartial")
    if missing:
        raise SourcePartial(f"POST {path}: the answer is incomplete: {'; '.join(missing)[:300]}", source="metrics")


def _warnings(document: Mapping[str, Any]) -> list[str]:
    warnings = document.get("warnings") or []
    return [str(warning) for warning in warnings] if isinstance(warnings, list) else [str(warnings)]


def _entries(result: Any, key: str) -> list[dict[str, Any]]:
    """Return the series with numbers; native histograms, which have none, are left out."""
    if not isinstance(result, list):
        raise _unexpected("a result that is not a list")
    entries = [each for each in result if isinstance(each, dict) and isinstance(each.get(key), list)]
    if len(entries) != sum(1 for each in result if not (isinstance(each, dict) and _is_histogram(each, key))):
        raise _unexpected("a series without values")
    return entries


def _is_histogram(each: Mapping[str, Any], key: str) -> bool:
    return key not in each and ("histogram" in each or "histograms" in each)


def _labels(each: Mapping[str, Any]) -> dict[str, str]:
    labels = each.get("metric")
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise _unexpected("a series without labels")
    return labels


def _text(pair: Any) -> str:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], str):
        raise _unexpected("a value that is not a string")
    return pair[1]


def _instant(pair: Any) -> datetime:
    if not isinstance(pair, list) or not pair or not isinstance(pair[0], int | Decimal):
        raise _unexpected("a point without a timestamp")
    return _EPOCH + timedelta(milliseconds=int(Decimal(pair[0]) * 1000))


def _unexpected(what: str) -> SourceDataError:
    return SourceDataError(f"it answered {what}", source="metrics")
