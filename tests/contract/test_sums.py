"""The bill, the rows, every aggregate, the file and the topics' bill have the same sum."""

from __future__ import annotations

import csv
import io
from datetime import date, timedelta
from decimal import Decimal
from zoneinfo import available_timezones

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from tests.contract.records import Client, Everything, shown, total
from tests.contract.test_aggregation import COLUMNS, UNITS
from tests.support.laws import examples, one_first

ZONES = sorted(available_timezones() - {"localtime", "Factory"})
WHOLE = {"start_date": "2000-01-01", "end_date": "2999-12-30"}


def csv_sum(client: Client, base: str, asked: dict[str, str]) -> str:
    """Return the sum of the amounts in an export."""
    response = client.post(f"{base}/export", json=asked | {"columns": ["amount"]})
    assert response.status_code == 200
    return shown(sum((Decimal(row["amount"]) for row in csv.DictReader(io.StringIO(response.text))), Decimal(0)))


def sums_of(client: Client, base: str, asked: dict[str, str], by: list[str], unit: str) -> dict[str, str]:
    """Return the sum from every endpoint that has it."""
    aggregate = client.answer(f"{base}/chargebacks/aggregate", **asked, group_by=by, time_bucket=unit)
    rows = client.all_items(f"{base}/chargebacks", **asked)
    assert aggregate["total_rows"] == len(rows) == sum(bucket["row_count"] for bucket in aggregate["buckets"])
    parts = Decimal(aggregate["usage_amount"]) + Decimal(aggregate["shared_amount"])
    return {
        "bill": shown(total(client.all_items(f"{base}/billing", **asked), "total_cost")),
        "rows": shown(total(rows)),
        "aggregate": aggregate["total_amount"],
        "buckets": shown(total(aggregate["buckets"], "total_amount")),
        "usage and shared": shown(parts),
        "file": csv_sum(client, base, asked),
    }


@given(
    zone=st.sampled_from(ZONES),
    first=st.integers(-3, 14),
    length=st.integers(0, 17),
    by=st.lists(st.sampled_from([*COLUMNS, "tag:team"]), min_size=1, max_size=3, unique=True),
    unit=st.sampled_from(UNITS),
)
@seed(7)
@settings(max_examples=examples(40), database=None)
def test_sums_agree(
    client: Client, everything: Everything, zone: str, first: int, length: int, by: list[str], unit: str
) -> None:
    """The sums are equal as strings, for any range of days, time zone, columns and time bucket."""
    start = date.fromisoformat(everything.days[0]) + timedelta(days=first)
    asked = {"start_date": str(start), "end_date": str(start + timedelta(days=length)), "timezone": zone}
    sums = sums_of(client, everything.base, asked, by, unit)
    assert len(set(sums.values())) == 1, sums


@pytest.mark.parametrize(
    "zone", one_first(["Pacific/Kiritimati", "UTC", "Pacific/Pago_Pago", "America/St_Johns", "Antarctica/Troll"])
)
def test_the_whole_is_the_same_in_every_zone(client: Client, everything: Everything, zone: str) -> None:
    """A range that contains everything has the same sum in every time zone."""
    sums = sums_of(client, everything.base, WHOLE | {"timezone": zone}, ["identity_id"], "month")
    assert set(sums.values()) == {shown(total(everything.billing, "total_cost"))}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("by", [*COLUMNS, "tag:team"])
def test_every_column_and_unit(client: Client, everything: Everything, by: str, unit: str) -> None:
    """The totals are the same for any ``group_by`` and ``time_bucket``."""
    asked = {"group_by": by, "time_bucket": unit, "timezone": "America/Sao_Paulo"} | WHOLE
    answer = client.answer(f"{everything.base}/chargebacks/aggregate", **asked)
    assert (
        answer["total_amount"]
        == shown(total(answer["buckets"], "total_amount"))
        == shown(total(everything.billing, "total_cost"))
    )
    assert answer["usage_amount"] == shown(total(answer["buckets"], "usage_amount"))
    assert answer["shared_amount"] == shown(total(answer["buckets"], "shared_amount"))


def test_issues_are_a_part_of_the_rows(client: Client, everything: Everything) -> None:
    """Allocation issues sum to the rows that they cover."""
    wanted = {
        (issue["resource_id"], issue["identity_id"], issue["product_type"], issue["allocation_detail"])
        for issue in everything.issues
    }
    rows = [
        row
        for row in everything.chargebacks
        if (row["resource_id"], row["identity_id"], row["product_type"], row["allocation_detail"]) in wanted
    ]
    assert shown(total(everything.issues, "total_cost")) == shown(total(rows))
    assert sum(issue["row_count"] for issue in everything.issues) == len(rows)


def test_topics_sum_to_their_own_total(client: Client, everything: Everything) -> None:
    """The list, every aggregate and the file of topics have the same sum."""
    base = f"{everything.base}/topic-attributions"
    whole = shown(total(everything.topics))
    for by in ("topic_name", "cluster_resource_id", "env_id", "product_type", "attribution_method", "tag:team"):
        for unit in UNITS:
            asked = {"group_by": by, "time_bucket": unit, "timezone": "Asia/Tokyo"} | WHOLE
            answer = client.answer(f"{base}/aggregate", **asked)
            assert answer["total_amount"] == shown(total(answer["buckets"], "total_amount")) == whole
    file = client.post(f"{base}/export", json=WHOLE)
    assert shown(total(csv.DictReader(io.StringIO(file.text)))) == whole
