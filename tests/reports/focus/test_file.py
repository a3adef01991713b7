"""The bill in FOCUS: every line, exactly, in every version and split."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.categories.parsing import parse_category
from chargeback.ecosystems.focus import FocusSettings
from chargeback.errors import StorageError
from chargeback.model.days import DayRange, month_of
from chargeback.reports.categories.editing import save_categories
from chargeback.reports.focus.columns import FocusLayout
from chargeback.store.control.tags import IDENTITY, RESOURCE, TagWrite, create
from chargeback.store.tenant import TenantStore
from tests.support.facts import line, tenant_store, write_lines
from tests.support.focus import (
    DAY,
    DAYS,
    PRICED,
    PROFILE,
    TOPIC_WEIGHTS,
    BilledLine,
    FocusData,
    clear_days,
    focus_source,
    layouts,
    read_focus,
    write_bill,
    write_special_bill,
)
from tests.support.focus_checks import check_focus
from tests.support.laws import examples, one_first

MONTHS = DayRange(date(2026, 2, 1), date(2026, 4, 1))
LAYOUTS = pytest.mark.parametrize("layout", one_first(layouts()), ids=lambda layout: f"{layout.version}-{layout.split}")


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """Yield a tenant with the special lines, the first days of the next month, and a day that is not calculated."""
    with tenant_store(tmp_path_factory.mktemp("edges")) as store:
        write_special_bill(store)
        yield store


def read(store: TenantStore, layout: FocusLayout, days: DayRange = MONTHS, calculated: Any = DAYS[:3]) -> FocusData:
    """Return the FOCUS data of a bill."""
    with focus_source(store) as source:
        return read_focus(source, layout, days, [day for day in calculated if day in days])


def row_of(data: FocusData, product: str, **values: Any) -> dict[str, Any]:
    """Return the only row of a product that has these values."""
    wanted = {"SkuId": product, **values}
    found: dict[str, Any]
    (found,) = [row for row in data.table.to_pylist() if wanted.items() <= row.items()]
    return found


@LAYOUTS
def test_special_lines(edges: TenantStore, layout: FocusLayout) -> None:
    """The rows of each special line are complete, and sum to it."""
    check_focus(read(edges, layout))


def test_what_a_row_says(edges: TenantStore) -> None:
    """Names come from the inventory, lines of the account have no resource, and a region is inherited."""
    data = read(edges, FocusLayout("1.4"))
    row = row_of(data, "TEXTS", AllocatedResourceId="sa-1")
    assert row["AllocatedResourceName"] == "checkout"
    assert row["x_IdentityType"] == "service_account"
    assert (row["ResourceName"], row["ResourceType"]) == ('a, "quoted"\nname', "kafka_cluster")
    assert (row["RegionId"], row["HostProviderName"], row["SubAccountName"]) == ("eu-1", "AWS", "prod")
    assert (row["BillingAccountId"], row["BillingAccountName"], row["InvoiceIssuerName"]) == (
        "org-1",
        "Acme",
        "Confluent",
    )
    assert row["SkuPriceId"] == "TEXTS|PRIVATE_LINK|lower=1;upper=2"
    assert json.loads(row["SkuPriceDetails"]) == {"x_NetworkAccessType": "PRIVATE_LINK", "x_Tier": "lower=1;upper=2"}
    assert (row["PricingUnit"], row["ServiceName"]) == ("GB-Hours", "Kafka")
    assert "\n=1+1," not in data.csv
    assert ",=1+1," in data.csv
    support = row_of(data, "SUPPORT_GOLD", AllocatedResourceId="sa-1")
    assert (support["ResourceId"], support["ChargeFrequency"], support["ChargeCategory"]) == (
        None,
        "Recurring",
        "Usage",
    )
    unknown = row_of(data, "UNKNOWN")
    assert (unknown["ServiceName"], unknown["AllocatedResourceId"], unknown["AllocatedMethodId"]) == (
        "Other",
        None,
        "usage_ratio",
    )
    credit = [row for row in data.table.to_pylist() if row["ChargeCategory"] == "Credit"]
    assert {row["ChargeFrequency"] for row in credit} == {"One-Time"}
    assert {row["PricingQuantity"] for row in credit} == {None}


def test_a_quantity_that_does_not_fit_is_one_unit(edges: TenantStore) -> None:
    """A line whose quantity has more than twenty digits is priced as one unit, like a line without a quantity."""
    row = row_of(read(edges, FocusLayout(split="none")), "HUGE")
    assert (row["PricingQuantity"], row["PricingUnit"], row["ListUnitPrice"]) == (1, "Units", 1)


def test_only_calculated_days(edges: TenantStore) -> None:
    """A day whose rows do not match its bill is left out, and the metadata show it."""
    data = read(edges, FocusLayout())
    assert pc.max(data.table["ChargePeriodStart"]).as_py().date() == DAYS[2]
    (recency,) = data.metadata["Recency"]
    complete = {each["TimeSectorStart"][:10]: each["TimeSectorComplete"] for each in recency["TimeSectors"]}
    assert complete == {str(DAYS[0]): True, str(DAYS[2]): True, str(DAYS[3]): False}
    assert recency["DatasetInstanceLastUpdated"] == "2026-04-01T00:00:00Z"


@pytest.mark.extensive
def test_discounts_of_a_programme(edges: TenantStore) -> None:
    """With a discount programme, the contracted cost equals the list cost."""
    programme = PROFILE.changed(FocusSettings(discount="programme"))
    with focus_source(edges) as source:
        other = replace(source, tenant=replace(source.tenant, profile=programme))
        data = read_focus(other, FocusLayout(), MONTHS, DAYS[:3])
    check_focus(data)
    row = row_of(data, "THIRDS", x_AllocatedResourceId="sa-1", x_Portion=1)
    assert row["ContractedCost"] == row["ListCost"] < row["BilledCost"]
    assert row["ContractedUnitPrice"] == row["ListUnitPrice"]


def test_topics_have_the_whole_bill(edges: TenantStore) -> None:
    """Attributed lines are split by topic; all others stay whole."""
    data = read(edges, FocusLayout(split="topics"))
    topics = row_of(data, "TEXTS", x_AllocatedResourceName="a")
    assert (topics["x_AllocatedResourceId"], topics["x_AllocatedMethodId"]) == ("lkc-1:topic:a", "even_split")
    assert row_of(data, "NO_QUANTITY")["x_AllocatedMethodId"] is None


def test_months(edges: TenantStore) -> None:
    """A line belongs to the UTC month of its timestamp."""
    march = read(edges, FocusLayout(), month_of(DAYS[2]))
    assert set(march.table["BillingPeriodStart"].to_pylist()) == {datetime(2026, 3, 1, tzinfo=UTC)}
    assert len({row["ChargePeriodEnd"] - row["ChargePeriodStart"] for row in march.table.to_pylist()}) == 1
    check_focus(march)


def test_some_columns(edges: TenantStore) -> None:
    """The file has the requested columns in their order; an unknown column raises an error that lists the others."""
    with focus_source(edges) as source:
        data = read_focus(source, FocusLayout(columns=("x_LineId", "BilledCost")), MONTHS, DAYS[:3])
        with pytest.raises(ValueError, match=r"FOCUS 1.2 has no column HostProviderName; it has BilledCost, .*"):
            source.columns(FocusLayout("1.2", columns=("HostProviderName",)))
    assert data.table.column_names == ["x_LineId", "BilledCost"]
    assert data.csv.startswith("x_LineId,BilledCost\r\n")


def test_nothing_is_an_empty_file(tmp_path: Path) -> None:
    """A tenant without data has a file with a header and no rows."""
    with tenant_store(tmp_path) as store:
        data = read(store, FocusLayout(), calculated=())
    assert data.table.num_rows == 0
    assert len(data.csv.splitlines()) == 1
    assert data.metadata["Recency"] == []


def test_a_bill_that_changes_meanwhile_is_an_error(tmp_path: Path) -> None:
    """Rows that do not sum to their lines raise an error."""
    with tenant_store(tmp_path) as store:
        write_bill(store, [BilledLine(line(DAY, "5"))])
        write_lines(store.facts, [line(DAY, "6")])
        with pytest.raises(StorageError, match=f"the bill of {DAY} changed while it was read"):
            read(store, FocusLayout())


def _tag(store: TenantStore, kind: str, entity: str, key: str, value: str) -> None:
    with store.control.write() as connection:
        create(connection, store.tenant_id, TagWrite(kind, entity, key, value), "test")


def test_tags_and_cost_categories(tmp_path: Path) -> None:
    """Version 1.2 has the resolved tags; 1.4 has those of the resource and of the payer in separate columns. A row
    split by a category is one row for each value. Rules about identities do not apply to an unsplit line."""
    with tenant_store(tmp_path) as store:
        write_bill(store, [BilledLine(line(DAY, "10", **PRICED), ((("sa-1", 1), ("sa-2", 2)),))])
        _tag(store, RESOURCE, "lkc-1", "team", "platform")
        _tag(store, RESOURCE, "lkc-1", "env", "prod")
        _tag(store, IDENTITY, "sa-1", "team", 'a "b"')
        document = {
            "values": {"payments": {"name": "Payments"}, "retail": {"name": "Retail"}},
            "rules": [
                {"match": {"identity": ["sa-1"]}, "split": {"payments": "50", "retail": "50"}},
                {"match": {"identity": ["sa-2"]}, "assign": "retail"},
                {"match": {"resource": ["lkc-1"]}, "assign": "payments"},
            ],
            "share": [{"from": "payments", "to": ["retail"], "by": "even"}],
        }
        with store.control.write() as connection:
            save_categories(connection, [parse_category("cost_center", document)], who="test")
        old, new = read(store, FocusLayout("1.2")), read(store, FocusLayout("1.4"))
        whole = read(store, FocusLayout("1.4", split="none")).table.to_pylist()
    check_focus(old)
    check_focus(new)
    first, *_, last = old.table.to_pylist()
    assert json.loads(first["Tags"]) == {"env": "prod", "team": 'a "b"'}
    assert first["Tags"].index("env") < first["Tags"].index("team")
    assert json.loads(last["Tags"]) == {"env": "prod", "team": "platform"}
    first, *_, last = new.table.to_pylist()
    assert json.loads(first["Tags"]) == json.loads(last["Tags"]) == {"env": "prod", "team": "platform"}
    assert json.loads(first["AllocatedTags"]) == {"team": 'a "b"'}
    assert last["AllocatedTags"] is None
    values = [(row["AllocatedResourceId"], row["x_CostCategoryCostCenter"]) for row in new.table.to_pylist()]
    assert values == [("sa-1", "payments"), ("sa-1", "retail"), ("sa-2", "retail")]
    assert [(row["AllocatedResourceId"], row["x_CostCategoryCostCenter"]) for row in whole] == [(None, "payments")]


_amounts = st.integers(-(10**16), 10**16).map(lambda units: Decimal(units).scaleb(-12))
_optional = st.none() | _amounts
_weights = st.dictionaries(st.sampled_from(["sa-1", "sa-2", "u-3", "UNALLOCATED"]), st.integers(1, 99), min_size=1)


@st.composite
def _lines(draw: st.DrawFn) -> BilledLine:
    billed = line(
        draw(st.sampled_from(DAYS[1:3])),
        str(draw(_amounts)),
        product=draw(st.sampled_from(["KAFKA_BASE", "SUPPORT_GOLD", "PROMO_CREDIT", "NEW"])),
        unit_price=draw(_optional),
        quantity=draw(_optional),
        original_amount=draw(_optional),
        unit=draw(st.sampled_from([None, "GB", "GB-hour"])),
    )
    portions = draw(st.lists(_weights.map(lambda weights: tuple(weights.items())), min_size=1, max_size=2))
    topics = draw(st.sampled_from([(), (("a", 1),), TOPIC_WEIGHTS]))
    return BilledLine(billed, tuple(portions), topics)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """Yield a tenant whose bill is replaced for every example."""
    with tenant_store(tmp_path_factory.mktemp("month")) as store:
        yield store


@settings(max_examples=examples(6))
@given(bill=st.lists(_lines(), min_size=1, max_size=20), layout=st.sampled_from(layouts()))
def test_random_months(month: TenantStore, bill: list[BilledLine], layout: FocusLayout) -> None:
    """The rows of any bill sum to it exactly, line by line."""
    clear_days(month, DAYS[1:3])
    write_bill(month, bill)
    check_focus(read(month, layout, calculated={each.line.day for each in bill}))
