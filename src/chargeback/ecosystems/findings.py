"""How an ecosystem comes to what ``check --online`` reports: it asks one small question of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from chargeback.ecosystems.contract import Finding
from chargeback.errors import SourceError


@dataclass(frozen=True, slots=True)
class CheckWarning:
    """The result of a check that passed, but needs attention."""

    detail: str


Check = Callable[[], str | CheckWarning]


def attempt(subject: str, check: Check) -> Finding:
    """One finding: what the question answered, or why it could not be answered."""
    try:
        seen = check()
    except SourceError as error:
        return Finding(subject, ok=False, detail=str(error))
    if isinstance(seen, CheckWarning):
        return Finding(subject, ok=True, detail=seen.detail, warning=True)
    return Finding(subject, ok=True, detail=seen)


def attempt_all(checks: Mapping[str, Check], has_given_up: Callable[[], bool]) -> Iterator[Finding]:
    """The findings of several questions to one server, by subject. Once ``has_given_up`` tells that it would fail on
    every other question too, the rest is one finding."""
    subjects = list(checks)
    for position, subject in enumerate(subjects, start=1):
        yield attempt(subject, checks[subject])
        if has_given_up() and (left := subjects[position:]):
            yield Finding("not tried", ok=True, detail=f"for the same reason: {', '.join(left)}", warning=True)
            return
