"""Days that were restated, over HTTP."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import httpx

from chargeback.reports.restatements import Restatements
from chargeback.store.control.day_revisions import BILL_CHANGED, FIRST, Revision, record_revision
from chargeback.store.control.days import DayDataset
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, parameters_of
from tests.support.clock import NOW

URL = f"{ACME}/restatements"
LATER = NOW + timedelta(hours=1)


def _record(store: TenantStore) -> None:
    """Restate the first two days and the last one, and the topics of another day."""
    with store.control.write() as connection:
        for day in (*DAYS[:2], LAST):
            record_revision(connection, Revision("chargebacks", day, 1, NOW, FIRST, total=Decimal("10.00")))
            second = Revision("chargebacks", day, 2, LATER, BILL_CHANGED, total=Decimal("9.75"), moved=Decimal("0.125"))
            record_revision(connection, second)
        for number, cause in enumerate((FIRST, BILL_CHANGED), 1):
            record_revision(connection, Revision(DayDataset.TOPICS, DAYS[2], number, NOW, cause, total=Decimal(number)))


def test_restatements(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Restated days are listed in order and in pages, with exact amounts; revisions of topics do not count."""
    _record(own_store)
    whole = own_client.get(URL).json()
    Restatements.model_validate(whole)
    assert (whole["currency"], whole["total"]) == ("USD", 3)
    assert [each["date"] for each in whole["items"]] == [str(day) for day in (*DAYS[:2], LAST)]
    assert whole["items"][0] == {
        "date": str(DAYS[0]),
        "first_calculated_at": NOW.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "calculated_at": LATER.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "revisions": 1,
        "causes": ["bill_changed"],
        "total_before": "10.00",
        "total_after": "9.75",
        "delta": "-0.25",
        "moved": "0.125",
    }
    page = own_client.get(URL, params={"page_size": 2, "page": 2}).json()
    assert (page["items"], page["total"], page["pages"]) == (whole["items"][2:], 3, 2)
    last = own_client.get(URL, params={"start_date": str(LAST), "end_date": str(LAST)}).json()
    assert last["items"] == own_client.get(URL, params={"period": "1d"}).json()["items"] == whole["items"][2:]
    assert own_client.get(URL, params={"as_of": NOW.isoformat()}).json()["items"] == []


def test_what_is_refused(client: httpx.Client) -> None:
    """A 400 names every invalid parameter."""
    wrong: dict[str, str | int] = {"period": "fortnight", "as_of": "yesterday", "page": 0, "group_by": "tag:team"}
    assert parameters_of(client.get(URL, params=wrong)) == sorted(wrong)
    both = client.get(URL, params={"period": "7d", "start_date": "2026-01-01"})
    assert parameters_of(both) == ["period"]
