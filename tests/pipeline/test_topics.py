"""The topic overlay of a run, against a served organisation and its metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from random import Random

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from chargeback.demo.organisation import Organisation
from chargeback.errors import SourceUnavailable
from chargeback.model.run_request import RunRequest
from chargeback.model.topics import ATTRIBUTION_FAILED, UNATTRIBUTED
from chargeback.pipeline.run_messages import STOPPED, Progress, RunOutcome, Stage, StopSignal
from chargeback.pipeline.topics import TopicRegistry
from chargeback.store.control.days import TOPIC_METRICS
from chargeback.store.control.schema import resources
from chargeback.store.control.topics import Lifetime
from chargeback.store.facts.tables import TOPIC_USAGE_TABLE, TOPICS_TABLE
from tests.pipeline.topic_deployment import DAY, WINDOW, Attributed, attributed, deployment, organisation, prepared
from tests.support.clock import TODAY
from tests.support.sources import DAY as BILLED
from tests.support.sources import Laboratory, line

__all__ = ["attributed", "deployment", "organisation", "prepared"]

QUERY = "/prometheus/api/v1/query"
RECALCULATE = RunRequest(recalculate=True)


def test_a_first_run_attributes_every_cluster_line_to_the_last_digit(
    attributed: Attributed, organisation: Organisation
) -> None:
    """For every line of the plan's types, the topic rows sum to its cost: by bytes, by storage and evenly."""
    for day in WINDOW:
        assert attributed.flags(day) == (True, True)
        assert attributed.sums(day) == attributed.lines(day)
        measured = {"bytes_ratio", "retained_bytes_ratio"} if day != organisation.spec.day_without_metrics else set()
        assert attributed.methods(day) == measured | {"even_split"}
        assert attributed.state(day).topics.rows == attributed.topics(day).num_rows
    assert all(attributed.topics()["amount"].to_pylist())
    assert UNATTRIBUTED not in attributed.topics()["topic_name"].to_pylist()


def test_topics_become_resources(attributed: Attributed) -> None:
    """Every attributed topic is in the inventory, below its cluster."""
    with attributed.store.control.read() as connection:
        known = {
            row.resource_id: row for row in connection.execute(select(resources)) if row.resource_type == "kafka_topic"
        }
    assert known
    for row in attributed.topics().to_pylist():
        topic = known[f"{row['cluster_resource_id']}:topic:{row['topic_name']}"]
        assert (topic.parent_id, topic.display_name) == (row["cluster_resource_id"], row["topic_name"])
        assert topic.created_at is None or topic.created_at.date() <= DAY


@pytest.mark.extensive
def test_the_log_tells_of_discovery_and_of_the_queue(deployment: Attributed, caplog: pytest.LogCaptureFixture) -> None:
    """Both messages are logged at level INFO, once for all days of a run."""
    with caplog.at_level(logging.INFO, "chargeback"):
        deployment.run()
    for said in ("Topic discovery", "Topic attribution backfill"):
        assert sum(said in record.getMessage() for record in caplog.records if record.levelno == logging.INFO) == 1


@pytest.mark.extensive
def test_progress_of_the_stage(deployment: Attributed) -> None:
    """The listener gets the progress of the overlay, until all of its days are done."""
    deployment.run()
    heard = [progress for progress in deployment.progress if progress.stage is Stage.TOPIC_OVERLAY]
    assert (heard[-1].done, heard[-1].total) == (len(WINDOW), len(WINDOW))


def test_one_query_per_measure_and_day(deployment: Attributed) -> None:
    """The three measures are queried once for all clusters."""
    deployment.reload(enabled=False)
    deployment.run()
    before = deployment.server.requests[QUERY]
    deployment.reload(enabled=True)
    deployment.run(RunRequest(DAY, DAY, recalculate=True))
    asked_for_usage = before // len(WINDOW)
    assert deployment.server.requests[QUERY] - before == asked_for_usage + 3


def test_a_second_run_changes_nothing(attributed: Attributed) -> None:
    """Nothing is fetched or written again."""
    version, asked = attributed.store.facts.snapshot(TOPICS_TABLE).version, attributed.server.requests[QUERY]
    assert attributed.run().outcome is RunOutcome.COMPLETED
    assert attributed.store.facts.snapshot(TOPICS_TABLE).version == version
    assert attributed.server.requests[QUERY] == asked


@pytest.mark.everyday
def test_a_changed_bill_is_attributed_anew_from_kept_measurements(attributed: Attributed) -> None:
    """A late line on a cluster is attributed without a new query of the metrics; other days stay."""
    asked, others = attributed.server.requests[QUERY], attributed.topics(WINDOW[0])
    changes = attributed.server.changes
    line = next(row for row in changes.cost_rows(DAY) if row["line_type"] == "KAFKA_NETWORK_WRITE")
    changes.add_cost(DAY, {**line, "id": "late", "amount": Decimal("-1.25")})
    assert attributed.run().outcome is RunOutcome.COMPLETED
    assert attributed.server.requests[QUERY] == asked
    assert attributed.sums() == attributed.lines()
    assert attributed.flags() == (True, True)
    assert attributed.topics(WINDOW[0]).equals(others)


def test_recalculation_fetches_anew_and_gives_the_same(attributed: Attributed) -> None:
    """The same inputs give the same rows, to the byte."""
    before = attributed.topics()
    attributed.run(RunRequest(DAY, DAY, recalculate=True))
    assert attributed.topics().equals(before)
    assert attributed.flags() == (True, True)


@pytest.mark.extensive
def test_without_metrics_three_runs_end_in_sentinels(deployment: Attributed) -> None:
    """Days stay pending while the metrics are unreachable; in the third run each line has one sentinel row."""
    deployment.lose_metrics()
    for failures in (1, 2):
        assert deployment.run().outcome is RunOutcome.COMPLETED_WITH_ERRORS
        assert deployment.flags() == (False, False)
        assert deployment.failures() == {failures}
        assert deployment.topics().num_rows == 0
    deployment.run()
    for day in WINDOW:
        assert deployment.flags(day) == (False, True)
        assert deployment.methods(day) == {ATTRIBUTION_FAILED}
        assert set(deployment.topics(day)["topic_name"].to_pylist()) == {UNATTRIBUTED}
        assert deployment.topics(day).num_rows == len(deployment.lines(day))
        assert deployment.sums(day) == deployment.lines(day)
    assert deployment.failures() == set()


def test_sentinels_give_way_once_the_metrics_answer(deployment: Attributed) -> None:
    """When a day's chargebacks are recalculated automatically, so are its topics, and nothing is doubled."""
    deployment.configure(topic_attribution_retry_limit=1, allocation_retry_limit=1)
    deployment.lose_metrics()
    deployment.run()
    assert deployment.methods() == {ATTRIBUTION_FAILED}
    deployment.have_metrics()
    assert deployment.run().outcome is RunOutcome.COMPLETED
    assert ATTRIBUTION_FAILED not in deployment.methods()
    assert deployment.sums() == deployment.lines()
    assert deployment.flags() == (True, True)


@pytest.mark.extensive
def test_sentinels_of_a_calculated_day_give_way_by_themselves(deployment: Attributed) -> None:
    """If only the topics failed, the day is marked, and attributed as soon as the metrics are available."""
    deployment.reload(enabled=False)
    deployment.run()
    deployment.reload(enabled=True)
    deployment.configure(topic_attribution_retry_limit=2)
    deployment.lose_metrics()
    deployment.run(RECALCULATE)
    assert deployment.failures() == {1}
    deployment.run(RECALCULATE)
    assert deployment.failures() == {1}
    deployment.run()
    assert deployment.methods() == {ATTRIBUTION_FAILED}
    assert TOPIC_METRICS in deployment.state(DAY).incomplete
    deployment.run()
    assert deployment.methods() == {ATTRIBUTION_FAILED}
    deployment.have_metrics()
    assert deployment.run().outcome is RunOutcome.COMPLETED
    assert deployment.sums() == deployment.lines()
    assert ATTRIBUTION_FAILED not in deployment.methods()
    assert deployment.state(DAY).incomplete == {}


def test_a_cluster_that_is_billed_late_is_measured(tmp_path: Path) -> None:
    """Topics of a cluster that is billed late are measured then. Without metrics, other clusters keep their
    measurements, and the day is calculated again later."""
    with Laboratory(tmp_path) as laboratory:
        sources = laboratory.sources
        sources.lines[BILLED] = [line("100")]
        sources.topic_totals = {"topic_bytes_in": {("lkc-1", "a"): 3, ("lkc-1", "b"): 1, ("lkc-2", "c"): 1}}
        laboratory.run()
        sources.lines[BILLED].append(line("10", resource="lkc-2"))
        sources.fault = SourceUnavailable("HTTP 503")
        laboratory.run()
        assert shares(laboratory)["lkc-1"] == {"a": 75, "b": 25}
        assert TOPIC_METRICS in laboratory.state().incomplete
        sources.fault = None
        laboratory.run()
        assert shares(laboratory) == {"lkc-1": {"a": 75, "b": 25}, "lkc-2": {"c": 10}}
        assert laboratory.state().incomplete == {}
        sources.topic_totals = {}
        assert laboratory.run(RECALCULATE).outcome is RunOutcome.COMPLETED_WITH_ERRORS
        assert shares(laboratory) == {"lkc-1": {"a": 75, "b": 25}, "lkc-2": {"c": 10}}


def shares(laboratory: Laboratory) -> dict[str, dict[str, int]]:
    """Return cluster → topic → amount."""
    found: dict[str, dict[str, int]] = {}
    for row in laboratory.stored(TOPICS_TABLE).to_pylist():
        found.setdefault(row["cluster_resource_id"], {})[row["topic_name"]] = int(row["amount"])
    return found


@pytest.mark.extensive
def test_metrics_that_come_back_in_time(deployment: Attributed) -> None:
    """A day that failed once is attributed in the next run, and its failure count is removed."""
    deployment.lose_metrics()
    deployment.run()
    deployment.have_metrics()
    deployment.run()
    assert deployment.sums() == deployment.lines()
    assert deployment.failures() == set()


def test_kept_measurements_are_not_given_up_for_a_sentinel(attributed: Attributed) -> None:
    """A recalculation without metrics gives the rows of the stored measurements."""
    before = attributed.topics()
    attributed.configure(topic_attribution_retry_limit=1)
    attributed.lose_metrics()
    attributed.run(RECALCULATE)
    assert attributed.topics().equals(before)
    assert attributed.flags() == (True, True)


@pytest.mark.extensive
def test_days_from_before_the_overlay_wait_for_a_recalculation(deployment: Attributed) -> None:
    """An overlay that is enabled later attributes days calculated from then on, and earlier ones on request."""
    deployment.reload(enabled=False)
    deployment.run()
    assert deployment.flags() == (False, False)
    deployment.reload(enabled=True)
    deployment.run()
    assert deployment.flags() == (False, False)
    assert deployment.store.facts.snapshot(TOPICS_TABLE).days == []
    deployment.run(RunRequest(DAY, DAY, recalculate=True))
    assert deployment.store.facts.snapshot(TOPICS_TABLE).days == [DAY]
    assert deployment.flags() == (True, True)


def test_a_bill_that_changed_while_the_overlay_was_off(attributed: Attributed) -> None:
    """Rows of an old bill are not shown as current, and are replaced once the overlay is on again."""
    attributed.reload(enabled=False)
    changes = attributed.server.changes
    line = next(row for row in changes.cost_rows(DAY) if row["line_type"] == "KAFKA_STORAGE")
    changes.add_cost(DAY, {**line, "id": "late", "amount": Decimal(7)})
    attributed.run()
    assert attributed.flags()[1] is False
    attributed.reload(enabled=True)
    attributed.run()
    assert attributed.sums() == attributed.lines()


def test_retention_empties_old_days_and_attributes_none(attributed: Attributed) -> None:
    """Rows and measurements past the overlay's own retention are removed; a recalculation does not bring them back."""
    oldest = WINDOW[-2]
    attributed.reload(retention_days=(TODAY - oldest).days)
    for request in (RunRequest(), RECALCULATE):
        attributed.run(request)
        for table in (TOPICS_TABLE, TOPIC_USAGE_TABLE):
            assert attributed.store.facts.snapshot(table).days == WINDOW[-2:]
        assert attributed.flags(WINDOW[0]) == (False, False)
        assert attributed.flags(oldest) == (True, True)


def test_skip_and_disabled_leave_lines_out(deployment: Attributed) -> None:
    """A disabled type has no rows; with `skip`, lines without measures are left out, and the rest is attributed."""
    deployment.reload(
        missing_metrics_behavior="skip",
        cost_mapping_overrides={"KAFKA_BASE": "disabled"},
        metric_name_overrides={"topic_retained_bytes": "no_such_metric"},
    )
    deployment.run()
    types = set(deployment.topics()["product_type"].to_pylist())
    assert {"KAFKA_NETWORK_WRITE", "KAFKA_PARTITION"} <= types
    assert not types & {"KAFKA_BASE", "KAFKA_STORAGE"}
    left_out = deployment.lines().keys() - deployment.sums().keys()
    assert left_out
    assert all(deployment.sums()[each] == deployment.lines()[each] for each in deployment.sums())


def test_a_metric_of_another_name_is_missing_and_spread_evenly(deployment: Attributed) -> None:
    """With `even_split`, a cluster without a measure is split evenly over its topics."""
    deployment.reload(metric_name_overrides={"topic_retained_bytes": "no_such_metric"})
    deployment.run()
    storage = deployment.topics().filter(pc.equal(deployment.topics()["product_type"], "KAFKA_STORAGE"))
    assert set(storage["attribution_method"].to_pylist()) == {"even_split"}
    assert deployment.sums() == deployment.lines()


def test_excluded_topics_are_neither_discovered_nor_attributed(deployment: Attributed) -> None:
    """Exclusions are shell patterns."""
    deployment.reload(exclude_topic_patterns=["*a*"])
    deployment.run()
    names = deployment.topics()["topic_name"].to_pylist()
    assert names
    assert not [name for name in names if "a" in name.lower() and name != UNATTRIBUTED and "a" in name]
    with deployment.store.control.read() as connection:
        known = connection.execute(select(resources).where(resources.c.resource_type == "kafka_topic")).all()
    assert not [row for row in known if "a" in row.display_name]


def test_disabled_means_nothing_is_done(deployment: Attributed) -> None:
    """Without the overlay there are no topic rows, flags or topics."""
    deployment.reload(enabled=False)
    deployment.run(RECALCULATE)
    assert deployment.store.facts.snapshot(TOPICS_TABLE).days == []
    assert all(not state.topics.is_queued for state in deployment.states())


@pytest.mark.extensive
def test_a_run_that_is_stopped_in_the_stage_is_finished_by_the_next(deployment: Attributed) -> None:
    """Attributed days stay, the next run does the rest, and nothing is lost or doubled."""
    stop = StopSignal()

    def listen(progress: Progress) -> None:
        if progress.stage is Stage.TOPIC_OVERLAY and progress.done == 2:
            stop.ask(STOPPED)

    deployment.run(stop=stop, listener=listen)
    done = deployment.store.facts.snapshot(TOPICS_TABLE).days
    assert done == WINDOW[-2:]
    assert deployment.run().outcome is RunOutcome.COMPLETED
    assert all(deployment.sums(day) == deployment.lines(day) for day in WINDOW)


FIRST = date(2026, 1, 1)


def book_of(days: Iterable[tuple[int, str]]) -> TopicRegistry:
    """Return a registry that has observed days of one cluster: (number, the letters of its topics)."""
    book = TopicRegistry({}, {})
    for number, topics in days:
        book.observe(FIRST + timedelta(number), {"lkc-1": set(topics)})
    return book


def alive(book: TopicRegistry, days: Iterable[int]) -> list[str]:
    """Return the topics alive on each day, as letters."""
    return ["".join(sorted(book.alive_on(FIRST + timedelta(number)).get("lkc-1", ()))) for number in days]


@pytest.mark.parametrize("order", list(permutations([(0, "ab"), (1, "abc"), (2, "bc")])))
def test_whatever_order_the_days_come_in(order: list[tuple[int, str]]) -> None:
    """In any order of days, a topic of the first day may always have existed, one that is missing on the newest day is
    deleted as of it, and a later one was created on its first day."""
    book = book_of(order)
    assert alive(book, range(-1, 4)) == ["ab", "ab", "abc", "bc", "bc"]


def test_an_idle_day_in_between_is_no_end() -> None:
    """A topic that appears again was alive all the time."""
    assert alive(book_of([(0, "ab"), (1, "a"), (2, "ab")]), range(3)) == ["ab", "ab", "ab"]


def test_a_day_that_names_nothing_tells_nothing() -> None:
    """A cluster without any series has not lost its topics."""
    assert alive(book_of([(0, "ab"), (1, "")]), [1]) == ["ab"]


def test_a_day_seen_again_changes_nothing() -> None:
    """Observing a known day again changes no lifetime."""
    book = book_of([(0, "a"), (1, "ab"), (2, "b")])
    before = alive(book, range(3))
    book.new, book.changed = {}, {}
    for number, topics in ((1, "ab"), (2, "b"), (0, "a")):
        book.observe(FIRST + timedelta(number), {"lkc-1": set(topics)})
    assert (book.new, book.changed) == ({}, {})
    assert alive(book, range(3)) == before


def test_what_is_new_and_what_has_changed() -> None:
    """Only lifetimes that begin or end are to be saved, with or without a known beginning."""
    book = book_of([(0, "ab")])
    assert book.new == {"lkc-1": {"a": Lifetime(), "b": Lifetime()}}
    book.new, book.changed = {}, {}
    book.observe(FIRST + timedelta(1), {"lkc-1": {"b", "c"}})
    (created,) = book.new["lkc-1"].items()
    (deleted,) = book.changed["lkc-1"].items()
    assert (created[0], deleted[0]) == ("c", "a")
    assert created[1].created_at == deleted[1].deleted_at
    assert created[1].deleted_at is deleted[1].created_at is None


@given(st.dictionaries(st.integers(0, 6), st.sets(st.sampled_from("abcd"), min_size=1), min_size=1), st.randoms())
def test_who_is_named_is_alive(days: dict[int, set[str]], chance: Random) -> None:
    """In any order of the days, every topic is alive on each day that has it."""
    order = list(days.items())
    chance.shuffle(order)
    book = TopicRegistry({}, {})
    for number, topics in order:
        book.observe(FIRST + timedelta(number), {"lkc-1": topics})
    for number, topics in days.items():
        assert topics <= book.alive_on(FIRST + timedelta(number))["lkc-1"]
