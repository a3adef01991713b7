"""How the findings of an ecosystem are collected."""

from __future__ import annotations

from functools import partial

from chargeback.ecosystems.contract import Finding
from chargeback.ecosystems.findings import CheckWarning, attempt, attempt_all
from chargeback.errors import SourceUnavailable


def test_a_finding_says_what_was_seen() -> None:
    """A success has its result, a failure its reason; a warning counts as a success."""

    def fails() -> str:
        raise SourceUnavailable("connection refused", source="metrics")

    assert attempt("x", lambda: "3 series") == Finding("x", ok=True, detail="3 series")
    assert attempt("x", fails) == Finding("x", ok=False, detail="connection refused (source metrics)")
    assert attempt("x", lambda: CheckWarning("none yet")) == Finding("x", ok=True, detail="none yet", warning=True)


def test_what_would_fail_likewise_is_not_tried() -> None:
    """When a server is given up, the remaining checks are named in one warning."""
    asked: list[str] = []

    def question(name: str) -> str:
        asked.append(name)
        return name

    questions = {name: partial(question, name) for name in ("a", "b", "c", "d")}
    found = list(attempt_all(questions, lambda: asked[-1] == "b"))
    assert asked == ["a", "b"]
    assert [each.subject for each in found] == ["a", "b", "not tried"]
    assert found[-1] == Finding("not tried", ok=True, detail="for the same reason: c, d", warning=True)
