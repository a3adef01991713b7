"""The bill, requested in windows, and day by day if necessary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.demo.faults import Fault
from chargeback.demo.organisation import Organisation
from chargeback.demo.server import DemoServer, ServerOptions
from chargeback.ecosystems.confluent_cloud.api import ControlPlane
from chargeback.ecosystems.confluent_cloud.costs import (
    COSTS,
    BillFetcher,
    LineContext,
    read_row,
    resource_type,
    to_line,
    windows,
)
from chargeback.ecosystems.contract import GatheredDay, TenantContext
from chargeback.errors import SourceDataError, SourceRejected, SourceUnavailable
from chargeback.model.billing import BillingLine, fingerprint
from chargeback.model.days import ONE_DAY, DayRange
from tests.ecosystems.confluent_cloud.conftest import QUICK, TODAY, settings_for

DAYS = DayRange(TODAY - timedelta(days=15), TODAY - timedelta(days=5))
DAY = TODAY - timedelta(days=10)


def gather(plane: ControlPlane, context: TenantContext, days: DayRange = DAYS, per_query: int = 7) -> list[GatheredDay]:
    """Return the days of a range."""
    return list(BillFetcher(plane, context, per_query).gather(days))


def money(days: list[GatheredDay]) -> Decimal:
    """Return the sum of all lines."""
    return sum((line.total_cost for day in days for line in day.lines), Decimal(0))


def asked(server: DemoServer) -> list[tuple[str, str]]:
    """Return the requested windows in order, without duplicates."""
    queries = [parse_qs(query) for path, query in server.log if path == COSTS]
    return list(dict.fromkeys((query["start_date"][0], query["end_date"][0]) for query in queries))


@contextmanager
def serving(
    organisation: Organisation, context: TenantContext, **options: Any
) -> Iterator[tuple[DemoServer, ControlPlane]]:
    """Serve the organization with these options; yield the server and a control plane."""
    with DemoServer(organisation, options=ServerOptions(**options)) as server:
        plane = ControlPlane(context, settings_for(server), QUICK)
        yield server, plane
        plane.close()


def test_every_day_once_and_every_digit(server: DemoServer, plane: ControlPlane, context: TenantContext) -> None:
    """Each day of the range is returned once and in order, with its whole cost, in windows of the configured length."""
    days = gather(plane, context)
    assert [day.day for day in days] == list(DAYS)
    assert all(day.error is None for day in days)
    assert money(days) == server.organisation.cost_total(DAYS.start, DAYS.end)
    assert asked(server) == [("2026-11-05", "2026-11-12"), ("2026-11-12", "2026-11-15")]


def test_the_window_does_not_matter(plane: ControlPlane, context: TenantContext) -> None:
    """The days do not depend on the length of the windows in which the bill is requested."""
    prints = [[fingerprint(day.lines) for day in gather(plane, context, per_query=length)] for length in (1, 3, 30)]
    assert prints[0] == prints[1] == prints[2]


def test_legacy_shapes_are_the_same_money(
    organisation: Organisation, context: TenantContext, plane: ControlPlane
) -> None:
    """Amounts as text, missing ids, unusual dates and the former place of the environment do not change the costs."""
    with serving(organisation, context, legacy_shapes=True, null_when_empty=True) as (_, legacy):
        days = gather(legacy, context)
    usual = gather(plane, context)
    assert all(day.error is None for day in days)
    for old, new in zip(days, usual, strict=True):
        assert sorted((line.resource_id, line.total_cost, line.environment_id or "") for line in old.lines) == sorted(
            (line.resource_id, line.total_cost, line.environment_id or "") for line in new.lines
        )


def test_a_day_without_costs_has_no_lines(server: DemoServer, plane: ControlPlane, context: TenantContext) -> None:
    """A response without costs is a day without lines, not an error."""
    server.changes.drop_costs(DAY)
    (day,) = [each for each in gather(plane, context) if each.day == DAY]
    assert (list(day.lines), day.error) == ([], None)


def spanning(first: date, end: date, amount: str) -> dict[str, Any]:
    """Return a row that spans several days."""
    return {
        "id": "c",
        "start_date": first.isoformat(),
        "end_date": end.isoformat(),
        "product": "KAFKA",
        "line_type": "KAFKA_STORAGE",
        "original_amount": Decimal(amount),
        "amount": Decimal(amount),
        "unit": "GB",
    }


def test_a_row_of_several_days_is_asked_for_day_by_day(
    server: DemoServer, plane: ControlPlane, context: TenantContext
) -> None:
    """A row that spans several days is requested day by day; if it still does, this is the error of that day only."""
    server.changes.add_cost(DAY, spanning(DAY, DAY + 3 * ONE_DAY, "9"))
    days = {each.day: each for each in gather(plane, context)}
    assert (DAY.isoformat(), (DAY + ONE_DAY).isoformat()) in asked(server)
    assert "spans 2026-11-10 to 2026-11-13" in (days[DAY].error or "")
    others = [each for day, each in days.items() if day != DAY]
    assert all(each.error is None and each.lines for each in others)
    total = server.organisation.cost_total
    assert money(others) == total(DAYS.start, DAYS.end) - total(DAY, DAY + ONE_DAY)


def test_a_row_that_makes_no_sense_is_the_error_of_its_day(
    server: DemoServer, plane: ControlPlane, context: TenantContext
) -> None:
    """A row without any amount is an error of its day only."""
    row = spanning(DAY, DAY + ONE_DAY, "1") | {"amount": None, "original_amount": None}
    server.changes.add_cost(DAY, row)
    days = {each.day: each for each in gather(plane, context)}
    assert "neither amount nor original_amount" in (days[DAY].error or "")
    assert [day for day, each in days.items() if each.error] == [DAY]


def test_rows_of_other_days_are_not_counted(server: DemoServer, plane: ControlPlane, context: TenantContext) -> None:
    """Rows outside of the requested range are ignored."""
    outside = DAYS.end + ONE_DAY
    server.changes.add_cost(DAY, spanning(outside, outside + ONE_DAY, "100"))
    days = gather(plane, context)
    assert money(days) == server.organisation.cost_total(DAYS.start, DAYS.end)


def test_equal_lines_stay_two(server: DemoServer, plane: ControlPlane, context: TenantContext) -> None:
    """Two rows with the same id and content are two lines."""
    row = spanning(DAY, DAY + ONE_DAY, "5")
    server.changes.set_costs(DAY, [row, row])
    (day,) = [each for each in gather(plane, context) if each.day == DAY]
    assert [line.total_cost for line in day.lines] == [5, 5]


@pytest.mark.parametrize("kind", ["endless_paging", "duplicated_page"])
def test_repeated_pages_never_bill_twice(
    kind: str, server: DemoServer, plane: ControlPlane, context: TenantContext
) -> None:
    """After a paging fault, a day has an error or its exact cost; no cost is doubled."""
    server.faults.add(COSTS, Fault(kind, times=None))  # type: ignore[arg-type]
    days = gather(plane, context)
    for each in days:
        expected = server.organisation.cost_total(each.day, each.day + ONE_DAY)
        assert each.error is not None or money([each]) == expected


def test_days_beyond_a_year_are_errors_and_not_asked_for(
    server: DemoServer, plane: ControlPlane, context: TenantContext
) -> None:
    """Days that the provider no longer serves are errors, and are not requested."""
    old = TODAY - timedelta(days=366)
    days = gather(plane, context, DayRange(old, old + timedelta(days=4)))
    assert [each.error is None for each in days] == [False, False, True, True]
    assert asked(server) == [("2025-11-21", "2025-11-23")]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_fails_the_bill(status: int, server: DemoServer, plane: ControlPlane, context: TenantContext) -> None:
    """If the request is rejected, the whole bill fails, and no day appears empty."""
    server.faults.add(COSTS, Fault(status=status, times=None))
    with pytest.raises(SourceRejected):
        gather(plane, context)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500, times=None),
        Fault("truncated", times=None),
        Fault("html", status=200, times=None),
        Fault("html", times=None),
        Fault("reset", times=None),
    ],
)
def test_a_source_that_is_down_fails_the_bill(
    fault: Fault, server: DemoServer, plane: ControlPlane, context: TenantContext
) -> None:
    """Errors, truncated responses and proxies' pages are retried; then the bill fails."""
    server.faults.add(COSTS, fault)
    with pytest.raises(SourceUnavailable):
        gather(plane, context)
    assert server.requests[COSTS] == QUICK.attempts


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500, times=2),
        Fault(status=429, retry_after=0.1, times=5),
        Fault("truncated", times=2),
        Fault("html", times=2),
        Fault("reset", times=2),
        Fault("slow_drip", delay=0.001, times=1),
    ],
)
def test_a_source_that_stumbles_gives_the_whole_bill(
    fault: Fault, server: DemoServer, plane: ControlPlane, context: TenantContext
) -> None:
    """Faults that pass within the retries do not change the bill."""
    server.faults.add(COSTS, fault)
    assert money(gather(plane, context)) == server.organisation.cost_total(DAYS.start, DAYS.end)


def test_too_far_in_the_past_passes(server: DemoServer, plane: ControlPlane, context: TenantContext) -> None:
    """The error that the provider returns under load is retried; other 400s are final."""
    body = '{"errors": [{"status": "400", "title": "Bad Request", "detail": "Start date is too far in the past"}]}'
    server.faults.add(COSTS, Fault(status=400, body=body, times=2))
    assert money(gather(plane, context)) == server.organisation.cost_total(DAYS.start, DAYS.end)
    server.faults.add(COSTS, Fault(status=400, times=1))
    with pytest.raises(SourceRejected):
        gather(plane, context)


def test_lines_of_nobody_go_by_the_tenant_where_no_organization_is_known(
    server: DemoServer, plane: ControlPlane, context: TenantContext
) -> None:
    """Without an organization id, the tenant id is used."""
    server.faults.add("/org/v2/organizations", Fault(status=403, times=None))
    lines = [line for each in gather(plane, context) for line in each.lines if line.resource_type == "organization"]
    assert lines
    assert {line.resource_id for line in lines} == {"acme-id"}


@given(st.dates(date(2023, 1, 1), date(2028, 1, 1)), st.integers(0, 500), st.integers(1, 30))
def test_windows_cover_the_range_and_are_never_longer_than_a_month(first: date, length: int, per_query: int) -> None:
    """Windows are consecutive, complete, within the limit, and at most a calendar month long."""
    whole = DayRange(first, first + timedelta(days=length))
    pieces = list(windows(whole, per_query))
    assert [day for piece in pieces for day in piece] == list(whole)
    for piece in pieces:
        assert 1 <= len(piece) <= per_query
        months = (piece.end.year - piece.start.year) * 12 + piece.end.month - piece.start.month
        assert months == 0 or (months == 1 and piece.end.day <= piece.start.day)


FULL = {
    "id": "c-1",
    "start_date": "2026-11-10",
    "end_date": "2026-11-11",
    "granularity": "DAILY",
    "network_access_type": "INTERNET",
    "product": "KAFKA",
    "line_type": "KAFKA_NETWORK_WRITE",
    "original_amount": Decimal("10.5"),
    "discount_amount": Decimal("0.5"),
    "amount": Decimal("10.0"),
    "price": Decimal("0.05"),
    "quantity": 210,
    "unit": "GB",
    "description": "text",
    "tier_dimensions": {"region": "us-east-1", "provider": "AWS"},
    "resource": {"id": "lkc-1", "display_name": "orders", "environment": {"id": "env-1"}},
}
CONTEXT = LineContext("USD", "org-1")


def line(**changes: Any) -> BillingLine:
    """Return the line of a full row with some fields changed; a field set to `...` is absent."""
    fields = {name: value for name, value in (FULL | changes).items() if value is not ...}
    return to_line(read_row(fields), CONTEXT)


def test_every_field_finds_its_place() -> None:
    """Every field of a row appears in its line."""
    assert line() == BillingLine(
        day=date(2026, 11, 10),
        timestamp=datetime(2026, 11, 10, tzinfo=UTC),
        resource_id="lkc-1",
        resource_type="kafka_cluster",
        resource_name="orders",
        environment_id="env-1",
        product_category="KAFKA",
        product_type="KAFKA_NETWORK_WRITE",
        total_cost=Decimal("10.000000000000"),
        currency="USD",
        granularity="daily",
        quantity=Decimal(210),
        unit_price=Decimal("0.05"),
        original_amount=Decimal("10.5"),
        discount_amount=Decimal("0.5"),
        unit="GB",
        network_access_type="INTERNET",
        description="text",
        tier="provider=AWS;region=us-east-1",
        provider_id="c-1",
    )


def test_a_bare_row_is_enough() -> None:
    """A row with a start and an amount makes a line; other fields may be missing."""
    bare = to_line(read_row({"start_date": "2026-11-10", "amount": "1"}), CONTEXT)
    assert (bare.resource_id, bare.resource_type) == ("org-1", "organization")
    assert (bare.product_category, bare.product_type) == ("UNKNOWN", "UNKNOWN")


@pytest.mark.parametrize("resource", [..., None, {}, {"id": None}, {"id": ""}, {"id": None, "environment": None}])
def test_a_line_without_a_resource_is_the_organizations(resource: object) -> None:
    """Support, credits and similar lines without a resource belong to the organization."""
    found = line(resource=resource)
    assert (found.resource_id, found.resource_type) == ("org-1", "organization")


@pytest.mark.parametrize(
    "changes",
    [
        {"resource": {"id": "lkc-1", "environment": {"id": "env-1"}}},
        {"resource": {"id": "lkc-1", "environment": "env-1"}},
        {"resource": {"id": "lkc-1"}, "environment": {"id": "env-1"}},
        {"resource": {"id": "lkc-1", "environment": None}, "environment": "env-1"},
        {"resource": {"id": "env-1"}},
    ],
)
def test_the_environment_wherever_it_stands(changes: dict[str, Any]) -> None:
    """The environment is found in all shapes; the environment of a billed environment is the environment itself."""
    assert line(**changes).environment_id == "env-1"


def test_the_final_amount_is_the_cost() -> None:
    """The discount is not taken off twice."""
    assert line(amount=Decimal("7")).total_cost == 7


@pytest.mark.parametrize("amount", [..., None, ""])
def test_without_a_final_amount_the_discount_is_taken_off(amount: object) -> None:
    """Without a final amount, the cost is exactly the original amount less the discount."""
    assert line(amount=amount, original_amount="10.3", discount_amount="0.1").total_cost == Decimal("10.2")
    assert line(amount=amount, discount_amount=None).total_cost == Decimal("10.5")


def test_large_amounts_lose_nothing() -> None:
    """Amounts with 26 digits before and 12 after the decimal point are subtracted exactly."""
    found = line(amount=None, original_amount="9" * 26 + ".000000000003", discount_amount="0.000000000001")
    assert found.total_cost == Decimal("9" * 26 + ".000000000002")


@pytest.mark.parametrize("amount", ["12.5", Decimal("12.5"), "1.25e1", Decimal("1.25E+1"), " 12.5 "])
def test_amounts_as_number_or_text(amount: object) -> None:
    """Amounts may be numbers or, in older responses, strings."""
    assert line(amount=amount).total_cost == Decimal("12.5")


def test_signed_amounts() -> None:
    """Refunds and credits are negative."""
    assert line(amount=Decimal("-3.25"), original_amount=Decimal("-3.25")).total_cost == Decimal("-3.25")


@pytest.mark.parametrize(
    ("digits", "kept"),
    [("0.0000000000005", "0"), ("0.0000000000015", "0.000000000002"), ("-0.0000000000025", "-0.000000000002")],
)
def test_more_than_twelve_decimals_are_rounded_once_and_kept_as_text(digits: str, kept: str) -> None:
    """More than twelve decimals are rounded half-even, and the original text is kept."""
    found = line(amount=Decimal(digits))
    assert found.total_cost == Decimal(kept)
    assert found.original_text == f"amount={Decimal(digits)}"


def test_twelve_decimals_need_no_text() -> None:
    """An amount with up to twelve decimals has no original text, also with superfluous zeros."""
    assert line(amount=Decimal("0.12345678901200000")).original_text is None


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": True},
        {"amount": "much"},
        {"amount": "NaN"},
        {"amount": {"value": 1}},
        {"amount": "1e30"},
        {"quantity": "Infinity"},
        {"amount": None, "original_amount": None},
        {"start_date": "soon"},
        {"start_date": None},
        {"end_date": "later"},
    ],
)
def test_what_makes_no_sense_is_an_error(changes: dict[str, Any]) -> None:
    """A row that cannot be interpreted is an error."""
    with pytest.raises(SourceDataError):
        line(**changes)


def test_a_credit_without_product_has_its_type_as_category() -> None:
    """A PROMO_CREDIT without product, unit, price and quantity has its type as category."""
    found = line(product=None, line_type="PROMO_CREDIT", unit=None, price=None, quantity=None, resource=None)
    assert (found.product_category, found.product_type) == ("PROMO_CREDIT", "PROMO_CREDIT")
    assert (found.unit_price, found.quantity, found.unit) == (None, None, None)


def test_an_unknown_type_is_kept() -> None:
    """A line of an unknown type is kept."""
    assert line(line_type="CONTEXT_ENGINE_TABLES").product_type == "CONTEXT_ENGINE_TABLES"


@pytest.mark.parametrize(
    ("start", "end", "days"),
    [
        ("2026-11-10", "2026-11-11", 1),
        ("2026-11-10 00:00:00", "2026-11-11 00:00:00", 1),
        ("2026-11-10T00:00:00Z", "2026-11-11T00:00:00Z", 1),
        ("2026-11-10", "2026-11-10", 1),
        ("2026-11-10", None, 1),
        ("2026-11-10", "2026-11-25", 15),
    ],
)
def test_the_days_a_row_spans(start: str, end: str | None, days: int) -> None:
    """Dates may include a time; a row without a later end spans one day."""
    row = read_row(FULL | {"start_date": start, "end_date": end})
    assert (row.days.start, len(row.days)) == (date(2026, 11, 10), days)


@pytest.mark.parametrize(
    ("resource_id", "kind"),
    [
        ("lkc-1", "kafka_cluster"),
        ("lsrc-1", "schema_registry"),
        ("lcc-1", "connector"),
        ("clcc-1", "connector"),
        ("lksqlc-1", "ksqldb_cluster"),
        ("lfcp-1", "flink_compute_pool"),
        ("env-1", "environment"),
        ("x-1", "unknown"),
    ],
)
def test_resource_types_by_prefix(resource_id: str, kind: str) -> None:
    """A billed resource that is not listed has a type from the prefix of its id."""
    assert resource_type(resource_id) == kind
