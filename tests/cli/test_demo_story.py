"""The contents of the demo: cost categories and how much they assign, tags, budgets, and closed months."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from chargeback.cli.demo_story import (
    apply_demo_categories,
    close_demo_months,
    dispute_and_adjust,
    tag_teams,
    write_demo_budgets,
)
from chargeback.cli.statements import opened
from chargeback.config import Tenant, load_configuration
from chargeback.demo.config import demo_configuration
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.server import DemoServer
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.run_request import RunRequest
from chargeback.reports.categories.editing import document_of
from chargeback.reports.closing.documents import check_closings
from chargeback.reports.closing.preview import prepare
from chargeback.reports.closing.statements import statements_of
from chargeback.store.control.budgets import list_budgets
from chargeback.store.control.closings import read_receipts
from chargeback.store.control.cost_categories import CategoryWrite, list_categories, read_category, write_category
from chargeback.store.queries.aggregate import Grouping
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.tenant import open_store
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.pipeline import run_pipeline

SPEC: Final = DemoSpec(today=TODAY, size="small", days=14)
Sums = dict[tuple[str, str], Decimal]


def begun(server: DemoServer, file: Path, spec: DemoSpec) -> Tenant:
    """Return the tenant of a served demo after its first run, with tags and cost categories."""
    file.write_text(demo_configuration(server.info, file.parent), encoding="utf-8")
    with run_pipeline(file, "acme"):
        pass
    tenant = load_configuration(file).tenants["acme"]
    tag_teams(tenant, spec.seed)
    apply_demo_categories(tenant, spec.seed)
    return tenant


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory) -> Tenant:
    """A small demo."""
    with DemoServer(Organisation.generate(SPEC)) as server:
        return begun(server, tmp_path_factory.mktemp("demo") / "chargeback.yaml", SPEC)


@pytest.fixture(scope="module")
def reader(tenant: Tenant) -> Iterator[TenantReader]:
    """A reader of the demo."""
    with (
        closing(open_store(tenant)) as store,
        closing(QueryEngine()) as engine,
        open_reader(engine, store, CancellationToken(), LookupCaches()) as opened,
    ):
        yield opened


def summed(reader: TenantReader, by: str) -> tuple[Sums, Decimal]:
    """Return the sums by a column and day, and the total."""
    days = reader.dates(CHARGEBACKS)
    selection = Selection.of_days(DayRange(days[0], days[-1] + ONE_DAY))
    found = reader.aggregate(CHARGEBACKS, selection, Grouping((by,), "day", ZoneInfo("UTC")))
    sums: Sums = defaultdict(Decimal)
    for bucket in found.buckets:
        sums[bucket["dimensions"][by], bucket["time_bucket"]] += Decimal(bucket["total_amount"])
    return sums, Decimal(found.totals["total_amount"])


@pytest.mark.extensive
def test_about_eight_percent_are_unassigned(reader: TenantReader) -> None:
    """About eight percent of the cost is unassigned."""
    sums, total = summed(reader, "category:cost_center")
    unassigned = sum(amount for (value, _), amount in sums.items() if value == "UNASSIGNED")
    assert Decimal("0.91") <= 1 - unassigned / total <= Decimal("0.93")


@pytest.mark.parametrize("by", ["category:cost_center", "category:cost_center@1", "category:stage"])
def test_every_grouping_sums_to_the_bill(reader: TenantReader, by: str) -> None:
    """Every day has the same sum by value as by identity."""

    def _by_day(sums: Sums) -> dict[str, Decimal]:
        days: dict[str, Decimal] = defaultdict(Decimal)
        for (_, day), amount in sums.items():
            days[day] += amount
        return days

    (of_values, total), (of_identities, whole) = summed(reader, by), summed(reader, "identity_id")
    assert _by_day(of_values) == _by_day(of_identities)
    assert total == whole


def test_the_reorganisation_moves_costs_from_its_day_on(reader: TenantReader, tenant: Tenant) -> None:
    """The dissolved cost centre has costs until the day of the reorganisation, and none afterwards."""
    with closing(open_store(tenant)) as store, store.control.read() as connection:
        stored = read_category(connection, "cost_center")
    assert stored is not None
    changed = document_of(stored)["values"]["growth"]["valid_to"]
    days = [day.isoformat() for day in reader.dates(CHARGEBACKS)]
    sums, _ = summed(reader, "category:cost_center")
    assert days[0] < changed < days[-1]
    assert [day for day in days if sums["growth", day]] == [day for day in days if day < changed]


def test_what_the_platform_has_is_handed_on(reader: TenantReader) -> None:
    """The cost of the platform is reallocated completely, to the units below it."""
    sums, _ = summed(reader, "category:cost_center")
    assert not any(amount for (value, _), amount in sums.items() if value == "platform")
    units, _ = summed(reader, "category:cost_center@1")
    assert {value for value, _ in units} == {"finance", "retail", "technology", "UNASSIGNED"}


def test_there_are_budgets_of_them(tenant: Tenant) -> None:
    """There is a budget of all costs and a smaller one of the largest cost centre; both are written only once."""
    for _ in range(2):
        write_demo_budgets(tenant)
    with closing(open_store(tenant)) as store, store.control.read() as connection:
        versions = list_budgets(connection)
    assert [(each.id, each.version) for each in versions] == [("all", 1), ("largest", 1)]
    whole, largest = (each.budget for each in versions)
    assert whole is not None
    assert largest is not None
    assert (largest.parent, list(largest.scope)) == ("all", ["category:cost_center"])
    assert (whole.monthly or 0) > (largest.monthly or 0) > 0


def test_they_are_written_once(tenant: Tenant) -> None:
    """Starting again changes nothing, even if a category was removed in between."""
    with closing(open_store(tenant)) as store:
        with store.control.read() as connection:
            before = list_categories(connection)
        assert [(each.key, each.version, each.who) for each in before] == [
            ("cost_center", 1, "demo"),
            ("stage", 1, "demo"),
        ]
        apply_demo_categories(tenant, SPEC.seed)
        with store.control.write() as connection:
            assert list_categories(connection) == before
            write_category(connection, CategoryWrite("cost_center", None), expected=1)
        apply_demo_categories(tenant, SPEC.seed)
        with store.control.read() as connection:
            assert [each.key for each in list_categories(connection)] == ["stage"]


@pytest.mark.extensive
def test_one_that_somebody_made_stays(tmp_path: Path) -> None:
    """Only missing categories are written."""
    file = tmp_path / "chargeback.yaml"
    with DemoServer(Organisation.generate(SPEC)) as server:
        file.write_text(demo_configuration(server.info, tmp_path), encoding="utf-8")
        with run_pipeline(file, "acme") as ran, ran.store.control.write() as connection:
            write_category(connection, CategoryWrite("stage", '{"default": "all"}'), expected=None)
    tenant = load_configuration(file).tenants["acme"]
    apply_demo_categories(tenant, SPEC.seed)
    with closing(open_store(tenant)) as store, store.control.read() as connection:
        assert [(each.key, each.version, each.who) for each in list_categories(connection)] == [
            ("cost_center", 1, "demo"),
            ("stage", 1, "api"),
        ]


#: Covers the days since 28 November.
CLOSINGS_SPEC: Final = DemoSpec(today=TODAY, size="small", days=64)
NOVEMBER, DECEMBER, JANUARY = map(AccountingPeriod.named, ("2025-11", "2025-12", "2026-01"))


def test_the_demo_has_two_closed_months_and_what_happens_after_a_closing(tmp_path: Path) -> None:
    """December is closed completely, and November is closed without the days before the demo. A late bill is a
    correction of January, which also has an adjustment; a statement of December is disputed. Closing again does
    nothing."""
    file, now = tmp_path / "chargeback.yaml", FixedClock()
    with DemoServer(Organisation.generate(CLOSINGS_SPEC)) as server:
        tenant = begun(server, file, CLOSINGS_SPEC)
        closed = close_demo_months(tenant, now)
        assert closed is not None
        assert closed.periods == (NOVEMBER, DECEMBER)
        before = server.changes.cost_rows(closed.late_bill)
        server.changes.bill_late(closed.late_bill)
        (late,) = [each for each in server.changes.cost_rows(closed.late_bill) if each not in before]
        with run_pipeline(file, "acme", RunRequest(start=closed.late_bill, end=closed.late_bill)):
            pass
    dispute_and_adjust(tenant, DECEMBER, now)
    assert close_demo_months(tenant, now) is None
    with closing(open_store(tenant)) as store, store.control.read() as connection:
        november, december = map(json.loads, read_receipts(connection))
    assert {each.partition(":")[0] for each in november["accepted"]} == {"day-missing"}
    assert (len(november["accepted"]), november["reason"]) == (27, "The demo begins in this month")
    assert (december["accepted"], december["reason"]) == ([], None)
    assert december["invoices"]["invoices"] == ["INV-202512"]
    assert abs(Decimal(december["invoices"]["difference"])) < Decimal("0.01")
    with opened(tenant) as (view, reader, posted):
        assert list(check_closings(view, posted)) == []
        preview = prepare(view, posted, JANUARY, NOW).answer
        assert [(each.period_id, each.amount) for each in preview.corrections] == [("2025-12", late["amount"])]
        (adjustment,) = preview.adjustments
        assert (adjustment["amount"], adjustment["applies_to"]) == ("250.00", "2025-12")
        (disputed,) = [
            each
            for each in statements_of(view, reader, posted, DECEMBER, "category:cost_center", None).items
            if each.verdict is not None
        ]
    assert (disputed.verdict, disputed.recipient.value) == ("disputed", adjustment["from"])
    assert adjustment["reference"] == disputed.number
