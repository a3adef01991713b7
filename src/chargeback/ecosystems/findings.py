"""Helpers for the findings of ``check --online``."""

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
    """Return one finding: the result of a request, or why it failed."""
    try:
        seen = check()
    except SourceError as error:
        return Finding(subject, ok=False, detail=str(error))
    if isinstance(seen, CheckWarning):
        return Finding(subject, ok=True, detail=seen.detail, warning=True)
    return Finding(subject, ok=True, detail=seen)


def attempt_all(checks: Mapping[str, Check], has_given_up: Callable[[], bool]) -> Iterator[Finding]:
    """Yield the findings of several requests to one server, by subject. Once ``has_given_up`` says that every other
    request would fail too, the remaining ones are one finding."""
    subjects = list(checks)
    for position, subject in enumerate(subjects, start=1):
        yield attempt(subject, checks[subject])
        if has_given_up() and (left := subjects[position:]):
            yield Finding("not tried", ok=True, detail=f"for the same reason: {', '.join(left)}", warning=True)
            return
