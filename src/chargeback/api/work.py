"""Where the work of a request is done: never on the event loop, and never longer than anybody waits for it.

Questions to the facts and to the control databases run in bounded pools of threads. A request that is called off,
because its time is up or its client has gone, interrupts what it is asking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from chargeback.api.services import TenantView
from chargeback.store.queries.engine import Cursor, QueryEngine, Question
from chargeback.store.queries.tags import TagBook, TagBooks

T = TypeVar("T")

_QUESTIONS_AT_ONCE = 8
_CONTROL_AT_ONCE = 8
_STREAMS_AT_ONCE = 4
_REPEAT_SECONDS = 0.02


@dataclass(frozen=True)
class Facts:
    """What a question about facts has at hand: a cursor, and the tenant's tags as they are now."""

    cursor: Cursor
    book: TagBook


class Workshop:
    """The query engine and the threads of one application."""

    POOLS = ("questions", "control", "streams")

    def __init__(self) -> None:
        self.engine = QueryEngine()
        self.books = TagBooks()
        self._questions = ThreadPoolExecutor(_QUESTIONS_AT_ONCE, "question")
        self._control = ThreadPoolExecutor(_CONTROL_AT_ONCE, "control")
        self._streams = ThreadPoolExecutor(_STREAMS_AT_ONCE, "stream")
        self._calling_off = ThreadPoolExecutor(2, "calling off")
        self._abandoned: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Stop taking work; what is under way was called off with its request."""
        for pool in (self._questions, self._control, self._streams, self._calling_off):
            pool.shutdown(wait=False, cancel_futures=True)
        self.engine.close()

    def waiting(self, pool: str) -> int:
        """How much work waits for a thread of one of :attr:`POOLS`."""
        pools = {"questions": self._questions, "control": self._control, "streams": self._streams}
        return pools[pool]._work_queue.qsize()

    def work_for(self, question: Question) -> Work:
        """The work of one request."""
        return Work(self, question)

    async def run(self, pool: Executor, question: Question, job: Callable[[], T]) -> T:
        """The result of ``job``, done in a thread of ``pool``; called off when the caller is cancelled."""
        future = pool.submit(job)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancel() and not future.done():
                task = asyncio.create_task(self._call_off(question, future))
                self._abandoned.add(task)
                task.add_done_callback(self._abandoned.discard)
            raise

    async def _call_off(self, question: Question, future: Future[Any]) -> None:
        """Interrupt until the thread has noticed: an interrupt between two statements is lost."""
        loop = asyncio.get_running_loop()
        while not future.done():
            await loop.run_in_executor(self._calling_off, question.cancel)
            await asyncio.sleep(_REPEAT_SECONDS)

    @property
    def questions(self) -> Executor:
        """Threads for questions to the facts."""
        return self._questions

    @property
    def control(self) -> Executor:
        """Threads for the control databases."""
        return self._control

    @property
    def streams(self) -> Executor:
        """Threads that make the next piece of a stream."""
        return self._streams


class Work:
    """The work of one request."""

    def __init__(self, workshop: Workshop, question: Question) -> None:
        self._workshop = workshop
        self.question = question

    async def ask(self, tenant: TenantView, job: Callable[[Facts], T]) -> T:
        """What ``job`` finds in the tenant's facts."""

        def _asking() -> T:
            self.question.check()
            book = self._book(tenant)
            with self._workshop.engine.asking(self.question) as cursor:
                return job(Facts(cursor, book))

        return await self._workshop.run(self._workshop.questions, self.question, _asking)

    async def read(self, tenant: TenantView, job: Callable[[Connection], T]) -> T:
        """What ``job`` reads in the tenant's control database."""

        def _reading() -> T:
            with tenant.store.control.read() as connection, interruptible(self.question, connection):
                return job(connection)

        return await self._workshop.run(self._workshop.control, self.question, _reading)

    async def write(self, tenant: TenantView, job: Callable[[Connection], T]) -> T:
        """What ``job`` answers after writing to the tenant's control database, all or nothing."""

        def _writing() -> T:
            with tenant.store.control.write() as connection, interruptible(self.question, connection):
                return job(connection)

        return await self._workshop.run(self._workshop.control, self.question, _writing)

    async def do(self, job: Callable[[], T]) -> T:
        """Any other work that may block."""
        return await self._workshop.run(self._workshop.control, self.question, job)

    async def next_piece(self, pieces: Iterator[T]) -> T | None:
        """The next piece of a stream; None at its end."""
        return await self._workshop.run(self._workshop.streams, self.question, lambda: next(pieces, None))

    def finish(self, pieces: Iterator[Any]) -> None:
        """Give back what a stream holds, whether it came to its end or not."""

        def _finishing() -> None:
            with suppress(ValueError):  # it is still making a piece, and was called off: it will end by itself
                cast(Generator[Any, None, None], pieces).close()

        self._workshop.streams.submit(_finishing)

    def stream(self, tenant: TenantView, job: Callable[[Facts], Iterator[T]]) -> Iterator[T]:
        """The pieces that ``job`` makes of the tenant's facts; nothing happens before the first is asked for."""
        self.question.check()
        book = self._book(tenant)
        with self._workshop.engine.asking(self.question) as cursor:
            yield from job(Facts(cursor, book))

    def _book(self, tenant: TenantView) -> TagBook:
        with tenant.store.control.read() as connection:
            return self._workshop.books.of(tenant.tenant_name, connection)


@contextmanager
def interruptible(question: Question, connection: Connection) -> Iterator[None]:
    """Let the question's cancellation interrupt what runs on a connection to a control database."""
    driver: Any = connection.connection.dbapi_connection
    interrupt = driver.interrupt if connection.dialect.name == "sqlite" else driver.cancel
    with question.interruptible(interrupt):
        yield
