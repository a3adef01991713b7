"""Calculation from complete, partial and missing evidence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import Connection, update

from chargeback.errors import SourcePartial, SourceUnavailable
from chargeback.model.days import Clock
from chargeback.model.inventory import Inventory, Resource
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.store.control.catalogue import NewContent
from chargeback.store.control.days import METRICS, listing
from chargeback.store.control.inventory import read_inventory
from chargeback.store.control.lease import Lease
from chargeback.store.control.schema import days
from chargeback.store.facts.tables import BILLING_TABLE, CHARGEBACKS_TABLE, USAGE_TABLE, FactTables
from tests.support.sources import DAY, RECALCULATE, Laboratory, line

AWAY = SourceUnavailable("HTTP 503", source="metrics")
PARTIAL = SourcePartial("the answer is incomplete: a store is away", source="metrics")
NINE_TO_ONE = {"bytes_in": {("lkc-1", "sa-a"): 90, ("lkc-1", "sa-b"): 10}}
ACCEPT_LESS = RunRequest(recalculate=True, accept_less=True)
STATEMENT = "flink_statement"


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant with one day, billed for one cluster that two identities use."""
    with Laboratory(tmp_path) as opened:
        opened.sources.lines[DAY] = [line("100")]
        opened.sources.totals = NINE_TO_ONE
        yield opened


def test_recalculating_without_metrics_keeps_evidence_and_split(laboratory: Laboratory) -> None:
    """Recalculations without metrics keep the measurements and the split, even if the metrics have lost the day
    afterwards."""
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "90", "sa-b": "10"}
    rows, usage = laboratory.stored(CHARGEBACKS_TABLE), laboratory.stored(USAGE_TABLE)
    laboratory.sources.fault = AWAY
    for _ in range(3):
        result = laboratory.run(RECALCULATE)
        assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
        assert any("HTTP 503" in error and "the stored measurements are kept" in error for error in result.errors)
        assert laboratory.stored(CHARGEBACKS_TABLE).equals(rows)
    laboratory.sources.fault, laboratory.sources.totals = None, {}
    result = laboratory.run(RECALCULATE)
    assert any("less bytes_in than before" in error for error in result.errors)
    assert laboratory.stored(CHARGEBACKS_TABLE).equals(rows)
    assert laboratory.stored(USAGE_TABLE).equals(usage)
    assert laboratory.state().shortcomings == []


def test_a_smaller_answer_is_taken_only_by_a_request_that_says_so(laboratory: Laboratory) -> None:
    """A recalculation keeps the richer measurements and reports that; with ``accept_less`` it uses the smaller ones."""
    laboratory.run()
    laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-b"): 5}}
    assert laboratory.run(RECALCULATE).outcome is RunOutcome.COMPLETED_WITH_ERRORS
    assert laboratory.charged() == {"sa-a": "90", "sa-b": "10"}
    assert laboratory.run(ACCEPT_LESS).outcome is RunOutcome.COMPLETED
    assert laboratory.charged() == {"sa-b": "100"}


def test_a_day_without_metrics_is_marked_and_heals(laboratory: Laboratory) -> None:
    """A day without metrics is marked with the reason, until the metrics are complete."""
    laboratory.sources.fault = AWAY
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "33.333333333334", "sa-b": "33.333333333333", "sa-c": "33.333333333333"}
    assert laboratory.state().incomplete == {METRICS: str(AWAY), "topic metrics": str(AWAY)}
    laboratory.sources.fault = None
    assert laboratory.run().dates_calculated == 1
    assert laboratory.charged() == {"sa-a": "90", "sa-b": "10"}
    assert laboratory.state().incomplete == {}
    assert laboratory.run().dates_calculated == 0


def test_an_incomplete_answer_of_one_day_does_not_keep_others_waiting(tmp_path: Path) -> None:
    """Only the day with the incomplete response is tried again."""
    with Laboratory(tmp_path, days=2) as laboratory:
        laboratory.configure(metrics_prefetch_workers=1, allocation_retry_limit=3)
        before = DAY - timedelta(days=1)
        laboratory.sources.lines = {DAY: [line("100")], before: [line("100", day=before)]}
        laboratory.sources.fault = PARTIAL
        laboratory.run()
        assert [laboratory.state(day).failed_attempts for day in (before, DAY)] == [1, 1]
        assert laboratory.sources.asked == 4


def test_owners_that_could_not_be_listed_get_what_is_theirs_later(laboratory: Laboratory) -> None:
    """A failed listing is completed when it succeeds later, although the metrics have lost the day."""
    sources = laboratory.sources
    pool = Resource("lfcp-1", "flink_compute_pool")
    run = Resource("s-1", STATEMENT, "job", "lfcp-1", "sa-a")
    etl = Resource("s-2", STATEMENT, "etl", "lfcp-1", "sa-b")
    sources.listed = Inventory([*sources.listed.resources, pool, run, etl], sources.listed.identities)
    sources.unlisted = {STATEMENT: "HTTP 403"}
    sources.lines[DAY] = [line("1000", resource="lfcp-1", product="FLINK_NUM_CFUS")]
    sources.totals = {"flink_cfu_minutes_by_statement": {("lfcp-1", "job"): 3, ("lfcp-1", "etl"): 1}}
    result = laboratory.run()
    assert laboratory.charged() == {"UNALLOCATED": "1000"}
    assert laboratory.state().shortcomings == [f"listing of {STATEMENT}: HTTP 403"]
    assert any(str(DAY) in error and "last known flink_statement" in error for error in result.errors)
    assert laboratory.run().dates_calculated == 0
    sources.totals, sources.unlisted, sources.fault = {}, {}, AWAY
    assert laboratory.run().dates_calculated == 1
    assert laboratory.charged() == {"sa-a": "750", "sa-b": "250"}
    assert listing(STATEMENT) not in laboratory.state().incomplete
    sources.lines[DAY] = [line("1001", resource="lfcp-1", product="FLINK_NUM_CFUS")]
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "750.75", "sa-b": "250.25"}


def test_a_line_that_is_billed_late_is_measured(laboratory: Laboratory) -> None:
    """A late line is measured, with the same result as if all lines had arrived together."""
    laboratory.sources.totals = {**NINE_TO_ONE, "bytes_out": {("lkc-2", "sa-b"): 7}}
    laboratory.run()
    asked = laboratory.sources.asked
    late = line("1000", resource="lkc-2", product="KAFKA_NETWORK_READ")
    laboratory.sources.lines[DAY] = [line("100"), late]
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "90", "sa-b": "1010"}
    assert laboratory.sources.asked > asked
    with Laboratory(Path(laboratory.store.facts.root).parent / "another") as first:
        first.sources.lines[DAY] = [line("100"), late]
        first.sources.totals = laboratory.sources.totals
        first.run()
        assert first.stored(CHARGEBACKS_TABLE).equals(laboratory.stored(CHARGEBACKS_TABLE))
        assert first.stored(USAGE_TABLE).equals(laboratory.stored(USAGE_TABLE))


@pytest.mark.extensive
def test_a_late_line_without_metrics_keeps_what_was_measured(laboratory: Laboratory) -> None:
    """Measured lines are split as before; the day is marked, and recalculated when the metrics are available."""
    laboratory.run()
    laboratory.sources.lines[DAY] = [line("100"), line("10", resource="lkc-2", product="KAFKA_NETWORK_READ")]
    laboratory.sources.fault = AWAY
    laboratory.run()
    rows = laboratory.stored(CHARGEBACKS_TABLE).to_pylist()
    assert {row["identity_id"]: int(row["amount"]) for row in rows if row["resource_id"] == "lkc-1"} == {
        "sa-a": 90,
        "sa-b": 10,
    }
    assert METRICS in laboratory.state().incomplete
    laboratory.sources.fault = None
    laboratory.sources.totals = {**NINE_TO_ONE, "bytes_out": {("lkc-2", "sa-c"): 7}}
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "90", "sa-b": "10", "sa-c": "10"}
    assert laboratory.state().incomplete == {}


@pytest.mark.extensive
def test_days_of_an_earlier_version_are_measured_once_more(laboratory: Laboratory) -> None:
    """Partial measurements stored by an earlier version are replaced while the metrics have more; equal evidence is not
    written again."""
    laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 90}}
    laboratory.run()
    laboratory.sources.totals = NINE_TO_ONE
    assert laboratory.run().dates_calculated == 0
    _age(laboratory)
    assert laboratory.run().dates_calculated == 1
    assert laboratory.charged() == {"sa-a": "90", "sa-b": "10"}
    _age(laboratory)
    version = laboratory.store.facts.snapshot(CHARGEBACKS_TABLE).version
    assert laboratory.run().dates_calculated == 0
    assert laboratory.store.facts.snapshot(CHARGEBACKS_TABLE).version == version
    assert laboratory.state().evidence_version == 1


def test_whom_rows_charge_is_known_with_the_rows(laboratory: Laboratory) -> None:
    """Rows and their identities are written in one transaction, so that no reader sees a row of an unknown identity."""
    laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-unlisted"): 1}}
    facts, seen = laboratory.store.facts, list[tuple[bool, bool]]()

    @contextmanager
    def commit(lease: Lease, now: Clock) -> Iterator[tuple[Connection, datetime]]:
        with FactTables.commit(facts, lease, now) as found:
            yield found
        with laboratory.store.control.read() as connection:
            known = {each.identity_id for each in read_inventory(connection).identities}
        seen.append((bool(facts.snapshot(CHARGEBACKS_TABLE).files), "sa-unlisted" in known))

    facts.commit = commit  # type: ignore[method-assign]
    laboratory.run()
    assert laboratory.charged() == {"sa-unlisted": "100"}
    assert (True, True) in seen
    assert (True, False) not in seen


def test_metrics_are_waited_for_and_then_done_without(laboratory: Laboratory) -> None:
    """Each run without metrics is counted; the last one calculates the day, and marks it."""
    laboratory.configure(allocation_retry_limit=3)
    laboratory.sources.fault = AWAY
    for attempts in (1, 2):
        result = laboratory.run()
        assert (result.dates_pending, result.dates_calculated) == (1, 0)
        state = laboratory.state()
        assert (state.failed_attempts, state.error) == (attempts, f"metrics unavailable: {AWAY}")
    result = laboratory.run()
    assert (result.dates_pending, result.dates_calculated) == (1, 1)
    assert any("calculated without metrics after 3 failed attempts" in error for error in result.errors)
    state = laboratory.state()
    assert (state.failed_attempts, state.error, METRICS in state.incomplete) == (0, None, True)


def test_a_bill_that_is_not_all_there_is_an_error_of_its_day(tmp_path: Path) -> None:
    """A day with missing billing lines has an error and is not calculated; the others are calculated."""
    with Laboratory(tmp_path, days=2) as laboratory:
        before = DAY - timedelta(days=1)
        laboratory.sources.lines = {DAY: [line("100"), line("7")], before: [line("100", day=before)]}
        facts, prepare = laboratory.store.facts, laboratory.store.facts.prepare_day

        def lose_a_line(name: str, day: date, rows: pa.Table) -> NewContent:
            is_lossy = (name, day) == (BILLING_TABLE, DAY)
            return prepare(name, day, rows.slice(1) if is_lossy else rows)

        facts.prepare_day = lose_a_line  # type: ignore[method-assign]
        result = laboratory.run()
        assert f"{DAY}: 2 billing lines were stored, but 1 found" in result.errors
        assert laboratory.state().error == "2 billing lines were stored, but 1 found"
        assert [laboratory.state(day).chargebacks.is_current for day in (before, DAY)] == [True, False]


def test_an_unknown_product_type_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An unknown product type is one line of the log, for any number of days."""
    with Laboratory(tmp_path, days=3) as laboratory:
        window = [DAY - timedelta(days=number) for number in range(3)]
        laboratory.sources.lines = {day: [line("1", product="NEW_THING", day=day)] for day in window}
        assert laboratory.run().dates_calculated == 3
        assert [laboratory.charged(day) for day in window] == [{"UNALLOCATED": "1"}] * 3
        assert [record.getMessage() for record in caplog.records if "NEW_THING" in record.getMessage()] == [
            "tenant acme: no policy knows the product type NEW_THING, its cost goes to UNALLOCATED"
        ]


def _age(laboratory: Laboratory) -> None:
    """Mark the evidence as that of an earlier version."""
    with laboratory.store.control.write() as connection:
        connection.execute(update(days).values(evidence_version=0))
