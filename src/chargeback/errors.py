"""The one tree of errors.

::

    ChargebackError
    ├── ConfigurationError      the configuration cannot be used; carries every problem found
    ├── SourceError             something outside did not give what we asked for
    │   ├── SourceUnavailable   it may answer later (network, time-out, 429, 5xx)        retryable
    │   │   └── SourcePartial   it answered, and says that something is missing          retryable
    │   │   └── SourceUnreachable   no connection to it can be made                      retryable
    │   ├── SourceRejected      it refused, and will refuse again (400, 401, 403, 404)
    │   ├── SourceTooLarge      it refused because the question was too big: ask smaller ones
    │   └── SourceDataError     it answered something that cannot be understood or trusted
    │       └── PluginError     a plugin failed in a way that it does not declare, or breaks its contract
    ├── StorageError            the tenant's storage cannot be used
    │   ├── SchemaError         the control database is not at this code's revision, or its history is broken
    │   │   └── ForeignStorage  the storage is another tenant's: this configuration must not use it
    │   ├── SumTooLarge         a sum has more digits than can be shown: one of the amounts must be wrong
    │   ├── DamagedFacts        a file of the facts is missing, or not what was written
    │   ├── StorageBusy         another writer was in the way                             retryable
    │   ├── LeaseHeld           another run works on this tenant                          retryable
    │   ├── LeaseLost           this run's lease was taken over: it must write nothing more
    │   └── DimensionCollision  two dimensions share one id
    ├── AllocationError         a day cannot be calculated from its evidence
    ├── EmitterError            an emitter could not write; it is tried again in the next run
    ├── ListenError             the address to serve on cannot be had
    ├── TenantSuspended         too many gatherings failed in a row: somebody must act before it runs again
    ├── NoRunner                this process runs no pipelines
    ├── EngineBusy              as many runs are under way as may be                      retryable
    ├── QueryTimeout            a question took longer than its limit and was interrupted
    └── Stopped                 the work was asked to stop; nothing is half-written

Every error says what went wrong in one sentence, and where: tenant, date, source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date


class ChargebackError(Exception):
    """Root of everything this service raises on purpose.

    ``retryable`` tells whether the same attempt may succeed later without anyone changing anything.
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
    """The configuration cannot be used; ``problems`` names everything that is wrong with it."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class SourceError(ChargebackError):
    """Something outside the service did not give what was asked for."""


class SourceUnavailable(SourceError):
    """The source did not answer properly, but may later."""

    retryable = True


class SourcePartial(SourceUnavailable):
    """The source answered, but says itself that its answer is incomplete; another question may be answered in full."""


class SourceUnreachable(SourceUnavailable):
    """No connection to the source can be made: its name, its port or the way to it is wrong, or nothing runs there."""


class SourceRejected(SourceError):
    """The source refused the request and will refuse it again until somebody acts.

    ``status`` is the HTTP status, where there was one.
    """

    def __init__(self, message: str, *, status: int | None = None, source: str | None = None) -> None:
        super().__init__(message, source=source)
        self.status = status


class SourceTooLarge(SourceError):
    """The question asks for more than the source gives at once; smaller questions may succeed."""


class SourceDataError(SourceError):
    """The source answered something that cannot be understood or must not be trusted."""


class PluginError(SourceDataError):
    """A plugin raised something that its contract does not name, or answered what the contract does not allow; the
    message names the plugin and the method."""


class StorageError(ChargebackError):
    """The storage of a tenant cannot be used."""


class SchemaError(StorageError):
    """The control database must not be used by this code: it is newer, older, or its migration history is broken."""


class ForeignStorage(SchemaError):
    """The storage is another tenant's; the message names both and says what to do."""


class SumTooLarge(StorageError):
    """A sum of amounts has more than 26 digits before its decimal point: one of them must be wrong."""


class DamagedFacts(StorageError):
    """A file of the facts is missing, or not what was written; ``table`` names its table."""

    def __init__(self, message: str, *, table: str, day: date | None) -> None:
        super().__init__(message, day=day)
        self.table = table


class StorageBusy(StorageError):
    """Another writer was in the way for longer than we were willing to wait."""

    retryable = True


class LeaseHeld(StorageError):
    """Another run works on this tenant right now."""

    retryable = True


class LeaseLost(StorageError):
    """This run's lease was taken over; whatever it still wanted to write is refused."""


class DimensionCollision(StorageError):
    """Two different dimensions have the same ``dimension_id``."""


class AllocationError(ChargebackError):
    """A day cannot be calculated from its evidence."""


class EmitterError(ChargebackError):
    """What an emitter was to write could not be written; the message says why and shows no secret."""

    retryable = True


class ListenError(ChargebackError):
    """The address to serve on cannot be had; the message says what to change."""


class TenantSuspended(ChargebackError):
    """The tenant is not processed any more until its cause is mended and the engine restarted; the message says why."""


class NoRunner(ChargebackError):
    """A run was asked of a process that runs no pipelines."""


class EngineBusy(ChargebackError):
    """As many runs are under way as may be at the same time; one that ends makes room."""

    retryable = True


class QueryTimeout(ChargebackError):
    """A question to the store took longer than its limit and was interrupted."""


class Stopped(ChargebackError):
    """The work was asked to stop, and did so at a safe place."""
