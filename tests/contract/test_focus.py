"""The export in FOCUS: the whole bill, exactly, in files that match their metadata."""

from __future__ import annotations

import csv
import io
from contextlib import closing
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.focus.columns import FocusLayout
from chargeback.store.tenant import open_store
from tests.contract.deployment import Deployment
from tests.contract.problems import complaints
from tests.contract.records import Client, Everything
from tests.support.focus import focus_source, layouts, read_focus
from tests.support.focus_checks import check_focus
from tests.support.laws import one_first

PARQUET = "application/vnd.apache.parquet"


def exported(client: Client, base: str, **body: Any) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    response = client.post(f"{base}/export/focus", json=body)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(response.text, newline="")))


def billed(everything: Everything) -> Decimal:
    """Return the billed amount of the calculated days."""
    days = set(everything.days)
    return sum(
        (Decimal(line["total_cost"]) for line in everything.billing if line["timestamp"][:10] in days), Decimal(0)
    )


@pytest.mark.parametrize("split", ["identities", "topics", "none"])
@pytest.mark.parametrize("version", ["1.2", "1.4"])
def test_every_dataset_has_the_whole_bill(client: Client, everything: Everything, version: str, split: str) -> None:
    """The rows sum to the bill, and the columns are those in the metadata."""
    rows = exported(client, everything.base, version=version, split=split)
    assert sum(Decimal(row["BilledCost"]) for row in rows) == billed(everything)
    metadata = client.answer(f"{everything.base}/export/focus/metadata", version=version, split=split)
    (schema,) = metadata["Schema"]
    assert schema["FocusVersion"] == version
    assert [each["ColumnName"] for each in schema["ColumnDefinition"]] == list(rows[0])
    (recency,) = metadata["Recency"]
    complete = {each["TimeSectorStart"][:10] for each in recency["TimeSectors"] if each["TimeSectorComplete"]}
    assert {row["ChargePeriodStart"][:10] for row in rows} <= complete


@pytest.mark.extensive
@pytest.mark.parametrize("layout", one_first(layouts()), ids=lambda layout: f"{layout.version}-{layout.split}")
def test_every_rule_holds(deployment: Deployment, everything: Everything, layout: FocusLayout) -> None:
    """Sums, prices, texts and rules across rows hold, which no validator checks."""
    tenant = deployment.configuration.tenants["acme"]
    days = [date.fromisoformat(day) for day in everything.days]
    with closing(open_store(tenant)) as store, focus_source(store, tenant) as source:
        check_focus(read_focus(source, layout, DayRange(days[0], days[-1] + ONE_DAY), days))


def test_identities_have_what_they_are_charged(client: Client, everything: Everything) -> None:
    """The amounts that FOCUS allocates to an identity equal its chargebacks."""
    sums: dict[str, Decimal] = {}
    for row in exported(client, everything.base, version="1.4"):
        sums[row["AllocatedResourceId"]] = sums.get(row["AllocatedResourceId"], Decimal(0)) + Decimal(row["BilledCost"])
    expected: dict[str, Decimal] = {}
    for row in everything.chargebacks:
        name = "" if row["identity_id"] == "UNALLOCATED" else row["identity_id"]
        expected[name] = expected.get(name, Decimal(0)) + Decimal(row["amount"])
    assert {name: amount for name, amount in sums.items() if amount} == {k: v for k, v in expected.items() if v}


def test_parquet_has_the_same_values(client: Client, everything: Everything) -> None:
    """Parquet has the same values as CSV, as decimals and timestamps."""
    response = client.post(f"{everything.base}/export/focus", json={"format": "parquet"})
    assert response.headers["content-type"] == PARQUET
    assert response.headers["content-disposition"] == "attachment; filename=focus-1.2-identities.parquet"
    table = pq.read_table(pa.BufferReader(response.content))
    assert table.schema.field("PricingQuantity").type == pa.decimal128(38, 18)
    texts = exported(client, everything.base)
    assert [Decimal(row["ListCost"]) for row in texts] == table.column("ListCost").to_pylist()
    assert [row["ChargeDescription"] for row in texts] == table.column("ChargeDescription").to_pylist()


def test_some_days_and_columns(client: Client, everything: Everything) -> None:
    """Both ends of a range are included; columns, including cost categories, are in the requested order."""
    first, last = everything.days[1], everything.days[2]
    columns = ["x_CostCategoryCostCenter", "ChargePeriodStart"]
    rows = exported(client, everything.base, start_date=first, end_date=last, columns=columns)
    assert list(rows[0]) == columns
    assert {row["ChargePeriodStart"] for row in rows} == {f"{day}T00:00:00Z" for day in (first, last)}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"timezone": "Europe/Berlin"}, ["timezone"]),
        ({"filters": {"identity_id": "sa-1"}}, ["filters"]),
        ({"version": "1.3", "split": "teams", "format": "jsonl"}, ["format", "split", "version"]),
        ({"columns": ["AllocatedTags"]}, ["columns"]),
        ({"columns": ["BilledCost", "BilledCost"]}, ["columns"]),
        ({"columns": ["x_CostCategoryNone"]}, ["columns"]),
        ({"columns": ["amount"]}, ["columns[0]"]),
        ({"start_date": "2026-02-02", "end_date": "2026-02-01"}, ["start_date"]),
    ],
    ids=str,
)
def test_what_is_refused(client: Client, everything: Everything, body: dict[str, Any], named: list[str]) -> None:
    """Other time zones, filters and unknown columns are a 400, before any data is sent."""
    assert sorted(set(complaints(client.post(f"{everything.base}/export/focus", json=body)))) == named


def test_filters_are_refused_with_the_reason(client: Client, everything: Everything) -> None:
    """The error says why a part of the bill is not exported."""
    response = client.post(f"{everything.base}/export/focus", json={"filters": {}})
    assert "would not sum to the bill" in response.text


def test_the_same_data_has_the_same_metadata(client: Client, everything: Everything) -> None:
    """Ids depend only on tenant, split and columns; the metadata does not change while the data does not."""
    path = f"{everything.base}/export/focus/metadata"
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    other = client.answer(path, split="none")
    assert other["DatasetInstance"] != first.json()["DatasetInstance"]
    assert client.answer(path, columns=["BilledCost"])["Schema"][0]["SchemaId"] != first.json()["Schema"][0]["SchemaId"]
