"""The tutorial of docs/cost-categories.md: its files, commands and requests, in order."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import httpx
import pytest
import yaml

from chargeback.api.services import ApiLimits, Services
from chargeback.categories.document import CostCategory
from chargeback.categories.parsing import MAX_RULES, MAX_VALUES, parse_category
from chargeback.categories.reading_matches import MAX_DEPTH
from chargeback.category_sources.csv_file import read_entries
from chargeback.model.billing import BillingLine
from chargeback.model.days import DayRange
from chargeback.model.inventory import Identity, Inventory, Resource
from chargeback.recompute.rules import AllocationRules
from chargeback.reports.categories.editing import MOST_CATEGORIES
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control import tags
from chargeback.store.control.tags import IDENTITY, TagWrite
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.assignments import Assignments
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import CategoryIndex, CategoryLookup, StoredCategory
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.tag_index import TagIndex
from tests.cli.conftest import COMMAND, environment
from tests.support.categories import SomeNames, SomeTags
from tests.support.clock import FixedClock
from tests.support.documented import shown_of
from tests.support.facts import Share, new_facts, write_shares
from tests.support.serving import client_of
from tests.support.sources import Laboratory, line

PAGE: Final = (Path(__file__).parents[1] / "docs" / "cost-categories.md").read_text(encoding="utf-8")
TUTORIAL: Final = PAGE.partition("## Ten minutes\n")[2].partition("\n## ")[0]
DAYS: Final = [date(2026, 1, day) for day in (23, 24, 25)]
#: The gigabytes that each identity writes on each day, at a dollar each.
WRITTEN: Final = {
    ("lkc-orders", "sa-pay"): 40,
    ("lkc-orders", "sa-web"): 30,
    ("lkc-orders", "sa-etl"): 25,
    ("lkc-orders", "sa-old"): 5,
    ("lkc-shared", "sa-pay"): 10,
    ("lkc-shared", "sa-web"): 10,
}
_STEP: Final = re.compile(
    r"```yaml\n# categories\.yaml\n(?P<file>.*?)```"
    r"|```console\n\$ (?P<command>chargeback [^\n]+)\n(?P<output>.*?)```"
    r"|```console\n\$ curl -s \"http://127\.0\.0\.1:8080(?P<path>[^\"]+)\"\n```\n+```json\n(?P<answer>.*?)```",
    re.DOTALL,
)


def bill(day: date) -> list[BillingLine]:
    """Return costs of two clusters, and of a product without a policy."""
    return [
        line("100", resource="lkc-orders", day=day),
        line("20", resource="lkc-shared", day=day),
        line("5", resource="lkc-orders", product="CONTEXT_ENGINE_TABLES", day=day),
    ]


@dataclass(frozen=True)
class Example:
    """The tenant of the page: its folder and a client of the service."""

    folder: Path
    client: httpx.Client


@pytest.fixture
def example(tmp_path: Path) -> Iterator[Example]:
    """Three days of costs, a tag, and no cost category."""
    with Laboratory(tmp_path, days=len(DAYS)) as laboratory:
        laboratory.sources.listed = Inventory(
            [Resource("lkc-orders", "kafka_cluster", "orders-prod"), Resource("lkc-shared", "kafka_cluster", "shared")],
            [
                Identity("sa-pay", "service_account", "payments-api"),
                Identity("sa-web", "service_account", "shop"),
                Identity("sa-etl", "service_account", "nightly export"),
                Identity("sa-old", "service_account", "test2"),
            ],
        )
        laboratory.sources.totals = {"bytes_in": {who: count * 10**9 for who, count in WRITTEN.items()}}
        laboratory.sources.lines = {day: bill(day) for day in DAYS}
        laboratory.run()
        store, rules = laboratory.store, AllocationRules.of(laboratory.tenant)
        with store.control.write() as connection:
            written = [TagWrite(IDENTITY, "sa-web", "team", "webshop")]
            tags.write_many(connection, store.tenant_id, written, created_by="test", override=False)
        tenant = TenantView(store.tenant_name, store.tenant_id, store.ecosystem, 11, store, None, rules=rules)
        clock = FixedClock(datetime(2026, 1, 31, 12, tzinfo=UTC))
        services = Services("1.2.3", "both", ApiLimits(), {store.tenant_name: tenant}, clock=clock)
        with client_of(services) as client:
            yield Example(tmp_path, client)


@pytest.mark.usefixtures("process")
def test_the_ten_minutes(example: Example) -> None:
    """Every file is valid, every command prints the shown output, and every request has the shown response."""
    steps = list(_STEP.finditer(TUTORIAL))
    assert len(steps) == TUTORIAL.count("```yaml") + TUTORIAL.count("```console")
    for step in steps:
        if step["file"]:
            (example.folder / "categories.yaml").write_text(step["file"], encoding="utf-8")
        elif step["command"]:
            assert ran(step["command"], example.folder) == step["output"]
        else:
            response = example.client.get(step["path"])
            assert response.status_code == 200, response.text
            shown = json.loads(step["answer"])
            assert shown_of(response.json(), shown) == shown


def test_every_example_on_the_page_is_valid() -> None:
    """The document in the reference and the CSV file are valid."""
    (document,) = re.findall(r"```yaml\n(default:.*?)```", PAGE, re.DOTALL)
    assert parse_category("empty", yaml.safe_load(document)).rules == ()
    (file,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    assert [entry.value for entry in read_entries(file)] == ["payments", "payments", "orders"]


def test_the_example_of_steps(tmp_path: Path) -> None:
    """The table on the page has the aggregates before the first step and after each step."""
    (text,) = re.findall(r"```yaml\n(share:.*?)```", PAGE, re.DOTALL)
    share = yaml.safe_load(text)["share"]
    lines = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in PAGE.partition("after `infra` |\n")[2].partition("\n\n")[0].splitlines()[1:]
    ]
    table = {line[0]: [Decimal(cell.replace("−", "-")) for cell in line[1:]] for line in lines}
    facts = new_facts(tmp_path / "facts")
    write_shares(facts, [Share(DAYS[0], value, str(amounts[0])) for value, amounts in table.items()])
    rules = [{"match": {"identity": value}, "assign": value} for value in table if value != "UNASSIGNED"]
    with QueryEngine(threads=1) as engine:
        for after in range(len(share) + 1):
            category = parse_category("team", {"rules": rules, "share": share[:after]})
            with engine.cursor(CancellationToken()) as cursor:
                reader = TenantReader(cursor, facts, TagIndex(), categories=_lookup(category))
                grouping = Grouping(("category:team",), "day", ZoneInfo("UTC"))
                found = reader.aggregate(CHARGEBACKS, Selection.of_days(DayRange(DAYS[0], DAYS[1])), grouping)
            totals = {each["dimensions"]["category:team"]: Decimal(each["total_amount"]) for each in found.buckets}
            assert totals == {value: amounts[after] for value, amounts in table.items()}


def _lookup(category: CostCategory) -> CategoryLookup:
    """Return the only category of a reader."""
    tags, names = SomeTags({}), SomeNames({})
    return CategoryLookup(
        CategoryIndex({category.key: StoredCategory(category)}),
        lambda dataset, _: Assignments(category, dataset, tags, names),
    )


def test_the_page_has_the_limits_that_there_are() -> None:
    """The limits on the page are those in the code."""
    for limit in (MOST_CATEGORIES, f"{MAX_RULES:,}", f"{MAX_VALUES:,}", f"{MAX_DEPTH} levels"):
        assert f" {limit}" in PAGE, limit


def ran(command: str, folder: Path) -> str:
    """Return the output of a command, which must succeed."""
    words = [*COMMAND, *shlex.split(command)[1:]]
    done = subprocess.run(words, cwd=folder, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
