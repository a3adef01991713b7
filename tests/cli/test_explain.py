"""``chargeback explain``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from chargeback.cli.explain import WIDTH
from chargeback.model.inventory import UNALLOCATED
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, TOPICS_TABLE, read_day
from tests.cli.conftest import TODAY, Demo, Run
from tests.support.facts import known_facts

DAY = TODAY - timedelta(days=6)


def a_row(demo: Demo) -> dict[str, Any]:
    """Return a row of the day that charges an identity."""
    rows = read_day(known_facts(demo.file.parent / "acme.facts"), CHARGEBACKS_TABLE, DAY).to_pylist()
    return next(row for row in rows if row["identity_id"] != UNALLOCATED)


@pytest.mark.extensive
def test_a_readable_page(chargeback: Run, calculated: Demo) -> None:
    """The page has a sentence, then each step, in lines of at most 80 characters; the calculation gives the stored
    amount."""
    row = a_row(calculated)
    place = ["--config", str(calculated.file), "--portion", str(row["portion"])]
    said = chargeback("explain", *place, "acme", str(DAY), row["line_id"], row["identity_id"])
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert [each for each in lines if each and not each.startswith(" ")][-6:] == [
        *("Line", "Policy", "Methods", "Evidence", "Arithmetic", "Revisions"),
    ]
    assert max(map(len, lines)) <= WIDTH
    assert "the same as stored" in said.stdout
    assert "rows sum to" in said.stdout


def test_an_identity_that_is_charged_nothing(chargeback: Run, calculated: Demo) -> None:
    """The output has the reason, and the exit code is 0."""
    row = a_row(calculated)
    place = ["--config", str(calculated.file)]
    said = chargeback("explain", *place, "acme", str(DAY), row["line_id"], "sa-nobody")
    assert (said.returncode, "sa-nobody is charged nothing" in said.stdout) == (0, True), said.stderr
    missing = chargeback("explain", *place, "acme", str(DAY), "none", "sa-nobody")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "has no line 'none'" in missing.stderr


def test_nothing_is_gathered(chargeback: Run, demo: Demo) -> None:
    """For a tenant without data, the output says so and nothing is created."""
    said = chargeback("explain", "--config", str(demo.file), "acme", str(DAY), "line", "sa")
    assert (said.returncode, said.stderr) == (1, "error: tenant acme: no data has been gathered yet\n")
    assert not (demo.file.parent / "acme.db").exists()


def test_a_topic(chargeback: Run, calculated: Demo) -> None:
    """The page for a topic has the same form; only the requested number of topics is listed."""
    facts = known_facts(calculated.file.parent / "acme.facts")
    days = facts.snapshot(TOPICS_TABLE).days
    rows = [row for day in days for row in read_day(facts, TOPICS_TABLE, day).to_pylist()]
    row = min((row for row in rows if row["topic_usage"]), key=lambda row: row["topic_usage"])
    place = ["--config", str(calculated.file), "--topic", row["topic_name"], "--contenders", "1"]
    said = chargeback("explain", *place, "acme", str(row["date"]), row["line_id"])
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(f"Topic {row['topic_name']} ")
    assert f"* {row['topic_name']}: " in said.stdout
    assert "the same as stored" in said.stdout
    assert sum(" of the total" in line for line in said.stdout.splitlines()) == 2


def test_either_an_identity_or_a_topic(chargeback: Run, calculated: Demo) -> None:
    """Naming both an identity and a topic, or neither, is a usage error."""
    place = ["--config", str(calculated.file), "acme", str(DAY), "line"]
    for words in ([], ["sa-1", "--topic", "orders"]):
        said = chargeback("explain", *place, *words)
        assert said.returncode == 2
        assert "name either an identity or a topic" in " ".join(said.stderr.split())
