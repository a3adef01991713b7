"""The reconciliation over HTTP: states, policies and revisions of days that a test writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from chargeback.allocation.policies import PolicyCatalogue, parse_policies, policies_hash
from chargeback.recompute.rules import AllocationRules
from chargeback.reports.reconciliation import ReconciliationAnswer
from chargeback.store.control.day_revisions import FIRST, Revision, record_revision
from chargeback.store.control.days import DayDataset, mark_due, save_dataset
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, parameters_of
from tests.support.facts import Share, write_shares
from tests.support.serving import client_of, services_for

WINDOW = {"start_date": str(DAYS[0]), "end_date": str(LAST)}
EVEN = {"portions": [{"share": "1", "try": ["even(active)"]}]}
CALCULATED_AT = datetime(2026, 1, 9, 12, 0, 0, 123456, UTC)


def test_the_default(client: httpx.Client) -> None:
    """The default has every day of the period, and the total."""
    body = client.get(f"{ACME}/reconciliation", params=WINDOW).json()
    ReconciliationAnswer.model_validate(body)
    assert [day["state"] for day in body["days"]] == ["equal"] * 5
    assert body["total"] == {
        "state": "equal",
        "billed": "50.00",
        "charged": "50.00",
        "difference": "0.00",
        "unallocated": "17.50",
        "pending": "0.00",
        "by_topic": None,
        "lines": 10,
        "rows": 15,
        "revision": None,
        "policies": None,
        "calculated_at": None,
    }


@pytest.mark.parametrize(("by", "values"), [("month", [str(LAST)[:7]]), ("resource_id", ["lkc-1", "lkc-2"])])
def test_a_day_decides_for_its_bucket(
    own_client: httpx.Client, own_store: TenantStore, by: str, values: list[str]
) -> None:
    """One day that differs or is pending decides the state of its bucket; pending amounts and differences are exact."""
    params = WINDOW | {"group_by": by}
    body = own_client.get(f"{ACME}/reconciliation", params=params).json()
    ReconciliationAnswer.model_validate(body)
    assert {each["value"] for each in body["buckets"]} >= set(values[-1:])
    with own_store.control.write() as connection:
        mark_due(connection, DayDataset.CHARGEBACKS, [DAYS[1]])
    waiting = own_client.get(f"{ACME}/reconciliation", params=params).json()
    assert {each["state"] for each in waiting["buckets"]} == {"pending"}
    assert (waiting["total"]["state"], waiting["total"]["pending"]) == ("pending", "10.00")
    write_shares(own_store.facts, [Share(LAST, "sa-1", "6.5"), Share(LAST, "sa-1", "3.500000000001", resource="lkc-2")])
    body = own_client.get(f"{ACME}/reconciliation", params=params).json()
    assert body["buckets"][-1]["state"] == body["total"]["state"] == "differs"
    assert body["total"]["difference"] == "0.000000000001"


def test_superseded_policies(own_store: TenantStore) -> None:
    """A day that was calculated under other policies is marked as superseded; other policies make another ETag."""
    catalogue = PolicyCatalogue(parse_policies({"KAFKA_*": EVEN}, "policies"), {})
    used = policies_hash(catalogue.policies_of(["KAFKA_NUM_CKUS"]))
    with own_store.control.write() as connection:
        for day, hash_ in zip(DAYS[:3], (used, "another", None), strict=True):
            revision = Revision(DayDataset.CHARGEBACKS, day, 1, CALCULATED_AT, FIRST, policies_hash=hash_)
            record_revision(connection, revision)
            save_dataset(connection, DayDataset.CHARGEBACKS, [day], revision=1)
    services = services_for(own_store)
    tenants = {
        name: replace(view, rules=AllocationRules(catalogue, catalogue)) for name, view in services.tenants.items()
    }
    with client_of(replace(services, tenants=tenants)) as client:
        first = client.get(f"{ACME}/reconciliation", params=WINDOW)
    body = first.json()
    assert [day["policies"] for day in body["days"]] == ["current", "superseded", None, None, None]
    assert [day["revision"] for day in body["days"]] == [1, 1, 1, None, None]
    assert (body["total"]["policies"], body["total"]["revision"]) == ("superseded", 1)
    assert body["total"]["calculated_at"] == "2026-01-09T12:00:00.123456Z"
    with client_of(services) as client:
        other = client.get(f"{ACME}/reconciliation", params=WINDOW)
    assert other.headers["etag"] != first.headers["etag"]
    assert [day["policies"] for day in other.json()["days"][:2]] == ["superseded", "superseded"]


def test_what_is_refused(client: httpx.Client) -> None:
    """Unsupported groups and more than a thousand days are refused."""
    assert parameters_of(client.get(f"{ACME}/reconciliation", params={"group_by": "identity_id"})) == ["group_by"]
    long = {"start_date": str(LAST - timedelta(days=1001)), "end_date": str(LAST)}
    assert parameters_of(client.get(f"{ACME}/reconciliation", params=long)) == ["start_date"]
