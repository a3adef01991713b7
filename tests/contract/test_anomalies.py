"""What stands out, over HTTP."""

from __future__ import annotations

from chargeback.reports.anomalies import AnomaliesAnswer
from tests.contract.records import Client

BASE = "/api/v1/tenants/acme/anomalies"


def test_the_answer_is_documented(client: Client) -> None:
    """Too few days to judge any: nothing stands out, and the days that are not judged have their reasons."""
    found = client.answer(BASE, period="7d")
    AnomaliesAnswer.model_validate(found)
    assert (found["items"], found["more"]) == ([], 0)
    assert found["series"] > 0
    assert client.get(BASE, params={"limit": 0}).status_code == 400
