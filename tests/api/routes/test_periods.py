"""Months over HTTP: closing them, adjustments, invoices, and changes that reach into closed months."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from cryptography.exceptions import InvalidSignature
from sqlalchemy import update

from chargeback.config.closing import ClosingProfile
from chargeback.config.settings import FormatSettings
from chargeback.model.accounting import AccountingPeriod
from chargeback.model.days import utc_now
from chargeback.model.inventory import Identity
from chargeback.model.run_request import RunRequest
from chargeback.reports.closing.documents import check_closings
from chargeback.store.backup import back_up, restore
from chargeback.store.control.catalogue import end_days
from chargeback.store.control.closings import read_books
from chargeback.store.control.days import delete_days
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.lease import LeaseOwner
from chargeback.store.control.schema import closings
from chargeback.store.facts.tables import DAY_TABLES
from chargeback.store.facts.upkeep import LEFTOVER_AGE, remove_unnamed
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME
from tests.support.clock import FixedClock
from tests.support.months import Months, months
from tests.support.serving import client_of, services_for

CLOSE = {"accept": ["day-missing"], "reason": "A short month"}
AUGUST, SEPTEMBER, OCTOBER = (f"{ACME}/periods/2026-{month:02}" for month in (8, 9, 10))
CATEGORY = {
    "rules": [
        {"match": {"identity": ["sa-1"]}, "assign": "payments"},
        {"match": {"identity": ["sa-2"]}, "assign": "search"},
    ]
}
UNITS = f"{ACME}/cost-categories/units"


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Months]:
    """A tenant of three months."""
    with months(tmp_path) as opened:
        yield opened


def serving(
    tenant: Months, settings: Mapping[str, Any] = MappingProxyType({}), **profile: object
) -> Iterator[httpx.Client]:
    """Yield a client of the API over the tenant, in November, with other settings of the tenant and of its closing."""
    services = services_for(tenant.store, clock=FixedClock(datetime(2026, 11, 10, tzinfo=UTC)))
    closing = ClosingProfile(by=("category:units", "identity_id"), **profile)  # type: ignore[arg-type]
    tenants = {name: replace(each, closing=closing, **settings) for name, each in services.tenants.items()}
    with client_of(replace(services, tenants=tenants)) as client:
        yield client


@pytest.fixture
def client(tenant: Months) -> Iterator[httpx.Client]:
    """A client of the API over the tenant, whose statements are grouped by a cost category."""
    for opened in serving(tenant):
        made = opened.put(UNITS, json={"document": CATEGORY}, headers={"If-None-Match": "*"})
        assert made.status_code == 201
        yield opened


def problem(answer: httpx.Response, status: int, kind: str) -> dict[str, object]:
    """Return the problem with which a request was refused."""
    assert answer.status_code == status, answer.text
    body: dict[str, object] = answer.json()
    assert body["type"] == f"urn:chargeback:{kind}"
    return body


def test_a_month_is_closed_and_its_documents_stay(tenant: Months, client: httpx.Client) -> None:
    """The statements and the journal of a closed month stay the same, byte for byte, after a late bill and a changed
    category; the next month has the correction and its cause."""
    preview = client.get(f"{AUGUST}/closing-preview").json()
    assert preview["state"] == "blocked"
    assert {each["by"] for each in preview["by"]} == {"category:units", "identity_id"}
    asked = {"period": "2026-08", "by": "category:units"}
    one = asked | {"value": "payments"}
    done = client.post(f"{AUGUST}/close", json=CLOSE | {"expected_digest": preview["digest"]})
    assert (done.status_code, done.json()["n"], done.json()["digest"]) == (200, 1, preview["digest"])
    assert client.get(AUGUST).json()["receipt"] == {
        "n": 1,
        "receipt_digest": done.json()["receipt_digest"],
        "previous": None,
        "note": CLOSE.get("note"),
        "accepted": sorted(each["id"] for each in preview["blockers"]),
        "reason": CLOSE["reason"],
    }
    assert client.get(SEPTEMBER).json()["receipt"] is None
    paths = [("statements", asked), ("statement", one), ("statement.html", one), ("statement.csv", one)]
    paths += [("periods/2026-08/journal", {"by": "category:units", "format": "csv"})]
    before = [client.get(f"{ACME}/{path}", params=params).content for path, params in paths]
    assert b"CB-acme-2026-08-units.payments" in before[1]
    assert b'"status":"CLOSED"' in before[1]
    tenant.charge(tenant.days[0], sa_1="7.25", sa_2="4")
    assert [client.get(f"{ACME}/{path}", params=params).content for path, params in paths] == before
    accrued = client.get(f"{ACME}/statement", params=one | {"basis": "accrual"}).json()
    assert (accrued["amount"], accrued["status"]) == ("13.25", "PROVISIONAL")
    (correction,) = client.get(f"{ACME}/statement", params=one | {"period": "2026-09"}).json()["corrections"]
    assert (correction["period_id"], correction["amount"], correction["rounded"]) == ("2026-08", "1.25", "1.25")
    assert correction["sentence"].startswith("August 2026 costs 1.25 USD more than was booked")
    listed = client.get(f"{ACME}/statements", params=asked | {"period": "2026-09"}).json()
    assert listed["tie_out"]["difference"] == "0.00"
    assert listed["tie_out"]["corrections"] == {"amount": "1.25", "rounded": "1.25"}
    journal = client.get(f"{SEPTEMBER}/journal", params={"by": "category:units"}).json()
    assert [(each["kind"], each.get("charge_period"), each["debit"]) for each in journal["lines"]] == [
        ("expense", None, "12.00"),
        ("correction", "2026-08", "1.25"),
        ("expense", None, "8.00"),
        ("clearing", None, "0.00"),
    ]
    assert (journal["debit"], journal["credit"]) == ("21.25", "21.25")


def test_a_closed_month_keeps_the_format_of_its_pages(tenant: Months, client: httpx.Client) -> None:
    """A changed date format changes the pages and ETags of open months; pages of closed months and the journal stay the
    same."""
    preview = client.get(f"{AUGUST}/closing-preview").json()
    client.post(f"{AUGUST}/close", json=CLOSE | {"expected_digest": preview["digest"]}).raise_for_status()
    pages = [
        ("statement.html", {"period": f"2026-{month}", "by": "category:units", "value": "payments"})
        for month in ("08", "09")
    ]
    journal = (f"{SEPTEMBER}/journal", {"by": "category:units"})
    asked = [*((f"{ACME}/{path}", params) for path, params in pages), journal]
    booked, going_on, entries = (client.get(path, params=params) for path, params in asked)
    assert "August 2026" in booked.text
    assert " September 2026, " in going_on.text
    for other in serving(tenant, {"statement_format": FormatSettings(dates="2026-11-14")}):
        same, changed, as_before = (other.get(path, params=params) for path, params in asked)
        assert same.content == booked.content
        assert "2026-09-" in changed.text
        assert changed.headers["ETag"] != going_on.headers["ETag"]
        assert as_before.content == entries.content


def test_documents_outlive_their_days_and_come_back_from_a_backup(
    tenant: Months, client: httpx.Client, tmp_path: Path
) -> None:
    """Documents stay the same, byte for byte, after renamed identities, expired days and a restored backup."""
    assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 200
    assert client.post(f"{AUGUST}/seal", json={"reason": "Audited"}).status_code == 200
    asked = {"period": "2026-08", "by": "identity_id"}
    paths = [("statements", asked), ("statements.csv", asked)]
    paths += [(f"statement{form}", asked | {"value": "sa-1"}) for form in ("", ".html", ".csv")]
    paths += [("periods/2026-08/journal", {"by": "identity_id", "format": form}) for form in ("json", "csv")]

    def documents(served: httpx.Client) -> list[bytes]:
        answers = [served.get(f"{ACME}/{path}", params=params) for path, params in paths]
        assert {each.status_code for each in answers} == {200}
        return [each.content for each in answers]

    before, store, september = documents(client), tenant.store, date(2026, 9, 1)
    lease = store.acquire(LeaseOwner.this_process())
    with store.facts.commit(lease, utc_now) as (connection, at):
        ensure_known(connection, at, charged=[Identity("sa-1", "service_account", display_name="Renamed")])
        delete_days(connection, september)
        end_days(connection, DAY_TABLES, september, at, read_books(connection).pins())
    lease.release()
    remove_unnamed(store.facts, utc_now() + 2 * LEFTOVER_AGE)
    assert documents(client) == before
    made = back_up(store, f"sqlite:///{tmp_path}/acme/control.db", tmp_path / "backups")
    address = f"sqlite:///{tmp_path}/restored.db"
    facts = tmp_path / "restored"
    with closing(
        TenantStore.open(
            tenant_name="acme",
            tenant_id=store.tenant_id,
            ecosystem=store.ecosystem,
            connection_string=address,
            facts=facts,
        )
    ) as other:
        restore(made, other, address)
        for served in serving(replace(tenant, store=other)):
            assert documents(served) == before


def test_a_change_that_moves_closed_amounts_is_refused_or_posted(tenant: Months, client: httpx.Client) -> None:
    """A change of closed amounts is a 409 with these amounts; it is accepted if it begins in an open month, or with a
    reason, and then posted."""
    assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 200
    etag = client.get(UNITS).headers["ETag"]
    other = {"rules": [{"match": {"identity": ["sa-1", "sa-2"]}, "assign": "payments"}]}
    refused = client.put(UNITS, json={"document": other}, headers={"If-Match": etag})
    said = problem(refused, 409, "reaches-into-closed")
    assert (said["currency"], said["begins"]) == ("USD", "2026-09-01")
    moved = said["moved"]
    assert isinstance(moved, list)
    assert [(each["period_id"], each["by"], each["value"], each["delta"]) for each in moved] == [
        ("2026-08", "category:units", "payments", "8.00"),
        ("2026-08", "category:units", "search", "-8.00"),
    ]
    assert client.get(UNITS).headers["ETag"] == etag
    dated = {"rules": [{**other["rules"][0], "valid_from": "2026-09-01"}, *CATEGORY["rules"]]}
    later = client.put(UNITS, json={"document": dated}, headers={"If-Match": etag})
    assert later.status_code == 200
    headers = {"If-Match": later.headers["ETag"]}
    assert client.put(UNITS, json={"document": other, "restate_closed": True}, headers=headers).status_code == 400
    body = {"document": other, "restate_closed": True, "reason": "It was wrong"}
    assert client.put(UNITS, json=body, headers=headers).status_code == 200
    (entry,) = client.get(f"{ACME}/audit", params={"what": "period.restated"}).json()["items"]
    assert entry["after"]["reason"] == "It was wrong"
    asked = {"basis": "posted", "start_date": "2026-09-01", "end_date": "2026-09-30", "group_by": "category:units"}
    answer = client.get(f"{ACME}/chargebacks/aggregate", params=asked)
    assert answer.status_code == 200, answer.text
    buckets = answer.json()["buckets"]
    found = {
        (each["dimensions"]["charge_class"], each["dimensions"]["category:units"]): each["total_amount"]
        for each in buckets
    }
    assert found == {
        ("regular", "payments"): "20.00",
        ("correction", "payments"): "8.00",
        ("correction", "search"): "-8.00",
    }


def test_a_stale_preview_says_what_has_moved(tenant: Months, client: httpx.Client) -> None:
    """A 409 has the new digest, and what has changed since the preview."""
    preview = client.get(f"{AUGUST}/closing-preview").json()
    tenant.charge(tenant.days[0], sa_1="7.25", sa_2="4")
    body = CLOSE | {"expected_digest": preview["digest"], "looked_at": preview["as_of"]}
    said = problem(client.post(f"{AUGUST}/close", json=body), 409, "preview-stale")
    moved = said["moved"]
    assert isinstance(moved, list)
    assert (len(moved), said["currency"]) == (said["moved_count"], "USD")
    assert {(each["by"], each["value"]): each["delta"] for each in moved if each["by"] != "totals"} == {
        ("category:units", "payments"): "1.25",
        ("identity_id", "sa-1"): "1.25",
    }
    body = CLOSE | {"expected_digest": said["digest"]}
    assert client.post(f"{AUGUST}/close", json=body).status_code == 200


class Started:
    """A pipeline that only remembers the requested runs."""

    def __init__(self) -> None:
        self.requests: list[RunRequest] = []

    def trigger(self, _tenant: str, request: RunRequest, begin: Callable[[], object]) -> None:
        """Remember a request."""
        begin()
        self.requests.append(request)


def test_a_recalculation_of_closed_days_has_to_be_meant(tenant: Months) -> None:
    """Without `restate_closed`, the request is refused and no run starts."""
    started = Started()
    services = services_for(tenant.store, clock=FixedClock(datetime(2026, 11, 10, tzinfo=UTC)), pipeline=started)
    tenant.close(AccountingPeriod.named("2026-08"))
    days = {"start_date": "2026-08-01", "end_date": "2026-08-02", "recalculate": True}
    with client_of(services) as client:
        said = problem(client.post(f"{ACME}/pipeline/run", json=days), 409, "reaches-into-closed")
        assert (said["begins"], said["moved"], started.requests) == ("2026-09-01", [], [])
        no_reason = client.post(f"{ACME}/pipeline/run", json=days | {"restate_closed": True})
        assert no_reason.status_code == 400
        meant = days | {"restate_closed": True, "reason": "The policy was wrong"}
        assert client.post(f"{ACME}/pipeline/run", json=meant).status_code == 202
    assert [each.reason for each in started.requests] == ["The policy was wrong"]


def test_a_tag_that_no_statement_is_made_by_may_change(tenant: Months, client: httpx.Client) -> None:
    """Changing the tag does not move closed amounts."""
    assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 200
    tag = {"tag_key": "team", "tag_value": "x"}
    assert client.post(f"{ACME}/entities/identity/sa-1/tags", json=tag).status_code == 201


def test_adjustments(tenant: Months, client: httpx.Client) -> None:
    """Adjustments are lines of statements, which still tie out; they are removed in an open month, and reversed
    later."""
    new = {
        "period": "2026-08",
        "by": "category:units",
        "value": "payments",
        "from": "search",
        "amount": "2.50",
        "kind": "reallocation",
        "reason": "Shared",
        "idempotency_key": "a",
    }
    first, again = (client.post(f"{ACME}/adjustments", json=new).json() for _ in range(2))
    assert first == again
    other = client.post(f"{ACME}/adjustments", json=new | {"idempotency_key": "b", "kind": "fee", "from": None})
    assert client.delete(f"{ACME}/adjustments/{other.json()['id']}").status_code == 204
    for wrong, part in (
        ({"amount": "0.001"}, "amount"),
        ({"kind": "fee"}, "from"),
        ({"from": "payments"}, "from"),
        ({"until": "2026-07"}, "until"),
    ):
        answer = client.post(f"{ACME}/adjustments", json=new | {"idempotency_key": None} | wrong)
        assert [each["parameter"] for each in answer.json()["errors"]] == [part]
    asked = {"period": "2026-08", "by": "category:units", "basis": "posted"}
    found = client.get(f"{ACME}/statements", params=asked).json()
    assert {each["recipient"]["value"]: (each["regular"], each["amount"]) for each in found["items"]} == {
        "payments": ("12.00", "14.50"),
        "search": ("8.00", "5.50"),
    }
    assert found["tie_out"]["difference"] == "0.00"
    # The same statements by another grouping also contain everything.
    by_identity = client.get(f"{ACME}/statements", params=asked | {"by": "identity_id"}).json()
    assert by_identity["total"]["amount"] == "20.00"
    assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 200
    problem(client.delete(f"{ACME}/adjustments/{first['id']}"), 409, "conflict")
    problem(client.post(f"{ACME}/adjustments", json=new | {"idempotency_key": "c"}), 409, "conflict")
    back = client.post(f"{ACME}/adjustments/{first['id']}/reverse", json={"period": "2026-09", "reason": "Twice"})
    assert (back.json()["amount"], back.json()["applies_to"]) == ("-2.50", "2026-08")
    problem(
        client.post(f"{ACME}/adjustments/{first['id']}/reverse", json={"period": "2026-09", "reason": "Twice"}),
        409,
        "conflict",
    )


def test_invoices_are_compared_with_the_bill(client: httpx.Client) -> None:
    """Invoices are compared without taxes and voided ones; credit memos are subtracted."""
    invoice = {
        "issuer": "Provider",
        "kind": "invoice",
        "status": "issued",
        "currency": "USD",
        "total": "27.00",
        "tax": "3",
    }
    assert client.put(f"{AUGUST}/invoices/INV-1", json=invoice).status_code == 200
    memo = invoice | {"kind": "credit_memo", "total": "5.00", "tax": "0"}
    assert client.put(f"{AUGUST}/invoices/CM-1", json=memo).status_code == 200
    assert client.put(f"{AUGUST}/invoices/INV-0", json=invoice | {"status": "voided"}).status_code == 200
    found = client.get(f"{AUGUST}/closing-preview").json()
    assert found["invoices"] == {
        "invoices": ["CM-1", "INV-1"],
        "total": "19.00",
        "tax": "3.00",
        "difference": "-1.00",
    }
    assert "The invoices differ from the bill by -1.00 USD." in [each["detail"] for each in found["warnings"]]
    wrong = client.put(f"{AUGUST}/invoices/INV-2", json=invoice | {"currency": "EUR"})
    assert [each["parameter"] for each in wrong.json()["errors"]] == ["currency"]
    assert client.delete(f"{AUGUST}/invoices/INV-0").status_code == 204
    assert client.delete(f"{AUGUST}/invoices/INV-0").status_code == 404


def test_two_people_close_a_month(tenant: Months) -> None:
    """The user who requested a closing cannot confirm it."""
    for client in serving(tenant, needs_two=True):
        asked = client.post(f"{AUGUST}/close", json=CLOSE)
        assert (asked.status_code, asked.json()["kind"]) == (202, "requested")
        assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 202
        assert client.get(AUGUST).json()["times_closed"] == 0
    # Another user, on the command line.
    tenant.by = ("category:units", "identity_id")
    done = tenant.close_as("bob", needs_two=True)
    assert done.closing is not None


def test_receipts_can_be_checked_by_a_stranger(tenant: Months, client: httpx.Client) -> None:
    """The program in the documentation verifies receipts without our code."""
    for path, body in ((f"{AUGUST}/close", CLOSE), (f"{AUGUST}/reopen", {"reason": "x"}), (f"{AUGUST}/close", CLOSE)):
        assert client.post(path, json=body).status_code == 200
    assert client.post(f"{AUGUST}/seal", json={"reason": "Audited"}).status_code == 200
    lines = client.get(f"{ACME}/closings.jsonl").text.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["closed", "reopened", "closed", "sealed"]
    documented = (Path(__file__).parents[3] / "docs" / "closing.md").read_text().partition("```python\n")[2]
    program = documented.partition("```")[0].replace("sys.argv[1]", "given")
    file = tenant.store.facts.root.parent / "closings.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    exec(program, {"given": str(file), "print": lambda *_: None})
    file.write_text("".join(f"{line}\n" for line in [lines[0], *lines[2:]]))
    with pytest.raises(SystemExit, match="receipt 2 is missing"):
        exec(program, {"given": str(file), "print": lambda *_: None})
    assert json.loads(lines[1])["previous"] == hashlib.sha256(lines[0].encode()).hexdigest()


def test_signatures_can_be_checked_by_a_stranger(tenant: Months) -> None:
    """The program in the documentation verifies signatures and refuses a changed line; receipts from before there was a
    key have no signature."""
    tenant.close(AccountingPeriod.named("2026-08"))
    for client in serving(tenant, signing_key=b"a private key that has 32 bytes."):
        assert client.post(f"{AUGUST}/reopen", json={"reason": "x"}).status_code == 200
        assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 200
        assert client.post(f"{AUGUST}/seal", json={"reason": "Audited"}).status_code == 200
        lines = client.get(f"{ACME}/closings.jsonl").text.splitlines()
        signatures = client.get(f"{ACME}/closings/signatures").json()["items"]
    assert [each["n"] for each in signatures] == [2, 3, 4]
    (public_key,) = {each["public_key"] for each in signatures}
    documented = (Path(__file__).parents[3] / "docs" / "closing.md").read_text().split("```python\n")[2]
    program = documented.partition("```")[0].replace("sys.argv[1:]", "given").replace("enumerate(lines, 1)", "chosen")
    folder = tenant.store.facts.root.parent
    given = [str(folder / "closings.jsonl"), str(folder / "signatures.json"), public_key]
    Path(given[0]).write_text("".join(f"{line}\n" for line in lines))
    Path(given[1]).write_text(json.dumps({"items": signatures}))
    chosen = list(enumerate(lines, 1))[1:]
    exec(program, {"given": given, "chosen": chosen})
    with pytest.raises(InvalidSignature):
        exec(program, {"given": given, "chosen": [(2, lines[2])]})
    with tenant.books() as reader:
        assert list(check_closings(tenant.view, reader)) == []
    with tenant.store.control.write() as connection:
        connection.execute(update(closings).where(closings.c.n == 4).values(signature=signatures[0]["signature"]))
    with tenant.books() as reader:
        assert list(check_closings(tenant.view, reader)) == ["receipt 4 is not what was signed"]


def test_what_happens_to_months_is_in_the_outbox(tenant: Months, client: httpx.Client) -> None:
    """Events are in order and have the posted amounts; a consumer that continues after the last one misses none. A
    closing that is refused or repeated makes no event."""
    assert client.post(f"{AUGUST}/close", json=CLOSE | {"idempotency_key": "k"}).status_code == 200
    assert client.post(f"{AUGUST}/close", json=CLOSE | {"idempotency_key": "k"}).status_code == 200
    assert client.post(f"{SEPTEMBER}/close").status_code == 409
    first = client.get(f"{ACME}/events").json()
    closed, issued = first["items"]
    assert (issued["kind"], issued["body"]) == ("statement.issued", {"period_id": "2026-08", "owners": ["*"]})
    receipt = client.get(AUGUST).json()["receipt"]
    assert (closed["kind"], closed["subject"]) == ("period.closed", "period/2026-08")
    assert closed["body"] == {
        "period_id": "2026-08",
        "n": 1,
        "receipt_digest": receipt["receipt_digest"],
        "posted": "20.00",
        "currency": "USD",
    }
    tenant.charge(tenant.days[0], sa_1="7.25", sa_2="4")
    assert client.post(f"{SEPTEMBER}/close", json=CLOSE).status_code == 200
    assert client.post(f"{SEPTEMBER}/reopen", json={"reason": "x"}).status_code == 200
    assert client.post(f"{AUGUST}/seal", json={"reason": "x"}).status_code == 200
    later = client.get(f"{ACME}/events", params={"after": first["last"]}).json()
    assert [(each["kind"], each["subject"]) for each in later["items"]] == [
        ("period.closed", "period/2026-09"),
        ("correction.posted", "period/2026-09"),
        ("statement.issued", "statement/2026-09"),
        ("period.reopened", "period/2026-09"),
        ("period.sealed", "period/2026-08"),
    ]
    assert later["items"][1]["body"]["charge_period"] == "2026-08"
    assert later["items"][1]["body"]["amount"] == "1.25"
    corrected = client.get(f"{ACME}/events", params={"kind": "correction.posted", "page_size": 1}).json()
    assert [each["id"] for each in corrected["items"]] == [later["items"][1]["id"]] == [corrected["last"]]
    assert client.get(f"{ACME}/events", params={"after": later["last"]}).json() == {"items": [], "last": later["last"]}


def test_what_cannot_be_asked_of_the_books(client: httpx.Client) -> None:
    """The error names the parameter that does not fit the posted basis."""
    assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 200
    for path, params, part in (
        ("chargebacks/aggregate", {"start_date": "2026-08-02", "end_date": "2026-08-31"}, "start_date"),
        ("chargebacks/aggregate", {"start_date": "2026-07-01", "end_date": "2026-08-31"}, "start_date"),
        ("chargebacks/aggregate", {"period": "2026-08", "time_bucket": "day"}, "time_bucket"),
        ("chargebacks/aggregate", {"period": "2026-08", "timezone": "Europe/Berlin"}, "timezone"),
        ("chargebacks", {"period": "2026-08", "sort_by": "amount"}, "sort_by"),
        ("costs", {"period": "2026-08", "include": "forecast"}, "include"),
        ("statements", {"period": "2026-07", "by": "identity_id"}, "basis"),
    ):
        answer = client.get(f"{ACME}/{path}", params={"basis": "posted"} | params)
        assert answer.status_code == 400, (path, params)
        assert [each["parameter"] for each in answer.json()["errors"]] == [part]


def test_the_costs_of_the_books(tenant: Months, client: httpx.Client) -> None:
    """Costs have totals, a monthly series and the months before; corrections are in the month of their posting."""
    assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 200
    tenant.charge(tenant.days[0], sa_1="9", sa_2="4")
    asked = {"basis": "posted", "start_date": "2026-09-01", "end_date": "2026-09-30", "by": "identity_id"}
    found = client.get(f"{ACME}/costs", params=asked).json()
    assert (found["total"]["amount"], found["total"]["previous"]) == ("23.00", "20.00")
    assert (found["times"], found["amounts"], found["previous_amounts"]) == (["2026-09-01"], ["23.00"], ["20.00"])
    (breakdown,) = found["breakdowns"]
    assert [(each["value"], each["amount"], each["previous"]) for each in breakdown["items"]] == [
        ("sa-1", "15.00", "12.00"),
        ("sa-2", "8.00", "8.00"),
    ]


def test_the_books_in_focus(client: httpx.Client, tenant: Months) -> None:
    """The file of a closed month does not change, and a late bill is a correction in the file of the open month; months
    and statements have datasets of their own. Ranges other than whole months are refused."""
    months_of = {"start_date": "2026-08-01", "end_date": "2026-08-31", "basis": "posted"}
    assert client.post(f"{AUGUST}/close", json=CLOSE).status_code == 200
    export = f"{ACME}/export/focus"
    before = client.post(export, json=months_of)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    assert client.post(export, json=months_of).content == before.content
    of_september = {**months_of, "start_date": "2026-09-01", "end_date": "2026-09-30"}
    columns = ["BillingPeriodStart", "ChargePeriodStart", "ChargeClass", "BilledCost"]
    lines = client.post(export, json={**of_september, "columns": columns}).text.split("\r\n")
    assert lines[-3:-1] == [
        "2026-09-01T00:00:00Z,2026-08-01T00:00:00Z,Correction,-6",
        "2026-09-01T00:00:00Z,2026-08-01T00:00:00Z,Correction,7",
    ]
    past = client.post(export, json={**of_september, "columns": columns, "as_of": "2026-11-01T00:00:00Z"})
    assert "Correction" not in past.text
    (months,) = client.get(f"{export}/billing-periods").json()["items"][:1]
    assert (months["BillingPeriodStart"], months["BillingPeriodStatus"]) == ("2026-08-01T00:00:00Z", "Closed")
    details = client.get(f"{export}/invoice-details", params={"by": "identity_id", "period": "2026-08"}).json()["items"]
    stated = client.get(f"{ACME}/statements", params={"period": "2026-08", "by": "identity_id"}).json()["items"]
    assert {each["InvoiceId"]: each["BilledCost"] for each in details} == {
        each["number"]: each["rounded"] for each in stated
    }
    for refused in ({"start_date": "2026-08-02"}, {"start_date": "2026-07-01"}):
        answer = client.post(export, json=months_of | refused)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["parameter"] == "start_date"
    metadata = client.get(f"{export}/metadata", params=months_of).json()
    assert all(each["TimeSectorComplete"] for each in metadata["Recency"][0]["TimeSectors"])
