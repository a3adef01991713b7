"""The organisation as a whole: deterministic, independent by day, and of the documented size."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal

import pytest

from chargeback.demo.metrics import METRICS
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.responses import dumps
from chargeback.demo.sizes import Size

TODAY = date(2026, 11, 20)
_PRINT = """
from datetime import date
from tests.demo.test_organisation import digest
print(digest("small"), digest("usual"))
"""


def digest(size: Size) -> str:
    """Return a hash of inventory, costs and usage of some days."""
    organisation = Organisation.generate(DemoSpec(today=TODAY, size=size, days=20))
    found = hashlib.sha256(repr(organisation.inventory).encode())
    for offset in (0, 3, 17):
        day = organisation.spec.first_day + timedelta(days=offset)
        found.update(dumps(organisation.cost_rows(day)).encode())
        for metric in METRICS:
            found.update(repr(organisation.usage(metric, day)).encode())
    return found.hexdigest()


@pytest.mark.usefixtures("process")
def test_every_process_generates_the_same() -> None:
    """Two other processes, with other hash seeds, generate the same bytes as this one."""
    expected = f"{digest('small')} {digest('usual')}"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", _PRINT]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        assert done.stdout.strip() == expected


def test_other_seeds_are_other_organisations() -> None:
    """Another seed gives other ids and costs."""
    one, two = (Organisation.generate(DemoSpec(today=TODAY, seed=seed, size="small")) for seed in (1, 2))
    assert one.inventory.organization_id != two.inventory.organization_id
    assert one.cost_rows(TODAY - timedelta(days=9)) != two.cost_rows(TODAY - timedelta(days=9))


def test_a_later_today_shows_more_of_the_same(organisation: Organisation, spec: DemoSpec) -> None:
    """The organisation a day later has the same past, and one more day of costs and of metrics."""
    later = Organisation.generate(spec.later())
    for offset in range(spec.days):
        day = spec.first_day + timedelta(days=offset)
        assert later.cost_rows(day) == organisation.cost_rows(day)
    newest = spec.last_cost_day + timedelta(days=1)
    assert organisation.cost_rows(newest) == []
    assert later.cost_rows(newest)
    assert organisation.usage("confluent_kafka_server_sent_bytes", spec.today) == []
    assert later.usage("confluent_kafka_server_sent_bytes", spec.today)


def test_there_is_nothing_before_the_first_day(organisation: Organisation, spec: DemoSpec) -> None:
    """Before the organisation existed, costs and series are empty; this is not an error."""
    before = spec.first_day - timedelta(days=1)
    assert organisation.cost_rows(before) == []
    assert all(organisation.series(metric, before) == [] for metric in METRICS)
    assert organisation.cost_rows(spec.first_day)


def test_one_day_has_costs_but_no_metrics(organisation: Organisation, spec: DemoSpec) -> None:
    """On one billed day, within the calculated window, nothing was scraped."""
    assert organisation.cost_rows(spec.day_without_metrics)
    assert all(organisation.series(metric, spec.day_without_metrics) == [] for metric in METRICS)
    assert spec.today - timedelta(days=spec.days) <= spec.day_without_metrics < spec.today - timedelta(days=5)


@pytest.mark.parametrize(
    ("size", "least", "most"), [("small", 200, 450), ("usual", 1500, 2600), ("large", 40_000, 65_000)]
)
def test_sizes_are_those_promised(size: Size, least: int, most: int) -> None:
    """Cost lines × the identities active on their resource result in about 300, 2,000 and 50,000 rows a day."""
    organisation = Organisation.generate(DemoSpec(today=TODAY, size=size))
    assert least <= _rows_after_allocation(organisation, TODAY - timedelta(days=10)) <= most


def test_the_total_is_the_sum_of_the_rows(organisation: Organisation, spec: DemoSpec) -> None:
    """The total of a window is the sum of its rows, without the end date."""
    rows = [*organisation.cost_rows(spec.first_day), *organisation.cost_rows(spec.first_day + timedelta(days=1))]
    expected = sum((row["amount"] for row in rows), Decimal(0))
    assert organisation.cost_total(spec.first_day, spec.first_day + timedelta(days=2)) == expected


def test_days_must_be_positive() -> None:
    """An organisation without days is an error."""
    with pytest.raises(ValueError, match="days"):
        Organisation.generate(DemoSpec(today=TODAY, days=0))


def _rows_after_allocation(organisation: Organisation, day: date) -> int:
    """Estimate the rows: even shares for everyone active on a resource, shares by usage for those with traffic."""
    inventory = organisation.inventory
    working = {
        cluster.id: {member.principal for member, _, _ in organisation.traffic.members(cluster, day)}
        for cluster in inventory.clusters
    }
    active = {name: set(found) for name, found in working.items()} | {item.id: set() for item in inventory.registries}
    for key in inventory.api_keys:
        if key.resource in active and key.existed_on(day):
            active[key.resource].add(key.owner)
    everybody = set().union(*active.values())
    connectors = {item.id: item for item in inventory.connectors}
    count = 0
    for row in organisation.cost_rows(day):
        place = row.get("resource", {}).get("id", "")
        if place in connectors:
            known = connectors[place].auth == "service_account"
            count += 1 if known else len(active[connectors[place].cluster])
        elif place in active:
            count += len(working[place] if "NETWORK" in row["line_type"] else active[place])
            count += len(working[place]) if row["line_type"] == "KAFKA_NUM_CKUS" else 0
        else:
            count += len(everybody) if place in ("", "lkc-audit0") else 2
    return count
