"""Sums by cost category equal those of the parts of rows, in every dataset."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from decimal import Decimal

import pytest

from tests.contract.records import Client, Everything, Record, total
from tests.contract.seeded import SEEDED

CATEGORY = f"category:{SEEDED}"


@pytest.fixture(params=["chargebacks", "topic-attributions"])
def rows(request: pytest.FixtureRequest, everything: Everything) -> tuple[str, list[Record]]:
    """Return the path of the rows of a dataset, and all of them."""
    found = everything.chargebacks if request.param == "chargebacks" else everything.topics
    return f"{everything.base}/{request.param}", found


def period(everything: Everything) -> dict[str, str]:
    """Return parameters for all days."""
    return {"start_date": everything.days[0], "end_date": everything.days[-1]}


def parts_of(rows: list[Record]) -> dict[str, Decimal]:
    """Return the sum of the parts of the rows, by value."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        for part in row["categories"][SEEDED]:
            sums[part["value"]] += Decimal(part["amount"])
    return dict(sums)


def test_parts_are_the_rows(rows: tuple[str, list[Record]]) -> None:
    """The shares of a row's parts sum to one, and their amounts to the row; some rows are split."""
    counts = set()
    for row in rows[1]:
        parts = row["categories"][SEEDED]
        assert sum(Decimal(part["category_share"]) for part in parts) == 1
        assert sum(Decimal(part["amount"]) for part in parts) == Decimal(row["amount"])
        counts.add(len(parts))
    assert counts == {1, 2}


def test_sums_are_those_of_the_parts(client: Client, everything: Everything, rows: tuple[str, list[Record]]) -> None:
    """Direct amounts by value equal the sums of the parts; reallocation does not change the total."""
    path, found = rows
    asked = {"group_by": CATEGORY, "time_bucket": "month", **period(everything)}
    answer = client.answer(f"{path}/aggregate", **asked)
    direct: dict[str, Decimal] = defaultdict(Decimal)
    for bucket in answer["buckets"]:
        direct[bucket["dimensions"][CATEGORY]] += Decimal(bucket["direct_amount"])
    assert dict(direct) == parts_of(found)
    assert Decimal(answer["total_amount"]) == total(found)
    assert answer["total_rows"] == len(found)
    assert Decimal(answer["shared_in"]) == Decimal(answer["shared_out"])


def test_filters_select_parts(client: Client, everything: Everything, rows: tuple[str, list[Record]]) -> None:
    """The sums of a value and of all others add up to the total; a list has the rows with a matching part."""
    path, found = rows
    sums = []
    for name in (CATEGORY, f"not.{CATEGORY}"):
        asked = {name: "retail", "time_bucket": "month", **period(everything)}
        sums.append(Decimal(client.answer(f"{path}/aggregate", **asked)["total_amount"]))
    assert sum(sums) == total(found)
    some = client.answer(path, **{CATEGORY: "orders", **period(everything)})
    assert some["total"] == sum(any(part["value"] == "orders" for part in row["categories"][SEEDED]) for row in found)


def test_a_file_has_the_parts(client: Client, everything: Everything) -> None:
    """An export has one line for each part of a row."""
    columns = ["identity_id", "amount", CATEGORY, "category_share"]
    response = client.post(f"{everything.base}/export", json={"columns": columns, **period(everything)})
    sums: dict[str, Decimal] = defaultdict(Decimal)
    lines = list(csv.DictReader(io.StringIO(response.text)))
    for line in lines:
        sums[line[CATEGORY]] += Decimal(line["amount"])
    assert dict(sums) == parts_of(everything.chargebacks)
    assert len(lines) == sum(len(row["categories"][SEEDED]) for row in everything.chargebacks)


def test_bills_and_costs(client: Client, everything: Everything) -> None:
    """Billing lines, costs and the flow have consistent sums by category."""
    whole = client.answer(f"{everything.base}/billing", **period(everything))["total"]
    halves = [
        client.answer(f"{everything.base}/billing", **{name: "platform", **period(everything)})["total"]
        for name in (CATEGORY, f"not.{CATEGORY}")
    ]
    assert sum(halves) == whole
    assert min(halves) > 0
    costs = client.answer(
        f"{everything.base}/costs", by=[CATEGORY, f"{CATEGORY}@1"], compare="none", top=50, **period(everything)
    )
    assert costs["total"]["rows"] == len(everything.chargebacks)
    for breakdown in costs["breakdowns"]:
        assert total(breakdown["items"]) == total(everything.chargebacks)
