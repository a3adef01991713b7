"""All errors of the service.

::

    ChargebackError
    ├── ConfigurationError      the configuration is not valid; has every problem found
    ├── CategoryError           the document of a cost category is not valid; has every problem found
    ├── SourceError             something outside did not give what was requested
    │   ├── SourceUnavailable   it may respond later (network, timeout, 429, 5xx)        retryable
    │   │   └── SourcePartial   it says that its response is incomplete                  retryable
    │   │   └── SourceUnreachable   no connection to it is possible                      retryable
    │   ├── SourceRejected      it refused, and will refuse again (400, 401, 403, 404)
    │   ├── SourceTooLarge      it refused because the query was too large: send smaller ones
    │   └── SourceDataError     its response cannot be understood or trusted
    │       └── PluginError     a plugin raised an undeclared error, or breaks its contract
    ├── StorageError            the tenant's storage cannot be used
    │   ├── SchemaError         the control database is not at this code's revision, or its history is broken
    │   │   └── ForeignStorage  the storage is another tenant's: this configuration must not use it
    │   ├── SumTooLarge         a sum has more digits than can be shown: one of the amounts must be wrong
    │   ├── DamagedFacts        a file of the facts is missing or damaged
    │   ├── StorageBusy         another writer held the storage                           retryable
    │   ├── LeaseHeld           another run works on this tenant                          retryable
    │   ├── LeaseLost           this run's lease was taken over: it must not write any more
    │   └── DimensionCollision  two dimensions share one id
    ├── AllocationError         a day cannot be calculated from its evidence
    ├── WorkersUnavailable      the workers that calculate days cannot be used            retryable
    ├── EmitterError            an emitter could not write; it is tried again in the next run
    ├── ListenError             the server cannot listen on its address
    ├── TenantSuspended         too many gatherings failed in a row: fix the cause before it runs again
    ├── NoRunner                this process runs no pipelines
    ├── EngineBusy              the maximum number of runs is in progress                 retryable
    ├── TagConflict             two values of a tag would hold on the same days
    ├── EditConflict            someone else changed what was to be changed: read it again
    ├── UnknownCategory         the tenant has no cost category of that key
    ├── PdfUnavailable          what makes PDF files is not installed
    ├── McpUnavailable          what answers assistants is not installed
    ├── TemplateFailed          a template of the configuration cannot write what it is asked for
    ├── AdjustmentInvalid       the parts of an adjustment do not go together
    ├── PeriodRefused           a month cannot be closed, reopened or sealed, or not changed
    │   ├── PeriodBlocked       something is in the way; has what
    │   ├── PreviewStale        it would book something else than was looked at
    │   └── ReachesIntoClosed   a change would move amounts of closed months; has which
    ├── HistoryGone             the rows of an earlier instant are no longer kept
    ├── QueryTimeout            a query took longer than its limit and was interrupted
    └── Stopped                 the work was asked to stop; nothing is half-written

Every error says what went wrong in one sentence, and where: tenant, date, source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final


class ChargebackError(Exception):
    """Base of all errors that this service raises deliberately.

    ``retryable`` says whether the same attempt may succeed later without any change.
    """

    retryable = False

    def __init__(
        self, message: str, *, tenant: str | None = None, day: date | None = None, source: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.tenant = tenant
        self.day = day
        self.source = source

    def __str__(self) -> str:
        where = [
            f"{name} {value}"
            for name, value in (("tenant", self.tenant), ("date", self.day), ("source", self.source))
            if value is not None
        ]
        return f"{self.message} ({', '.join(where)})" if where else self.message


@dataclass(frozen=True)
class ConfigProblem:
    """One problem of a configuration: its key (``tenants.acme.lookback_days``) and what to change."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigurationError(ChargebackError):
    """The configuration is not valid; ``problems`` has every mistake in it."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class PoliciesChanged(ConfigurationError):
    """Policies with dates are not those by which days were calculated."""


def in_one_line(error: ConfigurationError) -> str:
    """Return every problem of a configuration in one line."""
    return "; ".join(map(str, error.problems))


@dataclass(frozen=True)
class CategoryProblem:
    """One problem of a cost category: its place in the document (``rules[17].split``) and what to change."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class CategoryError(ChargebackError):
    """The document of a cost category is not valid; ``problems`` has every mistake in it."""

    def __init__(self, problems: Sequence[CategoryProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class SourceError(ChargebackError):
    """Something outside the service did not give what was requested."""


class SourceUnavailable(SourceError):
    """The source gave no valid response, but may do so later."""

    retryable = True


class SourcePartial(SourceUnavailable):
    """The source reported that its response is incomplete; another query may give a complete one."""


class SourceUnreachable(SourceUnavailable):
    """No connection to the source is possible: its name, its port or the network route is wrong, or no server runs
    there."""


class SourceRejected(SourceError):
    """The source refused the request and will refuse it until something is changed.

    ``status`` is the HTTP status, where there was one.
    """

    def __init__(self, message: str, *, status: int | None = None, source: str | None = None) -> None:
        super().__init__(message, source=source)
        self.status = status


#: The words of Kafka's admin client, which has no status.
REJECTS: Final = "the cluster rejects the request"
_STATUS: Final = re.compile(r"\bHTTP (\d{3})\b")
_MAY_PASS: Final = frozenset({"408", "425", "429"})


def says_refusal(message: str) -> bool:
    """Return whether a recorded message is that of a source that refuses until something is changed. Of errors that
    are stored, the message is all that is left.

    >>> says_refusal("metrics unavailable: HTTP 401: bad key"), says_refusal("HTTP 429")
    (True, False)
    >>> says_refusal("HTTP 503: the server behind it says HTTP 403")
    False
    """
    if REJECTS in message:
        return True
    status = _STATUS.search(message)
    return status is not None and status[1][0] in "34" and status[1] not in _MAY_PASS


class SourceTooLarge(SourceError):
    """The query covers more than the source returns at once; smaller queries may succeed."""


class SourceDataError(SourceError):
    """The source's response cannot be understood or must not be trusted."""


class PluginError(SourceDataError):
    """A plugin raised an error that its contract does not declare, or returned a value that the contract does not
    allow; the message names the plugin and the method."""


class StorageError(ChargebackError):
    """The storage of a tenant cannot be used."""


class SchemaError(StorageError):
    """The control database must not be used by this code: it is newer, older, or its migration history is broken."""


class ForeignStorage(SchemaError):
    """The storage is another tenant's; the message names both and says what to do."""


class SumTooLarge(StorageError):
    """A sum of amounts has more than 26 digits before its decimal point: one of the amounts must be wrong."""

    _MESSAGE = (
        "A sum has more than 26 digits before the decimal point (18 in another currency), so at least one amount must "
        "be wrong. The lists show every line, and `chargeback verify` the sum of every day."
    )

    def __init__(self, message: str = _MESSAGE) -> None:
        super().__init__(message)


@dataclass(frozen=True)
class ForgottenDay:
    """What is still known of a day whose rows are no longer kept: its revision, how many rows, their sum as a text."""

    day: date
    revision: int
    rows: int
    total: str | None


class TagConflict(ChargebackError):
    """Two values of a tag would hold on the same days."""


class UnknownCategory(ChargebackError):
    """The tenant has no cost category of that ``key``; the message names those that there are."""

    def __init__(self, key: str, known: Sequence[str]) -> None:
        have = f"there are {', '.join(known)}" if known else "the tenant has none"
        super().__init__(f"There is no cost category {key[:80]!r}; {have}.")
        self.key = key


class PdfUnavailable(ChargebackError):
    """What makes PDF files is not installed; the message says what to install."""


class McpUnavailable(ChargebackError):
    """The extra `mcp`, which answers assistants, is not installed."""


class TemplateFailed(ChargebackError):
    """A template of the configuration cannot write a journal; the message names it and says why."""


class HistoryGone(ChargebackError):
    """The rows of an earlier instant are no longer kept; ``known`` is what is known of these days."""

    def __init__(self, known: Sequence[ForgottenDay]) -> None:
        super().__init__("these days had other rows then, which are no longer kept")
        self.known = tuple(known)


class DamagedFacts(StorageError):
    """A file of the facts is missing or damaged; ``table`` names its table."""

    def __init__(self, message: str, *, table: str, day: date | None) -> None:
        super().__init__(message, day=day)
        self.table = table


class StorageBusy(StorageError):
    """Another writer held the storage for longer than the time limit."""

    retryable = True


class LeaseHeld(StorageError):
    """Another run is working on this tenant."""

    retryable = True


class LeaseLost(StorageError):
    """This run's lease was taken over; its further writes are refused."""


class DimensionCollision(StorageError):
    """Two different dimensions have the same ``dimension_id``."""


class AllocationError(ChargebackError):
    """A day cannot be calculated from its evidence."""


class WorkersUnavailable(ChargebackError):
    """The workers of a Dask cluster cannot be used; the message says why. The next run tries again."""

    retryable = True


class EmitterError(ChargebackError):
    """An emitter could not write; the message says why and shows no secret."""

    retryable = True


class ListenError(ChargebackError):
    """The server cannot listen on its address; the message says what to change."""


class TenantSuspended(ChargebackError):
    """The tenant is not processed until the cause is fixed and the engine restarted; the message has the cause."""


class NoRunner(ChargebackError):
    """A run was requested from a process that runs no pipelines."""


class EngineBusy(ChargebackError):
    """The maximum number of runs is in progress; try again when one has ended."""

    retryable = True


class NothingGathered(ChargebackError):
    """A tenant has no storage yet."""


class NothingToSimulate(ChargebackError):
    """No day of a range can be simulated; the message says why."""


class PlanRefused(ChargebackError):
    """A plan cannot be applied; the message says why and what to do."""


class PlanStale(PlanRefused):
    """What a plan was made of has changed: ``days`` are those that have, as the API shows them."""

    def __init__(self, message: str, days: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.days = tuple(days)


class EditConflict(ChargebackError):
    """Someone else has changed the object since the editor read it. The message names who."""


class PeriodRefused(ChargebackError):
    """A month cannot be closed, reopened or sealed, or something of it not be changed."""


class PeriodBlocked(PeriodRefused):
    """Something is in the way of closing a month: ``blockers``, as the API shows them."""

    def __init__(self, message: str, blockers: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(message)
        self.blockers = tuple(blockers)


class PreviewStale(PeriodRefused):
    """Closing would book something else than was looked at: ``digest`` is that of what it would book, and ``moved`` is
    what has changed since, by month and value, as the API shows it, in a ``currency``."""

    def __init__(self, message: str, digest: str, moved: Sequence[Mapping[str, Any]] = (), currency: str = "") -> None:
        super().__init__(message)
        self.digest = digest
        self.moved = tuple(moved)
        self.currency = currency


class AdjustmentInvalid(ChargebackError):
    """The parts of an adjustment do not go together: ``problems``, as (part, what is wrong with it)."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{part}: {what}" for part, what in problems))
        self.problems = tuple(problems)


class ReachesIntoClosed(PeriodRefused):
    """A change would move amounts of closed months: ``moved``, by month and value, as the API shows them, in a
    ``currency``. One that begins on the day ``begins`` would not."""

    def __init__(self, message: str, moved: Sequence[object], *, currency: str, begins: date) -> None:
        super().__init__(message)
        self.moved = tuple(moved)
        self.currency = currency
        self.begins = begins


class QueryTimeout(ChargebackError):
    """A query of the store took longer than its limit and was interrupted."""


class Stopped(ChargebackError):
    """The work was asked to stop, and stopped at a safe point."""
