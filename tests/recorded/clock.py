"""A clock that is stopped for the whole program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from chargeback.model import days

#: The current time of the recorded service. The days before it include the ends of two months and of a quarter, and
#: the day on which daylight saving time begins in Europe.
NOW: Final = datetime(2026, 4, 10, 12, tzinfo=UTC)


class Present:
    """The time of the stopped clock."""

    instant: datetime = NOW


def _present() -> datetime:
    from tests.recorded.clock import Present  # this code runs with the globals of another module

    return Present.instant


@contextmanager
def stopped_at(instant: datetime) -> Iterator[None]:
    """Stop the program's own clock at ``instant``.

    Many modules refer to the clock's function itself, some as the default of a parameter, so its code is replaced.
    """
    clock: Any = days.utc_now
    former, before = clock.__code__, Present.instant
    Present.instant, clock.__code__ = instant, _present.__code__
    try:
        yield
    finally:
        Present.instant, clock.__code__ = before, former
