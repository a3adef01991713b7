"""Work that nobody waits for any more ends, and gives back what it held."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from chargeback.api.services import TenantView
from chargeback.api.work import Workshop
from chargeback.errors import QueryTimeout
from chargeback.store.queries.engine import Question
from tests.support.facts import tenant_store

SLOW = "SELECT count(*) FROM range(100000000000) a(i) WHERE hash(i) % 7 = 8"


def test_a_cancelled_question_is_interrupted_until_it_has_ended(tmp_path: Path) -> None:
    """Cancelling the waiting task interrupts the thread that works for it."""
    ended = threading.Event()

    async def _ask_and_leave(tenant: TenantView) -> None:
        workshop = Workshop()
        work = workshop.work_for(Question())

        def _slow(facts: object) -> None:
            try:
                facts.cursor.rows(SLOW)  # type: ignore[attr-defined]
            finally:
                ended.set()

        task = asyncio.create_task(work.ask(tenant, _slow))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not ended.is_set():
            await asyncio.sleep(0.01)
        workshop.close()

    with tenant_store(tmp_path) as store:
        tenant = TenantView("acme", "a", "e", 200, store)
        asyncio.run(asyncio.wait_for(_ask_and_leave(tenant), 20))


def test_work_that_waits_in_the_queue_is_never_begun(tmp_path: Path) -> None:
    """A question called off before a thread was free does not run later."""
    begun: list[int] = []

    async def _crowd() -> None:
        workshop = Workshop()
        release = threading.Event()
        occupied = [workshop.run(workshop.control, Question(), release.wait) for _ in range(8)]
        busy = asyncio.gather(*occupied)
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(workshop.work_for(Question()).do(lambda: begun.append(1)))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        release.set()
        await busy
        workshop.close()

    asyncio.run(_crowd())
    assert begun == []


def test_a_slow_statement_of_the_control_database_is_interrupted(tmp_path: Path) -> None:
    """Also what runs in SQLite or PostgreSQL ends with its request."""
    for kind in ("sqlite", "postgresql"):
        sql = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
            if kind == "sqlite"
            else "SELECT pg_sleep(600)"
        )
        ended = threading.Event()

        async def _ask_and_leave(tenant: TenantView, sql: str = sql, ended: threading.Event = ended) -> None:
            workshop = Workshop()

            def _slow(connection: object) -> None:
                try:
                    connection.exec_driver_sql(sql)  # type: ignore[attr-defined]
                finally:
                    ended.set()

            task = asyncio.create_task(workshop.work_for(Question()).read(tenant, _slow))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not ended.is_set():
                await asyncio.sleep(0.01)
            workshop.close()

        with tenant_store(tmp_path / kind, kind=kind) as store:
            asyncio.run(asyncio.wait_for(_ask_and_leave(TenantView("acme", "a", "e", 200, store)), 20))


def test_a_question_called_off_does_not_start(tmp_path: Path) -> None:
    """Time that ran out before the work began is noticed at its beginning."""
    question = Question()
    question.cancel()

    async def _ask(tenant: TenantView) -> None:
        workshop = Workshop()
        try:
            await workshop.work_for(question).ask(tenant, lambda facts: facts.cursor.rows(SLOW))
        finally:
            workshop.close()

    with tenant_store(tmp_path) as store, pytest.raises(QueryTimeout):
        asyncio.run(_ask(TenantView("acme", "a", "e", 200, store)))
