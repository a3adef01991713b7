"""Which of a tenant's days an emitter has to write, and which it skips. No I/O here."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from chargeback.emitters.contract import Period
from chargeback.store.control.emissions import Emission, EmissionState

_VERSION_BYTES = 16


@dataclass(frozen=True, slots=True)
class DuePeriod:
    """A period to emit: its version, and the number of earlier attempts at that version."""

    period: Period
    version: str
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class EmitterSchedule:
    """How one emitter is configured.

    ``settings`` is a text that changes with the settings; ``oldest`` the first day within its lookback, ``kept_from``
    the first day of which the tenant keeps facts.
    """

    name: str
    aggregation: str
    settings: str
    oldest: date
    kept_from: date
    newest_only: bool = False


@dataclass(frozen=True, slots=True)
class EmissionPlan:
    """The periods to emit, oldest first, and those that are newly skipped."""

    due: Sequence[DuePeriod]
    skipped: Sequence[Emission]


def plan(
    schedule: EmitterSchedule, calculated: Sequence[date], files: Mapping[date, str], known: Mapping[date, Emission]
) -> EmissionPlan:
    """Compare the ``calculated`` days (ascending, with the files of each day) with the ``known`` emissions."""
    last_days = {Period.containing(day, schedule.aggregation): day for day in calculated}
    newest = max(last_days, default=None)
    due: list[DuePeriod] = []
    skipped: list[Emission] = []
    for period, last_day in last_days.items():
        if period.start < schedule.kept_from:
            continue  # what was written while all of it was there is better than what could be written now
        version = version_of(schedule.settings, period, files)
        before = known.get(period.start)
        same = before if before is not None and before.version == version else None
        reason = _skip_reason(schedule, last_day, is_newest=period == newest)
        if reason is None:
            if same is None or same.state != EmissionState.EMITTED:
                due.append(DuePeriod(period, version, same.attempts if same else 0))
        elif same is None or same.state == EmissionState.FAILED:
            skipped.append(Emission(schedule.name, period.start, EmissionState.SKIPPED, version, error=reason))
    return EmissionPlan(due, skipped)


def _skip_reason(schedule: EmitterSchedule, last_day: date, *, is_newest: bool) -> str | None:
    if last_day < schedule.oldest:
        return "older than lookback_days"
    if schedule.newest_only and not is_newest:
        return "only the newest day is shown"
    return None


def version_of(settings: str, period: Period, files: Mapping[date, str]) -> str:
    """Return a text that identifies the content of a period: it changes when one of its days is calculated, and when
    the emitter's settings change. Every calculation of a day writes a file with a new name."""
    return _digest([settings, *(f"{day}={files[day]}" for day in period.days if day in files)])


def _digest(texts: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(texts).encode(), digest_size=_VERSION_BYTES).hexdigest()
