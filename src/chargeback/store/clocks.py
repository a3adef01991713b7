"""The offset of a server's clock from this machine's, estimated from one response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from chargeback.model.days import utc_now

#: Clocks that are synchronised differ by much less.
USUAL: Final = timedelta(seconds=2)
#: Object storage refuses requests that were signed 15 minutes ago or later, and tokens have leeways of a minute: long
#: before that, a clock that drifts has to be set.
MOST: Final = timedelta(minutes=5)
_NONE: Final = timedelta()


@dataclass(frozen=True, slots=True)
class ClockReading:
    """What a server said the time was, at some moment from ``before`` to ``after`` by this machine's clock; it may have
    been later by up to ``rounding``."""

    before: datetime
    server: datetime
    after: datetime
    rounding: timedelta = _NONE

    @property
    def ahead(self) -> timedelta:
        """Return how far the server's clock is ahead of this machine's (negative: behind), if the response took as long
        as the request."""
        return self.server + self.rounding / 2 - self.before - (self.after - self.before) / 2

    @property
    def difference(self) -> timedelta:
        """Return the minimum difference of the clocks, however long the response took; never negative."""
        return max(self.server - self.after, self.before - self.server - self.rounding, _NONE)


def read_clock(ask: Callable[[], datetime]) -> ClockReading:
    """Return the time that ``ask`` returns, with our own clock before and after."""
    before = utc_now()
    server = ask()
    return ClockReading(before, server, utc_now())
