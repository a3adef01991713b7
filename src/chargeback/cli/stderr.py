"""Standard error with a live display: output of this process and its children appears above the display."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console

_STDERR: Final = 2
#: How long to wait for remaining lines at the end, in seconds.
_LAST_LINES_SECONDS: Final = 2.0


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
