"""The flow is the aggregate by neighbouring columns; values beyond the limit are summed as others."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from tests.contract.records import Client, Everything, Record, shown
from tests.support.laws import first_of

_OTHERS = "the others"
_Sums = dict[tuple[Any, ...], Decimal]


@pytest.mark.parametrize(
    ("by", "top", "filters"),
    first_of(
        (["environment_id", "resource_id", "identity_id"], "6,9,10", {}),
        (["product_type", "tag:team"], "2", {"not.identity_id": "UNALLOCATED"}),
        (["cost_type", "identity_id", "product_category", "resource_id"], "1,1,1,50", {"timezone": "Asia/Tokyo"}),
        (["identity_id", "environment_id"], "3,1", {"product_category": "no such category"}),
    ),
)
def test_links_are_the_aggregate(
    client: Client, everything: Everything, by: list[str], top: str, filters: dict[str, str]
) -> None:
    """Every node and link of both periods equals the aggregate exactly."""
    periods = [(everything.days[-4], everything.days[-1]), (everything.days[-8], everything.days[-5])]
    dates = [{"start_date": start, "end_date": end} for start, end in periods]
    answer = client.answer(f"{everything.base}/flow", **dates[0], **filters, by=by, top=top, compare="previous")
    for number, (left, right) in enumerate(pairwise(by)):
        amounts, befores = (
            _folded(_sums(client, everything, each | filters, left, right), answer, number) for each in dates
        )
        links = {
            (link["source"], link["target"]): (link["amount"], link["previous"])
            for link in answer["links"]
            if answer["nodes"][link["source"]]["column"] == number
        }
        expected = amounts.keys() | befores.keys()
        assert links == {
            key: (shown(amounts.get(key, Decimal(0))), shown(befores.get(key, Decimal(0)))) for key in expected
        }
        for side, column in ((0, number), (1, number + 1)):
            for place, node in enumerate(answer["nodes"]):
                if node["column"] == column:
                    assert (node["amount"], node["previous"]) == (_at(amounts, side, place), _at(befores, side, place))


def _at(sums: _Sums, side: int, place: int) -> str:
    return shown(sum((amount for key, amount in sums.items() if key[side] == place), Decimal(0)))


def _sums(client: Client, everything: Everything, params: Record, left: str, right: str) -> _Sums:
    sums: _Sums = defaultdict(Decimal)
    path = f"{everything.base}/chargebacks/aggregate"
    for bucket in client.answer(path, **params, group_by=[left, right], time_bucket="month")["buckets"]:
        sums[(bucket["dimensions"][left], bucket["dimensions"][right])] += Decimal(bucket["total_amount"])
    return sums


def _folded(sums: _Sums, answer: Record, number: int) -> _Sums:
    """Return the sums by index of nodes; values without a node of their own belong to the others."""
    places: list[dict[Any, int]] = [{}, {}]
    for place, node in enumerate(answer["nodes"]):
        if node["column"] in (number, number + 1):
            value = node["value"] if node["other"] is None else _OTHERS
            places[node["column"] - number][value] = place
    folded: _Sums = defaultdict(Decimal)
    for values, amount in sums.items():
        ends = (of.get(value, of.get(_OTHERS)) for of, value in zip(places, values, strict=True))
        folded[tuple(ends)] += amount
    return folded
