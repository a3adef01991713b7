"""Calls are counted by source and status."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from chargeback.errors import SourceError
from chargeback.sources.calls import CALLS, NO_ANSWER, CallCounter
from chargeback.sources.http import HttpClient
from chargeback.sources.requests import Call, Limits


def test_threads_lose_no_call() -> None:
    """Calls of several threads are counted exactly."""
    counter = CallCounter()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(400):
            pool.submit(counter.count, "metrics", "200")
    counter.count("metrics", "429")
    assert counter.read() == {("metrics", "200"): 400, ("metrics", "429"): 1}


def test_what_was_read_does_not_change() -> None:
    """The counts that are read are a copy."""
    counter = CallCounter()
    before = counter.read()
    counter.count("metrics", "200")
    assert before == {}


def test_a_call_without_an_answer_counts() -> None:
    """If no server listens, every attempt counts as a call without a response."""
    limits = Limits(attempts=2, first_backoff_seconds=0.01)
    with (
        HttpClient("http://127.0.0.1:1", source="nobody", stop=Event(), limits=limits) as client,
        pytest.raises(SourceError),
    ):
        client.read_json(Call("/"))
    assert CALLS.read()["nobody", NO_ANSWER] == 2
