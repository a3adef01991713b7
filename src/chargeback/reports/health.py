"""What is wrong with a tenant's data, the worst first: why, what to do about it, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import groupby
from typing import Final, Literal

from pydantic import Field

from chargeback.model.days import ONE_DAY
from chargeback.reports.answers import Instant, ResponseModel
from chargeback.store.control.days import METRICS, TOPIC_METRICS, DayState
from chargeback.store.control.runs import PipelineState

Kind = Literal["suspended", "days_waiting", "run_failed", "days_incomplete", "topics_misconfigured"]
Severity = Literal["bad", "warning"]
Source = Literal["bill", "inventory", "metrics", "topic_metrics"]

#: Outcomes of runs that ended before their work was done.
_BROKEN: Final = frozenset({"failed", "timed_out", "interrupted"})
_NO_INVENTORY: Final = "The inventory of the day is not complete yet."
_NEXT_RUN: Final = "It waits for the next run."


class HealthProblem(ResponseModel):
    """Something that is wrong."""

    kind: Kind
    severity: Severity = Field(description="`bad`: figures are missing; `warning`: they may still change.")
    causes: list[str] = Field(examples=[["metrics: the source answered 401 Unauthorized"]])
    remedy: str = Field(description="What to do, and what ends it.")
    start_date: date | None = Field(description="The first day that it is about; null if it is about none.")
    end_date: date | None
    days: int = Field(description="On how many days; 0 for a run, some of whose days may be well.")


class SourceHealth(ResponseModel):
    """How far a source has answered."""

    source: Source
    days: int = Field(description="For how many days it has answered.")
    last_at: Instant | None = Field(description="When a bill was last fetched; null for the other sources.")
    error: str | None = Field(description="Why the latest day that lacks it has no answer; null if none lacks it.")


class HealthAnswer(ResponseModel):
    """The health of a tenant's data."""

    state: Literal["ok", "warning", "bad"] = Field(description="That of the worst problem.")
    problems: list[HealthProblem] = Field(description="The worst first.")
    sources: list[SourceHealth]
    days_calculated: int
    lookback_days: int


def health(
    states: Sequence[DayState],
    pipeline: PipelineState,
    *,
    lookback_days: int,
    has_topics: bool,
    topic_error: str | None,
) -> HealthAnswer:
    """Return the health of a tenant, of the states of its days, ascending, and of its pipeline."""
    problems = [*_suspended(pipeline), *_waiting(states), *_run(pipeline), *_incomplete(states)]
    if topic_error is not None:
        problems.append(
            _problem(
                "topics_misconfigured", "warning", [topic_error], "Correct the configuration, and restart the service."
            )
        )
    problems.sort(key=lambda each: each.severity != "bad")
    return HealthAnswer(
        state=problems[0].severity if problems else "ok",
        problems=problems,
        sources=list(_sources(states, has_topics=has_topics)),
        days_calculated=sum(each.chargebacks.is_current for each in states),
        lookback_days=lookback_days,
    )


def _problem(
    kind: Kind,
    severity: Severity,
    causes: Iterable[str],
    remedy: str,
    days: Sequence[DayState] = (),
) -> HealthProblem:
    return HealthProblem(
        kind=kind,
        severity=severity,
        causes=list(causes),
        remedy=remedy,
        start_date=days[0].tracking_date if days else None,
        end_date=days[-1].tracking_date if days else None,
        days=len(days),
    )


def _suspended(pipeline: PipelineState) -> Iterator[HealthProblem]:
    if pipeline.suspended_because is not None:
        remedy = "Remove the cause. The tenant is run again when the service is started the next time."
        yield _problem("suspended", "bad", [pipeline.suspended_because], remedy)


def _waiting(states: Sequence[DayState]) -> Iterator[HealthProblem]:
    """Yield the days that are billed and not calculated, and those whose bill could not be fetched: neighbours with the
    same cause together."""
    wait = [each for each in states if (each.billing_gathered or each.error) and not each.chargebacks.is_current]
    for why, days in _neighbours(wait, _why_it_waits):
        remedy = (
            "Each run tries it again. If the cause stays, it is at its source: correct it there, then run."
            if any(each.error for each in days)
            else "The next run ends it; you can start one now."
        )
        yield _problem("days_waiting", "bad", [why], remedy, days)


def _why_it_waits(state: DayState) -> str:
    return state.error or (_NEXT_RUN if state.resources_gathered else _NO_INVENTORY)


def _run(pipeline: PipelineState) -> Iterator[HealthProblem]:
    last = pipeline.last_ended
    if last is None or (not last["errors"] and last["outcome"] not in _BROKEN):
        return
    severity: Severity = "bad" if last["outcome"] in _BROKEN else "warning"
    remedy = "The next run that ends without errors ends it; you can start one now."
    found = _problem("run_failed", severity, last["errors"] or [f"The run ended as {last['outcome']}."], remedy)
    yield found.model_copy(update={"start_date": last["errors_from"], "end_date": last["errors_to"]})


def _incomplete(states: Sequence[DayState]) -> Iterator[HealthProblem]:
    lacking = [each for each in states if each.shortcomings and each.chargebacks.is_current]
    for why, days in _neighbours(lacking, lambda each: "; ".join(each.shortcomings)):
        remedy = "These days are calculated again by themselves once the whole answer can be had."
        yield _problem("days_incomplete", "warning", [why], remedy, days)


def _neighbours(states: Sequence[DayState], why: Callable[[DayState], str]) -> Iterator[tuple[str, list[DayState]]]:
    """Yield days that follow each other and share a cause, the latest first."""
    found: list[tuple[str, list[DayState]]] = []
    for cause, group in groupby(states, why):
        for each in group:
            if found and found[-1][0] == cause and found[-1][1][-1].tracking_date + ONE_DAY == each.tracking_date:
                found[-1][1].append(each)
            else:
                found.append((cause, [each]))
    yield from reversed(found)


def _sources(states: Sequence[DayState], *, has_topics: bool) -> Iterator[SourceHealth]:
    fetched = [each.gathered_at for each in states if each.gathered_at is not None]
    yield _source(
        "bill", states, lambda each: each.billing_gathered, lambda each: each.error, max(fetched, default=None)
    )
    yield _source("inventory", states, lambda each: each.resources_gathered, lambda each: each.error)
    yield _source(
        "metrics",
        states,
        lambda each: each.chargebacks.is_measured and METRICS not in each.incomplete,
        lambda each: each.incomplete.get(METRICS),
    )
    if has_topics:
        yield _source(
            "topic_metrics",
            states,
            lambda each: each.topics.is_measured and TOPIC_METRICS not in each.incomplete,
            lambda each: each.incomplete.get(TOPIC_METRICS),
        )


def _source(
    source: Source,
    states: Sequence[DayState],
    has: Callable[[DayState], bool],
    why: Callable[[DayState], str | None],
    last_at: datetime | None = None,
) -> SourceHealth:
    missing = [why(each) for each in states if not has(each)]
    return SourceHealth(
        source=source,
        days=sum(map(has, states)),
        last_at=last_at,
        error=next((each for each in reversed(missing) if each is not None), None),
    )
