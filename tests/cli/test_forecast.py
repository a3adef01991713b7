"""``chargeback forecast``."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from chargeback.cli import forecast
from chargeback.model.days import ONE_DAY
from chargeback.reports.backtest import ForecastTest, PastForecast
from tests.cli.conftest import TODAY, Demo, Run

EVENING = date(2026, 10, 14)


def test_days_of_which_nothing_is_known(chargeback: Run, calculated: Demo) -> None:
    """If nothing can be compared, the output says so."""
    asked = ["--config", str(calculated.file), "--from", f"{TODAY - 9 * ONE_DAY}"]
    said = chargeback("forecast", "backtest", "--tenant", "acme", *asked, "--through", f"{TODAY - 5 * ONE_DAY}")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == "Of 5 days there is nothing to compare: too few days known, or no whole month.\n"
    wrong = chargeback("forecast", "backtest", "--tenant", "acme", *asked, "--through", "2020-01-01")
    assert (wrong.returncode, "--from is after --through" in wrong.stderr) == (2, True)


def test_how_near_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """The output has a line for each evening, and compares the average error with that of last week's mean."""
    amounts = (Decimal(900), Decimal(1000), Decimal(1200))
    near = PastForecast(EVENING, EVENING - 4 * ONE_DAY, Decimal(950), *amounts[::2], Decimal(800), amounts[1])
    far = PastForecast(EVENING + ONE_DAY, EVENING, Decimal(1250), amounts[2], Decimal(1300), Decimal(1100), amounts[1])
    forecast._show(ForecastTest([near, far], []))
    assert capsys.readouterr().out.splitlines() == [
        "2026-10-14  known to 2026-10-10          950.00 of       1,000.00  -5.0%",
        "2026-10-15  known to 2026-10-14        1,250.00 of       1,000.00  +25.0%, outside the interval",
        "15.0% off on average (the mean of the last week: 15.0%); 50% of 2 inside the interval.",
    ]
