"""Policies with dates over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime

import httpx
import pytest

from chargeback.allocation.policies import PolicyCatalogue, PolicyVersion, parse_policies
from chargeback.model.days import ONE_DAY
from chargeback.recompute.rules import AllocationRules
from chargeback.store.control.day_revisions import FIRST, Revision, record_revision
from chargeback.store.control.days import DayDataset
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, parameters_of
from tests.support.serving import client_of, services_for

EVEN, OWNER = ({"portions": [{"share": "1", "try": [method]}]} for method in ("even(active)", "owner"))
BEGINS = DAYS[2]
SHIPPED = PolicyCatalogue(parse_policies({"KAFKA_*": OWNER}, "policies"), {})
CATALOGUE = SHIPPED.override(
    parse_policies([{"effective_from": BEGINS, "reason": "Fair", "policies": {"KAFKA_*": EVEN}}], "policies")
)
VERSION = CATALOGUE.versions[0]


@pytest.fixture
def dated(own_store: TenantStore) -> Iterator[httpx.Client]:
    """A client of a tenant with a dated version of its policies, by which some days were calculated."""
    with own_store.control.write() as connection:
        for day in DAYS:
            by = VERSION.hash if day >= BEGINS else None
            at = datetime(2026, 1, 9, 12, tzinfo=UTC)
            record_revision(connection, Revision(DayDataset.CHARGEBACKS, day, 1, at, FIRST, policy_version=by))
    services = services_for(own_store)
    rules = AllocationRules(CATALOGUE, SHIPPED)
    tenants = {name: replace(view, rules=rules) for name, view in services.tenants.items()}
    with client_of(replace(services, tenants=tenants)) as client:
        yield client


def test_policies_of_a_day(dated: httpx.Client) -> None:
    """The response has the policies in force on the day, by default today, and since when."""

    def of(**params: str) -> list[tuple[str, str, str | None]]:
        items = dated.get(f"{ACME}/policies", params=params).json()["items"]
        return [(each["source"], each["portions"][0]["methods"][0], each["effective_from"]) for each in items]

    before, after = [("shipped", "owner", None)], [("configured", "even(active)", f"{BEGINS}")]
    assert of(date=f"{BEGINS - ONE_DAY}") == before
    assert of(date=f"{BEGINS}") == after
    assert of() == after
    assert parameters_of(dated.get(f"{ACME}/policies", params={"date": "soon"})) == ["date"]


def test_the_versions(dated: httpx.Client, own_client: httpx.Client) -> None:
    """Versions have their reason and number of calculated days; without dated policies, there are none."""
    (found,) = dated.get(f"{ACME}/policies/history").json()["items"]
    assert found == {
        "effective_from": f"{BEGINS}",
        "last_day": None,
        "reason": "Fair",
        **{"source": "configured", "applied_by": None, "applied_at": None},
        "hash": VERSION.hash,
        "calculated_days": len([day for day in DAYS if BEGINS <= day <= LAST]),
        "policies": [
            {
                "product_type": "KAFKA_*",
                "hash": VERSION.policies["KAFKA_*"].hash,
                "portions": [{"number": 1, "share": "1.00", "methods": ["even(active)", "unallocated"]}],
            }
        ],
    }
    assert own_client.get(f"{ACME}/policies/history").json()["items"] == []


def test_what_an_upgrade_has_begun(own_store: TenantStore) -> None:
    """An upgrade is listed with the policies it changed, from the first day calculated after it."""
    before = parse_policies({"KAFKA_*": EVEN, "KSQL_*": OWNER}, "policies")
    present = SHIPPED.override(parse_policies({"KSQL_*": OWNER}, "policies"))
    versions = [PolicyVersion(date.min, "1.0", before), PolicyVersion(BEGINS, "2.0", present.policies)]
    eras = present.with_shipped(versions, present.policies)
    services = services_for(own_store)
    tenants = {name: replace(view, rules=AllocationRules(eras, eras)) for name, view in services.tenants.items()}
    with client_of(replace(services, tenants=tenants)) as client:
        (found,) = client.get(f"{ACME}/policies/history").json()["items"]
        then = client.get(f"{ACME}/policies", params={"date": f"{BEGINS - ONE_DAY}", "product_type": "KAFKA_X"}).json()
    assert (found["source"], found["effective_from"], found["reason"]) == ("shipped", f"{BEGINS}", "2.0")
    assert [each["product_type"] for each in found["policies"]] == ["KAFKA_*"]
    assert [(each["source"], each["portions"][0]["methods"][0]) for each in then["items"]] == [
        ("shipped", "even(active)")
    ]
