"""What a run of the pipeline has to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run has to do: by default everything that is due.

    ``start`` and ``end`` (both inclusive UTC days, either may be missing) narrow the days that are calculated; with
    ``recalculate``, usage is fetched again and these days are recalculated although their inputs have not changed; with
    ``accept_less``, responses with less than is stored are accepted too; with ``restate``, policies with dates may be
    others than those by which the days were calculated. ``requested_by`` is the name for the audit log, with the
    ``reason`` why closed months are calculated again; None for a scheduled run.
    """

    start: date | None = None
    end: date | None = None
    recalculate: bool = False
    accept_less: bool = False
    requested_by: str | None = field(default=None, compare=False)
    reason: str | None = field(default=None, compare=False)
    restate: bool = False
