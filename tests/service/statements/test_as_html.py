"""A statement as a page: complete in itself, escaped, and printed as PDF."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import pypdfium2
import pytest

from chargeback.allocation.policies import UNKNOWN
from chargeback.errors import PdfUnavailable
from chargeback.model.days import month_of
from chargeback.model.effects import EFFECTS
from chargeback.service.statements.as_csv import statement_csv, statements_csv
from chargeback.service.statements.as_html import content_policy, index_html, plain, statement_html, words
from chargeback.service.statements.as_pdf import to_pdf
from chargeback.service.statements.content import (
    DIRECT,
    SHARED_IN,
    CostPerUnit,
    HandedOnBy,
    Heading,
    Line,
    Previous,
    ProductPolicy,
    Ranked,
    Ranking,
    Recipient,
    RuleShare,
    Stated,
    Statement,
    Statements,
    StatementSplit,
    TieOut,
)
from chargeback.service.statements.files import FORMATS, write_statements

#: Text that a page, a spreadsheet or a file name could take for something else.
HOSTILE = "=HYPERLINK(\"http://evil.example\") <script>alert('x')</script> & ../../R\u00f6hren \u6f22\u5b57"


def stated(exact: str) -> Stated:
    """An amount that is rounded by itself."""
    return Stated.alone(Decimal(exact))


def statement(value: str = "payments", amount: str = "1234.561", products: int = 1) -> Statements:
    """A month with one statement; every text of it is ``value``."""
    per_line = Decimal(amount) / products
    lines = [Line(DIRECT, "KAFKA", f"KAFKA_NUM_CKUS_{number}", Stated.alone(per_line)) for number in range(products)]
    lines.append(Line(SHARED_IN, "SUPPORT", value, stated("0.00")))
    ranking = Ranking([Ranked(value, value, stated(amount), value)], 0, stated("0"), stated(amount))
    one = Statement(
        "CB-acme-2026-10-cost_center.payments-r2",
        "CB-acme-2026-10-cost_center.payments-r1",
        Recipient(value, value, ((value, value), ("retail", "Retail")), (("account", value),), (value,)),
        stated(amount),
        lines,
        Previous("2026-09", Decimal("1000"), Decimal("234.561"), dict.fromkeys(EFFECTS, Decimal("1")), value),
        ranking,
        ranking,
        ranking,
        [CostPerUnit("gib_in", "GiB", Decimal(amount), Decimal("1234.5"), Decimal("1.000049412717"))],
        StatementSplit(
            [ProductPolicy(value, UNKNOWN)], [RuleShare(value, value, Decimal(amount))], [HandedOnBy(value, "even")]
        ),
    )
    heading = Heading(
        "acme",
        "category:cost_center",
        "2026-10",
        month_of(date(2026, 10, 1)),
        31,
        date(2026, 10, 31),
        datetime(2026, 11, 4, 3, 2, 1, tzinfo=UTC),
        "USD",
        2,
        2,
        None,
    )
    tie = TieOut(stated(amount), stated(amount), stated("0"), stated("0"), "equal")
    return Statements(heading, [one], stated(amount), tie)


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def text_of(pdf: bytes) -> list[str]:
    """The texts of the pages of a PDF file."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [sheet.get_textpage().get_text_range() for sheet in document]
    finally:
        document.close()


@pytest.mark.parametrize("value", ["payments", HOSTILE])
def test_a_page_is_complete_and_escaped(value: str) -> None:
    """No script, no address of anything elsewhere; texts are texts. Its policy allows its own style, and no other."""
    found = statement(value)
    for page in (statement_html(found, found.items[0]), index_html(found, {found.items[0].number: {"pdf": "x.pdf"}})):
        elements = Elements(page).found
        assert not {tag for tag, _ in elements} & {"script", "link", "img", "iframe", "form", "object", "svg"}
        assert not {name for _, attributes in elements for name in attributes} & {"src", "style", "onclick", "action"}
        assert {attributes["href"] for tag, attributes in elements if tag == "a"} <= {"x.pdf"}
        (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
        assert "url(" not in style
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"style-src 'sha256-{digest}'" in content_policy()
        assert "default-src 'none'" in content_policy()


def test_a_page_has_what_the_statement_says() -> None:
    """Amounts in cents, with the exact ones behind them."""
    found = statement()
    page = statement_html(found, found.items[0])
    for text in (
        '<data class="number" value="1234.561">1,234.56</data>',
        "CB-acme-2026-10-cost_center.payments-r2",
        "supersedes r1",
        "PROVISIONAL",
        "31 October 2026, 31 of 31 days",
        "4 November 2026, 03:02 UTC",
        "difference",
        "+234.56 since September 2026",
    ):
        assert text in page


def test_a_part_of_the_bill_says_so() -> None:
    """Without the tie-out, and with what the reader may see."""
    found = statement()
    scoped = replace(found, heading=replace(found.heading, scope={"tag:team": ["payments"]}), tie_out=None)
    page = statement_html(scoped, scoped.items[0])
    assert "As far as you may see" in page
    assert "Against the provider" not in page


def test_words_and_amounts() -> None:
    """Codes in words, and amounts as finance writes them."""
    assert words("KAFKA_NUM_CKUS") == "Kafka CKUs"
    assert (plain(Decimal("-0.004")), plain(Decimal("-1234567.891"))) == ("0.00", "\u22121,234,567.89")


def test_a_pdf_of_several_pages() -> None:
    """Every page has the number of the statement and its own; the total comes once, and the same bytes come again."""
    found = statement(HOSTILE, products=90)
    page = statement_html(found, found.items[0])
    pdf = to_pdf(page)
    sheets = text_of(pdf)
    assert len(sheets) > 2
    for number, sheet in enumerate(sheets, start=1):
        assert found.items[0].number in sheet
        assert f"{number} of {len(sheets)}" in sheet
    assert "alert('x')" in " ".join(sheets)
    assert to_pdf(page) == pdf


def test_without_weasyprint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says what to install, and no file is written."""
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(PdfUnavailable, match=r"pip install 'chargeback\[pdf\]'"):
        write_statements(statement(), tmp_path / "files", FORMATS)
    assert not (tmp_path / "files").exists()


def test_files_and_tables_of_hostile_texts(tmp_path: Path) -> None:
    """Files are called by numbers, and no field of a table begins a formula."""
    found = statement(HOSTILE)
    files = write_statements(found, tmp_path, ["html", "csv", "json"])
    assert {file.parent for file in files} == {tmp_path}
    assert [file.name for file in files[-2:]] == ["index.csv", "index.html"]
    for text in (statement_csv(found, found.items[0]), statements_csv(found)):
        assert "\"'=HYPERLINK" in text
        assert ',"=' not in text
