"""Standard error while something is drawn on it: what this process and its children write appears above the drawing."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console

_STDERR: Final = 2
#: How long the lines that are still on their way may take at the end (seconds).
_LAST_LINES_SECONDS: Final = 2.0


@contextmanager
def printed_above(console: Console) -> Iterator[None]:
    """Print every line that is written to standard error, by this process or a child, through ``console``.

    A child inherits the file descriptor, not the console: without this its log lines land in the middle of a bar. Only
    for a console that writes to standard error; for any other nothing changes.
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
