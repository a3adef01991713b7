"""The alerting rules are valid, fire when they should, and refer to existing metrics."""

from __future__ import annotations

import re
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from chargeback.api.app import create_app
from chargeback.model.budgets import Budget, Threshold
from chargeback.store.control.budgets import write_budget
from tests.support.alertmanager import alerts_at, running_alertmanager
from tests.support.prometheus import RealPrometheus, installed
from tests.support.serving import served, services_for, wait_until
from tests.support.sources import DAY, Laboratory

pytestmark = pytest.mark.usefixtures("process")

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "alerts.yaml"
TESTS = sorted(Path(__file__).parent.glob("alerts_*test.yaml"))


def promtool(*words: str) -> str:
    """Run promtool, which must succeed, and return its output."""
    done = subprocess.run([installed("promtool"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_valid() -> None:
    """Prometheus accepts every rule."""
    assert "SUCCESS" in promtool("check", "rules", str(RULES))


def test_the_rules_fire_when_they_should() -> None:
    """The series of each problem fire its alert and no other."""
    assert len(TESTS) == 2
    assert promtool("test", "rules", *map(str, TESTS)).count("SUCCESS") == 2


def test_every_rule_is_tested_and_says_what_to_do() -> None:
    """Each rule has a test, a severity, one sentence about what is wrong, and one about what to do."""
    tested = "".join(file.read_text(encoding="utf-8") for file in TESTS)
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        assert rule["alert"] in tested
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "action"}


def test_the_rules_know_the_metrics() -> None:
    """Every metric in a rule exists in the code."""
    code = "".join(
        (ROOT / "src" / "chargeback" / file).read_text(encoding="utf-8")
        for file in ("api/metrics.py", "pipeline/supervisor.py", "pipeline/notify.py")
    )
    for name in set(re.findall(r"\bchargeback_\w+", RULES.read_text(encoding="utf-8"))):
        stem = re.sub(r"_(total|count|bucket|sum)$", "", name)
        assert f'"{stem}"' in code or f'"{stem.removeprefix("chargeback_")}": "' in code, name


def test_a_budget_that_is_spent_reaches_an_alertmanager_by_prometheus(tmp_path: Path) -> None:
    """An exceeded budget in the service's metrics fires an alert in a real Prometheus, which sends it to a real
    Alertmanager."""
    spent = Budget("all", "All", {}, None, {}, Decimal(50), (Threshold("actual", Decimal(80)),))
    with Laboratory(tmp_path) as laboratory, running_alertmanager() as alertmanager:
        laboratory.share([DAY])
        with laboratory.store.control.write() as connection:
            write_budget(connection, "all", spent, expected=None, who="test")
        laboratory.run()
        with (
            served(create_app(services_for(laboratory.store))) as address,
            RealPrometheus(scrape=f"{address}/metrics", rules=RULES, alertmanager=alertmanager),
        ):
            named = {"alertname": "ChargebackBudgetExceeded", "tenant": "acme", "budget": "all"}
            wait_until(lambda: any(named.items() <= each["labels"].items() for each in alerts_at(alertmanager)))
            (told,) = [each for each in alerts_at(alertmanager) if named.items() <= each["labels"].items()]
            assert "all" in told["annotations"]["summary"]
