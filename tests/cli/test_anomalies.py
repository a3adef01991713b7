"""``chargeback anomalies``."""

from __future__ import annotations

from datetime import date
from unittest.mock import Mock

import pytest

from chargeback.cli import anomalies
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.anomalies import AnomalyItem
from chargeback.reports.backtest import Alarm, BackTest
from tests.cli.conftest import TODAY, Demo, Run

DAY = date(2026, 11, 14)


def test_days_of_which_nothing_is_known(chargeback: Run, calculated: Demo) -> None:
    """If nothing was known on these days, the output says so."""
    place = [
        "--config",
        str(calculated.file),
        "--from",
        f"{TODAY - 9 * ONE_DAY}",
        "--through",
        f"{TODAY - 5 * ONE_DAY}",
    ]
    said = chargeback("anomalies", "backtest", "--tenant", "acme", *place)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("Of none of these days is it known what was known")
    wrong = chargeback(
        "anomalies", "backtest", "--tenant", "acme", *place[:2], "--from", f"{TODAY}", "--through", "2020-01-01"
    )
    assert (wrong.returncode, "--from is after --through" in wrong.stderr) == (2, True)


def test_what_would_have_been_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Each alarm is a line, and the alarms are counted."""
    story = Mock(spec=AnomalyItem, first_date=DAY, impact=1234.5, sentence="a was charged more")
    alarms = [Alarm(DAY + ONE_DAY, story, "stands"), Alarm(DAY + 3 * ONE_DAY, story, "withdrawn")]
    anomalies._show(BackTest(DayRange(DAY, DAY + 5 * ONE_DAY), alarms, [DAY]))
    assert capsys.readouterr().out.splitlines() == [
        "2026-11-15      1,234.50  a was charged more",
        "2026-11-17      1,234.50  a was charged more (withdrawn: by what is known now it does not stand out)",
        "2 stories on 4 days, 1 of them withdrawn since;",
        "reported 2 days after the first day, by the median.",
        "Of 1 days it is not known what was known.",
    ]
