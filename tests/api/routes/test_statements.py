"""Statements and the replies of their recipients, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from chargeback.api.routes.statements import MOST_REPLIES
from chargeback.model.days import month_of
from chargeback.store.control.statement_replies import ACKNOWLEDGED, StatementKey, add_reply
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, LAST, fill
from tests.support.days import set_chargebacks
from tests.support.facts import tenant_store
from tests.support.serving import client_of, services_for

ASKED = {"period": f"{LAST:%Y-%m}", "by": "identity_id", "value": "sa-1"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenantStore]:
    """The storage of tenant acme, with data."""
    with tenant_store(tmp_path_factory.mktemp("storage")) as store:
        fill(store)
        yield store


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[TenantStore]:
    """Storage that a test may change."""
    with tenant_store(tmp_path) as store:
        fill(store)
        yield store


def replying(client: httpx.Client, said: str = "acknowledge", **body: str) -> httpx.Response:
    """Reply to a statement and return the response."""
    return client.post(f"{ACME}/statement/{said}", params=ASKED, json={"note": "Booked"} | body)


@pytest.mark.parametrize("note", [" \t\n\u2003", "\u200b\ufeff"])
def test_a_note_that_cannot_be_seen_is_refused(client: httpx.Client, note: str) -> None:
    """A note without visible characters is refused."""
    answer = replying(client, note=note)
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"parameter": "note", "message": "should not be blank"}]


def test_a_reply_is_to_the_content_that_was_read(own_store: TenantStore) -> None:
    """When the content changes under the same number, a reply to the old content is refused with 409, and earlier
    replies are no longer current."""
    with client_of(services_for(own_store)) as client:
        before = client.get(f"{ACME}/statement", params=ASKED).json()
        done = replying(client, number=before["number"], digest=before["digest"]).json()
        assert (done["digest"], done["is_current"]) == (before["digest"], True)
        assert client.get(f"{ACME}/statement", params=ASKED).json()["verdict"] == "acknowledged"
        with own_store.control.write() as connection:
            set_chargebacks(connection, LAST + timedelta(days=1))
        after = client.get(f"{ACME}/statement", params=ASKED).json()
        assert (after["number"], after["verdict"]) == (before["number"], None)
        assert [(each["digest"], each["is_current"]) for each in after["replies"]] == [(before["digest"], False)]
        asked = {"period": ASKED["period"], "by": ASKED["by"]}
        rows = client.get(f"{ACME}/statements", params=asked).json()["items"]
        said = {row["number"]: (row["verdict"], row["last_reply"]) for row in rows if row["last_reply"]}
        assert said == {before["number"]: (None, done | {"is_current": False})}
        late = replying(client, number=before["number"], digest=before["digest"])
        assert (late.status_code, "has changed; read it again" in late.json()["detail"]) == (409, True)
        assert replying(client, "dispute", digest=after["digest"]).json()["is_current"] is True


def test_replies_to_a_statement_have_a_limit(own_store: TenantStore) -> None:
    """A reply beyond the limit is a 409, whatever its text; other statements still accept replies."""
    with client_of(services_for(own_store)) as client:
        found = client.get(f"{ACME}/statement", params=ASKED).json()
        key = StatementKey(found["number"], found["period"], found["by"], found["recipient"]["value"], 1, "earlier")
        with own_store.control.write() as connection:
            for _ in range(MOST_REPLIES - 1):
                add_reply(connection, key, ACKNOWLEDGED, "Booked", LAST, "ann")
        assert replying(client).status_code == 200
        for said in ("acknowledge", "dispute"):
            answer = replying(client, said)
            assert answer.status_code == 409
            assert answer.json()["detail"] == (
                f"The statement {found['number']} has 100 replies already, and takes no more."
            )
        assert len(client.get(f"{ACME}/statement", params=ASKED).json()["replies"]) == MOST_REPLIES
        asked = {"period": found["period"], "by": found["by"]}
        values = [each["recipient"]["value"] for each in client.get(f"{ACME}/statements", params=asked).json()["items"]]
        other = next(value for value in values if value != key.value)
        answer = client.post(f"{ACME}/statement/acknowledge", params=asked | {"value": other}, json={"note": "Booked"})
        assert answer.status_code == 200


def test_a_month_without_a_calculated_day_has_no_statements(client: httpx.Client) -> None:
    """The list is empty, a request for one statement says why, and the journal has no lines."""
    period = f"{month_of(LAST).end:%Y-%m}"
    asked = ASKED | {"period": period}
    assert client.get(f"{ACME}/statements", params={"period": period, "by": "identity_id"}).json()["items"] == []
    for answer in (
        client.get(f"{ACME}/statement", params=asked),
        client.post(f"{ACME}/statement/acknowledge", params=asked, json={"note": "Booked"}),
    ):
        assert (answer.status_code, "no day of the month is calculated" in answer.json()["detail"]) == (404, True)
    assert client.get(f"{ACME}/periods/{period}/journal", params={"by": "identity_id"}).json()["lines"] == []


def test_a_page_has_the_budget_of_its_value(own_store: TenantStore) -> None:
    """Page and ETag change with the budget; the statement itself does not."""
    with client_of(services_for(own_store)) as client:

        def page() -> httpx.Response:
            return client.get(f"{ACME}/statement.html", params=ASKED)

        before, digest = page(), client.get(f"{ACME}/statement", params=ASKED).json()["digest"]
        assert "Budget" not in before.text
        of_others = {"name": "Two", "monthly": "90", "scope": {"identity_id": ["sa-1", "sa-2"]}}
        its_own = {"name": "One", "monthly": "1000", "scope": {"identity_id": ["sa-1"]}}
        for number, body in (("two", of_others), ("one", its_own)):
            assert client.put(f"{ACME}/budgets/{number}", json=body).status_code == 201
        after = page()
        assert after.headers["etag"] != before.headers["etag"]
        assert "<dt>Budget</dt>" in after.text
        assert "1,000.00, " in after.text
        assert "% of it charged" in after.text
        assert client.get(f"{ACME}/statement", params=ASKED).json()["digest"] == digest
        other = client.get(f"{ACME}/statement.html", params=ASKED | {"value": "sa-2"})
        assert (other.status_code, "Budget" in other.text) == (200, False)
