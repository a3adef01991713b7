"""The table of limits in the documentation has the values of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.api import authentication, parameters, signing_keys
from chargeback.api.limits import MAX_BODY_BYTES
from chargeback.api.routes.external_costs import _MAX_MAPPING_LENGTH
from chargeback.api.routes.statements import MOST_REPLIES
from chargeback.api.routes.tags import MAX_ITEMS
from chargeback.api.routes.views import MOST_VIEWS
from chargeback.categories import parsing, reading, reading_matches, regex
from chargeback.category_sources import entries
from chargeback.cli import http_server
from chargeback.config import document, journal, loading
from chargeback.reports.categories.editing import MOST_CATEGORIES
from chargeback.reports.statements import template_process

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
KIB, MIB = 2**10, 2**20

ROWS = {
    "first line and headers": f"{http_server.MAX_HEADER_BYTES // KIB} KiB",
    "trailers": f"{http_server.MAX_HEADER_BYTES // KIB} KiB",
    "time for the headers": f"{http_server.HEADER_SECONDS:g} seconds",
    "connections": f"at most {http_server._MAX_CONNECTIONS:,}",
    "body": f"{MAX_BODY_BYTES // MIB} MiB",
    "mistakes that are listed": f"{parameters.MOST_MISTAKES:,}",
    "tags in one request": f"{MAX_ITEMS:,}",
    "ids and search texts": f"{parameters.MAX_ID_LENGTH} characters",
    "saved views": f"{MOST_VIEWS:,} of a tenant",
    "cost categories": f"{MOST_CATEGORIES} of a tenant",
    "replies to a statement": f"{MOST_REPLIES} of each month, grouping and value",
    "document of a category": f"{reading.MAX_ENTRIES:,} entries, {parsing.MAX_RULES:,} rules, "
    f"{parsing.MAX_VALUES:,} values, {reading_matches.MAX_DEPTH} levels",
    "regex of a category": f"{reading_matches.MAX_REGEX} characters; {regex.MAX_COMPILED_SIZE:,} parts once "
    f"its repetitions are unfolded, {reading.MAX_REGEXES_SIZE:,} of all",
    "CSV file of rules": f"{entries.MOST_ENTRIES:,} lines, {entries.MOST_PERIODS} periods",
    "file of external costs": f"{_MAX_MAPPING_LENGTH:,} characters, {document.MAX_DEPTH} levels",
    "users and groups": f"{authentication._MAX_LENGTH} characters each, {authentication._MAX_GROUPS:,} groups",
    "keys of an issuer": f"{signing_keys._MAX_FILE_BYTES // MIB} MiB",
    "configuration file": f"{loading.MAX_FILE_BYTES // MIB} MiB, {document.MAX_DEPTH} levels, "
    f"{document.MAX_VALUES:,} values",
    "template of a journal": f"{journal.MAX_TEMPLATE_BYTES // KIB} KiB; {template_process.MOST_SECONDS} seconds, "
    f"{template_process.MOST_MEMORY // MIB} MiB of memory, {template_process.MOST_OUTPUT // MIB} MiB of output",
}


@pytest.mark.parametrize("name", ROWS)
def test_a_limit_is_documented(name: str) -> None:
    """The row of each limit has the value in the code."""
    table = PAGE.read_text(encoding="utf-8").partition("## Limits of input")[2].partition("\n## ")[0]
    (row,) = [line for line in table.splitlines() if line.startswith(f"| {name}")]
    assert ROWS[name] in row.split("|")[2]
