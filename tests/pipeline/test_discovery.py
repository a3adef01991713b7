"""Lives of topics, told from the days on which the metrics name them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.pipeline.topics import TopicRegistry
from chargeback.store.control.topics import Lifetime

FIRST = date(2026, 1, 1)


def book_of(days: Iterable[tuple[int, str]]) -> TopicRegistry:
    """A book that has seen days of one cluster: (number, the letters of the topics named)."""
    book = TopicRegistry({}, {})
    for number, topics in days:
        book.observe(FIRST + timedelta(number), {"lkc-1": set(topics)})
    return book


def alive(book: TopicRegistry, days: Iterable[int]) -> list[str]:
    """The topics alive on each day, as letters."""
    return ["".join(sorted(book.alive_on(FIRST + timedelta(number)).get("lkc-1", ()))) for number in days]


@pytest.mark.parametrize("order", list(permutations([(0, "ab"), (1, "abc"), (2, "bc")])))
def test_whatever_order_the_days_come_in(order: list[tuple[int, str]]) -> None:
    """Who is there from the first day may always have been; who is gone on the newest is deleted as of it; who came
    later was created on the day it was first named."""
    book = book_of(order)
    assert alive(book, range(-1, 4)) == ["ab", "ab", "abc", "bc", "bc"]


def test_an_idle_day_in_between_is_no_end() -> None:
    """A topic that is named again was there all the time."""
    assert alive(book_of([(0, "ab"), (1, "a"), (2, "ab")]), range(3)) == ["ab", "ab", "ab"]


def test_a_day_that_names_nothing_tells_nothing() -> None:
    """A cluster without any series has not lost its topics."""
    assert alive(book_of([(0, "ab"), (1, "")]), [1]) == ["ab"]


def test_a_day_seen_again_changes_nothing() -> None:
    """Seeing a known day once more leaves every life as it was."""
    book = book_of([(0, "a"), (1, "ab"), (2, "b")])
    before = alive(book, range(3))
    book.new, book.changed = {}, {}
    for number, topics in ((1, "ab"), (2, "b"), (0, "a")):
        book.observe(FIRST + timedelta(number), {"lkc-1": set(topics)})
    assert (book.new, book.changed) == ({}, {})
    assert alive(book, range(3)) == before


def test_what_is_new_and_what_has_changed() -> None:
    """Only events are to be saved: an unknown beginning, a known one, an end."""
    book = book_of([(0, "ab")])
    assert book.new == {"lkc-1": {"a": Lifetime(), "b": Lifetime()}}
    book.new, book.changed = {}, {}
    book.observe(FIRST + timedelta(1), {"lkc-1": {"b", "c"}})
    (created,) = book.new["lkc-1"].items()
    (deleted,) = book.changed["lkc-1"].items()
    assert (created[0], deleted[0]) == ("c", "a")
    assert created[1].created_at == deleted[1].deleted_at
    assert created[1].deleted_at is deleted[1].created_at is None


@given(st.dictionaries(st.integers(0, 6), st.sets(st.sampled_from("abcd"), min_size=1), min_size=1), st.randoms())
def test_who_is_named_is_alive(days: dict[int, set[str]], chance: Random) -> None:
    """In whatever order days are seen, every topic is alive on each day that names it."""
    order = list(days.items())
    chance.shuffle(order)
    book = TopicRegistry({}, {})
    for number, topics in order:
        book.observe(FIRST + timedelta(number), {"lkc-1": topics})
    for number, topics in days.items():
        assert topics <= book.alive_on(FIRST + timedelta(number))["lkc-1"]
