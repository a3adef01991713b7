"""Paging as the provider does it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.demo.faults import PagingFault
from chargeback.demo.responses import Listing, ListKind, Refusal, dumps, invalid, loads, number, page, refusal_response

KIND = ListKind("iam/v2", "UserList")
URL = "http://127.0.0.1/iam/v2/users"


def _numbers(count: int) -> Listing:
    return Listing(count, lambda first, end: [str(number) for number in range(first, end)])


def _page(query: Mapping[str, str], kind: ListKind = KIND, fault: PagingFault | None = None) -> Any:
    return json.loads(page(kind, _numbers(25), URL, query, fault=fault).body)


def _next(body: Any) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(body["metadata"]["next"]).query))


def test_pages_give_everything_once() -> None:
    """Following ``next`` from the first page returns every item once; a token contains the size and the filters."""
    seen: list[int] = []
    query: Mapping[str, str] = {"page_size": "7", "colour": "blue"}
    for _ in range(4):
        body = _page(query)
        seen += body["data"]
        if "next" not in body["metadata"]:
            break
        query = _next(body)
        assert query["colour"] == "blue"
        assert len(query["page_token"]) <= 255
    assert seen == list(range(25))


@pytest.mark.parametrize(("last_next", "expected"), [("absent", {}), ("empty", {"next": ""}), ("null", {"next": None})])
def test_the_end_is_told_in_three_ways(last_next: Any, expected: dict[str, str | None]) -> None:
    """No ``next``, an empty one and null all mark the last page."""
    metadata = _page({"page_size": "100"}, ListKind("iam/v2", "UserList", last_next=last_next))["metadata"]
    assert {name: value for name, value in metadata.items() if name == "next"} == expected


@pytest.mark.parametrize(
    "query",
    [{"page_size": "0"}, {"page_size": "101"}, {"page_size": "x"}, {"page_token": "?"}, {"page_token": "W10="}],
)
def test_bad_paging_is_refused(query: dict[str, str]) -> None:
    """A page size out of range and an unknown token return 400, which names the parameter."""
    with pytest.raises(Refusal) as caught:
        _page(query)
    assert (caught.value.status, caught.value.parameter) == (400, next(iter(query)))


def test_a_token_belongs_to_its_list() -> None:
    """A token used with other filters is rejected."""
    token = _next(_page({"colour": "blue"}))["page_token"]
    with pytest.raises(Refusal, match="another list"):
        _page({"colour": "red", "page_token": token})


def test_endless_paging_never_ends() -> None:
    """With this fault, the same page is returned repeatedly, each time with a new token."""
    first = _page({}, fault="endless")
    second = _page(_next(first), fault="endless")
    assert second["data"] == first["data"]
    assert _next(second)["page_token"] != _next(first)["page_token"]


def test_a_duplicated_page_repeats_the_one_before() -> None:
    """With this fault, the second page has the items of the first, and ``next`` continues."""
    second = _page(_next(_page({})), fault="duplicate")
    assert second["data"] == list(range(10))
    assert _page(_next(second))["data"] == list(range(20, 25))


def test_pages_may_be_smaller_than_asked_for() -> None:
    """The size of pages can be limited, and paging continues from there."""
    first = json.loads(page(KIND, _numbers(25), URL, {"page_size": "10"}, largest=4).body)
    second = json.loads(page(KIND, _numbers(25), URL, _next(first), largest=4).body)
    assert (first["data"], second["data"]) == ([0, 1, 2, 3], [4, 5, 6, 7])


def test_an_empty_list_may_be_null() -> None:
    """If configured, an empty list is null instead of []."""
    assert json.loads(page(KIND, _numbers(0), URL, {}).body)["data"] == []
    assert json.loads(page(KIND, _numbers(0), URL, {}, null_when_empty=True).body)["data"] is None


def test_refusals_have_the_shape_of_their_family() -> None:
    """connect/v1 has its own error shape; the others share one that names the parameter."""
    refusal = invalid("colour", "no colours here")
    assert json.loads(refusal_response(refusal, "connect").body) == {
        "error": {"code": 400, "message": "no colours here"}
    }
    (error,) = json.loads(refusal_response(refusal, "control").body)["errors"]
    assert (error["status"], error["source"]) == ("400", {"parameter": "colour"})


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15, places=12))
def test_decimals_survive(value: Decimal) -> None:
    """A decimal that is written and read as a decimal does not change."""
    assert loads(dumps({"a": [value, None, True, "ü"]})) == {"a": [value, None, True, "ü"]}


def test_numbers_look_like_the_providers() -> None:
    """Numbers have plain digits without superfluous zeros, and an exponent only if they are very small, as Go writes
    them."""
    texts = [number(Decimal(text)) for text in ("1.500", "100", "-0.000001", "0.00000013", "0.000", "1E+2")]
    assert texts == ["1.5", "100", "-0.000001", "1.3e-7", "0", "100"]


def test_floats_are_refused() -> None:
    """A float is an error, because it cannot be written exactly."""
    with pytest.raises(TypeError, match="float"):
        dumps({"amount": 0.1})
