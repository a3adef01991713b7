"""Posted amounts in FOCUS: files of closed months never change, and corrections are rows of the open month."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.ecosystems.focus import FocusProfile
from chargeback.errors import StorageError
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.inventory import Identity, Resource
from chargeback.reports.focus import file as file_of_focus
from chargeback.reports.focus.columns import FocusLayout
from chargeback.reports.focus.file import FocusSource, focus_batches, focus_csv, focus_lookups
from chargeback.reports.focus.lookups import FocusTenant, Lookups
from chargeback.store.control.inventory import ensure_known
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by
from tests.support.facts import line
from tests.support.focus import PROFILE
from tests.support.months import AUGUST, OCTOBER, SEPTEMBER, Months, months

Row = dict[str, Any]


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Months]:
    """Yield a tenant of three months."""
    with months(tmp_path) as opened:
        yield opened


def rows(tenant: Months, period: AccountingPeriod, layout: FocusLayout | None = None) -> list[Row]:
    """Return the posted rows of a month, in FOCUS."""
    with tenant.books() as reader:
        source = FocusSource(reader, tenant.store.control, FocusTenant("acme", "acme-id", PROFILE))
        found = focus_batches(source, layout or FocusLayout(), period.days)
        return [row for batch in found for row in batch.to_pylist()]


def file(tenant: Months, period: AccountingPeriod, profile: FocusProfile = PROFILE) -> bytes:
    """Return the posted rows of a month as CSV."""
    with tenant.books() as reader:
        source = FocusSource(reader, tenant.store.control, FocusTenant("acme", "acme-id", profile))
        return b"".join(map(bytes, focus_csv(source, FocusLayout(), period.days)))


def corrections(found: list[Row]) -> list[tuple[Any, ...]]:
    """Return day, identity and amount of each correction."""
    return [
        (row["ChargePeriodStart"].date(), row["x_AllocatedResourceId"], row["BilledCost"].normalize())
        for row in found
        if row["ChargeClass"] == "Correction"
    ]


def test_a_late_bill_is_a_correction_in_the_file_of_the_open_month(tenant: Months) -> None:
    """A changed cost is one row that reverses the posted amount and one that replaces it."""
    day = tenant.days[0]
    tenant.close(AUGUST)
    tenant.charge(day, sa_1="7", sa_2="4")
    found = rows(tenant, SEPTEMBER)
    assert corrections(found) == [(day, "sa-1", -6), (day, "sa-1", 7)]
    assert {row["BillingPeriodStart"] for row in found} == {datetime(2026, 9, 1, tzinfo=UTC)}
    assert {row["BillingPeriodEnd"] for row in found} == {datetime(2026, 10, 1, tzinfo=UTC)}
    reversal, replacement = found[-2:]
    for column in ("EffectiveCost", "ContractedCost"):
        assert (reversal[column], replacement[column]) == (-6, 7)
    assert reversal["ListUnitPrice"] > 0
    assert reversal["PricingQuantity"] < 0 < replacement["PricingQuantity"]


def test_the_file_of_a_month_sums_to_what_was_posted(tenant: Months) -> None:
    """In closed and open months, the rows of each identity sum to what was posted."""
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="0.000000000001", sa_2="9.5")
    tenant.charge(AUGUST.last_day, sa_1="3")
    tenant.close(SEPTEMBER)
    tenant.charge(tenant.days[0], sa_1="1", sa_2="9.5")
    tenant.charge(tenant.days[2], sa_1="4")
    for period in (AUGUST, SEPTEMBER, OCTOBER):
        with tenant.books() as reader:
            posted = sums_by(reader, CHARGEBACKS, Selection(period.window), ("identity_id",))
        found: dict[tuple[str | None, ...], Decimal] = {}
        for row in rows(tenant, period):
            key = (row["x_AllocatedResourceId"],)
            found[key] = found.get(key, Decimal(0)) + row["BilledCost"]
        assert {key: amount for key, amount in found.items() if amount} == {
            key: amount for key, amount in posted.items() if amount
        }


def test_the_file_of_a_closed_month_stays(tenant: Months) -> None:
    """Late bills, new names, tags and another configuration do not change the file of a closed month."""
    tenant.tag("sa-1", "payments")
    tenant.close(AUGUST)
    before, others = file(tenant, AUGUST), file(tenant, SEPTEMBER)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    tenant.tag("sa-1", "search")
    with tenant.store.control.write() as connection:
        ensure_known(
            connection,
            datetime(2026, 10, 1, tzinfo=UTC),
            billed=[Resource("lkc-1", "kafka_cluster", "renamed")],
            charged=[Identity("sa-1", "user", "renamed")],
        )
    changed = PROFILE.model_copy(update={"issuer": "Another"})
    assert file(tenant, AUGUST, changed) == before
    assert file(tenant, SEPTEMBER, changed) != others


def test_another_id_or_division_of_a_line_posts_nothing(tenant: Months) -> None:
    """A line with another id or split but the same costs has no correction."""
    day = tenant.days[0]
    tenant.close(AUGUST)
    tenant.bill([line(day, "3"), line(day, "7")], {"sa-1": "3"}, {"sa-1": "3", "sa-2": "4"})
    assert corrections(rows(tenant, SEPTEMBER)) == []


def test_another_tag_moves_costs(tenant: Months) -> None:
    """A changed tag has a correction for the old and the new value, and they sum to zero."""
    tenant.tag("sa-1", "payments")
    tenant.close(AUGUST)
    tenant.tag("sa-1", "search")
    found = [row for row in rows(tenant, SEPTEMBER) if row["ChargeClass"] == "Correction"]
    assert {row["Tags"] for row in found} == {'{"team":"payments"}', '{"team":"search"}'}
    assert sum(row["BilledCost"] for row in found) == 0


def test_some_columns_are_those_of_all(tenant: Months) -> None:
    """Which rows are corrections does not depend on the selected columns."""
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    found = rows(tenant, SEPTEMBER, FocusLayout(columns=("BilledCost", "ChargeClass")))
    assert found[-2:] == [
        {"BilledCost": Decimal(-6), "ChargeClass": "Correction"},
        {"BilledCost": Decimal(7), "ChargeClass": "Correction"},
    ]
    assert len(found) == len(rows(tenant, SEPTEMBER))


def test_a_line_whose_product_is_not_known_is_an_error(tenant: Months, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown product raises an error; no row is left out silently."""
    monkeypatch.setattr(file_of_focus, "kept_lookups", lambda *_: {**_lookups(tenant), "products": []})
    tenant.close(AUGUST)
    with pytest.raises(StorageError, match="the bill of 2026-08-01 changed while it was read"):
        rows(tenant, AUGUST)


def _lookups(tenant: Months) -> Lookups:
    with tenant.books() as reader:
        source = FocusSource(reader, tenant.store.control, FocusTenant("acme", "acme-id", PROFILE))
        return focus_lookups(source, reader, AUGUST)
