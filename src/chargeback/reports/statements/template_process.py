"""Renders an untrusted template: the process of :mod:`~chargeback.reports.statements.journal_templates`.

It reads the data from standard input as JSON, and writes the text to standard output. A template can only access its
data (a sandbox), and can neither fill the memory nor run for long (limits of the process). Every text is escaped for
the output format: in CSV as in exports, so that no spreadsheet takes it for a formula.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from jinja2 import StrictUndefined, TemplateError, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from chargeback.store.queries.sql_format import csv_field

#: Seconds of processor time, bytes of memory, and bytes of output.
MOST_SECONDS: Final = 5
MOST_MEMORY: Final = 512 * 2**20
MOST_OUTPUT: Final = 16 * 2**20
#: The exit code of a template that fails; standard error has the reason.
FAILED: Final = 3

_CONTROL: Final = dict.fromkeys((*range(32), 127), " ")


def main() -> int:
    """Write the text; return the exit code."""
    asked = json.loads(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        sys.stdout.buffer.write(rendered(asked["source"], asked["form"], with_amounts(asked["values"])))
    except MemoryError:
        return _failed(f"needs more than {MOST_MEMORY // 2**20} MiB of memory")
    except TemplateError as error:
        line = getattr(error, "lineno", None) or _line_of(error)
        return _failed(f"{error.message}{'' if line is None else f', line {line}'}")
    except RecursionError:
        return _failed("calls itself too often")
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:  # what expressions raise
        return _failed(f"{type(error).__name__}: {error}, line {_line_of(error) or 1}")
    return 0


def rendered(source: str, form: str, values: Mapping[str, Any]) -> bytes:
    """Return the text that a template writes: ``form`` is ``csv``, ``json``, ``xml`` or ``txt``.

    Raises:
        TemplateError: the template is invalid, or uses something that is not allowed.
        ValueError: the text is longer than :data:`MOST_OUTPUT`.
    """
    environment = ImmutableSandboxedEnvironment(
        autoescape=form == "xml",
        undefined=StrictUndefined,
        finalize=_WRITERS[form],
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        newline_sequence="\r\n" if form == "csv" else "\n",
    )
    pieces: list[bytes] = []
    size = 0
    for piece in environment.from_string(source).generate(values):
        pieces.append(piece.encode())
        size += len(pieces[-1])
        if size > MOST_OUTPUT:
            raise ValueError(f"writes more than {MOST_OUTPUT // 2**20} MiB")
    return b"".join(pieces)


def with_amounts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a journal for templates: amounts are decimals."""
    lines = [line | {side: Decimal(line[side]) for side in ("debit", "credit")} for line in values["lines"]]
    return dict(values) | {"lines": lines, "debit": Decimal(values["debit"]), "credit": Decimal(values["credit"])}


def _csv(value: object) -> object:
    if value is None:
        return ""
    return csv_field(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _json(value: object) -> object:
    # Values with `__html__` come from the filter `tojson`, or are marked as safe.
    if isinstance(value, Undefined) or hasattr(value, "__html__"):
        return value
    return json.dumps(str(value) if isinstance(value, Decimal) else value, ensure_ascii=False)


def _txt(value: object) -> object:
    return "" if value is None else str(value).translate(_CONTROL)


def _xml(value: object) -> object:
    return "" if value is None else value


_WRITERS: Final[Mapping[str, Callable[[object], object]]] = {"csv": _csv, "json": _json, "txt": _txt, "xml": _xml}


def _line_of(error: BaseException) -> int | None:
    """Return the line of the template in which an error arose."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _failed(why: str) -> int:
    sys.stderr.write(why)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
