"""Statements as self-contained, escaped pages, and as PDF."""

from __future__ import annotations

import base64
import csv
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

from chargeback import how_to_install
from chargeback.allocation.policies import UNKNOWN, Policy
from chargeback.ecosystems.confluent_cloud.gatherer import catalogue
from chargeback.errors import PdfUnavailable
from chargeback.model.effects import EFFECTS
from chargeback.reports.changes import ChangeEffects
from chargeback.reports.policies import PolicyPortion
from chargeback.reports.statements.as_csv import statement_csv, statements_csv
from chargeback.reports.statements.as_html import content_policy, index_html, plain, shortened, statement_html, words
from chargeback.reports.statements.as_pdf import to_pdf
from chargeback.reports.statements.content import (
    DIRECT,
    SHARED_IN,
    OtherParts,
    PathStep,
    PreviousStatement,
    RankedPart,
    StatedAmount,
    StatementAdjustment,
    StatementAnswer,
    StatementCorrection,
    StatementFormat,
    StatementLine,
    StatementPolicy,
    StatementRanking,
    StatementRecipient,
    StatementRule,
    Statements,
    StatementSplit,
    StatementStep,
    StatementTieOut,
    StatementUnitCost,
)
from chargeback.reports.statements.files import FORMATS, write_statements
from tests.reports.statements import heading_of_october

#: Text that a page, a spreadsheet or a file name could misinterpret.
HOSTILE = "=HYPERLINK(\"http://evil.example\") <script>alert('x')</script> & ../../R\u00f6hren \u6f22\u5b57"


def stated(exact: str) -> StatedAmount:
    """Return an amount that is rounded by itself."""
    return StatedAmount.alone(Decimal(exact), "USD")


def statement_line(kind: str, category: str, product_type: str, amount: Decimal) -> StatementLine:
    """Return a line with an amount that is rounded by itself."""
    found = StatedAmount.alone(amount, "USD")
    return StatementLine(kind=kind, product_category=category, product_type=product_type, **dict(found))


def policy_of(product_type: str, policy: Policy) -> StatementPolicy:
    """Return the policy of a product type."""
    return StatementPolicy(product_type=product_type, hash=policy.hash, portions=PolicyPortion.all_of(policy))


def statement(value: str = "payments", amount: str = "1234.561", products: int = 1) -> Statements:
    """Return a month with one statement whose texts are all ``value``."""
    per_line = Decimal(amount) / products
    lines = [statement_line(DIRECT, "KAFKA", f"KAFKA_NUM_CKUS_{number}", per_line) for number in range(products)]
    lines.append(statement_line(SHARED_IN, "SUPPORT", value, Decimal("0.00")))
    named = RankedPart(id=value, name=value, within=value, **dict(stated(amount)))
    ranking = StatementRanking(items=[named], other=None, total=stated(amount))
    heading = heading_of_october(issued_at=datetime(2026, 11, 4, 3, 2, 1, tzinfo=UTC), category_version=2)
    tie = StatementTieOut(
        state="equal",
        difference=Decimal(0),
        statements=stated(amount),
        billed=stated(amount),
        outdated=stated("0"),
        pending=stated("0"),
    )
    one = StatementAnswer(
        **dict(heading),
        number="CB-acme-2026-10-cost_center.payments-r2",
        supersedes="CB-acme-2026-10-cost_center.payments-r1",
        digest="digest",
        recipient=StatementRecipient(
            value=value,
            name=value,
            path=[PathStep(value=value, name=value), PathStep(value="retail", name="Retail")],
            gl={"account": value},
            contacts=[value],
        ),
        **dict(stated(amount)),
        lines=lines,
        previous=PreviousStatement(
            period="2026-09",
            amount=Decimal(1000),
            delta=Decimal("234.561"),
            effects=ChangeEffects(**dict.fromkeys(EFFECTS, Decimal(1))),
            sentence=value,
        ),
        identities=ranking,
        resources=ranking,
        bills=None,
        topics=ranking,
        unit_costs=[
            StatementUnitCost(
                per="gib_in",
                unit="GiB",
                amount=Decimal(amount),
                usage=Decimal("1234.5"),
                unit_cost=Decimal("1.000049412717"),
            )
        ],
        split=StatementSplit(
            policies=[policy_of(value, UNKNOWN)],
            rules=[StatementRule(id=value, reason=value, amount=Decimal(amount))],
            steps=[StatementStep(source=value, by="even")],
        ),
        verdict=None,
        replies=[],
        tie_out=tie,
    )
    return Statements(heading, [one], stated(amount), tie)


def changed(found: Statements, **changes: object) -> StatementAnswer:
    """Return the statement of a month with some changes."""
    return found.items[0].model_copy(update=changes)


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def text_of(pdf: bytes) -> list[str]:
    """Return the texts of the pages of a PDF file."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [sheet.get_textpage().get_text_range() for sheet in document]
    finally:
        document.close()


@pytest.mark.parametrize("value", ["payments", HOSTILE])
def test_a_page_is_complete_and_escaped(value: str) -> None:
    """A page has no script or external address, and escapes texts. Its content policy allows only its own style."""
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
    """The page shows amounts in cents and contains the exact ones."""
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
        "Another share of the usage",
    ):
        assert text in page


def booked() -> Statements:
    """Return the same month when closed, with a correction of the month before and an adjustment, 1,230.57 in total."""
    found = statement()
    regular, corrected, added = stated("1234.561"), stated("-14"), stated("10.01")
    whole = StatedAmount.sum([regular, corrected, added], "USD")
    heading = found.heading.model_copy(
        update={
            "status": "CLOSED",
            "basis": "posted",
            "closed_at": datetime(2026, 11, 8, 9, 0, tzinfo=UTC),
            "times_closed": 1,
            "issuer": "Acme Finance\n1 Main Street",
            "invoices": ["INV-7"],
        }
    )
    correction = StatementCorrection(
        period_id="2026-09",
        start_date=date(2026, 9, 1),
        end_date=date(2026, 9, 30),
        **dict(corrected),
        causes=["bill_changed", "tag_changed"],
        sentence="September 2026 costs 14.00 USD less than was booked.",
    )
    adjustment = StatementAdjustment(
        id=1, kind="fee", **dict(added), other=None, applies_to="2026-08", reason="Setting up", reference="T-1"
    )
    more = {"regular": regular, "corrections": [correction], "adjustments": [adjustment]}
    one = changed(found, **dict(heading), **dict(whole), **more, supersedes=None)
    tie = found.tie_out
    assert tie is not None
    tie = tie.model_copy(update={"statements": whole, "corrections": corrected, "adjustments": added})
    return Statements(heading, [one], whole, tie)


def test_a_booked_month_has_all_that_adds_up_to_it() -> None:
    """Corrections and adjustments are lines with reasons; the page shows that the month is booked, and the issuer."""
    found = booked()
    page = statement_html(found, found.items[0])
    for text in (
        "The bill changed, tags were changed",
        "Corrections, together",
        "Fee of August 2026",
        "Setting up",
        '<data class="number" value="1230.571">1,230.57</data>',
        "+ corrections",
        "+ adjustments",
        "of own costs since September 2026",
        "October 2026, own costs",
        "CLOSED: the month is booked",
        "8 November 2026, 09:00 UTC",
        "Acme Finance",
        "1 Main Street",
        "INV-7",
    ):
        assert text in page, text
    assert "not closed" not in page
    rows = list(csv.DictReader(statement_csv(found.items[0]).splitlines()))
    assert [row["kind"] for row in rows] == ["direct", "shared_in", "correction", "adjustment"]
    assert sum(Decimal(row["amount"]) for row in rows) == found.items[0].amount
    nothing_of_its_own = changed(found, lines=[], regular=stated("0"))
    assert "There are no costs" not in statement_html(found, nothing_of_its_own)


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (
            StatementFormat(numbers="1.234,56", dates="14.11.2026", currency="before"),
            ["1.234,56<", "+234,56 of", "USD 1.234,56 ÷ 1.234,50 GiB", "31.10.2026, 31", "08.11.2026, 09:00 UTC"],
        ),
        (
            StatementFormat(numbers="1 234,56", dates="2026-11-14"),
            ["1\u202f234,56<", "1\u202f234,56 USD ÷", "1,0000</data> USD", "2026-10-31, 31", "2026-11-08, 09:00"],
        ),
    ],
)
def test_numbers_and_days_are_written_by_choice(form: StatementFormat, told: list[str]) -> None:
    """Numbers and dates follow the configured format; exact amounts for programs do not, and the default format changes
    nothing."""
    found = booked()
    written = replace(found, heading=found.heading.model_copy(update={"format": form}))
    page = statement_html(written, found.items[0])
    for text in told:
        assert text in page, text
    assert 'value="1230.571"' in page
    assert "1,23" not in re.sub("<style>.*</style>", "", page, flags=re.DOTALL)
    usual = replace(found, heading=found.heading.model_copy(update={"format": StatementFormat()}))
    assert statement_html(usual, found.items[0]) == statement_html(found, found.items[0])
    files = {found.items[0].number: {"pdf": "a.pdf"}}
    assert told[0].split("<")[0][:-2] in index_html(written, files)


def test_a_part_of_the_bill_says_so() -> None:
    """A statement of a part of the bill has no tie-out and shows the scope."""
    found = statement()
    scoped = replace(
        found, heading=found.heading.model_copy(update={"scope": {"tag:team": ["payments"]}}), tie_out=None
    )
    page = statement_html(scoped, scoped.items[0])
    assert "As far as you may see" in page
    assert "Against the provider" not in page


def test_a_part_of_the_bill_takes_little_room() -> None:
    """Of the values in a caller's scope, twenty are shown, shortened, and the others are counted."""
    found = statement()
    for count, others in ((20, ""), (21, " … and 1 other"), (1000, " … and 980 others")):
        values = [f"team-{number:03}" for number in range(count)]
        scope = {"tag:team": values, "env_id": ["e" * 200]}
        scoped = replace(found, heading=found.heading.model_copy(update={"scope": scope}))
        page = statement_html(scoped, scoped.items[0])
        assert f"tag:team: {', '.join(values[:20])}{others}; env_id: <span" in page
        assert "team-020" not in page
        assert f">{'e' * 59}…</span>" in page


def test_words_and_amounts() -> None:
    """Codes are shown as words, and amounts in the format of finance."""
    assert words("KAFKA_NUM_CKUS") == "Kafka CKUs"
    assert (plain(Decimal("-0.004"), "USD"), plain(Decimal("-1234567.891"), "USD")) == ("0.00", "\u22121,234,567.89")


@pytest.mark.extensive
def test_a_pdf_of_several_pages() -> None:
    """Every page has the number of the statement and a page number; the same page gives the same bytes."""
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


def test_long_names_are_shortened_on_the_page_only() -> None:
    """A long name ends with an ellipsis on the page, with the full name as its title; CSV has the full name."""
    name = "Customer payments and settlement for retail " * 5
    found = statement(name)
    page = statement_html(found, found.items[0])
    texts = re.sub("<[^>]*>", "\n", page.partition("</style>")[2])
    assert max(len(text) for text in texts.splitlines() if "Customer" in text) <= 120
    assert f'<h1><span title="{name}">{name[:79]}…</span></h1>' in page
    assert name in statement_csv(found.items[0])


def test_shortened_texts() -> None:
    """Wide characters take two columns, and combining marks stay with their characters; text that fits is unchanged."""
    assert shortened("e\u0301" * 8, 8) == "e\u0301" * 8
    assert shortened("e\u0301" * 9, 8) == "e\u0301" * 7 + "…"
    assert shortened("決済チーム", 10) == "決済チーム"
    assert shortened("決済チームの", 10) == "決済チー…"
    assert shortened("payments of retail", 10) == "payments…"
    family = "👩\u200d👩\u200d👧"
    assert shortened(f"{family}x", 6) == "👩\u200d👩…"


def test_costs_per_unit_cannot_be_added() -> None:
    """Costs per unit are separate boxes, each with its division, without a column of amounts."""
    found = statement()
    cost = found.items[0].unit_costs[0]
    other = cost.model_copy(update={"per": "gib_out", "unit_cost": Decimal("0.00001234")})
    both = changed(found, unit_costs=[cost, other])
    page = statement_html(found, both)
    section = page.partition("<h2>Costs per unit</h2>")[2].partition("</section>")[0]
    assert section.count('class="or"') == 1
    assert "<t" not in section
    for text in ("For each GiB written", "1,234.56 USD ÷ 1,234.50 GiB", "0.000012</data> USD", "never add them"):
        assert text in section
    assert "never add them" not in statement_html(found, found.items[0])


def test_numbers_of_things_are_grammatical() -> None:
    """Counts are grammatical: one other, two others, the only statement."""
    found = statement()
    one = found.items[0]
    for count, text in ((1, ">1 other</th>"), (2, ">2 others</th>")):
        others = OtherParts(count=count, **dict(stated("0")))
        resources = one.resources.model_copy(update={"other": others})
        assert text in statement_html(found, changed(found, resources=resources))
    assert "The only statement of October 2026" in statement_html(found, one)
    assert "All 2 statements of October 2026" in statement_html(replace(found, items=[one, one]), one)


@pytest.mark.extensive
def test_the_policies_of_all_products_fit_on_one_page() -> None:
    """The policies are on the last page, after everything else, without the parts that they have in common."""
    policies = [policy_of(product, policy) for product, policy in sorted(catalogue().policies.items())]
    found = statement()
    one = changed(found, split=found.items[0].split.model_copy(update={"policies": policies}))
    sheets = text_of(to_pdf(statement_html(found, one)))
    assert [number for number, sheet in enumerate(sheets, start=1) if "even(period)" in sheet] == [len(sheets)]
    assert "How products are split" in sheets[-1]
    assert "not closed" in sheets[-1]
    assert "unallocated" not in sheets[-1]


def test_characters_without_a_font_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """A file has one warning with all characters without a font, and what to install; other files have none."""
    to_pdf("<html lang='en'><title>t</title><p>a \U0010fffd b \U0010fffc \U0010fffd")
    (record,) = caplog.records
    assert "U+10FFFD" in record.getMessage()
    assert "U+10FFFC" in record.getMessage()
    assert record.getMessage().count("U+10FFFD") == 1
    assert "fonts-noto-cjk" in record.getMessage()
    caplog.clear()
    to_pdf("<html lang='en'><title>t</title><p>a b")
    assert caplog.records == []


def test_without_weasyprint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without weasyprint, the error says what to install, and no file is written."""
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(PdfUnavailable, match=re.escape(f"PDF files need the extra pdf: {how_to_install('pdf')}")):
        write_statements(statement(), tmp_path / "files", FORMATS)
    assert not (tmp_path / "files").exists()


def test_files_and_tables_of_hostile_texts(tmp_path: Path) -> None:
    """File names come from statement numbers, and no field of a table begins with a formula."""
    found = statement(HOSTILE)
    files = write_statements(found, tmp_path, ["html", "csv", "json"])
    assert {file.parent for file in files} == {tmp_path}
    assert [file.name for file in files[-2:]] == ["index.csv", "index.html"]
    for text in (statement_csv(found.items[0]), statements_csv(found)):
        assert "\"'=HYPERLINK" in text
        assert ',"=' not in text
