"""Runs the blocking work of requests in threads, and cancels it when no client waits for it.

Queries of the facts and of the control databases run in separate threads for each tenant, so a tenant whose database or
disk hangs does not affect the others. When a request is cancelled, because of a timeout or a disconnected client, its
queries are interrupted. Recent responses are kept in memory (:class:`AnswerCache`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from typing import Any, Final, Generic, ParamSpec, TypeVar

from sqlalchemy import Connection

from chargeback.access.scope import RowScope
from chargeback.errors import ChargebackError, StorageError
from chargeback.reports.search import EntityCosts
from chargeback.reports.statements.content import Statements
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.given import EntityIds
from chargeback.store.control.tags import IDENTITY, RESOURCE
from chargeback.store.queries.daily_totals import DayTotals
from chargeback.store.queries.engine import CancellationToken, QueryEngine, interruptible
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.partials import last_weeks, make_partials
from chargeback.store.queries.posted import PostedReader, open_posted
from chargeback.store.queries.reader import TenantReader, open_reader, version_reader
from chargeback.store.queries.revision_cache import RevisionCache
from chargeback.store.queries.version import DataVersion, read_version
from chargeback.store.queries.visible_sums import VisibleEntities

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
OpenReader = Callable[[], AbstractContextManager[TenantReader]]

#: The number of queries that share processors and memory. A query that has waited for a slot for a while runs anyway,
#: because slots may be blocked by disks that hang.
_MAX_CONCURRENT_QUERIES = 8
_MAX_SLOT_WAIT_SECONDS = 2.0
_CANCEL_RETRY_SECONDS = 0.02
_CANCEL_ATTEMPTS = 100
#: How long to wait for the state of each tenant. Clients that request all of them are probes, which wait for ten
#: seconds.
WATCH_SECONDS = 3.0
#: The threads of each tenant.
_QUERY_THREADS = 3
_CONTROL_THREADS = 3
_STREAM_THREADS = 2
#: For how many tenants, scopes and periods the costs of everything are cached.
_MOST_SEARCHED = 16
#: For how many months, by one grouping each, the statements are cached.
_MOST_STATEMENTS = 4
#: How much of the room for copies may be used before anyone has asked for them.
_PART_OF_COPIES: Final = 4
#: How many bytes of responses are cached.
ROOM: Final = 32 * 2**20
#: Work that belongs to no tenant.
_SERVICE = ""


class CountedPool(ThreadPoolExecutor):
    """A thread pool that counts the work waiting for a thread."""

    def __init__(self, size: int, name: str) -> None:
        super().__init__(size, name)
        self._count_lock = threading.Lock()
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """Return how much work waits."""
        return self._waiting

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit work to the next free thread."""

        def _work() -> T:
            self._count(-1)
            return fn(*args, **kwargs)

        def _done(future: Future[T]) -> None:
            if future.cancelled():
                self._count(-1)

        self._count(+1)
        try:
            future = super().submit(_work)
        except RuntimeError:  # the pool was shut down
            self._count(-1)
            raise
        future.add_done_callback(_done)
        return future

    def _count(self, change: int) -> None:
        with self._count_lock:
            self._waiting += change


class TenantPools:
    """The threads of one tenant, and the version of its data that they read last.

    Attributes:
        questions: for queries of the facts.
        control: for the control database.
        streams: for the next piece of a stream.
        watch: for the queries of readiness, metrics and the list of tenants.
        cancelling: for interrupting the work of the others.
        last_read: when the last read of its version began, and the version.
    """

    def __init__(self, name: str) -> None:
        self.questions = CountedPool(_QUERY_THREADS, f"question {name}")
        self.control = CountedPool(_CONTROL_THREADS, f"control {name}")
        self.streams = CountedPool(_STREAM_THREADS, f"stream {name}")
        self.watch = CountedPool(1, f"watch {name}")
        self.cancelling = CountedPool(1, f"cancelling {name}")
        self.last_read: tuple[float, DataVersion] | None = None

    def version_since(self, asked: float, read: Callable[[], DataVersion]) -> DataVersion:
        """Return the version of the data of a read that began at the instant ``asked`` or later: where many requests
        wait for a thread, one of them has read it for all; else what ``read`` returns."""
        known = self.last_read
        if known is None or known[0] < asked:
            begun = time.monotonic()
            self.last_read = known = begun, read()
        return known[1]

    def close(self) -> None:
        """Stop accepting work, and cancel what waits."""
        for pool in (self.questions, self.control, self.streams, self.watch, self.cancelling):
            pool.shutdown(wait=False, cancel_futures=True)


class PieceStream(Generic[T_co]):
    """A tenant's stream, created piece by piece."""

    def __init__(self, tenant_name: str, generator: Generator[T_co, None, None]) -> None:
        self.tenant_name = tenant_name
        self.generator = generator


class AnswerCache:
    """The responses used last, in at most ``room`` bytes. Safe for use by several threads.

    The key of a response identifies all data that it was made of, so an entry never becomes stale.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, tuple[bytes, dict[str, str]]] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """The number of cached bytes."""
        return self._size

    def get(self, key: str) -> tuple[bytes, dict[str, str]] | None:
        """Return the cached body and headers of a key, or None."""
        with self._lock:
            found = self._answers.get(key)
            if found is not None:
                self._answers.move_to_end(key)
            return found

    def put(self, key: str, body: bytes, headers: dict[str, str]) -> None:
        """Cache a response in place of those used longest ago, unless it needs a quarter of the room."""
        if len(body) > self._room // 4:
            return
        with self._lock:
            if key in self._answers:
                return
            self._answers[key] = (body, headers)
            self._size += len(body)
            while self._size > self._room:
                _, (oldest, _) = self._answers.popitem(last=False)
                self._size -= len(oldest)


class NextQuestions:
    """Prepares the next questions about tenants whose facts are in object storage, in one background thread."""

    def __init__(self, engine: QueryEngine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "preparing")
        self._queries = threading.Lock()
        self._token = CancellationToken()
        self._prepared: RevisionCache[Future[None]] = RevisionCache()

    def prepare(self, tenant: TenantView, version: DataVersion) -> None:
        """Let the thread copy what these questions read, and make the partial aggregates that this machine lacks, once
        for each version of the tables."""
        facts = tenant.whole_store.facts
        copies = facts.place.copies
        if copies is None:
            return

        def _prepare() -> None:
            weeks = list(last_weeks(version.snapshots, copies.max_bytes // _PART_OF_COPIES))
            try:
                for _, files in weeks:
                    with copies.lent(files, self._token.check):
                        pass  # from now on they are kept
                with self._queries, self._engine.cursor(self._token) as cursor:
                    for dataset, files in weeks:
                        make_partials(cursor, facts.partials, dataset, files)
            except (ChargebackError, OSError) as error:
                log.info("tenant %s: the next questions are not prepared: %s", tenant.tenant_name, error)

        with suppress(RuntimeError):  # the service ends
            self._prepared.get(tenant.tenant_name, version.snapshots, lambda: self._thread.submit(_prepare))

    def close(self) -> None:
        """Stop preparing, and wait until the engine is not used any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._token.cancel()
        for _ in range(_CANCEL_ATTEMPTS):
            if self._queries.acquire(timeout=_CANCEL_RETRY_SECONDS):
                self._queries.release()  # what would begin now finds itself cancelled
                break
            self._token.cancel()


class RequestExecutor:
    """The query engine and the threads of one application, limited by ``query_memory`` (bytes) and
    ``query_threads``."""

    POOLS = ("questions", "control", "streams")

    def __init__(self, *, query_memory: int | None = None, query_threads: int | None = None) -> None:
        self.engine = QueryEngine(memory=query_memory, threads=query_threads)
        self.lookups = LookupCaches()
        self.answers = AnswerCache()
        #: The ETags of responses within a scope, by the data that they were made of: some 7,000.
        self.content_tags = AnswerCache(room=2**18)
        #: The costs of everything, for the last tenants, scopes and periods that were searched.
        self.entity_costs: RevisionCache[EntityCosts] = RevisionCache(_MOST_SEARCHED)
        #: The statements that were requested last: clients that read one, or print all, request the others as well.
        self.statements: RevisionCache[Statements] = RevisionCache(_MOST_STATEMENTS)
        self.day_totals = DayTotals()
        self._lock = threading.Lock()
        self._pools: dict[str, TenantPools] = {}
        self._query_slots = threading.Semaphore(_MAX_CONCURRENT_QUERIES)
        self._unwaited: set[asyncio.Task[None]] = set()
        self.next_questions = NextQuestions(self.engine)

    def close(self) -> None:
        """Stop accepting work; running work was cancelled with its request."""
        self.next_questions.close()
        for pools in self._pools.values():
            pools.close()
        self.engine.close()

    def waiting(self, pool: str) -> int:
        """Return how much work waits for a thread of one of :attr:`POOLS`, in all tenants."""
        with self._lock:
            found = list(self._pools.values())
        return sum(getattr(pools, pool).waiting for pools in found)

    def pools_of(self, tenant_name: str) -> TenantPools:
        """Return the threads of a tenant."""
        with self._lock:
            if tenant_name not in self._pools:
                self._pools[tenant_name] = TenantPools(tenant_name)
            return self._pools[tenant_name]

    def context_for(self, token: CancellationToken, scope: RowScope | None = None) -> RequestContext:
        """Return the context of one request, whose caller sees the rows of ``scope``, or all where it is None."""
        return RequestContext(self, token, scope)

    async def run(self, pools: TenantPools, pool: Executor, token: CancellationToken, func: Callable[[], T]) -> T:
        """Return the result of ``func``, run in a thread of ``pool``, one of ``pools``; cancelled with the caller."""
        future = pool.submit(func)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancel() and not future.done():
                task = asyncio.create_task(self._cancel(pools, token, future))
                self._unwaited.add(task)
                task.add_done_callback(self._unwaited.discard)
            raise

    async def _cancel(self, pools: TenantPools, token: CancellationToken, future: Future[Any]) -> None:
        """Interrupt repeatedly until the thread ends: an interrupt between two statements has no effect."""
        loop = asyncio.get_running_loop()
        while not future.done():
            await loop.run_in_executor(pools.cancelling, token.cancel)
            await asyncio.sleep(_CANCEL_RETRY_SECONDS)

    def write_later(
        self, tenant: TenantView, func: Callable[[Connection], object], *, failed: str
    ) -> asyncio.Task[None]:
        """Let ``func`` write to a tenant's control database in a background task; if it fails, log the warning
        ``failed``."""

        async def _write() -> None:
            try:
                await self.context_for(CancellationToken()).write_control(tenant, func)
            except ChargebackError as error:
                log.warning("tenant %s: %s: %s", tenant.tenant_name, failed, error)

        task = asyncio.create_task(_write())
        self._unwaited.add(task)
        task.add_done_callback(self._unwaited.discard)
        return task

    @contextmanager
    def query_slot(self) -> Iterator[None]:
        """Wait for a slot of the query engine, for a limited time."""
        has_slot = self._query_slots.acquire(timeout=_MAX_SLOT_WAIT_SECONDS)
        try:
            yield
        finally:
            if has_slot:
                self._query_slots.release()

    async def watch(
        self,
        tenants: Iterable[TenantView],
        check: Callable[[TenantView, CancellationToken], T],
    ) -> list[T | StorageError]:
        """Return the result of ``check`` for each tenant, or the error, all at the same time.

        A tenant that hangs times out after :data:`WATCH_SECONDS` and does not affect the others.
        """

        async def _check_one(tenant: TenantView) -> T | StorageError:
            pools, token = self.pools_of(tenant.tenant_name), CancellationToken()
            try:
                async with asyncio.timeout(WATCH_SECONDS):
                    return await self.run(pools, pools.watch, token, lambda: check(tenant, token))
            except TimeoutError:
                return StorageError(f"the storage has not responded within {WATCH_SECONDS:g} s")
            except StorageError as error:
                return error

        return await asyncio.gather(*(_check_one(tenant) for tenant in tenants))


class RequestContext:
    """Runs the blocking work of one request; ``token`` cancels it. Every reader that it opens sees the rows of its
    ``scope`` only, or all where that is None."""

    def __init__(self, executor: RequestExecutor, token: CancellationToken, scope: RowScope | None = None) -> None:
        self._executor = executor
        self.token = token
        self.scope = scope

    async def query_facts(
        self, tenant: TenantView, func: Callable[[TenantReader], T], as_of: datetime | None = None
    ) -> T:
        """Return what ``func`` reads from the tenant's facts, now or ``as_of`` an earlier instant."""

        def _query() -> T:
            with self._reader(tenant, self._executor.query_slot(), as_of) as reader:
                return func(reader)

        pools = self._executor.pools_of(tenant.tenant_name)
        return await self._executor.run(pools, pools.questions, self.token, _query)

    async def query_version(
        self,
        tenant: TenantView,
        func: Callable[[DataVersion, OpenReader], T],
        as_of: datetime | None = None,
    ) -> T:
        """Return the result of ``func`` for one version of the tenant's data, the present one or that ``as_of`` an
        earlier instant; it opens a reader of that version if it needs one."""
        pools, asked = self._executor.pools_of(tenant.tenant_name), time.monotonic()
        store, lookups = tenant.whole_store, self._executor.lookups

        def _read() -> DataVersion:
            return read_version(store, self.token, lookups, as_of)

        def _query() -> T:
            self.token.check()
            version = pools.version_since(asked, _read) if as_of is None else _read()

            @contextmanager
            def _open() -> Iterator[TenantReader]:
                with self._executor.query_slot(), self._executor.engine.cursor(self.token) as cursor:
                    yield version_reader(cursor, store, version, lookups, scope=self.scope)

            answer = func(version, _open)
            if as_of is None:
                self._executor.next_questions.prepare(tenant, version)
            return answer

        return await self._executor.run(pools, pools.questions, self.token, _query)

    async def read_control(self, tenant: TenantView, func: Callable[[Connection], T]) -> T:
        """Return what ``func`` reads from the tenant's control database."""

        def _read() -> T:
            with control_reader(tenant, self.token) as connection:
                return func(connection)

        return await self.run_blocking(tenant, _read)

    async def write_control(self, tenant: TenantView, func: Callable[[Connection], T]) -> T:
        """Return the result of ``func``, which writes to the tenant's control database in one durable transaction. It
        is rolled back if the request was cancelled before the commit."""

        def _write() -> T:
            with self.writing(tenant) as connection:
                return func(connection)

        return await self.run_blocking(tenant, _write)

    @contextmanager
    def writing(self, tenant: TenantView) -> Iterator[Connection]:
        """Open a connection that writes to the tenant's control database in one durable transaction, as
        :meth:`write_control`; to be called in a thread."""
        with tenant.store.control.write(durable=True) as connection:
            with interruptible(self.token, connection):
                yield connection
            self.token.begin_commit()

    def reader(self, tenant: TenantView) -> AbstractContextManager[TenantReader]:
        """Open a reader of the tenant's facts; to be called in a thread."""
        return self._reader(tenant, self._executor.query_slot())

    def posted(self, tenant: TenantView, reader: TenantReader, as_of: datetime | None) -> PostedReader:
        """Return a reader of posted costs, as of the same instant as ``reader``; to be called in a thread."""
        return open_posted(reader, tenant.whole_store, self.token, self._executor.lookups, as_of)

    async def run_blocking(self, tenant: TenantView | None, func: Callable[[], T]) -> T:
        """Return the result of other blocking work of a tenant or, with None, of the service."""
        pools = self._executor.pools_of(_SERVICE if tenant is None else tenant.tenant_name)
        return await self._executor.run(pools, pools.control, self.token, func)

    async def next_piece(self, pieces: PieceStream[T]) -> T | None:
        """Return the next piece of a stream, or None at its end."""

        def _next() -> T | None:
            return next(pieces.generator, None)

        pools = self._executor.pools_of(pieces.tenant_name)
        return await self._executor.run(pools, pools.streams, self.token, _next)

    def finish(self, pieces: PieceStream[Any]) -> None:
        """Release the resources of a stream, whether it is complete or not."""

        def _close() -> None:
            with suppress(ValueError):  # it is still creating a piece, and was cancelled: it ends without this
                pieces.generator.close()

        self._executor.pools_of(pieces.tenant_name).streams.submit(_close)

    def stream(
        self, tenant: TenantView, func: Callable[[TenantReader], Iterator[T]], as_of: datetime | None = None
    ) -> PieceStream[T]:
        """Return what ``func`` yields from the tenant's facts, now or ``as_of`` an earlier instant; nothing is read
        before the first piece is requested."""

        def _generate() -> Generator[T, None, None]:
            with self._reader(tenant, as_of=as_of) as reader:
                yield from func(reader)

        return PieceStream(tenant.tenant_name, _generate())

    def _reader(
        self,
        tenant: TenantView,
        slot: AbstractContextManager[None] | None = None,
        as_of: datetime | None = None,
    ) -> AbstractContextManager[TenantReader]:
        executor = self._executor
        store = tenant.whole_store
        return open_reader(executor.engine, store, self.token, executor.lookups, slot, as_of, scope=self.scope)


def entity_ids(visible: VisibleEntities | None) -> EntityIds | None:
    """Return the ids that a reader takes from the control database; they are read when they are first needed."""
    return None if visible is None else {IDENTITY: visible.identities, RESOURCE: visible.resources}


@contextmanager
def control_reader(tenant: TenantView, token: CancellationToken) -> Iterator[Connection]:
    """Open a connection to read from the tenant's control database; it is interrupted when the token is cancelled."""
    with tenant.store.control.read() as connection, interruptible(token, connection):
        yield connection
