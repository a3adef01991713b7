"""Changes while the organisation is served."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import httpx

from chargeback.demo.changes import OrganisationChanges
from chargeback.demo.organisation import DemoSpec, Organisation
from chargeback.demo.responses import loads
from chargeback.demo.server import DemoServer
from chargeback.demo.shapes import Json
from tests.demo.conftest import TODAY


def test_costs_can_be_edited_dropped_and_restored(organisation: Organisation) -> None:
    """A late correction is served, a dropped day is empty, a restored day is as generated; other days do not change."""
    changes, day = OrganisationChanges(organisation), organisation.spec.first_day
    before = changes.cost_texts(day)
    changes.add_cost(day, {**changes.cost_rows(day)[0], "id": "late", "amount": Decimal("-0.1000000001")})
    assert changes.cost_texts(day)[:-1] == before
    assert loads(changes.cost_texts(day)[-1])["amount"] == Decimal("-0.1000000001")
    changes.drop_costs(day)
    assert changes.cost_texts(day) == []
    assert changes.cost_texts(day + timedelta(days=1))
    changes.restore_costs(day)
    assert changes.cost_texts(day) == before


def test_an_edit_does_not_touch_the_organisation(organisation: Organisation) -> None:
    """The rows passed to an edit are copies."""
    changes, day = OrganisationChanges(organisation), organisation.spec.first_day
    before = organisation.cost_rows(day)

    def spoil(rows: list[Json]) -> list[Json]:
        rows[0]["amount"] = Decimal(0)
        return rows[:1]

    changes.edit_costs(day, spoil)
    assert changes.cost_rows(day)[0]["amount"] == 0
    assert organisation.cost_rows(day) == before


def test_time_passes(organisation: Organisation, spec: DemoSpec) -> None:
    """After a day, costs of another day are served, and edits still apply."""
    changes = OrganisationChanges(organisation)
    changes.drop_costs(spec.first_day)
    newest = spec.last_cost_day + timedelta(days=1)
    assert changes.cost_texts(newest) == []
    changes.advance()
    assert changes.cost_texts(newest)
    assert changes.cost_texts(spec.first_day) == []


def test_hidden_things_leave_the_lists(server: DemoServer, client: httpx.Client) -> None:
    """A hidden user is not listed until it is shown again."""
    user = server.organisation.inventory.users[0].id
    server.changes.hide(user)
    assert user not in client.get("/iam/v2/users").text
    server.changes.show(user)
    assert user in client.get("/iam/v2/users").text


def test_changes_show_in_answers(server: DemoServer, client: httpx.Client) -> None:
    """After the lines of a day are dropped while the server runs, the next request returns none."""
    day = server.organisation.spec.first_day
    window = {"start_date": day.isoformat(), "end_date": (day + timedelta(days=1)).isoformat()}
    assert client.get("/billing/v1/costs", params=window).json()["data"]
    server.changes.drop_costs(day)
    assert client.get("/billing/v1/costs", params=window).json()["data"] == []
    assert day < TODAY
