"""Explanations of chargeback rows over HTTP: each amount can be derived from the response alone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from urllib.parse import urljoin

import pytest

from tests.contract.deployment import Deployment
from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, key_of, those
from tests.support.clock import TODAY
from tests.support.explained import check_explanation

#: How many rows of each kind are explained.
SAMPLED = 3


def explained(client: Client, everything: Everything, row: Record, **more: object) -> Record:
    """Return the explanation of a row."""
    found: Record = client.answer(f"{everything.base}/chargebacks/explain", **(key_of(row) | more))
    return found


@pytest.mark.extensive
def test_rows_of_every_kind(client: Client, everything: Everything) -> None:
    """The calculation gives the stored amount, the line's rows sum to it, and an independent check agrees."""
    kinds: dict[tuple[str, ...], list[Record]] = {}
    for row in everything.chargebacks:
        kinds.setdefault((row["product_type"], row["allocation_detail"]), []).append(row)
    for rows in kinds.values():
        for row in rows[:: max(1, len(rows) // SAMPLED)][:SAMPLED]:
            found = explained(client, everything, row)
            assert found["recomputed"] == "same"
            assert check_explanation(found) == Decimal(row["amount"])
            assert found["siblings"]["equals_line"]
            assert found["row"]["amount"] == row["amount"] == found["revisions"][-1]["amount"]
            assert found["row"]["policy_hash"] == found["policy"]["hash"]
            assert found["sentence"].endswith(".")


def test_all_contenders_of_a_line(client: Client, everything: Everything) -> None:
    """The contenders are the identities with rows of the portion."""
    row = those(everything.chargebacks, allocation_method="usage_ratio")[0]
    found = explained(client, everything, row)
    line = [each for each in everything.chargebacks if each["metadata"]["line_id"] == found["line_id"]]
    same = {each["identity_id"] for each in line if each["metadata"]["portion"] == found["portion"]["number"]}
    assert {each["identity_id"] for each in found["evidence"]["contenders"]} == same
    assert found["evidence"]["contenders_total"] == len(same)
    assert len(line) == found["siblings"]["rows"]


def test_contenders_are_paged(client: Client, everything: Everything) -> None:
    """The pages together have every contender once; the requested identity is on each page."""
    row = those(everything.chargebacks, allocation_method="usage_ratio")[-1]
    whole = explained(client, everything, row, page_size=1000)["evidence"]["contenders"]
    for page, each in enumerate(whole, start=1):
        listed = explained(client, everything, row, page=page, page_size=1)["evidence"]["contenders"]
        assert listed[0] == each
        assert {other["identity_id"] for other in listed} == {each["identity_id"], row["identity_id"]}


def test_links_lead_there_and_on(client: Client, everything: Everything) -> None:
    """The link in a row's metadata leads to its explanation, and the links there lead to the line and its rows."""
    listed = f"{everything.base}/chargebacks"
    row = client.answer(listed, page_size=1)["items"][0]
    path = urljoin(listed, row["metadata"]["explain"])
    found = client.answer(path)
    assert found["row"]["amount"] == row["amount"]
    answers = {name: client.answer(urljoin(path, link)) for name, link in found["links"].items() if link}
    assert [each["metadata"]["line_id"] for each in answers["line"]["items"]] == [found["line_id"]]
    assert answers["rows"]["total"] == found["siblings"]["rows"]
    assert answers["revisions"]["date"] == found["date"]
    assert {each["hash"] for each in answers["policy"]["items"]} == {found["policy"]["hash"]}


def test_an_identity_that_gets_nothing(client: Client, everything: Everything) -> None:
    """There is no row and no arithmetic, but a reason; an unknown identity is not an error."""
    row = those(everything.chargebacks, allocation_method="usage_ratio")[0]
    found = explained(client, everything, row, identity_id="sa-nobody")
    assert (found["row"], found["arithmetic"], found["recomputed"]) == (None, None, "same")
    assert found["why_nothing"] in found["sentence"]
    assert check_explanation(found) == 0


def test_an_etag_and_an_earlier_instant(client: Client, everything: Everything) -> None:
    """A matching ETag gets 304; as of an instant before the first calculation, there is no explanation."""
    path = f"{everything.base}/chargebacks/explain"
    key = key_of(everything.chargebacks[0])
    first = client.get(path, params=key)
    again = client.get(path, params=key, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    calculated = first.json()["revisions"][-1]["calculated_at"]
    assert client.answer(path, **key, as_of=calculated)["row"] == first.json()["row"]
    assert client.get(path, params=key | {"as_of": "2020-01-01T00:00:00Z"}).status_code == 404


def test_what_is_not_there(client: Client, everything: Everything) -> None:
    """Unknown lines, days and portions are a 404."""
    key = key_of(everything.chargebacks[0])
    others: list[Record] = [{"line_id": "none"}, {"date": str(TODAY + timedelta(days=1))}, {"portion": 1000}]
    for wrong in others:
        assert client.get(f"{everything.base}/chargebacks/explain", params=key | wrong).status_code == 404


def test_what_is_refused(client: Client, everything: Everything) -> None:
    """All mistakes are reported together; if an identity has several rows of a line, the portion is required."""
    path = f"{everything.base}/chargebacks/explain"
    assert complaints(client.get(path)) == ["date", "identity_id", "line_id"]
    wrong: Record = {"date": "2026-02-30", "line_id": "", "identity_id": "x" * 256, "portion": 0, "as_of": "soon"}
    assert complaints(client.get(path, params=wrong)) == sorted(wrong)
    second = next((row for row in everything.chargebacks if row["metadata"]["portion"] == 2), None)
    assert second is not None
    key = key_of(second)
    del key["portion"]
    pairs = [key_of(row) | {"portion": None} for row in everything.chargebacks]
    if pairs.count(key | {"portion": None}) > 1:
        assert complaints(client.get(path, params=key)) == ["portion"]
    else:
        assert client.get(path, params=key).json()["portion"]["number"] == 2


@pytest.mark.parametrize("page_size", [1, 1000])
def test_in_mode_api(deployment: Deployment, everything: Everything, page_size: int) -> None:
    """Explanations need no worker."""
    with deployment.served(mode="api") as address, Client(base_url=address, timeout=60) as client:
        found = explained(client, everything, everything.chargebacks[-1], page_size=page_size)
        assert found["recomputed"] == "same"
