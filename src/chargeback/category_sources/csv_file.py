"""CSV files of entries, as finance keeps them in a spreadsheet: ``entity_type``, ``entity_id``, ``value``, ``percent``,
``valid_from``, ``valid_to``.

Separators may be commas, semicolons or tabs; a byte order mark, any end of line and Excel's line ``sep=;`` are
understood. Cells that the service's own export guards against formulas come back as they were.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeVar

from chargeback.category_sources.contract import ENTITY_TYPES, CategoryEntry, CategorySource, SourceContent
from chargeback.category_sources.entries import MOST_ENTRIES, MOST_PROBLEMS
from chargeback.errors import ConfigProblem, ConfigurationError, SourceError
from chargeback.model.dated import Period

T = TypeVar("T")

COLUMNS: Final = ("entity_type", "entity_id", "value", "percent", "valid_from", "valid_to")

_REQUIRED: Final = COLUMNS[:3]
_SEPARATORS: Final = (",", ";", "\t")
_SEPARATOR_LINE: Final = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
#: The apostrophes that :func:`chargeback.store.queries.sql_format.csv_field` adds.
_GUARD: Final = re.compile(r"(^|[;\t\r\n])'")
_PERCENT: Final = re.compile(r"\d{1,3}(?:\.\d{1,30})?")
_GERMAN_DAY: Final = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_MAX_LENGTHS: Final = {"entity_id": 512, "value": 255}


class CsvSource(CategorySource):
    """Reads one CSV file."""

    def read(self, path: Path, key: str) -> SourceContent:
        """Return the entries of the file, in its order."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from None
        return SourceContent(read_entries(decoded(content)))


source = CsvSource()


def decoded(content: bytes) -> str:
    """Return the text of a file: UTF-8, or the UTF-16 that spreadsheets call Unicode text.

    Raises:
        ConfigurationError: it is neither.
    """
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        line = content[: _first_bad_byte(content)].count(b"\n") + 1
        raise ConfigurationError(
            [ConfigProblem(f"line {line}", "is not UTF-8; in a spreadsheet, save the file as “CSV UTF-8”")]
        ) from None


def _first_bad_byte(content: bytes) -> int:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


def read_entries(text: str) -> list[CategoryEntry]:
    """Return the entries of a CSV file, in its order; empty lines are ignored.

    Raises:
        ConfigurationError: with every mistake, by its line (from 1; the head is the first).
    """
    text = text.removeprefix("\ufeff")
    stated = _SEPARATOR_LINE.match(text)
    body = text[stated.end() :] if stated else text
    separator = stated[1] if stated else separator_of(body)
    rows = csv.reader(io.StringIO(body, newline=""), delimiter=separator, strict=True)
    before = 1 if stated else 0
    problems: list[ConfigProblem] = []
    entries: list[CategoryEntry] = []
    try:
        reader = _LineReader(next(rows, []), decimal_comma=separator != ",")
        for row in rows:
            if any(cell.strip() for cell in row):
                entries += reader.read(row, f"line {rows.line_num + before}", problems)
            if len(entries) > MOST_ENTRIES:
                message = f"has more than {MOST_ENTRIES:,} lines, the most that a cost category can hold"
                problems.append(ConfigProblem(f"line {rows.line_num + before}", message))
            if len(problems) >= MOST_PROBLEMS or len(entries) > MOST_ENTRIES:
                break
    except csv.Error as error:
        problems.append(ConfigProblem(f"line {rows.line_num + before}", f"is not CSV: {error}"))
    if problems:
        raise ConfigurationError(problems[:MOST_PROBLEMS])
    return entries


def separator_of(text: str) -> str:
    """Return what separates the names of the columns."""
    head = text.partition("\n")[0]
    return max(_SEPARATORS, key=head.count)


def plain_cell(cell: str) -> str:
    """Return a cell without what the service's own export guards it with against formulas."""
    return _GUARD.sub(r"\1", cell)


class _LineReader:
    """Reads the lines of one file."""

    def __init__(self, head: Sequence[str], *, decimal_comma: bool) -> None:
        names = [name.strip().lower() for name in head]
        wrong = [
            *(ConfigProblem("line 1", f"the column {name} is missing") for name in _REQUIRED if name not in names),
            *(
                ConfigProblem("line 1", f"{name[:40]!r} is not a column of this file; these are {', '.join(COLUMNS)}")
                for name in names
                if name and name not in COLUMNS
            ),
            *(ConfigProblem("line 1", f"the column {name} occurs twice") for name in COLUMNS if names.count(name) > 1),
        ]
        if wrong:
            raise ConfigurationError(wrong)
        self._names = names
        self._decimal_comma = decimal_comma

    def read(self, row: Sequence[str], place: str, problems: list[ConfigProblem]) -> Iterator[CategoryEntry]:
        """Yield the entry of a line; if it has mistakes, add them to ``problems`` instead."""
        if len(row) != len(self._names):
            problems.append(ConfigProblem(place, f"has {len(row)} fields, and the head has {len(self._names)}"))
            return
        cells = {name: plain_cell(cell).strip() for name, cell in zip(self._names, row, strict=True)}
        known = len(problems)
        entity_type = self._cell(cells, "entity_type", _entity_type, place, problems)
        entity_id = self._cell(cells, "entity_id", lambda text: _text(text, "entity_id"), place, problems)
        value = self._cell(cells, "value", lambda text: _text(text, "value"), place, problems)
        percent = self._cell(cells, "percent", self._percent, place, problems)
        days = [self._cell(cells, name, _day, place, problems) for name in COLUMNS[4:]]
        during = Period(days[0], days[1])
        if during.is_empty:
            problems.append(ConfigProblem(place, "valid_to should be after valid_from: it is the first day without"))
        if len(problems) == known and entity_type and entity_id and value:
            yield CategoryEntry(entity_type, entity_id, value, percent, during, place)

    @staticmethod
    def _cell(
        cells: Mapping[str, str], name: str, parse: Callable[[str], T], place: str, problems: list[ConfigProblem]
    ) -> T | None:
        text = cells.get(name, "")
        if not text and name not in _REQUIRED:
            return None
        try:
            return parse(text)
        except ValueError as error:
            problems.append(ConfigProblem(place, f"{name} {error}"))
            return None

    def _percent(self, text: str) -> Decimal:
        number = text.removesuffix("%").strip()
        if self._decimal_comma:
            number = number.replace(",", ".")
        if not _PERCENT.fullmatch(number):
            raise ValueError(f"should be a number such as 60 or 33.5, not {text[:40]!r}")
        return Decimal(number)


def _entity_type(text: str) -> str:
    if text.lower() not in ENTITY_TYPES:
        raise ValueError(f"should be {', '.join(ENTITY_TYPES[:-1])} or {ENTITY_TYPES[-1]}, not {text[:40]!r}")
    return text.lower()


def _text(text: str, name: str) -> str:
    if not text:
        raise ValueError("should not be empty")
    if "\x00" in text:
        raise ValueError("must not contain the character NUL")
    if len(text) > _MAX_LENGTHS[name]:
        raise ValueError(f"should have at most {_MAX_LENGTHS[name]} characters")
    return text


def _day(text: str) -> date:
    german = _GERMAN_DAY.fullmatch(text)
    with suppress(ValueError):
        return date(int(german[3]), int(german[2]), int(german[1])) if german else date.fromisoformat(text)
    raise ValueError(f"should be a day such as 2026-01-31, not {text[:40]!r}")
