"""The attribution of cluster cost to topics, in small bills."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.allocation.topics import TopicAttributor, lines_of_clusters
from chargeback.ecosystems.confluent_cloud.gatherer import catalogue
from chargeback.ecosystems.confluent_cloud.topics import TopicSettings
from chargeback.model.money import from_units, total
from chargeback.model.topics import EXISTED, TOPIC_ATTRIBUTIONS, TopicMethod, TopicPlan
from chargeback.model.usage import USAGE
from tests.allocation.bills import DAY, bill, usage
from tests.support.laws import examples

BYTES = ("bytes_in", "bytes_out")
PLAN = TopicPlan(
    methods={
        "WRITE": TopicMethod("bytes_ratio", ("bytes_in",)),
        "READ": TopicMethod("bytes_ratio", ("bytes_out",)),
        "CKU": TopicMethod("bytes_ratio", BYTES),
        "STORAGE": TopicMethod("retained_bytes_ratio", ("retained",)),
        "BASE": TopicMethod("even_split"),
    },
    aliases={"CKUS": "CKU"},
    cluster_type="cluster",
    topic_type="topic",
    exclude_patterns=("_internal*",),
)
SKIPPING = replace(PLAN, spreads_missing=False)
CLUSTERS = {"lkc-1", "lkc-2"}

TRAFFIC = usage(
    """
    bytes_in   lkc-1  orders    600
    bytes_in   lkc-1  payments  300
    bytes_in   lkc-1  idle      0
    bytes_out  lkc-1  orders    100
    bytes_out  lkc-1  payments  0
    retained   lkc-1  orders    1
    retained   lkc-1  payments  2
    """
)


def attribute(lines: pa.Table, evidence: pa.Table = TRAFFIC, plan: TopicPlan = PLAN) -> pa.Table:
    """Attribute one day with a new engine."""
    attributor = TopicAttributor(plan)
    try:
        return attributor.attribute(DAY, lines_of_clusters(lines, CLUSTERS, plan), evidence)
    finally:
        attributor.close()


def rows_of(table: pa.Table) -> list[str]:
    """Return the rows as text: ``cluster type topic amount method``, in the file's order."""
    names = ["cluster_resource_id", "product_type", "topic_name", "amount", "attribution_method"]
    return [
        " ".join(f"{row[name].normalize():f}" if name == "amount" else row[name] for name in names)
        for row in table.select(names).to_pylist()
    ]


def test_cost_follows_the_bytes_in() -> None:
    """Network writes are split by bytes in; an idle topic has no row."""
    assert rows_of(attribute(bill("lkc-1 WRITE 9.00"))) == [
        "lkc-1 WRITE orders 6 bytes_ratio",
        "lkc-1 WRITE payments 3 bytes_ratio",
    ]


def test_each_type_follows_its_own_measure() -> None:
    """Reads are split by bytes out, CKUs by both directions, storage by retained bytes; aliases are shown as billed."""
    assert rows_of(attribute(bill("lkc-1 READ 1\nlkc-1 CKUS 10\nlkc-1 STORAGE 0.3"))) == [
        "lkc-1 CKUS orders 7 bytes_ratio",
        "lkc-1 READ orders 1 bytes_ratio",
        "lkc-1 STORAGE orders 0.1 retained_bytes_ratio",
        "lkc-1 CKUS payments 3 bytes_ratio",
        "lkc-1 STORAGE payments 0.2 retained_bytes_ratio",
    ]


def test_an_even_split_counts_every_topic_there_was() -> None:
    """Topics with zero traffic and topics that only existed take part as well; leftover units go by name."""
    known = usage(f"{EXISTED} lkc-1 quiet 1")
    rows = attribute(bill("lkc-1 BASE 0.000000000005"), pa.concat_tables([TRAFFIC, known]))
    assert rows_of(rows) == [
        "lkc-1 BASE idle 0.000000000002 even_split",
        "lkc-1 BASE orders 0.000000000001 even_split",
        "lkc-1 BASE payments 0.000000000001 even_split",
        "lkc-1 BASE quiet 0.000000000001 even_split",
    ]


def test_usage_is_shown_beside_the_share() -> None:
    """A row has the topic's usage and the total usage of the split; a row of an even split has neither."""
    rows = attribute(bill("lkc-1 WRITE 9\nlkc-1 BASE 3")).to_pylist()
    shown = {(row["product_type"], row["topic_name"]): (row["topic_usage"], row["total_usage"]) for row in rows}
    assert shown["WRITE", "orders"] == (Decimal(600), Decimal(900))
    assert shown["BASE", "orders"] == (None, None)


@pytest.mark.parametrize(
    "evidence", ["bytes_in lkc-1 b 0\nbytes_in lkc-1 a 0", f"{EXISTED} lkc-1 a 1\nretained lkc-1 b 5"]
)
def test_without_measures_the_cost_is_spread_evenly(evidence: str) -> None:
    """If measures are zero or missing, the topics of the cluster share evenly, and the method says so."""
    assert rows_of(attribute(bill("lkc-1 WRITE -1"), usage(evidence))) == [
        "lkc-1 WRITE a -0.5 even_split",
        "lkc-1 WRITE b -0.5 even_split",
    ]


def test_skip_leaves_out_what_was_not_measured() -> None:
    """With `skip`, lines without measures have no rows; even splits over known topics remain."""
    lines = bill("lkc-1 WRITE 1\nlkc-1 BASE 1\nlkc-2 BASE 1")
    assert rows_of(attribute(lines, usage("bytes_in lkc-1 a 0"), SKIPPING)) == ["lkc-1 BASE a 1 even_split"]


def test_a_cluster_without_topics() -> None:
    """The cost has one row for an unknown topic, or none with `skip`."""
    lines = bill("lkc-2 WRITE 1\nlkc-2 BASE 2")
    assert rows_of(attribute(lines)) == [
        "lkc-2 BASE __UNATTRIBUTED__ 2 even_split",
        "lkc-2 WRITE __UNATTRIBUTED__ 1 even_split",
    ]
    assert rows_of(attribute(lines, plan=SKIPPING)) == []


def test_excluded_topics_take_no_part() -> None:
    """Excluded topics count neither by bytes nor in even splits."""
    evidence = usage("bytes_in lkc-1 a 1\nbytes_in lkc-1 _internal-log 99")
    assert rows_of(attribute(bill("lkc-1 WRITE 1\nlkc-1 BASE 1"), evidence)) == [
        "lkc-1 BASE a 1 even_split",
        "lkc-1 WRITE a 1 bytes_ratio",
    ]


def test_a_topic_may_be_called_like_nobody() -> None:
    """A topic named UNALLOCATED is a topic like any other."""
    evidence = usage("bytes_in lkc-1 UNALLOCATED 3\nbytes_in lkc-1 a 1")
    for plan in (PLAN, SKIPPING):
        assert rows_of(attribute(bill("lkc-1 WRITE 4\nlkc-1 BASE 4"), evidence, plan)) == [
            "lkc-1 BASE UNALLOCATED 2 even_split",
            "lkc-1 WRITE UNALLOCATED 3 bytes_ratio",
            "lkc-1 BASE a 2 even_split",
            "lkc-1 WRITE a 1 bytes_ratio",
        ]


def test_only_clusters_and_only_types_of_the_plan() -> None:
    """Lines of other resources, and of types that the plan does not name, are not attributed."""
    assert rows_of(attribute(bill("lcc-1 WRITE 1\nlkc-1 SUPPORT 1\nlkc-1 BASE 0"))) == []


def test_equal_lines_stay_two() -> None:
    """Two lines of one type are attributed separately."""
    rows = attribute(bill("lkc-1 WRITE 9\nlkc-1 WRITE 9"))
    assert rows.num_rows == 4
    assert len(rows["line_id"].unique()) == 2


def test_failed_lines_have_one_row_of_the_full_cost() -> None:
    """If the metrics are missing, each line with a cost has one row with the full cost."""
    attributor = TopicAttributor(PLAN)
    rows = attributor.failed(DAY, bill("lkc-1 WRITE 1.25\nlkc-1 BASE 0\nlkc-2 CKU -3"))
    attributor.close()
    assert rows.schema == TOPIC_ATTRIBUTIONS
    assert rows_of(rows) == [
        "lkc-1 WRITE __UNATTRIBUTED__ 1.25 ATTRIBUTION_FAILED",
        "lkc-2 CKU __UNATTRIBUTED__ -3 ATTRIBUTION_FAILED",
    ]


def test_a_dimension_has_the_same_id_every_time() -> None:
    """The id depends only on the dimension, not on the day, the amount or other rows."""
    alone = attribute(bill("lkc-1 WRITE 1"), usage("bytes_in lkc-1 orders 1"))
    among = attribute(bill("lkc-1 WRITE 9\nlkc-1 BASE 5"))
    of_orders = pc.and_(pc.equal(among["topic_name"], "orders"), pc.equal(among["product_type"], "WRITE"))
    assert among.filter(of_orders)["dimension_id"].to_pylist() == alone["dimension_id"].to_pylist()
    assert len(among["dimension_id"].unique()) == among.num_rows
    assert all(0 < each < 2**53 for each in among["dimension_id"].to_pylist())


def test_the_largest_amount_there_can_be() -> None:
    """An amount of 26 digits before the point is split exactly."""
    largest = "9" * 26
    assert total(attribute(bill(f"lkc-1 WRITE {largest}"))["amount"].to_pylist()) == Decimal(largest)


def test_the_worked_example_of_the_documentation() -> None:
    """The rows on the page about topics follow from its bill, its measurements and the shipped plan."""
    page = (Path(__file__).parents[2] / "docs" / "topics.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(bill|measured|rows)\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    plan = TopicSettings(enabled=True).plan(catalogue().aliases)
    billed = bill(blocks["bill"])
    attributor = TopicAttributor(plan)
    rows = attributor.attribute(
        DAY, lines_of_clusters(billed, {"lkc-1", "lkc-2", "lkc-3"}, plan), usage(blocks["measured"])
    )
    attributor.close()
    assert rows_of(rows) == [" ".join(row.split()) for row in blocks["rows"].splitlines()]
    assert total(rows["amount"].to_pylist()) == total(billed["total_cost"].to_pylist())


_names = st.sampled_from(["a", "b", "c", "UNALLOCATED", "_internal"])
_evidence = st.lists(
    st.tuples(
        st.sampled_from(["bytes_in", "bytes_out", "retained", EXISTED]),
        st.sampled_from(["lkc-1", "lkc-2", "lkc-3"]),
        _names,
        st.integers(0, 10**21),
    ),
    unique_by=lambda row: row[:3],
    max_size=30,
)
_lines = st.lists(
    st.tuples(
        st.sampled_from(["lkc-1", "lkc-2"]),
        st.sampled_from(["WRITE", "READ", "CKU", "CKUS", "STORAGE", "BASE"]),
        st.integers(-(10**25), 10**25),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(60))
@given(_lines, _evidence)
def test_the_rows_of_a_line_sum_to_its_cost(
    lines: list[tuple[str, str, int]], evidence: list[tuple[str, str, str, int]]
) -> None:
    """For any bill and any measurements, the rows of a line sum to its cost, and no row is zero."""
    billed = bill("\n".join(f"{cluster} {kind} {from_units(units):f}" for cluster, kind, units in lines))
    measured = pa.Table.from_pylist(
        [
            {"date": DAY, "measure": measure, "resource_id": cluster, "subject": topic, "value": Decimal(value)}
            for measure, cluster, topic, value in evidence
        ],
        schema=USAGE,
    )
    rows = attribute(billed, measured).to_pylist()
    assert all(row["amount"] for row in rows)
    assert len({(row["line_id"], row["topic_name"]) for row in rows}) == len(rows)
    for line_id, cost in zip(billed["line_id"].to_pylist(), billed["total_cost"].to_pylist(), strict=True):
        assert total(row["amount"] for row in rows if row["line_id"] == line_id) == cost
