"""The work for a request is cancelled when the client disconnects, and releases its resources."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chargeback.access.scope import RowScope
from chargeback.api.executor import _QUERY_THREADS, WATCH_SECONDS, AnswerCache, OpenReader, RequestExecutor
from chargeback.errors import QueryTimeout
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.revisions import raise_inventory_revision, read_entity_revisions
from chargeback.store.queries.engine import CancellationToken
from chargeback.store.queries.version import DataVersion
from tests.support.facts import tenant_store

#: Seconds that a thread may take to begin and to end.
PATIENCE = 60
SLOW = "SELECT count(*) FROM range(100000000000) a(i) WHERE hash(i) % 7 = 8"


class Work:
    """Records that a thread has begun, and has ended."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()

    @contextmanager
    def at(self) -> Iterator[None]:
        """Set an event at each end of the block."""
        self.begun.set()
        try:
            yield
        finally:
            self.ended.set()


async def _leave(task: asyncio.Task[object], work: Work) -> None:
    """Cancel a task once its thread has begun, and wait until the thread has ended."""
    await asyncio.to_thread(work.begun.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(work.ended.wait, PATIENCE)


def test_a_cancelled_question_is_interrupted_until_it_has_ended(tmp_path: Path) -> None:
    """Cancelling the waiting task interrupts the thread that works for it."""
    work = Work()

    async def _ask_and_leave(tenant: TenantView) -> None:
        executor = RequestExecutor()
        context = executor.context_for(CancellationToken())

        def _slow(facts: object) -> None:
            with work.at():
                facts.cursor.rows(SLOW)  # type: ignore[attr-defined]

        task = asyncio.create_task(context.query_facts(tenant, _slow))
        await _leave(task, work)
        executor.close()

    with tenant_store(tmp_path) as store:
        tenant = TenantView("acme", "a", "e", 200, store)
        asyncio.run(_ask_and_leave(tenant))


def test_work_that_waits_in_the_queue_is_never_begun(tmp_path: Path) -> None:
    """Work that is cancelled while it waits for a thread does not run later."""
    begun: list[int] = []

    async def _crowd(tenant: TenantView) -> None:
        executor = RequestExecutor()
        release = threading.Event()
        pools = executor.pools_of("acme")
        occupied = [executor.run(pools, pools.control, CancellationToken(), release.wait) for _ in range(3)]
        busy = asyncio.gather(*occupied)
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(
            executor.context_for(CancellationToken()).run_blocking(tenant, lambda: begun.append(1))
        )
        await asyncio.sleep(0.1)
        assert executor.waiting("control") == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        release.set()
        await busy
        assert executor.waiting("control") == 0
        executor.close()

    with tenant_store(tmp_path) as store:
        asyncio.run(_crowd(TenantView("acme", "a", "e", 200, store)))
    assert begun == []


@pytest.mark.usefixtures("process")
def test_a_slow_statement_of_the_control_database_is_interrupted(tmp_path: Path) -> None:
    """A statement in SQLite or PostgreSQL ends when its request is cancelled."""
    for kind in ("sqlite", "postgresql"):
        sql = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
            if kind == "sqlite"
            else "SELECT pg_sleep(600)"
        )
        work = Work()

        async def _ask_and_leave(tenant: TenantView, sql: str = sql, work: Work = work) -> None:
            executor = RequestExecutor()

            def _slow(connection: object) -> None:
                with work.at():
                    connection.exec_driver_sql(sql)  # type: ignore[attr-defined]

            task = asyncio.create_task(executor.context_for(CancellationToken()).read_control(tenant, _slow))
            await _leave(task, work)
            executor.close()

        with tenant_store(tmp_path / kind, kind=kind) as store:
            asyncio.run(_ask_and_leave(TenantView("acme", "a", "e", 200, store)))


def test_a_question_called_off_does_not_start(tmp_path: Path) -> None:
    """Work is not started if its time has already run out."""
    question = CancellationToken()
    question.cancel()

    async def _ask(tenant: TenantView) -> None:
        executor = RequestExecutor()
        try:
            await executor.context_for(question).query_facts(tenant, lambda facts: facts.cursor.rows(SLOW))
        finally:
            executor.close()

    with tenant_store(tmp_path) as store, pytest.raises(QueryTimeout):
        asyncio.run(_ask(TenantView("acme", "a", "e", 200, store)))


@pytest.mark.extensive
def test_tenants_that_hang_cost_the_others_nothing(tmp_path: Path) -> None:
    """However many tenants hang, in the database or on disk, a healthy one responds immediately; requests about all
    tenants respond in time and name those that hang."""
    release = threading.Event()

    def _hang(_: object = None) -> None:
        release.wait(60)

    async def _crowd(healthy: TenantView, *hanging: TenantView) -> None:
        executor = RequestExecutor()

        def _look(tenant: TenantView, _: CancellationToken) -> str:
            if tenant is not healthy:
                release.wait(60)
            return tenant.tenant_name

        tasks = []
        for tenant in hanging:
            for _ in range(10):
                context = executor.context_for(CancellationToken())
                tasks += [
                    asyncio.create_task(one)
                    for one in (context.query_facts(tenant, _hang), context.read_control(tenant, _hang))
                ]
                tasks.append(asyncio.create_task(context.next_piece(context.stream(tenant, _hang))))  # type: ignore[arg-type]
        await asyncio.sleep(0.2)
        context = executor.context_for(CancellationToken())
        assert (
            await context.read_control(healthy, lambda connection: connection.exec_driver_sql("SELECT 7").scalar()) == 7
        )
        assert await context.query_facts(healthy, lambda facts: facts.cursor.rows("SELECT 8")) == [(8,)]
        *lost, seen = await executor.watch([*hanging, healthy], _look)
        assert seen == "acme"
        assert {str(error) for error in lost} == {f"the storage has not responded within {WATCH_SECONDS:g} s"}
        for task in tasks:
            task.cancel()
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        while executor._unwaited:
            await asyncio.sleep(0.01)
        executor.close()

    with ExitStack() as stack:
        names = ["acme", *(f"hanging-{number}" for number in range(4))]
        stores = {name: stack.enter_context(tenant_store(tmp_path / name, name=name)) for name in names}
        tenants = [TenantView(name, "a", "e", 200, store) for name, store in stores.items()]
        asyncio.run(asyncio.wait_for(_crowd(*tenants), 120))


def test_requests_that_wait_share_what_one_of_them_reads(tmp_path: Path) -> None:
    """Where many requests wait for a thread, the first reads the version of the data for all. One that comes after a
    change sees it."""
    release = threading.Event()

    async def _crowd(tenant: TenantView) -> list[DataVersion]:
        executor = RequestExecutor()

        def _ask() -> asyncio.Task[DataVersion]:
            context = executor.context_for(CancellationToken())
            return asyncio.create_task(context.query_version(tenant, lambda version, _: version))

        def _busy(*_: object) -> None:
            release.wait(PATIENCE)

        threads = [
            asyncio.create_task(executor.context_for(CancellationToken()).query_version(tenant, _busy))
            for _ in range(_QUERY_THREADS)
        ]
        while executor.waiting("questions"):
            await asyncio.sleep(0.01)
        before = [_ask() for _ in range(20)]
        await asyncio.sleep(0)
        await executor.context_for(CancellationToken()).write_control(tenant, raise_inventory_revision)
        after = [_ask() for _ in range(20)]
        await asyncio.sleep(0)
        release.set()
        found = await asyncio.gather(*before, *after)
        await asyncio.gather(*threads)
        await executor.context_for(CancellationToken()).write_control(tenant, raise_inventory_revision)
        last = await _ask()
        executor.close()
        return [*found, last]

    with tenant_store(tmp_path) as store:
        with store.control.read() as connection:
            inventory = read_entity_revisions(connection)[1]
        *found, last = asyncio.run(_crowd(TenantView("acme", "a", "e", 200, store)))
    assert len({id(version) for version in found}) <= _QUERY_THREADS
    assert {version.control.inventory for version in found} == {inventory + 1}
    assert last.control.inventory == inventory + 2


def test_every_reader_of_a_request_has_its_scope(tmp_path: Path) -> None:
    """Readers of past data, of versions and of streams have the scope as well."""
    scope = RowScope.of({"identity_id": ["sa-1"]})

    async def _ask(tenant: TenantView) -> None:
        executor = RequestExecutor()
        context = executor.context_for(CancellationToken(), scope)
        earlier = datetime(2026, 1, 1, tzinfo=UTC)

        def _of_version(_: object, open_reader: OpenReader) -> RowScope | None:
            with open_reader() as reader:
                return reader.scope

        for as_of in (None, earlier):
            assert await context.query_facts(tenant, lambda reader: reader.scope, as_of) == scope
            assert await context.query_version(tenant, _of_version, as_of) == scope
            pieces = context.stream(tenant, lambda reader: iter([reader.scope]), as_of)
            assert await context.next_piece(pieces) == scope
            context.finish(pieces)
        assert await executor.context_for(CancellationToken()).query_facts(tenant, lambda reader: reader.scope) is None
        executor.close()

    with tenant_store(tmp_path) as store:
        asyncio.run(asyncio.wait_for(_ask(TenantView("acme", "a", "e", 200, store)), 20))


def test_what_was_used_longest_ago_makes_room() -> None:
    """Reading an entry makes it the newest; the oldest ones are evicted when the cache is full."""
    cache = AnswerCache(room=100)
    for name in ("a", "b", "c", "d"):
        cache.put(name, bytes(25), {"name": name})
    assert cache.get("a") == (bytes(25), {"name": "a"})
    cache.put("e", bytes(20), {})
    assert cache.get("b") is None
    assert [cache.get(name) is None for name in "acde"] == [False] * 4
    assert cache.size == 95


def test_an_answer_is_kept_once() -> None:
    """An entry that is stored twice takes room once."""
    cache = AnswerCache(room=100)
    cache.put("a", bytes(25), {})
    cache.put("a", bytes(25), {})
    assert cache.size == 25


def test_what_is_too_large_is_not_kept() -> None:
    """One large response does not evict all others."""
    cache = AnswerCache(room=100)
    cache.put("a", bytes(26), {})
    assert cache.get("a") is None
    assert cache.size == 0
