"""The examples that ``docs/costs.md`` calculates by hand, through the whole pipeline with a real Prometheus."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from chargeback.model.money import render, total
from chargeback.pipeline.run_messages import RunOutcome
from tests.support.clock import NOW, TODAY
from tests.support.openmetrics import Scrapes, Value, steady
from tests.support.pipeline import Ran, run_pipeline
from tests.support.prometheus import RealPrometheus

PAGE = (Path(__file__).parents[3] / "docs" / "costs.md").read_text(encoding="utf-8")
FIRST, DAY = TODAY - timedelta(days=4), TODAY - timedelta(days=2)
GIB = 2**30


class Example:
    """A section ``### One day, by hand`` of the page: its settings and its tables (rows of cells without markup)."""

    def __init__(self, heading: str) -> None:
        text = PAGE.partition(f"\n## {heading}\n")[2].partition("### One day, by hand")[2].partition("\n##")[0]
        self.settings = text.partition("```yaml\n")[2].partition("```")[0]
        blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
        self.inputs, self.lines, self.rows = ([_cells(row) for row in block.splitlines()[2:]] for block in blocks)

    @property
    def bill(self) -> dict[str, str]:
        """Cost by product type."""
        return {line[0]: line[-1] for line in self.lines}

    @property
    def exact_costs(self) -> dict[str, str]:
        """The exact costs by product type that are longer than the cost."""
        exact = {line[0]: line[2].rpartition("= ")[2] for line in self.lines}
        return {name: value for name, value in exact.items() if len(value.partition(".")[2]) > 12}

    @property
    def shares(self) -> dict[tuple[str, str], str]:
        """Amount by product type and identity."""
        return {(row[0], row[1]): row[-1] for row in self.rows}


def _cells(row: str) -> list[str]:
    return [cell.strip().strip("`") for cell in row.strip("|").split("|")]


def until_now(value: Value) -> Value:
    """Return the same values without those in the future."""
    last = (NOW - Scrapes(FIRST, TODAY).start) // timedelta(minutes=1)
    return lambda minute: value(minute) if minute <= last else None


def configuration(folder: Path, ecosystem: str, url: str, settings: str) -> Path:
    """Write a configuration file with one tenant, ``it``; return its path."""
    plugin = {"metrics": {"url": url}, **yaml.safe_load(settings)}
    tenant = {
        "ecosystem": ecosystem,
        "tenant_id": "it",
        "lookback_days": 4,
        "cutoff_days": 1,
        "storage": {"connection_string": "sqlite:///it.db"},
        "plugin_settings": plugin,
    }
    file = folder / "chargeback.yaml"
    file.write_text(yaml.safe_dump({"tenants": {"it": tenant}}), encoding="utf-8")
    return file


def assert_as_documented(ran: Ran, example: Example) -> None:
    """Check that the stored day is exactly the documented one, and that every day adds up."""
    assert ran.result.outcome is RunOutcome.COMPLETED, ran.result.errors
    bill = ran.bill(DAY)
    assert {line["product_type"]: f"{line['total_cost']:.12f}" for line in bill} == example.bill
    kept = {
        line["product_type"]: dict(part.split("=") for part in (line["original_text"] or "").split(";") if part)
        for line in bill
    }
    assert {name: found["total_cost"] for name, found in kept.items() if "total_cost" in found} == example.exact_costs
    rows = ran.chargebacks(DAY)
    assert {(row["product_type"], row["identity_id"]): f"{row['amount']:.12f}" for row in rows} == example.shares
    checks = ran.checks()
    assert [check.day for check in checks] == [TODAY - timedelta(days=back) for back in (4, 3, 2)]
    assert all(check.state == "calculated" and check.difference == 0 for check in checks)


@pytest.mark.usefixtures("process")
def test_the_day_of_a_cluster(tmp_path: Path) -> None:
    """A self-managed cluster: compute, storage with replicas, traffic in and out, and the identities that pay."""
    example = Example("Self-managed Kafka")
    seen = Scrapes(FIRST, TODAY)
    for counter, topic, principal, rate in example.inputs:
        labels = {"instance": "b1", "topic": topic, "principal": principal}
        given = {name: value for name, value in labels.items() if value != "–"}
        seen.counter(counter, given, until_now(steady(int(rate))))
    for broker in ("b1", "b2"):
        labels = {"instance": broker, "topic": "orders", "partition": "0"}
        seen.gauge("kafka_log_log_size", labels, until_now(lambda m: (100 if m % 1440 < 720 else 160) * GIB))
    with RealPrometheus(seen.text()) as server:
        file = configuration(tmp_path, "self_managed_kafka", server.url, example.settings)
        with run_pipeline(file, "it") as ran:
            assert_as_documented(ran, example)
            spent = total(line["total_cost"] for line in ran.bill(DAY))
    assert f"The day costs {render(spent)}." in PAGE


@pytest.mark.usefixtures("process")
def test_the_day_of_a_database(tmp_path: Path) -> None:
    """A database known by its metrics: fixed, storage and network costs."""
    example = Example("Generic metrics")
    seen = Scrapes(FIRST, TODAY)
    for metric, database, value in example.inputs:
        number = int(value.split()[0])
        if value.endswith("a minute"):
            seen.counter(metric, {"datname": database}, until_now(steady(number)))
        else:
            seen.gauge(metric, {"datname": database}, until_now(lambda _, size=number: size))  # type: ignore[misc]
    with RealPrometheus(seen.text()) as server:
        file = configuration(tmp_path, "generic_metrics_only", server.url, example.settings)
        with run_pipeline(file, "it") as ran:
            assert_as_documented(ran, example)


SETTINGS = """
cluster_id: c
identity_source: {label: who, discovery_query: size_bytes}
cost_types:
  - name: DISK
    product_category: x
    rate: "0.000123456789"
    cost_quantity: {type: storage_gib, query: size_bytes}
  - name: NET
    product_category: x
    rate: "0.01"
    cost_quantity: {type: network_gib, query: "increase(sent_total[{step}])"}
"""


@pytest.mark.usefixtures("process")
def test_runs_repeat_and_hours_add_up(tmp_path: Path) -> None:
    """A day that was not scraped has an error instead of a bill, a second run calculates nothing, and hourly lines are
    24 times as many with the same sums."""
    silent = (DAY - FIRST - timedelta(days=1)) // timedelta(minutes=1)

    def scraped(value: Value) -> Value:
        return until_now(lambda minute: None if silent <= minute < silent + 1440 else value(minute))

    seen = Scrapes(FIRST, TODAY)
    seen.counter("sent_total", {"who": "a"}, scraped(steady(7_777_777)))
    seen.gauge("size_bytes", {"who": "a"}, scraped(lambda minute: 33 * GIB + minute))
    in_days, in_hours = tmp_path / "days", tmp_path / "hours"
    in_days.mkdir()
    in_hours.mkdir()
    with RealPrometheus(seen.text()) as server:
        daily = configuration(in_days, "generic_metrics_only", server.url, SETTINGS)
        hourly = configuration(
            in_hours, "generic_metrics_only", server.url, f"{SETTINGS}chargeback_granularity: hourly\n"
        )
        with run_pipeline(daily, "it") as first:
            assert first.result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
            (error,) = first.result.errors
            assert error.startswith(f"{DAY - timedelta(days=1)}: no sample of DISK on this day")
            before, lines = first.checks(), len(first.bill(DAY))
        with run_pipeline(daily, "it") as second:
            assert second.result.dates_calculated == 0
        with run_pipeline(hourly, "it") as third:
            assert third.checks() == before
            assert len(third.bill(DAY)) == 24 * lines
    assert [check.day for check in before] == [FIRST, DAY]
    assert all(check.difference == 0 and check.billing > 0 for check in before)


@pytest.mark.parametrize("heading", ["Self-managed Kafka", "Generic metrics"])
def test_the_page_has_what_is_tested(heading: str) -> None:
    """The examples are complete, as read from the page."""
    example = Example(heading)
    assert "cluster_id" in example.settings
    assert len(example.inputs) >= 4
    assert len(example.bill) >= 3
    assert example.exact_costs
    assert {product_type for product_type, _ in example.shares} == example.bill.keys()
