"""Forecasts over HTTP."""

from __future__ import annotations

from datetime import date, timedelta

from chargeback.reports.daily_forecasts import ForecastAnswer
from tests.contract.records import Client

BASE = "/api/v1/tenants/acme/forecast"


def test_the_answer_is_documented(client: Client) -> None:
    """With too few days there is no forecast, but groups are listed; invalid parameters are refused."""
    found = client.answer(BASE, group_by="product_category")
    ForecastAnswer.model_validate(found)
    assert (found["total"]["days"], found["total"]["month_end"]) == (None, None)
    assert found["items"]
    last = date.fromisoformat(found["actual_to"])
    for until in (last, last + timedelta(days=93)):
        refused = client.get(BASE, params={"until": until.isoformat()})
        assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (400, "until")
    assert client.get(BASE, params={"until": f"{last + timedelta(days=92)}"}).status_code == 200
    assert client.get(BASE, params={"group_by": "nothing"}).status_code == 400
