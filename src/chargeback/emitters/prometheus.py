"""The emitter ``prometheus``: the newest calculated day as gauges to scrape, and the history as a file to load.

A scraped gauge is valid at the moment of the scrape: Prometheus ignores older samples. So the endpoint shows one day,
the newest, under ``chargeback_last_day_…`` and without a time. History, one sample per day at 00:00 UTC of that day, is
written to a file under other names, ``chargeback_daily_…``, because the meaning differs: sums over time are correct
only for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain
from threading import Event
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import AfterValidator, Field

from chargeback.emitters.contract import (
    DAILY,
    Emitter,
    EmitterContext,
    EmitterParams,
    EmitterType,
    Existing,
    Facts,
    LocalPath,
    Period,
    Sum,
)
from chargeback.emitters.files import write_whole
from chargeback.emitters.openmetrics import END, Gauge, GaugeSample, family, seconds
from chargeback.model.days import ONE_DAY, DayRange, start_of_day

#: The path of the endpoint.
ENDPOINT: Final = "/metrics/chargebacks"

Label = Literal[
    "identity_id", "resource_id", "product_type", "product_category", "cost_type", "allocation_method", "environment_id"
]

_LINES_PER_WRITE = 5000


def _distinct(labels: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(labels)) != len(labels):
        raise ValueError("should contain each label once")
    return labels


class PrometheusParams(EmitterParams):
    """The labels of chargebacks, and the path of the history."""

    labels: Annotated[tuple[Label, ...], AfterValidator(_distinct)] = (
        "identity_id",
        "resource_id",
        "product_type",
        "cost_type",
    )
    max_series: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = 10_000
    history_path: LocalPath | None = None


class DailySums(Protocol):
    """The part of :class:`~chargeback.emitters.contract.Facts` that gauges need."""

    def charged(self, days: DayRange, by: Sequence[str], most: int | None = None) -> Iterator[Sum]:
        """Sums of chargebacks."""

    def billed(self, days: DayRange, by: Sequence[str]) -> Iterator[Sum]:
        """Sums of billing lines."""

    def existing(self, days: Sequence[date]) -> Mapping[date, Existing]:
        """The inventory."""


@dataclass(frozen=True)
class Exposition:
    """The gauges of one tenant."""

    tenant_name: str
    currency: str
    params: PrometheusParams

    def last_day(self, day: date, facts: DailySums) -> dict[str, list[GaugeSample]]:
        """Return the samples of the newest day, by family, without a time."""
        found = self._samples(DayRange(day, day + ONE_DAY), [day], facts, timed=False)
        families = {f"chargeback_last_day_{name}": list(samples) for name, samples in found.items()}
        stamp = GaugeSample(self._labels(), seconds(start_of_day(day)))
        return families | {"chargeback_last_day_timestamp_seconds": [stamp]}

    def history(self, days: Sequence[date], facts: DailySums) -> Iterator[str]:
        """Yield the whole text of the history file; ``days`` (ascending) are those with a value."""
        if days:
            found = self._samples(DayRange.spanning(days), days, facts, timed=True)
            wanted = set(days)
            for gauge in DAILY_GAUGES:
                samples = found[gauge.name.removeprefix("chargeback_daily_")]
                yield from family(gauge, (sample for sample in samples if sample.day in wanted))
        yield END

    def _samples(
        self, span: DayRange, days: Sequence[date], facts: DailySums, *, timed: bool
    ) -> dict[str, Iterator[GaugeSample]]:
        by = self.params.labels
        money = {
            "amount": (by, facts.charged(span, by, self.params.max_series)),
            "billed_amount": (("product_type",), facts.billed(span, ("product_type",))),
        }
        found = {name: self._of_sums(names, sums, timed=timed) for name, (names, sums) in money.items()}
        existing = facts.existing(days)
        for kind in ("resources", "identities"):
            counts = {day: getattr(each, kind) for day, each in existing.items()}
            found[kind] = self._of_counts(f"{_SINGULAR[kind]}_type", counts, timed=timed)
        return found

    def _of_sums(self, names: Sequence[str], sums: Iterable[Sum], *, timed: bool) -> Iterator[GaugeSample]:
        constant = self._labels(("currency", self.currency))
        for each in sums:
            labels = (*constant, *zip(names, each.values, strict=True))
            yield GaugeSample(labels, each.amount, each.day if timed else None)

    def _of_counts(self, label: str, counts: Mapping[date, Mapping[str, int]], *, timed: bool) -> Iterator[GaugeSample]:
        for kind in sorted({kind for of_day in counts.values() for kind in of_day}):
            for day in sorted(counts):
                yield GaugeSample(self._labels((label, kind)), counts[day].get(kind, 0), day if timed else None)

    def _labels(self, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        return (("tenant", self.tenant_name), *more)


_SINGULAR: Final = {"resources": "resource", "identities": "identity"}

_HELP: Final = {
    "amount": "Cost charged {when}, in the currency of the label.",
    "billed_amount": "Cost billed {when}, in the currency of the label.",
    "resources": "Resources that existed at some time {when}.",
    "identities": "Identities that existed at some time {when}.",
}
DAILY_GAUGES: Final = tuple(
    Gauge(f"chargeback_daily_{name}", text.format(when="on the day of the sample")) for name, text in _HELP.items()
)
STORAGE_UP: Final = Gauge("chargeback_tenant_up", "1 if the storage of the tenant could be read, else 0.")
LAST_DAY_GAUGES: Final = (
    *(
        Gauge(f"chargeback_last_day_{name}", text.format(when="on the newest calculated day"))
        for name, text in _HELP.items()
    ),
    Gauge("chargeback_last_day_timestamp_seconds", "00:00 UTC of the newest calculated day.", "seconds"),
    STORAGE_UP,
)


def exposition(tenants: Mapping[str, Mapping[str, Sequence[GaugeSample]] | None]) -> str:
    """Return the endpoint's response: ``tenants`` maps names to the families of :meth:`Exposition.last_day`, or to None
    if the tenant's storage cannot be read."""
    parts: list[str] = []
    for gauge in LAST_DAY_GAUGES:
        samples = [(families or {}).get(gauge.name, ()) for families in tenants.values()]
        if gauge is STORAGE_UP:
            samples = [[GaugeSample((("tenant", name),), int(found is not None))] for name, found in tenants.items()]
        parts.extend(family(gauge, chain.from_iterable(samples)))
    return "".join(parts) + END


class PrometheusEmitter(Emitter):
    """Writes the history if it has a path; the endpoint reads the newest day itself."""

    batch = None

    def __init__(self, context: EmitterContext, params: PrometheusParams) -> None:
        self._exposition = Exposition(context.tenant_name, context.currency, params)

    def emit(self, periods: Sequence[Period], facts: Facts) -> None:
        """Rewrite the whole history, because loading it twice must not give two values for one day."""
        path = self._exposition.params.history_path
        if path is not None:
            write_whole(path, _encoded(self._exposition.history(facts.days, facts)), facts.check)


def exposition_of(context: EmitterContext, params: EmitterParams) -> Exposition | None:
    """Return what an emitter shows on the endpoint; None if it is of another type."""
    if not isinstance(params, PrometheusParams):
        return None
    return Exposition(context.tenant_name, context.currency, params)


def _encoded(lines: Iterator[str]) -> Iterator[bytes]:
    """Yield the lines as UTF-8, some thousand at a time."""
    some: list[str] = []
    for line in lines:
        some.append(line)
        if len(some) >= _LINES_PER_WRITE:
            yield "".join(some).encode()
            some.clear()
    yield "".join(some).encode()


class PrometheusType(EmitterType):
    """The type of emitter for Prometheus."""

    params_model = PrometheusParams
    aggregations = frozenset({DAILY})

    def open(self, context: EmitterContext, params: Any, stop: Event) -> PrometheusEmitter:
        """Return an emitter for one tenant."""
        return PrometheusEmitter(context, params)

    def wants_newest_only(self, params: Any) -> bool:
        """Return whether there is no history: the endpoint shows only the newest day."""
        return bool(params.history_path is None)

    def destinations(self, context: EmitterContext, params: Any) -> tuple[str, ...]:
        """Return the tenant's gauges on the endpoint, and the history file."""
        endpoint = f"{ENDPOINT} of tenant {context.tenant_name}"
        return (endpoint,) if params.history_path is None else (endpoint, str(params.history_path.resolve()))


emitter_type = PrometheusType()
