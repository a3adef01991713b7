"""One seed, one history: the real pipeline and store, in one thread, with a storage, a database, sources and a clock
that fail as the seed determines.

After every step, charges equal the bill, every listed file exists, no number decreases, and queries as of an earlier
instant, also within runs, return the same bytes as before. Files that are not in the catalogue are removed after the
grace time, and a run without faults ends with every day calculated. In some histories months are closed, reopened and
sealed: no receipt is lost, booked amounts stay, and the books agree with the facts.

``HISTORIES=sqlite:1234`` in the environment plays the history of one seed and prints its steps.
"""

from __future__ import annotations

import errno
import hashlib
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from sqlalchemy import Connection, event, insert, select, text

from chargeback.allocation.day import CalculatedDay, DayCalculator, Evidence
from chargeback.allocation.policies import PolicyCatalogue
from chargeback.allocation.topics import TopicAttributor
from chargeback.errors import ChargebackError, HistoryGone, PeriodRefused, SourceUnavailable, StorageError
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.dated import Period
from chargeback.model.days import Clock, DayRange
from chargeback.model.run_request import RunRequest
from chargeback.model.topics import TopicPlan
from chargeback.pipeline import evidence, partials
from chargeback.pipeline import topics as topic_stage
from chargeback.pipeline.retain import oldest_kept
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.recompute import days as recompute
from chargeback.recompute.rules import AllocationRules
from chargeback.recompute.verify import verify
from chargeback.reports.closing.close import ClosingOrder, close, reopen
from chargeback.reports.closing.documents import check_closings
from chargeback.reports.closing.sealing import seal
from chargeback.reports.tenant_view import TenantView
from chargeback.store.backup import back_up, restore
from chargeback.store.control import lease as leases
from chargeback.store.control import schema, tags
from chargeback.store.control.catalogue import files_as_of, present_files
from chargeback.store.control.closings import read_books, read_receipts
from chargeback.store.control.cost_categories import CategoryWrite, list_categories, read_category, write_category
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.days import read_days
from chargeback.store.control.lease import Lease
from chargeback.store.facts import dimensions, published, tables
from chargeback.store.facts.files import content_key
from chargeback.store.facts.places import LOG, Folder
from chargeback.store.facts.tables import DAY_TABLES, FactTables, published_path
from chargeback.store.facts.upkeep import LEFTOVER_AGE, remove_unnamed
from chargeback.store.ownership import StorageOwner
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.posted import PostedReader, open_posted
from chargeback.store.queries.reader import open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by
from chargeback.store.tenant import TenantStore
from tests.support.clock import NOW
from tests.support.databases import KINDS, migrated_database
from tests.support.facts import catalogue_of
from tests.support.months import amounts, learned
from tests.support.sources import DAY, RECALCULATE, Laboratory, Sources, line

HALF: Final = {"bytes_in": {("lkc-1", "sa-a"): 50, ("lkc-1", "sa-b"): 50}}
NINE_TO_ONE: Final = {"bytes_in": {("lkc-1", "sa-a"): 90, ("lkc-1", "sa-b"): 10}}
#: Shortly after the end of the month of the days, while they are still gathered again.
FEBRUARY: Final = datetime(2026, 2, 1, 1, tzinfo=NOW.tzinfo)
ACCEPT_LESS: Final = RunRequest(recalculate=True, accept_less=True)
DAYS: Final = [DAY - timedelta(days=1), DAY]
#: The shortest retention and history: one day more than the window.
SHORT: Final = 8
OWNER: Final = StorageOwner("acme-id", "confluent_cloud")
#: The faults of a step, and the last of the writes of its kind at which each may happen.
KINDS_OF_FAULTS: Final = {
    "": 0,
    "no put": 8,
    "half a put": 8,
    "late put": 8,
    "put twice": 8,
    "disk full": 8,
    "another worker": 8,
    "killed at a put": 8,
    "killed at a statement": 150,
    "statement fails": 150,
    "transaction fails": 30,
    "answer lost": 30,
    "killed after a commit": 30,
    "lease stolen": 4,
}
AT_PUTS: Final = ("no put", "half a put", "late put", "put twice", "disk full", "another worker", "killed at a put")


class Killed(BaseException):
    """Raised where the process is killed."""


class Faults:
    """The random fault of one step: at most one, at one of its writes."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._left = -1
        self.what = ""
        self.is_dead = False
        #: Writes that arrive although the writer got an error.
        self.late: list[Callable[[], object]] = []

    def plan(self) -> None:
        """Choose the fault of the next step, and the write at which it happens."""
        self.what = self._chance.choice(["", *KINDS_OF_FAULTS])
        self._left = self._chance.randint(0, KINDS_OF_FAULTS[self.what])

    def meets(self, *kinds: str) -> bool:
        """Count a write; return whether the planned fault happens at it. A dead process writes nothing."""
        if self.is_dead:
            raise Killed
        if self.what not in kinds:
            return False
        self._left -= 1
        return self._left == -1

    def kill(self) -> None:
        """End the process: its later writes have no effect."""
        self.is_dead = True
        raise Killed

    def end(self) -> None:
        """End the step: late writes arrive."""
        self.what, self.is_dead = "", False
        for arrive in self.late:
            arrive()
        self.late.clear()


class FaultyFolder(Folder):
    """A disk that fails."""

    def __init__(self, root: Path, faults: Faults, take_over: Callable[[], None]) -> None:
        super().__init__(root)
        self._faults = faults
        self._take_over = take_over

    def write(self, folder: str, name: str, suffix: str, content: bytes) -> str:
        """Write a file, or fail, or write half of it, late, or twice."""
        if not self._faults.meets(*AT_PUTS):
            return super().write(folder, name, suffix, content)
        match self._faults.what:
            case "another worker":
                self._take_over()
                return super().write(folder, name, suffix, content)
            case "put twice":
                super().write(folder, f"{name}-again", suffix, content)
                return super().write(folder, name, suffix, content)
            case "late put":
                self._faults.late.append(lambda: Folder.write(self, folder, name, suffix, content))
            case "half a put" | "killed at a put":
                super().write(folder, name, suffix, content[: len(content) // 2])
        if self._faults.what == "killed at a put":
            self._faults.kill()
        raise OSError(errno.ENOSPC if self._faults.what == "disk full" else errno.EIO, self._faults.what)

    def put(self, path: str, content: bytes) -> None:
        """Write a file, unless the process is dead; a document of a closing may fail, too."""
        if self._faults.meets(*(("no put", "killed at a put") if path.startswith("closings/") else ())):
            if self._faults.what == "killed at a put":
                self._faults.kill()
            raise OSError(errno.EIO, self._faults.what)
        super().put(path, content)

    def copy(self, path: str, target: str) -> None:
        """Copy a file, unless the process is dead."""
        self._faults.meets()
        super().copy(path, target)

    def delete(self, path: str) -> None:
        """Delete a file, unless the process is dead."""
        self._faults.meets()
        super().delete(path)


class FaultyDatabase(ControlDatabase):
    """A database whose statements and transactions fail, or whose responses are lost."""

    def __init__(self, connection_string: str, owner: StorageOwner) -> None:
        super().__init__(connection_string, owner=owner)
        self.faults = Faults(random.Random())
        event.listen(self._engine, "before_cursor_execute", self._execute)

    def _execute(self, *_: object) -> None:
        if self.faults.meets("killed at a statement", "statement fails"):
            if self.faults.what == "statement fails":
                raise StorageError("the connection broke")
            self.faults.kill()

    def close(self) -> None:
        """Close the connections; the database is used again, with its compiled statements."""
        self._engine.dispose()

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[Connection]:
        """Open a transaction and commit it, or fail."""
        is_met = False
        with super().write(durable=durable) as connection:
            yield connection
            is_met = self.faults.meets("transaction fails", "answer lost", "killed after a commit")
            if is_met and self.faults.what == "transaction fails":
                raise StorageError("the transaction failed")
        if is_met and self.faults.what == "killed after a commit":
            self.faults.kill()
        if is_met:
            raise StorageError("the answer was lost")


class WatchedTables(FactTables):
    """Tables that are checked after each commit."""

    faults: Faults
    look: Callable[[datetime], None]

    @contextmanager
    def commit(self, lease: Lease, now: Clock) -> Iterator[tuple[Connection, datetime]]:
        """Commit and check, also if the committer gets an error."""
        if self.faults.meets("lease stolen"):
            lease.release()
        at = None
        try:
            with super().commit(lease, now) as (connection, at):
                yield connection, at
        finally:
            if at is not None:
                self.look(at)


class AtOnce:
    """A thread pool that executes everything at once, in the calling thread."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> AtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., object], *args: object) -> Future[object]:
        """Execute the work."""
        done: Future[object] = Future()
        try:
            done.set_result(work(*args))
        except BaseException as error:  # noqa: BLE001 - the future keeps any error
            done.set_exception(error)
        return done


def in_order(work: Callable[[Any], Any], of: Sequence[Any]) -> list[Any]:
    """Do in sequence what is done in parallel elsewhere."""
    return [work(each) for each in of]


def digest_of(*given: object) -> bytes:
    """Return a digest of some values, with tables by their content."""
    digest = hashlib.sha256()
    for each in given:
        if isinstance(each, pa.Table):
            with pa.ipc.new_stream(sink := pa.BufferOutputStream(), each.schema) as stream:
                stream.write_table(each)
            digest.update(sink.getvalue())
        else:
            digest.update(repr(each).encode())
    return digest.digest()


class Remembering(DayCalculator):
    """Calculates each day once, because the same evidence gives the same rows."""

    _made: Final[list[Remembering]] = []

    def __init__(self, catalogue: PolicyCatalogue) -> None:
        super().__init__(catalogue, threads=1)
        self._known: dict[bytes, CalculatedDay] = {}

    @classmethod
    def of(cls, catalogue: PolicyCatalogue) -> Remembering:
        """Return the only calculator of a catalogue."""
        found = next((each for each in cls._made if each._catalogue == catalogue), None)
        if found is None:
            found = cls(catalogue)
            cls._made.append(found)
        return found

    def calculate(self, evidence: Evidence) -> CalculatedDay:
        """Calculate a day, or return the known result."""
        given = (evidence.billing, evidence.usage, evidence.members)
        key = digest_of(evidence.day, evidence.metrics_available, *given)
        if key not in self._known:
            self._known[key] = super().calculate(evidence)
        return self._known[key]

    def close(self) -> None:
        """Stay open for later histories."""


class RememberingTopics(TopicAttributor):
    """The same for topics."""

    _made: Final[list[RememberingTopics]] = []

    def __init__(self, plan: TopicPlan) -> None:
        super().__init__(plan, threads=1)
        self._known: dict[bytes, pa.Table] = {}

    @classmethod
    def of(cls, plan: TopicPlan) -> RememberingTopics:
        """Return the only attributor of a plan."""
        found = next((each for each in cls._made if each._plan == plan), None)
        if found is None:
            found = cls(plan)
            cls._made.append(found)
        return found

    def attribute(self, day: date, lines: pa.Table, evidence: pa.Table) -> pa.Table:
        """Attribute a day, or return the known result."""
        key = digest_of(day, lines, evidence)
        if key not in self._known:
            self._known[key] = super().attribute(day, lines, evidence)
        return self._known[key]

    def close(self) -> None:
        """Stay open for later histories."""


_checks: Final[dict[bytes, pa.Array]] = {}
_calculated_checks: Final = dimensions._checks_of
engine = cache(QueryEngine)


def checks_of(of: pa.Table) -> pa.Array:
    """Return the checks of the register of dimensions, computed once."""
    key = digest_of(of)
    if key not in _checks:
        _checks[key] = _calculated_checks(of)
    return _checks[key]


@dataclass(frozen=True)
class Answer:
    """The data served as of an instant: the contents of the days of each table, tags and categories, and in some
    histories the export."""

    contents: Mapping[tuple[str, date | None], tuple[str, ...]]
    tags: Sequence[object]
    categories: Sequence[object]
    exported: bytes = b""

    def since(self, day: date) -> Answer:
        """Return the part about a day and later ones."""
        kept = {key: names for key, names in self.contents.items() if key[1] is not None and key[1] >= day}
        return replace(self, contents=kept)


@dataclass
class Known:
    """The data that a storage has served so far, and its highest numbers; a backup has those of its time."""

    answers: dict[datetime, Answer] = field(default_factory=dict)
    receipts: tuple[str, ...] = ()
    numbers: tuple[Any, ...] = ()
    given_up: date = date.min


class History:
    """One history: a tenant, the events that happen to it, and the data served."""

    def __init__(self, folder: Path, seed: int, database: FaultyDatabase, connection_string: str) -> None:
        self.chance = random.Random(seed)
        self.now = NOW
        self.faults = Faults(self.chance)
        self.known = Known()
        self.told: list[str] = []
        self._exports = seed % 50 == 0
        self._publishes = seed % 25 == 0
        self.closes = seed % 3 == 1
        self._folder = folder
        self._database = database
        self._database.faults = self.faults
        self._connection_string = connection_string
        self._backups: list[tuple[Path, Known]] = []
        self._verified: object = None
        self._intact: set[Path] = set()
        self.laboratory = laboratory_of(folder.parent)
        self.laboratory.clock = self.tick
        storage = self.laboratory.tenant.settings.storage.model_copy(
            update={"publish": "delta" if self._publishes else "none"}
        )
        self.laboratory.configure(retention_days=250, history_days=None, storage=storage)
        sources = self.laboratory.sources
        vars(sources).update(vars(Sources()))
        sources.lines = {day: [line("100", day=day)] for day in DAYS[1:]}
        sources.totals = NINE_TO_ONE
        sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 3, ("lkc-1", "pay"): 1}}
        self.store = self.laboratory.store = self._opened()

    def tick(self) -> datetime:
        """Return the time, which advances with every call."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def _opened(self) -> TenantStore:
        facts = WatchedTables(FaultyFolder(self._folder / "facts", self.faults, self._take_over), self._database)
        facts.faults, facts.look = self.faults, self._look
        name = self.laboratory.tenant.name
        return TenantStore(name, OWNER.tenant_id, str(OWNER.ecosystem), self._database, facts)

    @contextmanager
    def _in_peace(self) -> Iterator[None]:
        """Disable faults for actions of the test itself."""
        what, is_dead, self.faults.what, self.faults.is_dead = self.faults.what, self.faults.is_dead, "", False
        try:
            yield
        finally:
            self.faults.what, self.faults.is_dead = what, is_dead

    def _look(self, at: datetime) -> None:
        """Remember the data served after a change, if it was committed."""
        with self._in_peace():
            with self.store.control.read() as connection:
                changed_at = connection.execute(select(schema.tenant.c.facts_changed_at)).scalar_one()
            if changed_at == at:
                self.known.answers[at] = self.answer(None)

    def answer(self, as_of: datetime | None) -> Answer:
        """Return the tenant's data as of now, or of an instant."""
        with self.store.control.read() as connection:
            if as_of is None:
                named = present_files(connection)
                found = sorted(map(repr, tags.every_tag(connection)))
            else:
                named = files_as_of(connection, as_of)
                found = sorted(map(repr, tags.every_tag_as_of(connection, as_of)))
            categories = list_categories(connection, as_of)
        contents: dict[tuple[str, date | None], tuple[str, ...]] = {}
        for each in named:
            key = content_key(each.path)
            if each.gone_at is None:
                self._require(self._folder / "facts" / each.path, key)
            contents[each.table, each.day] = (*contents.get((each.table, each.day), ()), key)
        return Answer(contents, found, categories, self._export(as_of) if self._exports else b"")

    def _require(self, path: Path, key: str) -> None:
        """Check that a listed file exists, with the content digest in its name."""
        assert path.exists(), f"{path} is missing"
        if path not in self._intact:
            assert hashlib.sha256(path.read_bytes()).hexdigest().startswith(key), path
            self._intact.add(path)

    def _export(self, as_of: datetime | None) -> bytes:
        first = min(DAYS[-1], max(DAYS[0], self.known.given_up))
        everything = Selection.of_days(DayRange.spanning([first, DAYS[-1]]))
        try:
            with open_reader(engine(), self.store, CancellationToken(), LookupCaches(), as_of=as_of) as reader:
                return b"".join(
                    bytes(piece)
                    for dataset in (CHARGEBACKS, TOPIC_ATTRIBUTIONS)
                    for piece in reader.export(dataset, everything)
                )
        except HistoryGone:
            assert self.known.given_up > DAYS[0]
            return b""

    def step(self) -> None:
        """Change something outside, do something, and check everything."""
        for _ in range(self.chance.randint(0, 3)):
            self._change()
        if self.chance.random() < 0.2:
            minutes = self.chance.choice([-90, -5, 30, 24 * 60, 8 * 24 * 60])
            self.now += timedelta(minutes=minutes)
            self.told.append(f"the clock jumps {minutes} minutes")
        kinds = [self._run, self._back_up, self._restore, self._keep_up, self._close, self._reopen, self._seal]
        done = self.chance.choices(kinds, [10, 1, 1, 1, *((8, 2, 1) if self.closes else (0, 0, 0))])[0]
        self.faults.plan()
        what = self.faults.what
        self.told.append(f"{done.__name__} {what or 'in peace'}")
        try:
            done()
        except Killed:
            pass
        except ChargebackError as error:
            assert what, error
            self.told.append(str(error))
        self.faults.end()
        self._start_anew()
        self.check()

    def _run(self) -> None:
        request = self.chance.choice([None, None, None, RECALCULATE, ACCEPT_LESS])
        self._expect_to_give_up()
        result = self.laboratory.run(request)
        self.told += [f"{request}: {result.outcome}", *result.errors]
        assert not [each for each in result.errors if "internal error" in each], result.errors

    def _expect_to_give_up(self) -> None:
        """Record which days may lose earlier contents."""
        settings = self.laboratory.tenant.settings
        days = settings.retention_days if settings.history_days is None else settings.history_days
        oldest = oldest_kept(self.now.date(), min(days, settings.retention_days))
        self.known.given_up = max(self.known.given_up, oldest)

    def _take_over(self) -> None:
        """Run as another worker, which finds the lease of the paused one expired."""
        paused = self.store
        with self._in_peace():
            self._free_the_lease()
            self.store = self.laboratory.store = self._opened()
            try:
                assert self.laboratory.run().outcome is not RunOutcome.FAILED
            finally:
                self.store = self.laboratory.store = paused

    def _free_the_lease(self) -> None:
        with self.store.control.write() as connection:
            connection.execute(text("UPDATE tenant SET lease_owner = NULL, lease_expires_at = NULL"))

    def _start_anew(self) -> None:
        """Clear everything in memory for the next step, and release an abandoned lease."""
        self.store.facts.changed()
        self.store.facts._is_alone = False
        self._free_the_lease()

    def _back_up(self) -> None:
        made = back_up(self.store, self._connection_string, self._folder / f"backups-{len(self.told)}")
        self._backups.append((made, replace(self.known, answers=dict(self.known.answers))))

    def _restore(self) -> None:
        """Replace the storage by its newest backup, or by one that is made now."""
        if not self._backups or self.chance.random() < 0.5:
            self._back_up()
        made, self.known = self._backups.pop()
        with self._in_peace():
            self.store.close()
            shutil.rmtree(self._folder / "facts", ignore_errors=True)
            self._remove_database()
            self._intact.clear()
            self.store = self.laboratory.store = self._opened()
            restore(made, self.store, self._connection_string)

    def _remove_database(self) -> None:
        if self._database.is_sqlite:
            for path in self._folder.parent.glob("control.db*"):
                path.unlink()
            return
        with self._database._engine.begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))

    def _close(self) -> None:
        """Close the first open month once it is over, and accept the blockers that can be accepted."""
        self.now = max(self.now, FEBRUARY)
        with self.store.control.read() as connection:
            period = read_books(connection).first_open or AccountingPeriod.of(DAY)
        kinds = ("settling", "day-missing", "day-differs", "day-pending", "run-in-progress")
        order = ClosingOrder(period, "test", accept=kinds, reason="A history", idempotency_key=f"{len(self.told)}")
        with suppress(PeriodRefused):
            close(self._view(), self._books, partial(self.store.control.write, durable=True), order, self.tick)
            self.told.append(f"{period.id} is closed")

    def _reopen(self) -> None:
        """Reopen the latest closed month."""
        with self.store.control.read() as connection:
            books = read_books(connection)
        if books.closed:
            with suppress(PeriodRefused):
                writing = partial(self.store.control.write, durable=True)
                reopen(self._view(), writing, books.closed[-1].period, "test", "A history", self.tick)

    def _seal(self) -> None:
        """Seal a closed month."""
        with self.store.control.read() as connection:
            books = read_books(connection)
        if books.closed:
            with suppress(PeriodRefused):
                period, writing = (
                    self.chance.choice(books.closed).period,
                    partial(self.store.control.write, durable=True),
                )
                seal(self._view(), writing, period, "test", "A history", self.tick)
                self.told.append(f"{period.id} is sealed")

    def _view(self) -> TenantView:
        return TenantView.of(self.laboratory.tenant, self.store, AllocationRules())

    @contextmanager
    def _books(self) -> Iterator[PostedReader]:
        token, caches = CancellationToken(), LookupCaches()
        with open_reader(engine(), self.store, token, caches) as reader:
            yield open_posted(reader, self.store, token, caches, None)

    def _check_books(self) -> None:
        """Check that no receipt is lost or changed, booked amounts match them, and all months sum to the facts."""
        with self.store.control.read() as connection:
            receipts = tuple(read_receipts(connection))
        assert receipts[: len(self.known.receipts)] == self.known.receipts, "a receipt is lost"
        self.known.receipts = receipts
        if not receipts:
            return
        with self._books() as reader:
            assert list(check_closings(self._view(), reader)) == []
            start = reader.books.start
            if start is None or self.known.given_up > DAYS[0]:
                return
            last = max(AccountingPeriod.of(self.now.date()), reader.books.first_open or start)
            everything = Selection.of_days(DayRange(start.start, last.next.start))
            for by in ("identity_id", "tag:team"):
                booked = amounts(sums_by(reader, CHARGEBACKS, everything, (by,)))
                assert booked == learned(reader, everything, by), f"by {by}"

    def _keep_up(self) -> None:
        """Check that after the grace time, only listed files are left."""
        facts = self.store.facts
        remove_unnamed(facts, datetime.now(tz=self.now.tzinfo) + 2 * LEFTOVER_AGE)
        with self._in_peace():
            kept = [each for each in catalogue_of(facts) if each.gone_at is None]
        paths = {each.path for each in kept} | ({published_path(each) for each in kept} if self._publishes else set())
        files = (file.path for file in facts.place.files() if LOG not in file.path)
        left = {path for path in files if path.partition("/")[0].removesuffix("_history") in DAY_TABLES}
        assert left <= paths, f"nothing names {sorted(left - paths)}"

    def _change(self) -> None:
        """Change something outside between two steps."""
        sources, day = self.laboratory.sources, self.chance.choice(DAYS)
        amount = self.chance.choice(["0.7", "30", "110"])
        match kind := self.chance.randint(0, 9):
            case 0:
                sources.lines[day] = [line(amount, day=day)]
            case 1:
                sources.totals = self.chance.choice([HALF, NINE_TO_ONE])
            case 2:
                sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): self.chance.randint(1, 2)}}
            case 3:
                sources.fault = self.chance.choice([None, SourceUnavailable("HTTP 503", source="metrics")])
            case 4:
                sources.lines[day] = sources.lines.get(day, [])[:-1]
            case 5:
                sources.lines[day] = (2 * sources.lines.get(day, []))[:3]
            case 6:
                self._tag()
            case 7:
                self._categorise()
            case 8:
                days, history = self.chance.choice([SHORT, 250]), self.chance.choice([None, 0, SHORT])
                self.laboratory.configure(retention_days=days, history_days=history)
            case _:
                sources.lines.setdefault(day, []).append(line("0.7", day=day, product="KAFKA_BASE"))
        self.told.append(f"change {kind} of {day}")

    def _tag(self) -> None:
        who = self.chance.choice(["sa-a", "sa-b"])
        write = tags.TagWrite("identity", who, "team", self.chance.choice("xyz"), Period())
        with self.store.control.write() as connection:
            tags.write_many(connection, OWNER.tenant_id, [write], created_by="test", override=True)

    def _categorise(self) -> None:
        key, document = self.chance.choice(["team", "site"]), self.chance.choice(['{"rules":[]}', None])
        with self.store.control.write() as connection:
            before = read_category(connection, key)
            if before is not None or document is not None:
                expected = None if before is None else before.version
                write_category(connection, CategoryWrite(key, document), expected=expected, clock=self.tick)

    def check(self, *, everything: bool = False) -> None:
        """Check the laws: at the end as of every instant, before as of one."""
        with self.store.control.read() as connection:
            of = schema.tenant.c
            numbers = tuple(connection.execute(select(of.lease_epoch, of.facts_revision, of.tags_revision)).one())
            states = repr(connection.execute(select(schema.days)).all())
        before = self.known.numbers or numbers
        assert all(now >= then for now, then in zip(numbers, before, strict=True)), "a number goes back"
        self.known.numbers = numbers
        if (numbers[1], states) != self._verified:
            for each in verify(self.store, self.known.given_up):
                assert not each.is_wrong, each
            self._verified = (numbers[1], states)
        for file in catalogue_of(self.store.facts):
            if file.gone_at is None:
                self._require(self._folder / "facts" / file.path, content_key(file.path))
        if self.closes:
            self._check_books()
        instants = sorted(self.known.answers)
        oldest = self.known.given_up
        for at in instants if everything else self.chance.sample(instants, min(1, len(instants))):
            now, then = self.answer(at).since(oldest), self.known.answers[at].since(oldest)
            assert replace(now, exported=b"") == replace(then, exported=b""), f"as of {at}"
            assert oldest > DAYS[0] or now.exported == then.exported, f"exported as of {at}"

    def end(self) -> None:
        """Check that a run without faults calculates all due days, and that finally only listed files are left."""
        if self.chance.random() < 0.5:
            self.laboratory.sources.fault = None
            self._expect_to_give_up()
            result = self.laboratory.run()
            assert result.outcome is not RunOutcome.FAILED, result.errors
            with self.store.control.read() as connection:
                states = [each for each in read_days(connection) if each.billing_gathered]
            assert all(each.chargebacks.is_current for each in states), states
        self.check(everything=True)
        self._keep_up()


@cache
def laboratory_of(folder: Path) -> Laboratory:
    """Return what histories share: a configured tenant."""
    laboratory = Laboratory(folder / "laboratory", days=len(DAYS))
    laboratory.store.close()
    return laboratory


@pytest.fixture
def thrifty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one thread, no cache of sums, and days that are calculated once."""
    for module in (tables, published):
        monkeypatch.setattr(module, "side_by_side", in_order)
    monkeypatch.setattr(evidence, "ThreadPoolExecutor", AtOnce)
    monkeypatch.setattr(leases, "HEARTBEAT", timedelta(hours=1))
    monkeypatch.setattr(partials.PartialsWriter, "day_written", lambda *_: None)
    monkeypatch.setattr(partials, "lacks_partials", lambda *_: False)
    monkeypatch.setattr(dimensions, "_checks_of", checks_of)
    monkeypatch.setattr(recompute, "DayCalculator", Remembering.of)
    monkeypatch.setattr(topic_stage, "TopicAttributor", RememberingTopics.of)


@pytest.fixture
def database(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Iterator[str]:
    """Yield a database of this kind for one history after the other."""
    with migrated_database(kind, tmp_path) as connection_string:
        yield connection_string


def play(
    kind: str, seeds: Sequence[int], folder: Path, connection_string: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Play histories, and report the seed of each that fails."""
    failed = []
    database = FaultyDatabase(connection_string, OWNER)
    database.upgrade()
    for seed in seeds:
        place = folder / f"{seed}"
        place.mkdir()
        _start_with(database, folder)
        history = History(place, seed, database, connection_string)
        monkeypatch.setattr(tags, "utc_now", history.tick)
        try:
            for _ in range(history.chance.randint(1, 3) + (3 if history.closes else 0)):
                history.step()
            history.end()
        except Exception as error:
            failed.append(f"HISTORIES={kind}:{seed}: {error!r:.300}")
            if "HISTORIES" in os.environ:
                raise
        finally:
            history.faults.end()
            history.store.close()
            if "HISTORIES" in os.environ:
                sys.stdout.write("\n".join(history.told) + "\n")
        shutil.rmtree(place)
    assert not failed, "\n".join(failed)


def _start_with(database: FaultyDatabase, folder: Path) -> None:
    """Empty the database, or replace it by a new one."""
    database.faults = Faults(random.Random())
    if database.is_sqlite:
        database.close()
        for path in folder.glob("control.db-*"):
            path.unlink()
        if not (folder / "template.db").exists():
            shutil.copy(folder / "control.db", folder / "template.db")
        shutil.copy(folder / "template.db", folder / "control.db")
        return
    with database._engine.begin() as connection:
        names = ", ".join(f'"{table.name}"' for table in schema.metadata.sorted_tables)
        connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
        owner = {"tenant_id": OWNER.tenant_id, "ecosystem": OWNER.ecosystem}
        connection.execute(insert(schema.tenant).values(id=1, has_catalogue=True, **owner))


#: The number of histories in a test with each database, the number of tests (`make test` runs the first ones), the
#: number of further tests in a drill, and that in `make night`. A history takes a quarter of a second of processor
#: time with SQLite, and longer with PostgreSQL.
_EACH: Final = {"sqlite": 25, "postgresql": 10}
_TESTS: Final = {"sqlite": 38, "postgresql": 5}
_EVERYDAY: Final = 8
_DRILLS: Final = {"sqlite": 40, "postgresql": 10}
_NIGHT: Final = {"sqlite": 328, "postgresql": 90}


def _cases() -> Iterator[Any]:
    if "HISTORIES" in os.environ:
        kind, _, seed = os.environ["HISTORIES"].partition(":")
        yield pytest.param(kind, range(int(seed), int(seed) + 1), id=os.environ["HISTORIES"])
        return
    for kind in KINDS:
        drilled = _TESTS[kind] + _DRILLS[kind]
        for number in range(drilled + _NIGHT[kind]):
            marks = [pytest.mark.extensive] if number >= _EVERYDAY else []
            if number >= _TESTS[kind]:
                marks = [pytest.mark.drill, pytest.mark.timeout(1800)]
            if number >= drilled:
                marks.append(pytest.mark.night)
            first = number * _EACH[kind]
            yield pytest.param(kind, range(first, first + _EACH[kind]), id=f"{kind}-{first}", marks=marks)


@pytest.mark.usefixtures("thrifty")
@pytest.mark.parametrize(("kind", "seeds"), list(_cases()))
def test_histories(
    kind: str, seeds: Sequence[int], database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing history reports its seed, and can be repeated with it."""
    play(kind, seeds, tmp_path, database, monkeypatch)
