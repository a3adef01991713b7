"""The problems of a tenant's data, the worst first: their causes, a remedy, and what resolves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Final, Literal, TypeVar

from pydantic import Field

from chargeback.errors import says_refusal
from chargeback.model.days import ONE_DAY
from chargeback.reports.answers import Instant, ResponseModel
from chargeback.store.control.days import METRICS, NOT_MEASURED, TOPIC_METRICS, DayState
from chargeback.store.control.runs import GATHERING_FAILED, NOT_LISTED, PipelineState

Kind = Literal["suspended", "days_waiting", "run_failed", "days_incomplete", "topics_misconfigured"]
Severity = Literal["bad", "warning"]
Source = Literal["bill", "inventory", "metrics", "topic_metrics"]
Ending = Literal["run", "source", "restart"]

#: Outcomes of runs that ended before their work was done.
_BROKEN: Final = frozenset({"failed", "timed_out", "interrupted"})
_NO_INVENTORY: Final = "The inventory of the day is not complete yet."
_NEXT_RUN: Final = "It waits for the next run."
_CORRECT_ACCESS: Final = (
    "The source refuses access. Correct its key, the rights of the key or its address, restart the service if its "
    "configuration has changed, and start a run. The command “chargeback check --online” tests every source."
)
_TRY_AGAIN: Final = "Each run tries again. If the cause stays, correct it at its source, then start a run."

T = TypeVar("T")


class HealthProblem(ResponseModel):
    """A problem of a tenant's data."""

    kind: Kind
    severity: Severity = Field(description="`bad`: figures are missing; `warning`: they may still change.")
    causes: list[str] = Field(examples=[["metrics: the source answered 401 Unauthorized"]])
    remedy: str = Field(description="What to do, and what resolves it.")
    ended_by: Ending = Field(
        description="`run`: a run, which can be started now; `source`: another response of a source, without which no "
        "run helps; `restart`: a restart of the service."
    )
    start_date: date | None = Field(description="The first affected day; null if it is not about days.")
    end_date: date | None
    days: int = Field(description="The number of affected days; 0 for a run, some of whose days may have no problem.")


class SourceHealth(ResponseModel):
    """The health of a source."""

    source: Source
    days: int = Field(description="The number of days whose data was fetched from it.")
    last_at: Instant | None = Field(description="When a bill was last fetched; null for other sources.")
    error: str | None = Field(
        description="Why the last run could not fetch from it at all, or why the latest incomplete day lacks its data; "
        "null otherwise."
    )
    is_refused: bool = Field(
        description="Whether the error is a refusal, such as 401: no run helps until it is corrected."
    )
    remedy: str | None = Field(description="What to do about the error; null if there is none.")


class HealthAnswer(ResponseModel):
    """The health of a tenant's data."""

    state: Literal["ok", "warning", "bad"] = Field(description="The severity of the worst problem.")
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
    """Return the health of a tenant, from the ascending states of its days, and from its pipeline."""
    last = _LastRun.of(pipeline)
    problems = [*_suspended(pipeline), *_waiting(states, last), *_run(pipeline), *_incomplete(states)]
    if topic_error is not None:
        remedy = "Correct the configuration, and restart the service."
        problems.append(_problem("topics_misconfigured", "warning", [topic_error], remedy, "restart"))
    problems.sort(key=lambda each: each.severity != "bad")
    return HealthAnswer(
        state=problems[0].severity if problems else "ok",
        problems=problems,
        sources=list(_sources(states, last, has_topics=has_topics)),
        days_calculated=sum(each.chargebacks.is_current for each in states),
        lookback_days=lookback_days,
    )


@dataclass(frozen=True, slots=True)
class _LastRun:
    """The reasons for which the last run that ended could not fetch the bill, or a part of the inventory that days
    need; None if it could."""

    bill: str | None = None
    inventory: str | None = None

    @classmethod
    def of(cls, pipeline: PipelineState) -> _LastRun:
        """Return the reasons from the errors of the run."""
        errors = [] if pipeline.last_ended is None else pipeline.last_ended["errors"]
        bill = next((each for each in errors if each.startswith(GATHERING_FAILED)), None)
        return cls(
            bill if bill is None else bill.removeprefix(GATHERING_FAILED),
            next((each for each in errors if NOT_LISTED in each), None),
        )


def _problem(
    kind: Kind,
    severity: Severity,
    causes: Iterable[str],
    remedy: str,
    ended_by: Ending,
    days: Sequence[DayState] = (),
) -> HealthProblem:
    return HealthProblem(
        kind=kind,
        severity=severity,
        causes=list(causes),
        remedy=remedy,
        ended_by=ended_by,
        start_date=days[0].tracking_date if days else None,
        end_date=days[-1].tracking_date if days else None,
        days=len(days),
    )


def _suspended(pipeline: PipelineState) -> Iterator[HealthProblem]:
    if pipeline.suspended_because is not None:
        remedy = "Remove the cause, then restart the service: it runs the tenant again."
        yield _problem("suspended", "bad", [pipeline.suspended_because], remedy, "restart")


def _waiting(states: Sequence[DayState], last: _LastRun) -> Iterator[HealthProblem]:
    """Yield the problems of days that are billed but not calculated, and of those whose bill could not be fetched;
    neighbouring days with the same cause are one problem."""
    wait = [each for each in states if (each.billing_gathered or each.error) and not each.chargebacks.is_current]
    for (why, remedy, ended_by), days in _neighbours(wait, lambda each: _why_it_waits(each, last)):
        yield _problem("days_waiting", "bad", [why], remedy, ended_by, days)


def _why_it_waits(state: DayState, last: _LastRun) -> tuple[str, str, Ending]:
    """Return why a day is pending, a remedy, and what resolves it."""
    inventory = None if state.resources_gathered else last.inventory or _NO_INVENTORY
    why = state.error or inventory or _NEXT_RUN
    if says_refusal(why):
        return why, _CORRECT_ACCESS, "source"
    if not state.billing_gathered:
        return why, f"The day has no bill. {_TRY_AGAIN}", "source"
    return why, _TRY_AGAIN if state.error else "The next run resolves it; you can start one now.", "run"


def _run(pipeline: PipelineState) -> Iterator[HealthProblem]:
    last = pipeline.last_ended
    if last is None or (not last["errors"] and last["outcome"] not in _BROKEN):
        return
    severity: Severity = "bad" if last["outcome"] in _BROKEN else "warning"
    causes = last["errors"] or [f"The run ended as {last['outcome']}."]
    is_refused = any(map(says_refusal, causes))
    remedy = _CORRECT_ACCESS if is_refused else "The next run without errors resolves it; you can start one now."
    found = _problem("run_failed", severity, causes, remedy, "source" if is_refused else "run")
    yield found.model_copy(update={"start_date": last["errors_from"], "end_date": last["errors_to"]})


def _incomplete(states: Sequence[DayState]) -> Iterator[HealthProblem]:
    lacking = [each for each in states if each.shortcomings and each.chargebacks.is_current]
    for why, days in _neighbours(lacking, lambda each: "; ".join(each.shortcomings)):
        remedy = "These days are calculated again automatically once the missing evidence is available."
        if says_refusal(why):
            remedy = f"{_CORRECT_ACCESS} {remedy}"
        yield _problem("days_incomplete", "warning", [why], remedy, "source", days)


def _neighbours(states: Sequence[DayState], why: Callable[[DayState], T]) -> Iterator[tuple[T, list[DayState]]]:
    """Yield consecutive days that share a cause, the latest first."""
    found: list[tuple[T, list[DayState]]] = []
    for cause, group in groupby(states, why):
        for each in group:
            if found and found[-1][0] == cause and found[-1][1][-1].tracking_date + ONE_DAY == each.tracking_date:
                found[-1][1].append(each)
            else:
                found.append((cause, [each]))
    yield from reversed(found)


def _sources(states: Sequence[DayState], last: _LastRun, *, has_topics: bool) -> Iterator[SourceHealth]:
    fetched = [each.gathered_at for each in states if each.gathered_at is not None]
    bill = _source("bill", states, lambda each: each.billing_gathered, lambda each: each.error, last.bill)
    yield bill.model_copy(update={"last_at": max(fetched, default=None)})
    # The states of days have no reasons for a missing inventory: a run fetches it once for all of them.
    yield _source("inventory", states, lambda each: each.resources_gathered, lambda _: None, last.inventory)
    yield _source(
        "metrics",
        states,
        lambda each: each.chargebacks.is_measured and METRICS not in each.incomplete,
        lambda each: each.incomplete.get(METRICS) or _why_not_measured(each),
    )
    if has_topics:
        yield _source(
            "topic_metrics",
            states,
            lambda each: each.topics.is_measured and TOPIC_METRICS not in each.incomplete,
            lambda each: each.incomplete.get(TOPIC_METRICS),
        )


def _why_not_measured(state: DayState) -> str | None:
    """Return why a pending day could not be measured, or None if it is pending for another reason."""
    error = state.error or ""
    return error.removeprefix(NOT_MEASURED) if error.startswith(NOT_MEASURED) else None


def _source(
    source: Source,
    states: Sequence[DayState],
    has: Callable[[DayState], bool],
    why: Callable[[DayState], str | None],
    failure: str | None = None,
) -> SourceHealth:
    """Return the health of a source; ``failure`` is why the last run could not fetch from it at all."""
    missing = [why(each) for each in states if not has(each)]
    error = failure or next((each for each in reversed(missing) if each is not None), None)
    is_refused = error is not None and says_refusal(error)
    return SourceHealth(
        source=source,
        days=sum(map(has, states)),
        last_at=None,
        error=error,
        is_refused=is_refused,
        remedy=None if error is None else _CORRECT_ACCESS if is_refused else _TRY_AGAIN,
    )
