"""Calls are counted by source and status."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from chargeback.errors import SourceError
from chargeback.sources.calls import CALLS, NO_ANSWER, CallCounter
from chargeback.sources.http import Call, HttpClient, Limits


def test_threads_lose_no_call() -> None:
    """Every call of every thread counts."""
    counter = CallCounter()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(400):
            pool.submit(counter.count, "metrics", "200")
    counter.count("metrics", "429")
    assert counter.read() == {("metrics", "200"): 400, ("metrics", "429"): 1}


def test_what_was_read_does_not_change() -> None:
    """A reading is a copy."""
    counter = CallCounter()
    before = counter.read()
    counter.count("metrics", "200")
    assert before == {}


def test_a_call_without_an_answer_counts() -> None:
    """Where no server listens, every attempt counts as unanswered."""
    limits = Limits(attempts=2, first_backoff_seconds=0.01)
    with (
        HttpClient("http://127.0.0.1:1", source="nobody", stop=Event(), limits=limits) as client,
        pytest.raises(SourceError),
    ):
        client.read_json(Call("/"))
    assert CALLS.read()["nobody", NO_ANSWER] == 2
