"""Progress of runs: bars on a terminal, plain lines in a pipe.

While bars are shown, output of this process and its children on standard error appears above them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Column
from rich.text import Text

from chargeback.pipeline.run_messages import Progress, Stage

_STDERR: Final = 2
#: How long to wait for remaining lines at the end, in seconds.
_LAST_LINES_SECONDS: Final = 2.0

#: On a narrower terminal there is no room for bars.
BARS_WIDTH = 150

#: In a pipe, the minimum seconds between two lines of a tenant within a stage.
PLAIN_INTERVAL = 1.0


@contextmanager
def printed_above(console: Console) -> Iterator[None]:
    """Print every line that this process or a child writes to standard error through ``console``.

    A child inherits the file descriptor, not the console: without this its log lines would appear in the middle of a
    bar. No effect for a console that does not write to standard error.
    """
    try:
        is_stderr = console.file.fileno() == _STDERR
    except (OSError, ValueError):
        is_stderr = False
    if not is_stderr:
        yield
        return
    before = console.file
    terminal = os.dup(_STDERR)
    reading, writing = os.pipe()
    with os.fdopen(terminal, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as drawn:
        console.file = drawn
        os.dup2(writing, _STDERR)
        os.close(writing)
        printer = threading.Thread(target=_print_lines, args=(reading, console), name="stderr", daemon=True)
        printer.start()
        try:
            yield
        finally:
            before.flush()
            os.dup2(terminal, _STDERR)  # the pipe ends once the children have ended, too
            printer.join(_LAST_LINES_SECONDS)
            drawn.flush()
            console.file = before
    os.close(terminal)


def _print_lines(reading: int, console: Console) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="backslashreplace") as lines:
        for line in lines:
            console.print(line.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)


@dataclass
class _Pace:
    """Rows per second of one tenant, since its first calculation."""

    began: float | None = None
    rows_then: int = 0

    def rows_per_second(self, event: Progress, now: float) -> float:
        """Return the pace at this event; zero while nothing is calculated."""
        if event.stage is not Stage.CALCULATING:
            return 0.0
        if self.began is None:
            self.began, self.rows_then = now, event.rows
            return 0.0
        elapsed = now - self.began
        return (event.rows - self.rows_then) / elapsed if elapsed > 0 else 0.0


class _View(Protocol):
    def start(self) -> None: ...
    def show(self, event: Progress, pace: float) -> None: ...
    def stop(self) -> None: ...


class ProgressDisplay:
    """Shows :class:`Progress` events; call it with one, from any thread. Use it in a ``with``."""

    def __init__(self, target: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        target = target or Console(file=sys.stderr, highlight=False)
        self._view: _View = _BarView(target) if target.is_terminal else _PlainView(target, clock)
        self._clock = clock
        self._lock = threading.Lock()
        self._paces: dict[str, _Pace] = {}

    def __call__(self, event: Progress) -> None:
        """Show an event."""
        with self._lock:
            pace = self._paces.setdefault(event.tenant, _Pace())
            self._view.show(event, pace.rows_per_second(event, self._clock()))

    def __enter__(self) -> Self:
        self._view.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._view.stop()


@dataclass(frozen=True)
class _Narrow:
    """A tenant's progress in one line: its name, its days, and as many counts as fit."""

    task: Task

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line."""
        fields, total = self.task.fields, self.task.total
        days = f"  {self.task.completed:.0f}/{'?' if total is None else f'{total:.0f}'} days"
        line = self.task.description[: max(1, options.max_width - len(days))] + days
        counts = [f"{fields['rows']:,} rows", f"{fields['lines']:,} lines", f"{fields['pace']:,.0f} rows/s"]
        for part in (fields["stage"], *counts):
            if len(line) + 2 + len(part) > options.max_width:
                break
            line += f"  {part}"
        yield Text(line, no_wrap=True, overflow="crop")


class _NarrowColumn(ProgressColumn):
    """Everything about a tenant in one column."""

    def render(self, task: Task) -> _Narrow:
        """Return the line of a tenant."""
        return _Narrow(task)


class _BarView:
    """One bar per tenant, or a line without a bar on a narrow terminal."""

    def __init__(self, target: Console) -> None:
        self._tasks: dict[str, TaskID] = {}
        columns: list[ProgressColumn] = [_NarrowColumn()]
        if target.width >= BARS_WIDTH:
            columns = [
                TextColumn("{task.description}", table_column=Column(max_width=24, no_wrap=True, overflow="ellipsis")),
                TextColumn("{task.fields[stage]:<13}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn(
                    "days  {task.fields[lines]:,} lines  {task.fields[rows]:,} rows  {task.fields[pace]:,.0f} rows/s"
                ),
                TimeElapsedColumn(),
            ]
        self._bars = Bars(*columns, console=target)
        self._lines = ExitStack()

    def start(self) -> None:
        self._lines.enter_context(printed_above(self._bars.console))
        self._bars.start()

    def show(self, event: Progress, pace: float) -> None:
        if event.tenant not in self._tasks:
            self._tasks[event.tenant] = self._bars.add_task(event.tenant, stage="", lines=0, rows=0, pace=0.0)
        self._bars.update(
            self._tasks[event.tenant],
            completed=event.done,
            total=event.total or None,
            stage=_name(event.stage),
            lines=event.lines,
            rows=event.rows,
            pace=pace,
        )

    def stop(self) -> None:
        with self._lines:
            self._bars.stop()


class _PlainView:
    """Lines of text: the first and the last of every stage, and in between at most one per second and tenant."""

    def __init__(self, target: Console, clock: Callable[[], float]) -> None:
        self._target = target
        self._clock = clock
        self._spoken: dict[str, tuple[Stage, float]] = {}
        self._unspoken: dict[str, str] = {}

    def start(self) -> None:
        pass

    def show(self, event: Progress, pace: float) -> None:
        stage, when = self._spoken.get(event.tenant, (None, 0.0))
        text = _line(event, pace)
        if event.stage is not stage:
            self._say_unspoken(event.tenant)
        elif self._clock() - when < PLAIN_INTERVAL:
            self._unspoken[event.tenant] = text
            return
        self._unspoken.pop(event.tenant, None)
        self._spoken[event.tenant] = (event.stage, self._clock())
        self._say(text)

    def stop(self) -> None:
        for tenant in list(self._unspoken):
            self._say_unspoken(tenant)

    def _say_unspoken(self, tenant: str) -> None:
        if text := self._unspoken.pop(tenant, None):
            self._say(text)

    def _say(self, text: str) -> None:
        self._target.print(text, soft_wrap=True, markup=False)


def _name(stage: Stage) -> str:
    return stage.value.replace("_", " ")


def _line(event: Progress, pace: float) -> str:
    parts = [f"{event.tenant}: {_name(event.stage)}"]
    if event.total:
        parts.append(f"{event.done}/{event.total} days")
    if event.lines:
        parts.append(f"{event.lines:,} lines")
    if event.rows:
        parts.append(f"{event.rows:,} rows")
    if pace:
        parts.append(f"{pace:,.0f} rows/s")
    return "  ".join(parts)
