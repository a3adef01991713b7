"""``chargeback verify``."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path

from chargeback.model.chargeback import CHARGEBACKS
from chargeback.model.topics import TOPIC_ATTRIBUTIONS
from chargeback.store.facts.tables import CHARGEBACKS_TABLE, TOPICS_TABLE
from tests.cli.conftest import DAYS, TODAY, Demo, Run
from tests.support.damage import file_of
from tests.support.facts import known_facts, replace_day


def test_days_that_sum_to_their_bill(chargeback: Run, calculated: Demo) -> None:
    """Every calculated day is listed with a difference of zero, and the exit code is 0."""
    said = chargeback("verify", "--config", str(calculated.file))
    assert said.returncode == 0, said.stderr
    days = [line.split() for line in said.stdout.splitlines() if " calculated " in line and line.startswith(" ")]
    assert len(days) == DAYS - 5
    assert all(billing == charged and difference == "0.00" for _, _, billing, charged, difference in days)
    assert "3 days, every calculated day sums exactly to its bill" in said.stdout


def test_a_day_that_differs(chargeback: Run, calculated: Demo) -> None:
    """If rows of a calculated day are missing, it is an error, and the exit code is 1."""
    day = TODAY - timedelta(days=6)
    tables = known_facts(calculated.file.parent / "acme.facts")
    replace_day(tables, CHARGEBACKS_TABLE, day, CHARGEBACKS.empty_table())
    said = chargeback("verify", "--config", str(calculated.file))
    assert said.returncode == 1
    assert "error: tenant acme: 1 of 3 days differ from their bill" in said.stderr


def test_a_day_with_a_lost_file(chargeback: Run, calculated: Demo) -> None:
    """A missing file is named, the other days are compared, and the exit code is 1."""
    day = TODAY - timedelta(days=6)
    Path(file_of(known_facts(calculated.file.parent / "acme.facts"), CHARGEBACKS_TABLE, day).path).unlink()
    said = chargeback("verify", "--config", str(calculated.file))
    assert said.returncode == 1
    assert f"error: tenant acme: {day}: the file chargebacks/date={day}/" in said.stderr
    assert sum(" calculated " in line and line.startswith(" ") for line in said.stdout.splitlines()) == DAYS - 6


def test_every_file(chargeback: Run, calculated: Demo) -> None:
    """``--files`` checks that each file is referenced and unchanged; missing files and old files without a reference
    are errors."""
    said = chargeback("verify", "--files", "--config", str(calculated.file))
    assert said.returncode == 0, said.stderr
    assert "tenant acme: every file is named, and what was written" in said.stdout
    facts = known_facts(calculated.file.parent / "acme.facts")
    file = Path(file_of(facts, CHARGEBACKS_TABLE, TODAY - timedelta(days=6)).path)
    young, old = file.with_name("young.parquet"), file.with_name("old.parquet")
    for other in (young, old):
        shutil.copy(file, other)
    os.utime(old, (0, 0))
    file.unlink()
    said = chargeback("verify", "--files", "--config", str(calculated.file))
    assert said.returncode == 1
    assert f"nothing names the file chargebacks/{file.parent.name}/old.parquet" in said.stderr
    assert f"{file.name} is missing" in said.stderr
    assert "young" not in said.stderr


def test_topics_beside_their_clusters(chargeback: Run, calculated: Demo) -> None:
    """Every attributed day is listed; if topic rows are missing, it is an error with exit code 1."""
    said = chargeback("verify", "--config", str(calculated.file))
    assert sum(" attributed  " in line and line.startswith(" 20") for line in said.stdout.splitlines()) == DAYS - 5
    assert "the topics of every attributed day sum to their lines exactly" in said.stdout
    day = TODAY - timedelta(days=6)
    tables = known_facts(calculated.file.parent / "acme.facts")
    replace_day(tables, TOPICS_TABLE, day, TOPIC_ATTRIBUTIONS.empty_table())
    said = chargeback("verify", "--config", str(calculated.file))
    assert said.returncode == 1
    assert f"error: tenant acme: {day}: 0 lines differ from their topics" in said.stderr


def test_nothing_to_verify(chargeback: Run, demo: Demo) -> None:
    """For a tenant without data, the output says so in one line and nothing is created."""
    said = chargeback("verify", "--config", str(demo.file))
    assert (said.returncode, said.stdout) == (
        0,
        "tenant acme: no data has been gathered yet, so there is nothing to compare\n",
    )
    assert not (demo.file.parent / "acme.db").exists()
