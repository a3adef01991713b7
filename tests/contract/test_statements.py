"""Statements over HTTP: they sum to the bill in every format, and respect the scope of the caller."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from zipfile import ZipFile

import httpx
import pypdfium2
import pytest

from chargeback.access.caller import Right
from chargeback.config.journal import JournalProfile, JournalTemplate
from tests.contract.deployment import Deployment
from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, shown, total
from tests.support.callers import Callers, asked_by, caller
from tests.support.laws import one_first

BY = ("category:cost_center", "tag:team", "identity_id")
PAYMENTS = {"by": "category:cost_center", "value": "payments"}


@pytest.fixture(scope="session")
def month(everything: Everything) -> str:
    """The month of the last day."""
    return everything.days[-1][:7]


def statements_of(client: Client, month: str, by: str) -> Record:
    """Return the statements of a month."""
    answer: Record = client.answer("/api/v1/tenants/acme/statements", period=month, by=by)
    return answer


def statement_of(client: Client, month: str, by: str, value: str) -> Record:
    """Return one statement."""
    answer: Record = client.answer("/api/v1/tenants/acme/statement", period=month, by=by, value=value)
    return answer


def rounded(items: list[Record]) -> Decimal:
    """Return the sum of amounts in cents."""
    return sum((Decimal(item["rounded"]) for item in items), Decimal(0))


@pytest.mark.parametrize("by", one_first(BY))
def test_statements_are_the_bill(client: Client, everything: Everything, month: str, by: str) -> None:
    """The statements of a month sum to the bill, exactly and in cents, and each is the sum of its lines."""
    found = statements_of(client, month, by)
    billed = total((line for line in everything.billing if line["timestamp"].startswith(month)), "total_cost")
    assert shown(total(found["items"])) == found["total"]["amount"] == shown(billed)
    assert rounded(found["items"]) == Decimal(found["total"]["rounded"]) == round(billed, 2)
    tie = found["tie_out"]
    assert (tie["state"], tie["difference"], tie["billed"], tie["statements"]) == (
        "equal",
        "0.00",
        found["total"],
        found["total"],
    )
    sums = client.answer(
        f"{everything.base}/chargebacks/aggregate", period=month, group_by=[by, "identity_id"], time_bucket="month"
    )
    nobody = {"category:cost_center": "UNASSIGNED", "tag:team": "UNTAGGED"}.get(by)
    expected: dict[str, Decimal] = {}
    for bucket in sums["buckets"]:
        value, identity = bucket["dimensions"][by], bucket["dimensions"]["identity_id"]
        value = "UNALLOCATED" if value == nobody and identity == "UNALLOCATED" else value
        expected[value] = expected.get(value, Decimal(0)) + Decimal(bucket["total_amount"])
    amounts = {each["recipient"]["value"]: each["amount"] for each in found["items"] if Decimal(each["amount"])}
    assert amounts == {value: shown(amount) for value, amount in expected.items() if amount}
    for each in found["items"]:
        one = statement_of(client, month, by, each["recipient"]["value"])
        assert {name: one[name] for name in ("number", "amount", "rounded", "recipient")} == {
            name: each[name] for name in ("number", "amount", "rounded", "recipient")
        }
        assert shown(total(one["lines"])) == one["amount"]
        assert rounded(one["lines"]) == Decimal(one["rounded"])


def test_a_statement_says_what_finance_needs(client: Client, month: str) -> None:
    """A statement has its number, its status, and how it was split."""
    found = statement_of(client, month, **PAYMENTS)
    assert re.fullmatch(rf"CB-acme-{month}-cost_center\.payments-r\d+", found["number"])
    assert (found["status"], found["basis"], found["scope"]) == ("PROVISIONAL", "accrual", None)
    assert found["split"]["policies"]
    assert total(found["split"]["rules"]) == total(line for line in found["lines"] if line["kind"] == "direct")
    assert all(line["kind"] != "direct" for line in found["lines"]) or found["split"]["rules"]


def test_costs_per_unit_are_those_of_the_month(client: Client, everything: Everything, month: str) -> None:
    """A statement has the same unit costs as their endpoint; what was not used has none."""
    expected: dict[str, dict[str, Any]] = {}
    for per in ("gib_in", "gib_out"):
        asked = {"period": month, "per": per, "group_by": "identity_id", "limit": 1000}
        for item in client.answer(f"{everything.base}/unit-costs", **asked)["items"]:
            if item["unit_cost"] is not None:
                of_identity = expected.setdefault(item["dimensions"]["identity_id"], {})
                of_identity[per] = {name: item[name] for name in ("amount", "usage", "unit_cost")}
    assert expected
    for value, costs in expected.items():
        found = statement_of(client, month, "identity_id", value)["unit_costs"]
        assert {each["per"]: {name: each[name] for name in ("amount", "usage", "unit_cost")} for each in found} == costs
    assert statement_of(client, month, "identity_id", "UNALLOCATED")["unit_costs"] == []


@pytest.mark.extensive
def test_files_are_the_statement(client: Client, month: str) -> None:
    """The CSV files, the page and the PDF have the amounts of the JSON."""
    listed = statements_of(client, month, PAYMENTS["by"])
    listing = {"period": month, "by": PAYMENTS["by"]}
    rows = csv_of(client, "statements.csv", listing)
    assert [(row["number"], row["amount"], row["rounded"]) for row in rows] == [
        (item["number"], item["amount"], item["rounded"]) for item in listed["items"]
    ]
    found, asked = statement_of(client, month, **PAYMENTS), {"period": month, **PAYMENTS}
    lines = csv_of(client, "statement.csv", asked)
    assert [(line["kind"], line["product_type"], line["amount"], line["rounded"]) for line in lines] == [
        (line["kind"], line["product_type"], line["amount"], line["rounded"]) for line in found["lines"]
    ]
    page = client.get("/api/v1/tenants/acme/statement.html", params=asked)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "style-src 'sha256-" in page.headers["content-security-policy"]
    printed = client.get("/api/v1/tenants/acme/statement.pdf", params=asked)
    assert printed.headers["content-disposition"] == f"inline; filename={found['number']}.pdf"
    document = pypdfium2.PdfDocument(printed.content)
    text = " ".join(sheet.get_textpage().get_text_range() for sheet in document)
    document.close()
    both = [client.get("/api/v1/tenants/acme/statements.zip", params=listing) for _ in range(2)]
    assert both[0].content == both[1].content
    assert both[0].headers["content-disposition"] == f"attachment; filename=statements-{month}.zip"
    with ZipFile(io.BytesIO(both[0].content)) as archive:
        names = [f"{item['number']}.pdf" for item in listed["items"]]
        assert archive.namelist() == [*names, "index.csv", "index.html"]
        assert archive.read(f"{found['number']}.pdf") == printed.content
    amount = f"{Decimal(found['rounded']):,.2f}"
    assert found["number"] in page.text
    assert found["number"] in text
    assert amount in page.text
    assert amount in text


def csv_of(client: Client, name: str, params: Record) -> list[dict[str, str]]:
    """Return the rows of a file."""
    response = client.get(f"/api/v1/tenants/acme/{name}", params=params)
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


def test_what_is_wrong_is_named(client: Client, month: str) -> None:
    """Invalid months and groupings, and unknown categories and values, are refused."""
    base = "/api/v1/tenants/acme"
    assert complaints(client.get(f"{base}/statements", params={"period": "2026-13", "by": "product_type"})) == [
        "by",
        "period",
    ]
    unknown = {"period": month, "by": "category:none"}
    assert client.get(f"{base}/statements.zip", params=unknown).status_code == 404
    for form in ("", ".html", ".csv", ".pdf"):
        none: dict[str, Any] = {"period": month, "by": "category:none", "value": "payments"}
        assert client.get(f"{base}/statement{form}", params=none).status_code == 404
        none |= {"by": "identity_id", "value": "nobody's / $%& id"}
        answer = client.get(f"{base}/statement{form}", params=none)
        assert (answer.status_code, "There is no statement of" in answer.json()["detail"]) == (404, True)
    assert statements_of(client, "2001-01", "identity_id")["items"] == []


@pytest.mark.extensive
@pytest.mark.parametrize("by", BY)
def test_the_journal_is_the_statements(client: Client, month: str, by: str) -> None:
    """Every statement is posted with its rounded amount, and the clearing account with the sum; the file has the same
    lines, and the same bytes when requested again."""
    listed = statements_of(client, month, by)
    path = f"/api/v1/tenants/acme/periods/{month}/journal"
    found = client.answer(path, by=by)
    assert found["debit"] == found["credit"]
    *lines, clearing = found["lines"]
    assert [(each["statement"], Decimal(each["debit"]) - Decimal(each["credit"])) for each in lines] == [
        (each["number"], Decimal(each["rounded"])) for each in listed["items"] if Decimal(each["rounded"])
    ]
    assert (clearing["account"], clearing["credit"]) == ("CLEARING", listed["total"]["rounded"])
    assert (found["status"], found["revision"]) == ("PROVISIONAL", listed["revision"])
    once, twice = (client.get(path, params={"by": by, "format": "csv"}) for _ in range(2))
    assert once.headers["content-disposition"] == f"attachment; filename={found['number']}.csv"
    assert once.content == twice.content
    rows = list(csv.DictReader(io.StringIO(once.text)))
    assert [(row["account"], row["debit"], row["credit"], row["statement"]) for row in rows] == [
        (each["account"], each["debit"], each["credit"], each["statement"] or "") for each in found["lines"]
    ]


def test_journals_that_cannot_be_made(client: Client, month: str) -> None:
    """An invalid month, two formats at once, and an unknown template or cost category are refused."""
    path = "/api/v1/tenants/acme/periods"
    both = client.get(f"{path}/{month}/journal", params={"format": "csv", "template": "sap"})
    assert complaints(both) == ["format"]
    assert client.get(f"{path}/2026-13/journal").status_code == 404
    unknown = client.get(f"{path}/{month}/journal", params={"template": "sap"})
    assert (unknown.status_code, "journal.templates" in unknown.json()["detail"]) == (404, True)
    assert client.get(f"{path}/{month}/journal", params={"by": "category:none"}).status_code == 404


TEMPLATES = {
    "sap": JournalTemplate("sap", "csv", "{% for each in lines %}{{ each.account }},{{ each.text }}\n{% endfor %}"),
    "wrong": JournalTemplate("wrong", "xml", "<a>\n{{ nothing }}"),
}


@pytest.mark.extensive
def test_templates_write_journals(deployment: Deployment, month: str) -> None:
    """The template determines the format; if it fails, the error says why."""
    profile = JournalProfile(templates=TEMPLATES, by="category:cost_center")
    with deployment.journals_by("acme", profile) as address, Client(base_url=address, timeout=60) as client:
        path = f"/api/v1/tenants/acme/periods/{month}/journal"
        done = client.get(path, params={"template": "sap"})
        assert (done.status_code, done.headers["content-type"]) == (200, "text/csv; charset=utf-8")
        assert done.text.endswith(f"CLEARING,Kafka {month} (PROVISIONAL)\r\n")
        assert f"EXPENSE,Kafka {month}: Payments (PROVISIONAL)" in done.text
        failed = client.get(path, params={"template": "wrong"})
        assert (failed.status_code, failed.json()["type"]) == (400, "urn:chargeback:template-failed")
        assert failed.json()["detail"] == "the template wrong: 'nothing' is undefined, line 2"


@pytest.fixture(scope="session")
def callers(deployment: Deployment) -> Iterator[Client]:
    """One caller sees the cost centre payments, one may only read."""
    scope = {"category:cost_center": ["payments"]}
    known = [caller("payments", Right.EXPORT, scope=scope), caller("reader", Right.READ)]
    with (
        deployment.served(mode="api", authenticate=Callers.of(known)) as address,
        Client(base_url=address, timeout=60) as client,
    ):
        yield client


@pytest.mark.extensive
def test_a_scope_gets_its_own_statement(client: Client, callers: Client, month: str) -> None:
    """A caller with a scope gets its statement without the bill and the rules of the category, and no other
    statement."""
    whole = statement_of(client, month, **PAYMENTS)
    callers.headers.update(asked_by("payments"))
    mine = statement_of(callers, month, **PAYMENTS)
    assert mine["scope"] == {"category:cost_center": ["payments"]}
    assert (mine["tie_out"], mine["split"]["rules"], mine["split"]["steps"]) == (None, None, None)
    hidden = ("scope", "tie_out", "split", "previous", "topics")
    assert {name: value for name, value in mine.items() if name not in hidden} == {
        name: value for name, value in whole.items() if name not in hidden
    }
    listed = statements_of(callers, month, PAYMENTS["by"])
    assert [each["recipient"]["value"] for each in listed["items"]] == ["payments"]
    others = {each["recipient"]["value"] for each in statements_of(client, month, PAYMENTS["by"])["items"]}
    for value in sorted(others - {"payments"})[:3]:
        for form in ("", ".html", ".csv", ".pdf"):
            asked = {"period": month, "by": PAYMENTS["by"], "value": value}
            assert callers.get(f"/api/v1/tenants/acme/statement{form}", params=asked).status_code == 404


def test_files_need_the_right_to_export(callers: Client, month: str) -> None:
    """The page needs only the right to read."""
    callers.headers.update(asked_by("reader"))
    asked = {"period": month, **PAYMENTS}
    statuses = [
        callers.get(f"/api/v1/tenants/acme/statement{form}", params=asked).status_code
        for form in ("", ".html", ".csv", ".pdf")
    ]
    assert statuses == [200, 200, 403, 403]


def replying(client: Client, month: str, said: str, **body: str) -> httpx.Response:
    """Reply to the statement of payments and return the response."""
    asked = {"period": month, **PAYMENTS}
    return client.post(f"/api/v1/tenants/acme/statement/{said}", params=asked, json=body)


@pytest.mark.extensive
def test_recipients_reply(client: Client, month: str) -> None:
    """Recipients dispute and acknowledge; the last reply counts, all are shown, and the statement's ETag changes."""
    asked = {"period": month, **PAYMENTS}
    before = client.get("/api/v1/tenants/acme/statement", params=asked)
    number = before.json()["number"]
    earlier = before.json()["replies"]
    disputed = replying(client, month, "dispute", note="<b>Too much</b>", created_by="ann")
    assert disputed.status_code == 200, disputed.text
    done = replying(client, month, "acknowledge", note="All right", number=number, created_by="ann")
    after = client.get(
        "/api/v1/tenants/acme/statement", params=asked, headers={"If-None-Match": before.headers["etag"]}
    )
    assert after.status_code == 200
    found = statement_of(client, month, **PAYMENTS)
    assert (found["verdict"], found["replies"]) == ("acknowledged", [*earlier, disputed.json(), done.json()])
    assert (done.json()["number"], done.json()["data_through"]) == (number, found["data_through"])
    listed = {each["number"]: each["verdict"] for each in statements_of(client, month, PAYMENTS["by"])["items"]}
    assert {number: verdict for number, verdict in listed.items() if verdict} == {number: "acknowledged"}
    page = client.get("/api/v1/tenants/acme/statement.html", params=asked).text
    assert "Disputed</strong> by ann" in page
    assert "&lt;b&gt;Too much" in page
    log = client.answer("/api/v1/tenants/acme/audit", what="statement.disputed")["items"][0]
    assert (log["target"], log["after"]["note"]) == (f"statement/{number}", "<b>Too much</b>")


@pytest.mark.extensive
def test_replies_that_are_refused(client: Client, callers: Client, month: str) -> None:
    """Replies without a note, to an earlier number, or to a statement that is missing or not completely visible are
    refused; a caller who sees the whole statement may reply."""
    assert complaints(replying(client, month, "dispute")) == ["note"]
    late = replying(client, month, "dispute", note="x", number="CB-acme-earlier-r0")
    assert (late.status_code, "read it again" in late.json()["detail"]) == (409, True)
    callers.headers.update(asked_by("payments"))
    assert replying(callers, month, "acknowledge", note="Ours").json()["created_by"] == "payments"
    path = "/api/v1/tenants/acme/statement/dispute"
    for by, value, status in (
        ("category:cost_center", "platform", 404),
        ("identity_id", "nobody", 404),
        ("identity_id", "UNALLOCATED", None),
    ):
        asked = {"period": month, "by": by, "value": value}
        told = callers.get("/api/v1/tenants/acme/statement", params=asked)
        expected = status or (404 if told.status_code == 404 else 403 if told.json()["replies"] is None else 200)
        assert callers.post(path, params=asked, json={"note": "x"}).status_code == expected
