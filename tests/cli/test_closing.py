"""``chargeback periods``, ``close``, ``reopen``, ``seal``, ``adjust`` and ``verify --closings``."""

from __future__ import annotations

import pytest

from chargeback.cli.options import BLOCKED, FAILED, STALE
from chargeback.model.accounting import AccountingPeriod
from tests.cli.conftest import TODAY, Demo, Run

LAST = AccountingPeriod.of(TODAY).previous
ACCEPTED = [word for kind in ("day-missing", "day-pending", "settling") for word in ("--accept", kind)]
ACCEPTED += ["--reason", "A demo"]


def words(demo: Demo, command: str, *more: str) -> list[str]:
    """Return the arguments of a command for the tenant."""
    return [command, "--config", str(demo.file), "--tenant", "acme", *more]


@pytest.mark.extensive
def test_a_month_from_preview_to_seal(chargeback: Run, calculated: Demo) -> None:
    """Each step prints what it did; a blocked month and a stale digest have exit codes of their own, and nothing is
    closed."""

    def run(command: str, *more: str) -> tuple[int, str]:
        said = chargeback(*words(calculated, command, *more))
        return said.returncode, said.stdout + said.stderr

    code, said = run("periods")
    assert (code, LAST.id in said, "accruing" in said) == (0, LAST.id in said, True)
    code, said = run("close", "--period", LAST.id, "--preview")
    assert (code, "digest " in said, "in the way: day-missing" in said) == (0, True, True)
    code, said = run("close", "--period", LAST.id)
    assert (code, "day-missing" in said) == (BLOCKED, True)
    code, said = run("close", "--period", LAST.id, *ACCEPTED, "--digest", "0" * 64)
    assert (code, "look at the preview again" in said) == (STALE, True)
    adjustment = ["--period", LAST.id, "--by", "identity_id", "--value", "sa-1", "--amount", "5.00", "--reason", "Care"]
    assert run("adjust", *adjustment)[0] == FAILED
    assert run("adjust", *adjustment, "--kind", "fee")[0] == 0
    code, said = run("close", "--period", LAST.id, *ACCEPTED)
    assert (code, f"{LAST.id} is closed: entry 1" in said) == (0, True)
    code, said = run("adjust", *adjustment, "--kind", "fee")
    assert (code, f"{LAST.id} is closed" in said) == (FAILED, True)
    code, said = run("run", "--recalculate", "--from", f"{LAST.start}", "--through", f"{LAST.start}")
    assert (code, "--restate and --reason" in said) == (BLOCKED, True)
    code, said = run("verify", "--closings")
    assert (code, "1 closed months are what their receipts say" in said) == (0, True)
    focus = calculated.file.parent / "focus-of-closed"
    code, said = run("export", "--format", "focus", "--version", "1.4", "--to", str(focus))
    assert (code, "our own statements, by identity_id" in said) == (0, True)
    months, details = ((focus / name).read_text() for name in ("billing-periods.csv", "invoice-details.csv"))
    assert [line.split(",")[4] for line in months.splitlines()[1:]] == ["Closed", "Open"]
    assert f"CB-acme-{LAST.id}-" in details and ",Issued," in details
    assert run("reopen", "--period", LAST.id, "--reason", "Again")[0] == 0
    assert run("close", "--period", LAST.id, *ACCEPTED)[0] == 0
    assert run("seal", "--period", LAST.id, "--reason", "Audited")[0] == 0
    code, said = run("reopen", "--period", LAST.id, "--reason", "Again")
    assert (code, "is sealed" in said) == (FAILED, True)


def test_mistakes(chargeback: Run, demo: Demo) -> None:
    """The exit code is 2, and the message names the option."""
    for more, told in (
        (["close"], "--period / --through"),
        (["close", "--period", "2026-13"], "should be a month such as 2026-10"),
        (["adjust", "--period", "2026-01", "--value", "a", "--amount", "x", "--reason", "r"], "--amount"),
        (
            ["adjust", "--period", "2026-01", "--value", "a", "--amount", "1", "--reason", "r", "--kind", "gift"],
            "--kind",
        ),
    ):
        said = chargeback(*words(demo, *more))
        assert (said.returncode, told in said.stderr) == (2, True), said.stderr
