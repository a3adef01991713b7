"""Reads and writes that do not wait for each other: in object storage it is the waiting that takes time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: How many files or objects are read or written at the same time.
PARALLEL: Final = 16


def side_by_side(work: Callable[[T], R], of: Sequence[T]) -> list[R]:
    """Do some work on each of many things, a few at a time; return what came of each. After an error no more is
    begun."""
    if len(of) < 2:
        return [work(each) for each in of]
    pool = ThreadPoolExecutor(min(PARALLEL, len(of)), "facts")
    try:
        return [done.result() for done in [pool.submit(work, each) for each in of]]
    finally:
        pool.shutdown(cancel_futures=True)
