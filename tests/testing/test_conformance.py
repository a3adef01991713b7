"""The conformance test for plugins: correct ones pass, and all faults of wrong ones are listed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
import yaml

from chargeback.ecosystems import confluent_cloud
from chargeback.ecosystems.contract import Finding, GatheredDay
from chargeback.testing import check_ecosystem
from tests.ecosystems.plugins import Tiny, TinyGatherer, line, measured, row
from tests.support.clock import TODAY
from tests.support.deployments import DAYS, Deployment, deployment, organisation, server

__all__ = ["deployment", "organisation", "server"]


def tiny(**answers: Any) -> Tiny:
    """Return an ecosystem with methods that tests replace."""
    return Tiny(on_open=lambda *_: TinyGatherer(**answers))


def test_a_right_ecosystem_passes() -> None:
    """The report has the bill and the charged identities of the days before the simulated current day."""
    report = check_ecosystem(tiny(), {}, lookback_days=5, today=TODAY)
    assert sorted(report.days) == [TODAY - timedelta(days=back) for back in (5, 4, 3, 2)]
    assert len(report.days) == len(report.checks) == 4
    assert report.billed == Decimal(4)
    assert [finding.subject for finding in report.findings] == ["address"]
    assert all(report.charged(day) == {"web": Decimal(1)} for day in report.days)


def test_an_error_that_the_plugin_tells_is_no_problem() -> None:
    """A day may have an error; the others are calculated."""

    def bill(days: Any) -> Any:
        return (GatheredDay(day, [line(day)]) if day.day % 2 else GatheredDay(day, error="late") for day in days)

    report = check_ecosystem(tiny(on_billing=bill), {}, lookback_days=5, today=TODAY)
    assert {gathered.error for gathered in report.days.values()} == {None, "late"}
    assert {check.state for check in report.checks} == {"calculated"}


_number = count(1)

WRONG: list[tuple[dict[str, Callable[..., Any]], list[str]]] = [
    (
        {
            "on_billing": lambda days: [GatheredDay(day, [line(day, total_cost=1.5)]) for day in days],
            "on_usage": lambda day: measured(row(day), row(day)),
            "on_check": lambda: iter([Finding("address", ok=False, detail="no route")]),
        },
        [
            "check: address does not work: no route",
            "billing: line 1: total_cost should be a Decimal, not float 1.5",
            "2 rows have measure 'requests'",
        ],
    ),
    ({"on_inventory": lambda: None}, ["inventory: the answer should be a ListedInventory, not None"]),
    (
        {"on_billing": lambda days: [GatheredDay(day, [line(day)] * len(days)) for day in days]},
        ["has another bill if it is requested alone"],
    ),
    (
        {"on_usage": lambda day: measured(row(day, value=Decimal(next(_number))))},
        ["a second call returned another result"],
    ),
]


@pytest.mark.parametrize(("answers", "problems"), WRONG)
def test_a_wrong_ecosystem_is_told_everything(answers: dict[str, Any], problems: list[str]) -> None:
    """Each problem is a line of the message."""
    with pytest.raises(AssertionError) as caught:
        check_ecosystem(tiny(**answers), {}, lookback_days=4)
    assert str(caught.value).startswith("the ecosystem tiny breaks its contract:")
    for problem in problems:
        assert problem in str(caught.value)


def test_what_only_a_run_shows() -> None:
    """A bill that changes between runs is recalculated every time, which is a problem."""
    costs = count(1)

    def bill(days: Any) -> Any:
        cost = Decimal(max(next(costs) - 3, 0))  # single requests are consistent, the runs are not
        return [GatheredDay(day, [line(day, total_cost=cost)]) for day in days]

    with pytest.raises(AssertionError, match="a second run calculated 3 days again although nothing has changed"):
        check_ecosystem(tiny(on_billing=bill), {}, lookback_days=4)


def test_a_plugin_without_its_parts_and_wrong_settings() -> None:
    """Missing parts and invalid settings are reported together before any method is called."""
    with pytest.raises(AssertionError, match="the plugin cannot be used: it lacks name, capabilities"):
        check_ecosystem(object(), {})
    with pytest.raises(AssertionError, match="the plugin_settings are not valid"):
        check_ecosystem(tiny(), {"colour": "blue"})


@pytest.mark.usefixtures("process")
def test_it_needs_no_test_framework() -> None:
    """The conformance test needs no test framework."""
    code = "import sys; sys.modules['pytest'] = None; import chargeback.testing; print(chargeback.testing.__all__)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.stdout.strip() == "['Report', 'check_ecosystem']", said.stderr


@pytest.mark.extensive
def test_confluent_cloud_keeps_the_contract(deployment: Deployment) -> None:
    """The shipped ecosystem passes, including topics, with a served organisation."""
    document = yaml.safe_load(deployment.config_file.read_text())
    settings = document["tenants"]["acme"]["plugin_settings"]
    report = check_ecosystem(confluent_cloud.ecosystem, settings, lookback_days=DAYS - 4, currency="USD", today=TODAY)
    assert report.billed > 0
    assert {finding.ok for finding in report.findings} == {True}
