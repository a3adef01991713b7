"""How an ecosystem comes to what ``check --online`` reports: it asks one small question of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chargeback.ecosystems.contract import Finding
from chargeback.errors import SourceError


@dataclass(frozen=True, slots=True)
class Doubt:
    """An answer that works, but deserves a look."""

    detail: str


def attempt(subject: str, question: Callable[[], str | Doubt]) -> Finding:
    """One finding: what the question answered, or why it could not be answered."""
    try:
        seen = question()
    except SourceError as error:
        return Finding(subject, ok=False, detail=str(error))
    if isinstance(seen, Doubt):
        return Finding(subject, ok=True, detail=seen.detail, warning=True)
    return Finding(subject, ok=True, detail=seen)
