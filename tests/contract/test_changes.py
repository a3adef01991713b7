"""The change between two ranges is the difference of their aggregates, and its effects sum to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from hypothesis import given, seed, settings
from hypothesis import strategies as st

from tests.contract.records import Client, Everything, Record, shown
from tests.contract.test_aggregation import COLUMNS
from tests.contract.test_costs import FILTERS, ZONES
from tests.support.laws import examples

BY = [*COLUMNS, "allocation_detail", "cluster_id", "tag:team", "category:cost_center", "category:cost_center@1"]
Sums = dict[tuple[str | None, ...], Decimal]
_ZERO = Decimal(0)


@given(
    by=st.lists(st.sampled_from(BY), min_size=1, max_size=3, unique=True),
    filters=st.sampled_from(FILTERS),
    zone=st.sampled_from(ZONES),
    ends=st.lists(st.integers(0, 10), min_size=4, max_size=4),
    limit=st.sampled_from([1, 5, 1000]),
)
@seed(17)
@settings(max_examples=examples(15), database=None)
def test_changes_are_the_aggregates(
    client: Client,
    everything: Everything,
    by: list[str],
    filters: dict[str, Any],
    zone: str,
    ends: list[int],
    limit: int,
) -> None:
    """Amounts equal the aggregates of both ranges exactly; swapping the ranges negates every change."""
    days = everything.days[-11:]
    first, second = sorted(days[end] for end in ends[:2]), sorted(days[end] for end in ends[2:])
    params = filters | {"group_by": by, "limit": limit, "timezone": zone}
    path = f"{everything.base}/chargebacks/changes"
    answer = client.answer(path, **params, **_ranges(first, second))
    before, after = (
        _aggregated(client, everything, filters | {"group_by": by, "timezone": zone}, each) for each in (first, second)
    )
    _check_amounts(answer, before, after, by)
    back = client.answer(path, **params, **_ranges(second, first))
    assert [_values(item, by) for item in back["items"]] == [_values(item, by) for item in answer["items"]]
    for one, other in zip([*answer["items"], answer["totals"]], [*back["items"], back["totals"]], strict=True):
        assert (one["before"], one["after"]) == (other["after"], other["before"])
        assert Decimal(one["delta"]) == -Decimal(other["delta"])


def _check_amounts(answer: Record, before: Sums, after: Sums, by: Sequence[str]) -> None:
    listed = [*answer["items"], *([answer["other"]] if answer["other"] else [])]
    for each in [*listed, answer["totals"]]:
        assert sum(map(Decimal, each["effects"].values())) == Decimal(each["delta"])
        assert Decimal(each["after"]) - Decimal(each["before"]) == Decimal(each["delta"])
    for item in answer["items"]:
        values = _values(item, by)
        assert (item["before"], item["after"]) == (shown(before.get(values, _ZERO)), shown(after.get(values, _ZERO)))
    assert len(answer["items"]) + (answer["other"] or {"count": 0})["count"] == len(before.keys() | after.keys())
    for side, sums in (("before", before), ("after", after)):
        assert (
            answer["totals"][side]
            == shown(_plus(sums.values()))
            == shown(_plus(Decimal(each[side]) for each in listed))
        )
    changes = [abs(Decimal(item["delta"])) for item in answer["items"]]
    assert changes == sorted(changes, reverse=True)


def _plus(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, _ZERO)


def _ranges(first: list[str], second: list[str]) -> dict[str, str]:
    return {"from_start": first[0], "from_end": first[1], "to_start": second[0], "to_end": second[1]}


def _values(item: Record, by: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(item["dimensions"][name] for name in by)


def _aggregated(client: Client, everything: Everything, params: Record, days: list[str]) -> Sums:
    dates = {"start_date": days[0], "end_date": days[1]}
    sums: Sums = {}
    for bucket in client.answer(f"{everything.base}/chargebacks/aggregate", **params, **dates)["buckets"]:
        values = _values(bucket, params["group_by"])
        sums[values] = sums.get(values, _ZERO) + Decimal(bucket["total_amount"])
    return sums


def test_the_usual_comparison(client: Client, everything: Everything) -> None:
    """A period is compared with the same number of days before, with the year before, or with two dates."""
    path = f"{everything.base}/chargebacks/changes"
    dates = {"start_date": everything.days[-3], "end_date": everything.days[-1]}
    before = {"from_start": everything.days[-6], "from_end": everything.days[-4]}
    after = {"to_start": everything.days[-3], "to_end": everything.days[-1]}
    answer = client.answer(path, **before, **after)
    assert client.answer(path, **dates) == answer == client.answer(path, **dates, compare="previous")
    assert client.answer(path, **dates, compare=f"{everything.days[-6]}..{everything.days[-4]}") == answer
    assert (answer["days_with_costs"], answer["compared_with"]["days_with_costs"]) == (3, 3)
    per_day = Decimal(answer["totals"]["after"]) / 3
    assert abs(Decimal(answer["totals"]["per_day_after"]) - per_day) < Decimal("1e-11")
    assert "because" in answer["totals"]["sentence"]
    year = client.answer(path, **dates, compare="year")
    assert year["totals"]["per_day_before"] is None
    assert year["totals"]["effects"]["new"] == year["totals"]["delta"] == year["totals"]["after"]


def test_names_and_earlier_instants(client: Client, everything: Everything) -> None:
    """Listed ids have names; as of an instant before the first calculation, nothing changed."""
    path = f"{everything.base}/chargebacks/changes"
    aggregate = client.answer(f"{everything.base}/chargebacks/aggregate", period="7d", names="true")
    answer = client.answer(path, period="7d", compare="year")
    assert answer["names"] == aggregate["names"]
    assert client.answer(path, period="7d", as_of="2100-01-01T00:00:00Z")["items"]
    nothing = client.answer(path, period="7d", as_of="2000-01-01T00:00:00Z")
    assert (nothing["items"], nothing["totals"]["sentence"]) == ([], "Nothing changed.")


def test_ranges_are_complete_and_alone(client: Client, everything: Everything) -> None:
    """Two ranges need four dates in order, and cannot be combined with a period or a comparison."""
    path = f"{everything.base}/chargebacks/changes"

    def _wrong(**params: str) -> set[str]:
        response = client.get(path, params=params)
        assert response.status_code == 400
        return {error["parameter"] for error in response.json()["errors"]}

    assert _wrong(from_start="2026-01-01") == {"from_end", "to_start", "to_end"}
    ranges = _ranges(["2026-01-01", "2026-01-02"], ["2026-02-01", "2026-02-02"])
    assert _wrong(**ranges, period="7d", compare="year") == {"period", "compare"}
    assert _wrong(**(ranges | {"from_end": "2025-12-31"})) == {"from_end"}
    assert _wrong(compare="none") == {"compare"}
