"""Explanations of topic rows over HTTP: each amount can be derived from the response alone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from urllib.parse import urljoin

import pytest

from tests.contract.problems import complaints
from tests.contract.records import Client, Everything, Record, those, topic_key_of
from tests.support.clock import TODAY
from tests.support.explained import check_topic_explanation

#: How many rows of each kind are explained.
SAMPLED = 4


def explained(client: Client, everything: Everything, row: Record, **more: object) -> Record:
    """Return the explanation of a row."""
    path = f"{everything.base}/topic-attributions/explain"
    found: Record = client.answer(path, **(topic_key_of(row) | more))
    return found


@pytest.mark.extensive
def test_rows_of_every_kind(client: Client, everything: Everything) -> None:
    """The calculation gives the stored amount, the line's rows sum to it, and an independent check agrees."""
    kinds: dict[tuple[str, ...], list[Record]] = {}
    for row in everything.topics:
        kinds.setdefault((row["product_type"], row["attribution_method"]), []).append(row)
    for rows in kinds.values():
        for row in rows[:: max(1, len(rows) // SAMPLED)][:SAMPLED]:
            found = explained(client, everything, row)
            assert found["recomputed"] == "same"
            assert check_topic_explanation(found) == Decimal(row["amount"])
            assert found["siblings"]["equals_line"]
            assert found["row"]["amount"] == row["amount"] == found["revisions"][-1]["amount"]
            assert found["attribution_method"] == row["attribution_method"]


def test_a_topic_that_has_nothing(client: Client, everything: Everything) -> None:
    """There is no row and no arithmetic, but a reason; an unknown topic is not an error."""
    row = those(everything.topics, attribution_method="bytes_ratio")[0]
    found = explained(client, everything, row, topic_name="no-such-topic")
    assert (found["row"], found["arithmetic"], found["recomputed"]) == (None, None, "same")
    assert found["why_nothing"] in found["sentence"]
    assert check_topic_explanation(found) == 0


def test_links_lead_there_and_on(client: Client, everything: Everything) -> None:
    """The link in a row's metadata leads to its explanation, and the links there lead to the line and its rows."""
    listed = f"{everything.base}/topic-attributions"
    row = client.answer(listed, page_size=1)["items"][0]
    path = urljoin(listed, row["metadata"]["explain"])
    found = client.answer(path)
    assert found["row"]["amount"] == row["amount"]
    answers = {name: client.answer(urljoin(path, link)) for name, link in found["links"].items() if link}
    assert [each["metadata"]["line_id"] for each in answers["line"]["items"]] == [found["line_id"]]
    assert answers["rows"]["total"] == found["siblings"]["rows"]
    assert found["line_id"] in {each["metadata"]["line_id"] for each in answers["bill"]["items"]}
    assert answers["revisions"]["date"] == found["date"]


def test_contenders_are_paged(client: Client, everything: Everything) -> None:
    """The pages together have every topic once; the requested topic is on each page."""
    row = those(everything.topics, attribution_method="bytes_ratio")[-1]
    whole = explained(client, everything, row, page_size=1000)["evidence"]["contenders"]
    for page, each in enumerate(whole, start=1):
        listed = explained(client, everything, row, page=page, page_size=1)["evidence"]["contenders"]
        assert listed[0] == each
        assert {topic["topic_name"] for topic in listed} == {each["topic_name"], row["topic_name"]}


def test_what_is_not_there(client: Client, everything: Everything) -> None:
    """Unknown lines and days, and lines that are not attributed to topics, are a 404."""
    key = topic_key_of(everything.topics[0])
    attributed = {row["metadata"]["line_id"] for row in everything.topics}
    other = next(line for line in everything.billing if line["metadata"]["line_id"] not in attributed)
    not_attributed = {"line_id": other["metadata"]["line_id"], "date": other["timestamp"][:10]}
    for wrong in ({"line_id": "none"}, {"date": str(TODAY + timedelta(days=1))}, not_attributed):
        response = client.get(f"{everything.base}/topic-attributions/explain", params=key | wrong)
        assert response.status_code == 404, response.text


def test_what_is_refused(client: Client, everything: Everything) -> None:
    """All mistakes are reported together."""
    path = f"{everything.base}/topic-attributions/explain"
    assert complaints(client.get(path)) == ["date", "line_id", "topic_name"]
    wrong: Record = {"date": "2026-02-30", "line_id": "", "topic_name": "x" * 256, "as_of": "soon", "page_size": 1001}
    assert complaints(client.get(path, params=wrong)) == sorted(wrong)
