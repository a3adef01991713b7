"""The statements of a month as files."""

from __future__ import annotations

import io
from dataclasses import replace
from zipfile import ZIP_STORED, ZipFile

from chargeback.reports.statements.content import Statements
from chargeback.reports.statements.files import files_of, zipped_statements
from tests.reports.statements.test_as_html import changed, statement

MANY = 40


def month() -> Statements:
    """Return a month with many statements."""
    found = statement()
    return replace(found, items=[changed(found, number=f"CB-acme-2026-10-{each}-r1") for each in range(MANY)])


def test_a_zip_file_has_all_files_in_their_order() -> None:
    """The same statements give the same bytes, with the instant of issue; any program can read them."""
    found = month()
    whole = b"".join(zipped_statements(found, ["html", "csv"]))
    assert whole == b"".join(zipped_statements(month(), ["html", "csv"]))
    with ZipFile(io.BytesIO(whole)) as archive:
        assert archive.testzip() is None
        assert [(each, archive.read(each)) for each in archive.namelist()] == list(files_of(found, ["html", "csv"]))
        for entry in archive.infolist():
            assert (entry.date_time, entry.compress_type) == ((2026, 11, 4, 3, 2, 0), ZIP_STORED)
            # Sizes precede each file, so that it can be read while it arrives.
            assert not entry.flag_bits & 0b1000
    never = replace(found, heading=found.heading.model_copy(update={"issued_at": None}))
    with ZipFile(io.BytesIO(b"".join(zipped_statements(never, [])))) as archive:
        assert [each.date_time[0] for each in archive.infolist()] == [1980, 1980]


def test_a_zip_file_is_sent_while_it_is_made() -> None:
    """Each piece is one file with its header, made when it is read; the last one is the directory."""
    found = month()
    sizes = [len(content) for _, content in files_of(found, ["html"])]
    pieces = [len(piece) for piece in zipped_statements(found, ["html"])]
    assert len(pieces) == len(sizes) + 1
    assert all(0 < piece - size < 200 for piece, size in zip(pieces, sizes, strict=False))
    first = next(iter(zipped_statements(found, ["html"])))
    assert bytes(first[:4]) == b"PK\x03\x04"
