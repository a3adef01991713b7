"""How an ecosystem comes to its findings."""

from __future__ import annotations

from chargeback.ecosystems.contract import Finding
from chargeback.ecosystems.findings import Doubt, attempt
from chargeback.errors import SourceUnavailable


def test_a_finding_says_what_was_seen() -> None:
    """What works is ok with its answer; what fails is not, with the reason; a doubt works, with a warning."""

    def fails() -> str:
        raise SourceUnavailable("connection refused", source="metrics")

    assert attempt("x", lambda: "3 series") == Finding("x", ok=True, detail="3 series")
    assert attempt("x", fails) == Finding("x", ok=False, detail="connection refused (source metrics)")
    assert attempt("x", lambda: Doubt("none yet")) == Finding("x", ok=True, detail="none yet", warning=True)
