"""Explanations of stored topic rows, from the measurements of their revision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chargeback.model.topics import ATTRIBUTION_FAILED, EVEN_SPLIT
from chargeback.recompute.explain_topic import TopicExplanation, TopicKey, explain_topic_row
from chargeback.recompute.stored_day import LineNotFound
from chargeback.store.facts.tables import BILLING_TABLE, TOPIC_USAGE_TABLE, TOPICS_TABLE
from tests.pipeline.topic_deployment import DAY, Attributed, attributed, organisation, prepared
from tests.support.damage import file_of, remove
from tests.support.facts import replace_day

__all__ = ["attributed", "organisation", "prepared"]


def explained(deployment: Attributed, row: dict[str, Any], **more: Any) -> TopicExplanation:
    """Return the explanation of a row of the day."""
    plan = more.pop("plan", deployment.plan)
    key = replace(TopicKey(DAY, row["line_id"], row["topic_name"]), **more)
    return explain_topic_row(deployment.store, plan, key)


def a_row(deployment: Attributed, method: str = "bytes_ratio") -> dict[str, Any]:
    """Return a row of the day with the given method."""
    return next(row for row in deployment.topics().to_pylist() if row["attribution_method"] == method)


def test_every_kind_of_row(attributed: Attributed) -> None:
    """Every attribution method is reported and recalculated with the same result."""
    for method in attributed.methods():
        row = a_row(attributed, method)
        found = explained(attributed, row)
        assert (found.row, found.method, found.is_same, found.missing) == (row, method, True, None)
        assert found.siblings.equals_line
        assert [each.amount for each in found.revisions] == [row["amount"]]


def test_a_topic_without_a_row(attributed: Attributed) -> None:
    """For a topic without a row, the explanation has the reason, and the calculation agrees."""
    found = explained(attributed, a_row(attributed), topic_name="no-such-topic")
    assert found.portion is not None
    assert (found.row, found.is_same) == (None, True)
    assert (found.portion.why_nothing or "").endswith("has this name")


def test_settings_that_were_changed(attributed: Attributed) -> None:
    """Changed settings explain a row only if they give the same result; otherwise nothing is calculated."""
    row, even = a_row(attributed), a_row(attributed, EVEN_SPLIT)
    others = replace(attributed.plan, exclude_patterns=(row["topic_name"],))
    found = explained(attributed, row, plan=others)
    assert (found.portion, found.is_same, found.row) == (None, None, row)
    assert (found.missing or "").startswith("the settings of topic attribution that were in force are not recorded; ")
    harmless = replace(attributed.plan, exclude_patterns=("nothing-has-this-name",))
    assert explained(attributed, even, plan=harmless).is_same


@pytest.mark.parametrize("name", [BILLING_TABLE, TOPIC_USAGE_TABLE])
def test_lost_evidence(attributed: Attributed, name: str) -> None:
    """Without a file of the evidence, nothing is calculated; the explanation has the row and the reason."""
    row = a_row(attributed)
    remove(Path(file_of(attributed.store.facts, name, DAY).path))
    found = explained(attributed, row)
    assert (found.row, found.portion, found.is_same) == (row, None, None)
    assert "of that day cannot be read; `chargeback verify` names the damaged file" in (found.missing or "")


def test_a_day_whose_metrics_failed(attributed: Attributed) -> None:
    """A line without metrics has one row without a topic, which is explained without measurements."""
    rows = attributed.topics()
    line_id = a_row(attributed)["line_id"]
    kept = [row for row in rows.to_pylist() if row["line_id"] != line_id]
    (cost,) = (cost for line, cost in attributed.lines().items() if line == line_id)
    failed = a_row(attributed) | {
        "topic_name": "__UNATTRIBUTED__",
        "attribution_method": ATTRIBUTION_FAILED,
        "amount": cost,
        "topic_usage": None,
        "total_usage": None,
    }
    table = type(rows).from_pylist([*kept, failed], schema=rows.schema)
    replace_day(attributed.store.facts, TOPICS_TABLE, DAY, table)
    found = explained(attributed, failed)
    assert (found.method, found.is_same) == (ATTRIBUTION_FAILED, True)


def test_an_earlier_instant(attributed: Attributed) -> None:
    """There is nothing to explain before the first revision."""
    row = a_row(attributed)
    first = explained(attributed, row).revisions[0].revision.calculated_at
    assert explained(attributed, row, as_of=first).is_same
    with pytest.raises(LineNotFound, match="was not calculated then"):
        explained(attributed, row, as_of=first.replace(year=first.year - 1))


def test_what_is_not_attributed(attributed: Attributed) -> None:
    """A line that does not exist, and one that is not attributed to topics, are reported."""
    row = a_row(attributed)
    with pytest.raises(LineNotFound, match="has no line 'none'"):
        explained(attributed, row, line_id="none")
    plan = replace(attributed.plan, methods={})
    with pytest.raises(LineNotFound, match="is not attributed to topics"):
        explained(attributed, row, plan=plan)
