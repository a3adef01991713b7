"""The sentences of the service, as a reader of the German page sees them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.contract.records import Client, Everything, key_of, topic_key_of
from tests.page.test_web import node
from tests.support.clock import TODAY

pytestmark = [pytest.mark.extensive, pytest.mark.usefixtures("process")]

#: English words that are not part of a name in the generated organisation.
ENGLISH = re.compile(r"\b(the|was|were|is|are|of|because|which|for|follows|measured|nothing|day|days|line|minutes)\b")
#: The fields of responses that contain sentences, or parts of one.
SENTENCES = {"sentence", "why", "action", "why_not", "why_nothing", "evidence_missing", "remedy", "detail"}
SAMPLED = 2


def sentences_in(value: Any) -> Iterator[str]:
    """Yield every sentence in a response."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name in SENTENCES and isinstance(each, str):
                yield each
            yield from sentences_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from sentences_in(each)


def in_german(sentences: list[str]) -> list[str | None]:
    """Return the sentences in German, with None for unknown ones."""
    found: list[str | None] = json.loads(node("tests/reworded.ts", sent=json.dumps(sentences)))
    return found


def explained(client: Client, everything: Everything) -> Iterator[dict[str, Any]]:
    """Yield explanations of rows of every kind, also for identities and topics without a part of the line."""
    kinds: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in everything.chargebacks:
        kinds.setdefault((row["product_type"], row["allocation_detail"]), []).append(row)
    rows = [row for each in kinds.values() for row in each[:: max(1, len(each) // SAMPLED)][:SAMPLED]]
    for row, other in pairwise(rows):
        yield client.answer(f"{everything.base}/chargebacks/explain", **key_of(row))
        of_other = key_of(row) | {"identity_id": other["identity_id"]}
        yield client.answer(f"{everything.base}/chargebacks/explain", **of_other)
    attributed = everything.topics[:: max(1, len(everything.topics) // 20)]
    for row, other in pairwise(attributed):
        key = topic_key_of(row)
        for topic in (row["topic_name"], other["topic_name"], "UNATTRIBUTED", "no-such-topic"):
            yield client.answer(f"{everything.base}/topic-attributions/explain", **key | {"topic_name": topic})


def test_every_sentence_is_known(client: Client, everything: Everything) -> None:
    """Explanations, changes, findings, anomalies and error details are translated completely."""
    answers: list[Any] = list(explained(client, everything))
    days = {"start_date": f"{TODAY.replace(day=1)}", "end_date": f"{TODAY}"}
    answers += [
        client.answer(f"{everything.base}/chargebacks/changes", group_by=by, limit=100, **days)
        for by in ("identity_id", "resource_id", "product_type", "tag:team")
    ]
    answers += [client.answer(f"{everything.base}/{name}") for name in ("findings", "anomalies", "health", "periods")]
    found = list(dict.fromkeys(each for answer in answers for each in sentences_in(answer) if each))
    assert len(found) > 200
    german = in_german(found)
    assert [text for text, each in zip(found, german, strict=True) if each is None] == []
    assert [each for each in german if each is not None and ENGLISH.search(each)] == []
