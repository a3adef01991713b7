"""Billing lines from rows in FOCUS: exact, for all formats of the files."""

from __future__ import annotations

import gzip
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.ecosystems.contract import TenantContext
from chargeback.errors import SourceDataError, SourceTooLarge
from chargeback.model.billing import billing_table, fingerprint
from chargeback.model.days import ONE_DAY, DayRange
from tests.ecosystems.focus_files.conftest import (
    DAY,
    DAYS,
    gatherer,
    lines,
    row,
    settings_for,
    settled,
    total,
    write_csv,
    write_parquet,
)

FEE = {"ChargeCategory": "Purchase", "SkuMeter": "Support", "ResourceId": "", "PricingQuantity": "", "PricingUnit": ""}


def at(hour: int, **changes: Any) -> dict[str, Any]:
    """Return a row of an hour of ``DAY``; hours above 23 are on later days."""
    start = DAY + timedelta(days=hour // 24)
    end = DAY + timedelta(days=(hour + 1) // 24)
    period = {
        "ChargePeriodStart": f"{start}T{hour % 24:02d}:00:00Z",
        "ChargePeriodEnd": f"{end}T{(hour + 1) % 24:02d}:00:00Z",
    }
    return row(**period | changes)


def test_hours_become_a_line_of_the_day(context: TenantContext, tmp_path: Path) -> None:
    """Rows that differ only in their hour become one line with their sums."""
    write_csv(tmp_path / "bill.csv", [at(hour) for hour in range(36)])
    first, second = lines(context, settings_for(tmp_path))
    assert (first.day, first.total_cost, first.quantity, first.unit) == (DAY, Decimal("4.32"), Decimal(24), "Hours")
    assert (first.original_amount, first.discount_amount) == (Decimal("5.04"), Decimal("0.72"))
    assert (first.product_category, first.product_type) == ("Amazon MSK", "USE1-Kafka.m5.large")
    assert (first.resource_id, first.currency, first.description) == ("orders", "USD", "an hour of a broker")
    assert (second.day, second.total_cost) == (DAY + ONE_DAY, Decimal("2.16"))


@pytest.mark.parametrize(
    ("cost", "expected"), [("effective", "0.18"), ("billed", "0.21"), ("list", "0.21"), ("contracted", "0.2")]
)
def test_which_cost(context: TenantContext, tmp_path: Path, cost: str, expected: str) -> None:
    """The cost comes from the configured column."""
    write_csv(tmp_path / "bill.csv", [row(ContractedCost="0.2")])
    (line,) = lines(context, settings_for(tmp_path, cost=cost))
    assert line.total_cost == Decimal(expected)


def test_categories_of_charges_are_kept_apart(context: TenantContext, tmp_path: Path) -> None:
    """Charges other than usage have their own product category; a correction is a separate line."""
    charges = [row(ChargeClass=""), row(ChargeClass="Correction", EffectiveCost="-0.05")]
    charges += [row(ChargeClass="", ChargeCategory=name, SkuMeter="", ServiceName="") for name in ("Tax", "Credit")]
    write_csv(tmp_path / "bill.csv", charges)
    found = sorted(
        (line.product_category, line.product_type, line.tier, line.total_cost)
        for line in lines(context, settings_for(tmp_path))
        if line.tier is None
    )
    assert [entry[:2] for entry in found] == [
        ("Amazon MSK", "USE1-Kafka.m5.large"),
        ("Credit", "Credit"),
        ("Tax", "Tax"),
    ]
    (corrected,) = [line for line in lines(context, settings_for(tmp_path)) if line.tier is not None]
    assert (corrected.tier, corrected.total_cost) == ("ChargeClass=Correction", Decimal("-0.05"))


def test_a_fee_of_a_month_is_spread(context: TenantContext, tmp_path: Path) -> None:
    """Each day has a share by duration; the shares sum to the fee, and a window of days has the same shares."""
    period = {"ChargePeriodStart": f"{DAY}T12:00:00Z", "ChargePeriodEnd": f"{DAY + 4 * ONE_DAY}T00:00:00Z"}
    write_csv(tmp_path / "bill.csv", [row(**FEE, **period, EffectiveCost="10", ListCost="")])
    found = lines(context, settings_for(tmp_path))
    assert [line.total_cost for line in found] == [
        Decimal("1.428571428571"),
        Decimal("2.857142857143"),
        Decimal("2.857142857143"),
        Decimal("2.857142857143"),
    ]
    assert total(found) == 10
    window = DayRange(DAY + ONE_DAY, DAY + 2 * ONE_DAY)
    assert [line.total_cost for line in lines(context, settings_for(tmp_path), window)] == [Decimal("2.857142857143")]


def test_more_digits_than_a_line_shows(context: TenantContext, tmp_path: Path) -> None:
    """A sum is rounded once, and the exact sum is kept as text."""
    write_csv(tmp_path / "bill.csv", [at(hour, EffectiveCost="0.00000000000034") for hour in range(2)])
    (line,) = lines(context, settings_for(tmp_path))
    assert line.total_cost == Decimal("0.000000000001")
    assert line.original_text == "total_cost=0.00000000000068"


def test_binary_numbers_are_their_shortest_decimals(context: TenantContext, tmp_path: Path) -> None:
    """Binary numbers are read as their shortest decimals: ten times 0.1 is exactly 1."""
    write_parquet(tmp_path / "bill.parquet", [at(hour, EffectiveCost="0.1") for hour in range(10)], cost="DOUBLE")
    (line,) = lines(context, settings_for(tmp_path))
    assert (line.total_cost, line.original_text) == (Decimal(1), None)


def test_offsets_of_instants_count(context: TenantContext, tmp_path: Path) -> None:
    """A timestamp with an offset is converted to UTC."""
    period = {
        "ChargePeriodStart": f"{DAY + ONE_DAY}T01:00:00+02:00",
        "ChargePeriodEnd": f"{DAY + ONE_DAY}T02:00:00+02:00",
    }
    write_csv(tmp_path / "bill.csv", [row(**period)])
    assert [line.day for line in lines(context, settings_for(tmp_path))] == [DAY]


def test_the_filter(context: TenantContext, tmp_path: Path) -> None:
    """Every key of the filter must match; in a list, one matching pattern is enough."""
    other = {"ServiceName": "Amazon S3", "ResourceId": "arn:aws:s3:::logs", "Tags": '{"team": "logs", "a.b": "c"}'}
    write_csv(tmp_path / "a.csv", [row(SubAccountId="1"), row(SubAccountId="2", **other)])
    write_parquet(tmp_path / "b.parquet", [row(SubAccountId="1"), row(SubAccountId="2", **other)])

    def services(**chosen: Any) -> list[str]:
        return sorted({line.product_category for line in lines(context, settings_for(tmp_path, filter=chosen))})

    assert services() == ["Amazon MSK", "Amazon S3"]
    assert services(services=["*MSK", "no_such"]) == ["Amazon MSK"]
    assert services(resources=["arn:aws:s3:*"]) == ["Amazon S3"]
    assert services(accounts=["1"]) == ["Amazon MSK"]
    assert services(tags={"team": "logs", "a.b": "*"}) == ["Amazon S3"]
    assert services(services=["Amazon MSK"], tags={"team": "logs"}) == []


def test_names_of_resources_and_products(context: TenantContext, tmp_path: Path) -> None:
    """Lines belong to the cluster unless a column is configured; maps rename values."""
    write_csv(
        tmp_path / "bill.csv",
        [
            row(),
            row(ResourceId="arn:aws:ec2:volume/1", ResourceName="disk", ResourceType="EBS Volume"),
            row(ResourceId=""),
        ],
    )
    chosen = {
        "resource": {"from": "ResourceId", "map": {"arn:aws:kafka:*": "orders"}},
        "product_type": {"from": "tag:team", "map": {"ord*": "BROKERS"}},
    }
    found = lines(context, settings_for(tmp_path, **chosen))
    assert {(line.resource_id, line.resource_type, line.product_type) for line in found} == {
        ("orders", "kafka_cluster", "BROKERS"),
        ("arn:aws:ec2:volume/1", "ebs_volume", "BROKERS"),
    }


def test_attributes(context: TenantContext, tmp_path: Path) -> None:
    """Configured columns and tags are stored in the tier; rows that differ in one become several lines."""
    written = [row(x_Operation="RunInstances", RegionId="eu-1"), row(x_Operation="Store", RegionId="eu-1")]
    write_csv(tmp_path / "bill.csv", written)
    found = lines(context, settings_for(tmp_path, attributes=["x_Operation", "tag:team"]))
    assert sorted(line.tier or "" for line in found) == [
        "RegionId=eu-1;tag:team=orders;x_Operation=RunInstances",
        "RegionId=eu-1;tag:team=orders;x_Operation=Store",
    ]
    assert len(lines(context, settings_for(tmp_path))) == 1


def test_identities_in_the_files(context: TenantContext, tmp_path: Path) -> None:
    """Rows with an identity belong to a part of the cluster that the identity owns; others belong to the cluster."""
    write_csv(tmp_path / "bill.csv", [row(), row(Tags='{"team": "payments"}'), row(Tags="")])
    settings = settings_for(tmp_path, identity={"from": "tag:team", "map": {"pay*": "team-a"}})
    assert {line.resource_id for line in lines(context, settings)} == {"orders", "orders:orders", "orders:team-a"}
    with gatherer(context, settings) as opened:
        listed = opened.inventory()
    owners = {each.resource_id: each.owner_id for each in listed.inventory.resources if each.owner_id}
    assert owners == {"orders:orders": "orders", "orders:team-a": "team-a"}
    assert sorted(each.identity_id for each in listed.inventory.identities) == ["orders", "team-a"]
    (tmp_path / "bill.csv").unlink()
    with gatherer(context, settings) as opened:
        assert "owned_part" in opened.inventory().failures


def _costs() -> st.SearchStrategy[list[tuple[int, int, Decimal]]]:
    cost = st.decimals(min_value=-1000, max_value=1000, places=14)
    return st.lists(st.tuples(st.integers(0, 119), st.integers(1, 72), cost), min_size=1, max_size=12)


@given(rows=_costs(), cuts=st.integers(1, 4))
def test_days_sum_to_the_files(
    context: TenantContext, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, Decimal]], cuts: int
) -> None:
    """The lines of all days sum to the files' costs within the rounding of each line to twelve decimals; order,
    division into files and format do not matter."""
    written = [
        at(start, EffectiveCost=f"{cost:f}") | {"ChargePeriodEnd": at(start + length - 1)["ChargePeriodEnd"]}
        for start, length, cost in rows
    ]
    one, several = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("several")
    write_csv(one / "bill.csv", written)
    for cut in range(cuts):
        if part := written[::-1][cut::cuts]:
            (write_csv if cut % 2 else write_parquet)(several / f"{cut}.{'csv' if cut % 2 else 'parquet'}", part)
    days = DayRange(DAY, DAY + timedelta(days=9))
    found = lines(context, settings_for(one), days)
    again = lines(context, settings_for(several), days)
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        (referee,) = engine.execute(
            "SELECT sum(CAST(EffectiveCost AS DECIMAL(38,14))) FROM read_csv(?, all_varchar=true)",
            [str(one / "bill.csv")],
        ).fetchone() or (Decimal(0),)
    assert abs(total(found) - referee) <= Decimal(len(rows)) * Decimal("1e-12")
    assert fingerprint(found) == fingerprint(again)


def test_twins_count_twice(context: TenantContext, tmp_path: Path) -> None:
    """Two rows with the same content are two charges, in one file or in two."""
    write_csv(tmp_path / "a.csv", [row(), row()])
    write_csv(tmp_path / "b.csv", [row()])
    found = lines(context, settings_for(tmp_path))
    assert total(found) == Decimal("0.54")
    table = billing_table(found, ecosystem="focus", tenant_id="msk-id")
    assert table.num_rows == len(set(table["line_id"].to_pylist()))


def test_compressed_files(context: TenantContext, tmp_path: Path) -> None:
    """A file with the extension of gzip is read."""
    written = write_csv(tmp_path / "bill.csv", [row()])
    (tmp_path / "bill.csv.gz").write_bytes(gzip.compress(written.read_bytes()))
    settled(tmp_path / "bill.csv.gz")
    written.unlink()
    assert total(lines(context, settings_for(tmp_path))) == Decimal("0.18")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"EffectiveCost": "1,5"}, "b.csv, row 2: EffectiveCost is '1,5': a number is needed"),
        ({"EffectiveCost": ""}, "b.csv, row 2: EffectiveCost is None: a number is needed"),
        ({"EffectiveCost": "0.123456789012345678901"}, "it has more than 20 decimals"),
        ({"BillingCurrency": "EUR"}, "b.csv, row 2: BillingCurrency is 'EUR': the tenant's currency is USD"),
        ({"ChargePeriodStart": "10/01/2026"}, "ChargePeriodStart is '10/01/2026': an instant in ISO 8601"),
        ({"ChargePeriodEnd": f"{DAY}T00:00:00Z"}, "the period ends before it begins"),
    ],
)
def test_a_row_that_cannot_be_understood(
    context: TenantContext, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """The error names the file, the row and the column."""
    write_csv(tmp_path / "a.csv", [row()])
    write_csv(tmp_path / "b.csv", [row(), row() | changes])
    with pytest.raises(SourceDataError, match=message.replace("(", r"\(")):
        lines(context, settings_for(tmp_path))


def test_a_filter_leaves_out_other_currencies(context: TenantContext, tmp_path: Path) -> None:
    """Rows that the filter excludes may have another currency."""
    write_csv(tmp_path / "a.csv", [row(), row(BillingCurrency="EUR", ServiceName="Other")])
    assert total(lines(context, settings_for(tmp_path, filter={"services": ["Amazon MSK"]}))) == Decimal("0.18")


def test_files_that_cannot_be_read(context: TenantContext, tmp_path: Path) -> None:
    """The error names a missing column or a truncated file."""
    write_csv(tmp_path / "a.csv", [{name: value for name, value in row().items() if name != "EffectiveCost"}])
    with pytest.raises(SourceDataError, match=r"a\.csv has no column EffectiveCost"):
        lines(context, settings_for(tmp_path))
    (tmp_path / "a.csv").unlink()
    whole = write_parquet(tmp_path / "b.parquet", [row()])
    whole.write_bytes(whole.read_bytes()[:-20])
    settled(whole)
    with pytest.raises(SourceDataError, match=r"the bill cannot be read.*b\.parquet"):
        lines(context, settings_for(tmp_path))


def test_sums_with_too_many_digits(context: TenantContext, tmp_path: Path) -> None:
    """A sum that does not fit is an error and is not rounded."""
    write_csv(tmp_path / "a.csv", [row(EffectiveCost="9" * 18) for _ in range(3)])
    with pytest.raises(SourceTooLarge, match="too many digits"):
        lines(context, settings_for(tmp_path))


#: Every column of a version, as its specification lists them, with a row as providers write it.
SAMPLE_1_0 = {
    **dict.fromkeys(
        (
            *("AvailabilityZone", "ChargeClass", "ResourceId", "ResourceName", "ResourceType"),
            *("CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName"),
            *("CommitmentDiscountStatus", "CommitmentDiscountType"),
        ),
        "NULL",
    ),
    **dict.fromkeys(("BilledCost", "ContractedCost", "ListCost"), "0.0000000123"),
    **dict.fromkeys(("ContractedUnitPrice", "ListUnitPrice"), "0.00082"),
    **dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), "AWS"),
    **dict.fromkeys(("ConsumedUnit", "PricingUnit"), "GB"),
    **dict.fromkeys(("BillingAccountId", "SubAccountId"), "1"),
    **dict.fromkeys(("SkuId", "SkuPriceId"), "ABC"),
    "BillingAccountName": 'Acme, Inc. "EU"',
    "BillingCurrency": "USD",
    "BillingPeriodEnd": "2026-02-01T00:00:00Z",
    "BillingPeriodStart": "2026-01-01T00:00:00Z",
    "ChargeCategory": "Usage",
    "ChargeDescription": "storage,\nper GB",
    "ChargeFrequency": "Usage-Based",
    "ChargePeriodEnd": f"{DAY}T01:00:00Z",
    "ChargePeriodStart": f"{DAY}T00:00:00Z",
    "ConsumedQuantity": "1.5e-05",
    "EffectiveCost": "1.23e-08",
    "PricingCategory": "Standard",
    "PricingQuantity": "0.000015",
    "RegionId": "eu-central-1",
    "RegionName": "EU (Frankfurt)",
    "ServiceCategory": "Storage",
    "ServiceName": "Amazon S3",
    "SubAccountName": "kafka",
    "Tags": "{}",
    "x_Operation": "PutObject",
}
SAMPLE_1_1 = SAMPLE_1_0 | {
    **dict.fromkeys(("CapacityReservationId", "CapacityReservationStatus"), ""),
    **dict.fromkeys(("CommitmentDiscountQuantity", "CommitmentDiscountUnit"), ""),
    "ServiceSubcategory": "Object Storage",
    "SkuMeter": "TimedStorage",
    "SkuPriceDetails": "{}",
}
SAMPLE_1_2 = SAMPLE_1_1 | {
    **dict.fromkeys(("PricingCurrencyContractedUnitPrice", "PricingCurrencyListUnitPrice"), "0.00082"),
    "BillingAccountType": "Billing Account",
    "InvoiceId": "",
    "PricingCurrency": "USD",
    "PricingCurrencyEffectiveCost": "0.0000000123",
    "SubAccountType": "Account",
}


@pytest.mark.parametrize(
    ("version", "sample"), [("1.0", SAMPLE_1_0), ("1.1", SAMPLE_1_1), ("1.2", SAMPLE_1_2)], ids=["1.0", "1.1", "1.2"]
)
def test_samples_of_each_version(context: TenantContext, tmp_path: Path, version: str, sample: dict[str, str]) -> None:
    """Every column of a version, with quotes, line breaks, exponents and NULL, is read without an error."""
    write_csv(tmp_path / "a.csv", [sample])
    (line,) = lines(context, settings_for(tmp_path, version=version))
    assert (line.total_cost, line.quantity) == (Decimal("0.000000012300"), Decimal("0.000015"))
    assert (line.description, line.resource_id) == ("storage,\nper GB", "orders")
    with gatherer(context, settings_for(tmp_path)) as opened:
        (files, *_) = opened.check()
    assert files.detail.startswith(f"a.csv in FOCUS {version}, 0.0 MiB")


def test_a_newer_version_than_expected(context: TenantContext, tmp_path: Path) -> None:
    """The error names the file and the column that belongs to a newer version."""
    write_csv(tmp_path / "a.csv", [SAMPLE_1_0])
    write_csv(tmp_path / "b.csv", [SAMPLE_1_2])
    with pytest.raises(
        SourceDataError, match=r"b\.csv is of a newer version than bill\.version 1\.1: it has InvoiceId"
    ):
        lines(context, settings_for(tmp_path, version="1.1"))


def test_versions_side_by_side(context: TenantContext, tmp_path: Path) -> None:
    """Files of several versions of FOCUS may be combined; columns that a version lacks are empty."""
    old = {name: value for name, value in row().items() if name not in {"SkuMeter", "PricingQuantity", "PricingUnit"}}
    write_csv(tmp_path / "old.csv", [old | {"SkuId": "ABC"}])
    write_csv(tmp_path / "new.csv", [row()])
    assert {line.product_type for line in lines(context, settings_for(tmp_path), DAYS)} == {
        "ABC",
        "USE1-Kafka.m5.large",
    }
