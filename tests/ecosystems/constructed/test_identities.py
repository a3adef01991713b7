"""Identities without a directory."""

from __future__ import annotations

from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from chargeback.ecosystems.constructed.identities import (
    PAYER_TIERS,
    InventoryBuilder,
    list_discovered,
    list_static,
    recently_seen,
)
from chargeback.ecosystems.constructed.settings import IdentitySource
from chargeback.errors import SourceRejected
from chargeback.sources.credentials import MetricsSettings
from chargeback.sources.prometheus import PrometheusClient
from tests.sources.loopback import Answer, Loopback
from tests.support.clock import NOW, TODAY, FixedClock
from tests.support.openmetrics import Scrapes
from tests.support.prometheus import RealPrometheus

REFUSAL = Answer('{"status":"error","errorType":"bad_data","error":"parse error"}', status=400)


def source(**keys: Any) -> IdentitySource:
    """Return an identity source."""
    return IdentitySource.model_validate(keys)


def client_of(url: str) -> PrometheusClient:
    """Return a client of a metrics source."""
    return PrometheusClient(MetricsSettings(url=url), stop=Event())


def test_static_identities_are_active_on_the_resource() -> None:
    """Configured identities are in the inventory with their teams, and have a grant on the resource."""
    listing = InventoryBuilder()
    given = [
        {"identity_id": "alice", "identity_type": "user", "display_name": "Alice", "team": "payments"},
        {"identity_id": "batch"},
    ]
    list_static(listing, source(source="static", static_identities=given, principal_to_team={"batch": "data"}), "c-1")
    found = [
        (each.identity_id, each.identity_type, each.display_name, each.metadata["team"]) for each in listing.identities
    ]
    assert found == [("alice", "user", "Alice", "payments"), ("batch", "principal", "batch", "data")]
    assert [(each.resource_id, each.identity_id) for each in listing.grants] == [("c-1", "alice"), ("c-1", "batch")]
    assert listing.listed([]).complete == {"user", "principal", "grant"}


def test_every_type_of_identity_pays() -> None:
    """Every type of a static identity can be charged."""
    (tier,) = PAYER_TIERS
    assert {"principal", "team", "user", "service_account"} <= tier
    assert "system" not in tier


@pytest.mark.usefixtures("process")
def test_who_was_seen_lately() -> None:
    """All identities in the query's results within the window are found, also past ones, and no others."""
    seen = Scrapes(TODAY - timedelta(days=1), TODAY)
    minute = (NOW - seen.start) // timedelta(minutes=1)
    spans = {"here": (minute - 200, minute), "gone": (minute - 50, minute - 30), "long_gone": (0, minute - 300)}
    for name, (first, last) in spans.items():
        seen.counter("sent_total", {"principal": name}, lambda m, a=first, b=last: m if a <= m <= b else None)  # type: ignore[misc]
    seen.counter("sent_total", {}, lambda m: m if m <= minute else None)
    with RealPrometheus(seen.text()) as server, client_of(server.url) as client:
        assert recently_seen(client, "sent_total", "principal", 1, FixedClock()) == {"here", "gone"}
        assert recently_seen(client, "last_over_time(sent_total[{step}])", "principal", 1, FixedClock()) == {
            "here",
            "gone",
        }
        listing = InventoryBuilder()
        team = source(principal_to_team={"here": "payments"})
        list_discovered(listing, team, client, "sent_total", "principal", FixedClock())
    assert [(each.identity_id, each.metadata["team"]) for each in listing.identities] == [
        ("gone", "UNASSIGNED"),
        ("here", "payments"),
    ]
    found = listing.listed([])
    assert (found.complete, found.partial) == (frozenset(), frozenset({"principal"}))


def test_a_static_identity_wins_over_a_discovered_one() -> None:
    """An identity that is both configured and discovered is listed once, as configured."""
    answer = '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"p":"a"},"values":[[1,"1"]]}]}}'
    both = source(source="both", static_identities=[{"identity_id": "a", "identity_type": "team"}])
    listing = InventoryBuilder()
    with Loopback(lambda _: Answer(answer)) as server, client_of(server.url) as client:
        list_static(listing, both, "c-1")
        list_discovered(listing, both, client, "x", "p", FixedClock())
    assert [(each.identity_id, each.identity_type) for each in listing.identities] == [("a", "team")]


def test_a_part_that_cannot_be_listed_is_a_failure() -> None:
    """A rejected query makes its type incomplete, with the reason; the rest is listed."""
    listing = InventoryBuilder()
    with Loopback(lambda _: REFUSAL) as server, client_of(server.url) as client:
        with pytest.raises(SourceRejected):
            recently_seen(client, "x", "p", 1, FixedClock())
        list_static(listing, source(source="both", static_identities=[{"identity_id": "a"}]), "c-1")
        list_discovered(listing, source(), client, "x", "p", FixedClock())
    listed = listing.listed(["kafka_cluster"])
    assert "parse error" in listed.failures["principal"]
    assert listed.complete == {"grant"}
    assert listed.required == {"kafka_cluster"}
