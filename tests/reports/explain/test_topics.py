"""Explanations of topic rows as responses: amounts that follow from the response alone, and sentences."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.allocation.explain import explain_topic
from chargeback.allocation.topics import TopicAttributor
from chargeback.model.money import from_units
from chargeback.model.topics import EXISTED, UNATTRIBUTED, TopicMethod, TopicPlan
from chargeback.model.usage import USAGE
from chargeback.recompute.explain_topic import TopicExplanation, TopicKey
from chargeback.recompute.stored_day import LineRows
from chargeback.reports.explain.topics import explained_topic, topic_sentence
from chargeback.store.queries.paging import Page
from tests.allocation.bills import DAY, bill, usage
from tests.allocation.test_topics import PLAN, SKIPPING
from tests.support.explained import check_topic_explanation, check_topic_sentence
from tests.support.laws import examples

_TOPICS = [f"t{number:02}" for number in range(30)] + ["UNALLOCATED", "_internal"]


@st.composite
def _days(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """Return lines of two clusters, and measurements of up to about thirty topics."""
    lines = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["lkc-1", "lkc-2"]),
                st.sampled_from(["WRITE", "CKUS", "STORAGE", "BASE"]),
                st.integers(-(10**20), 10**20),
            ),
            min_size=1,
            max_size=4,
        )
    )
    measured = draw(
        st.dictionaries(
            st.tuples(
                st.sampled_from(["bytes_in", "bytes_out", "retained", EXISTED]),
                st.sampled_from(["lkc-1", "lkc-2"]),
                st.sampled_from(_TOPICS),
            ),
            st.integers(0, 10**15),
            max_size=60,
        )
    )
    evidence = [
        {"date": DAY, "measure": measure, "resource_id": cluster, "subject": topic, "value": Decimal(value)}
        for (measure, cluster, topic), value in measured.items()
    ]
    billed = bill("\n".join(f"{cluster} {kind} {from_units(units):f}" for cluster, kind, units in lines))
    return billed, pa.Table.from_pylist(evidence, schema=USAGE)


@pytest.mark.extensive
def test_amounts_follow_from_the_answers_alone() -> None:
    """For every row of random days, and for topics without one, an independent checker derives the stored amount and
    verifies the sentence."""
    checked = 0

    # Starting an engine takes longer than attributing a day.
    attributors = [(plan, TopicAttributor(plan)) for plan in (PLAN, SKIPPING)]

    @settings(max_examples=examples(150))
    @given(_days(), st.sampled_from(attributors), st.integers(1, 40))
    def check(day: tuple[pa.Table, pa.Table], by: tuple[TopicPlan, TopicAttributor], listed: int) -> None:
        nonlocal checked
        (billed, evidence), (plan, attributor) = day, by
        rows = attributor.attribute(DAY, billed, evidence).to_pylist()
        amounts = {(row["line_id"], row["topic_name"]): row["amount"] for row in rows}
        for line in billed.to_pylist():
            topics = {topic for line_id, topic in amounts if line_id == line["line_id"]}
            for topic in topics | {"t00", "_internal", UNATTRIBUTED}:
                found = explained(billed, line, evidence, plan, topic)
                answer = explained_topic(found, {}, "USD", Page(0, listed)).model_dump(mode="json")
                assert check_topic_explanation(answer) == amounts.get((line["line_id"], topic), 0)
                check_topic_sentence(answer["sentence"], answer)
                checked += 1

    while checked < 500:
        check()
    for _, attributor in attributors:
        attributor.close()


def explained(
    billed: pa.Table, line: dict[str, Any], evidence: pa.Table | None, plan: TopicPlan, topic: str
) -> TopicExplanation:
    """Return the explanation of a line, as if it were stored."""
    (number,) = (n for n, each in enumerate(billed["line_id"].to_pylist()) if each == line["line_id"])
    portion = explain_topic(DAY, billed.slice(number, 1), evidence, plan, topic, "prod")
    key = TopicKey(date(2026, 11, 4), line["line_id"], topic)
    siblings = LineRows(1, line["total_cost"], equals_line=True)
    return TopicExplanation(
        key=key,
        row=None,
        line=line,
        billed=line,
        method=None,
        portion=portion,
        missing=None,
        siblings=siblings,
        revision=1,
        revisions=(),
        is_same=True,
    )


GB = 10**9


@pytest.mark.parametrize(
    ("line", "measured", "topic", "expected"),
    [
        (
            "lkc-1 WRITE 120",
            f"topic_bytes_in lkc-1 orders {123 * GB // 10}\ntopic_bytes_in lkc-1 other {333 * GB // 10}",
            "orders",
            "Topic orders received 12.3 of 45.6 GB on prod on 4 November 2026. "
            "The WRITE line of 120.00 USD follows received bytes: 32.37 USD for orders.",
        ),
        (
            "lkc-1 BASE 6",
            f"{EXISTED} lkc-1 orders 1\n{EXISTED} lkc-1 other 1",
            "orders",
            "Topic orders was one of 2 topics of prod on 4 November 2026. "
            "The BASE line of 6.00 USD is shared evenly: 3.00 USD for orders.",
        ),
        (
            "lkc-1 BASE 6",
            f"{EXISTED} lkc-1 other 1",
            "orders",
            "Topic orders has nothing of prod on 4 November 2026: it is not known to have existed on this day.",
        ),
        (
            "lkc-1 WRITE 6",
            f"{EXISTED} lkc-1 orders 1",
            "orders",
            "Topic orders was the only topic of prod on 4 November 2026. The WRITE line of 6.00 USD is shared evenly "
            "because no received bytes were measured on prod on this day: 6.00 USD for orders.",
        ),
        (
            "lkc-1 BASE 6",
            "",
            UNATTRIBUTED,
            "No topic of prod could be found on 4 November 2026: no topic of prod is known on this day. "
            "The BASE line of 6.00 USD is attributed to no topic: 6.00 USD for __UNATTRIBUTED__.",
        ),
    ],
)
def test_sentences(line: str, measured: str, topic: str, expected: str) -> None:
    """Each attribution method has a sentence, for readers who do not know the service."""
    billed = bill(line)
    method = {"WRITE": "topic_bytes_in"}
    plan = PLAN if "WRITE" not in line else _renamed(method)
    found = explained(billed, billed.to_pylist()[0], usage(measured), plan, topic)
    assert topic_sentence(found, {"lkc-1": "prod"}, "USD") == expected


def _renamed(measures: dict[str, str]) -> TopicPlan:
    """Return the plan with measures named like the metrics of topics."""
    return replace(PLAN, methods={name: TopicMethod("bytes_ratio", (each,)) for name, each in measures.items()})
