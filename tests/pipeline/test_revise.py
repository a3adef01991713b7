"""Revisions of days: every earlier content can be read as it was, after any later changes."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Connection

from chargeback.errors import HistoryGone, SourceUnavailable, StorageError
from chargeback.model.days import Clock, DayRange
from chargeback.model.money import total
from chargeback.model.run_request import RunRequest
from chargeback.store.control.catalogue import every_file
from chargeback.store.control.day_revisions import Revision, read_day_revisions
from chargeback.store.control.days import DayDataset
from chargeback.store.control.lease import Lease
from chargeback.store.facts.files import Footer, read_footer
from chargeback.store.facts.published import files_in_log
from chargeback.store.facts.tables import (
    BILLING_TABLE,
    CHARGEBACKS_TABLE,
    HISTORY_TABLES,
    TOPICS_TABLE,
    USAGE_TABLE,
    FactTables,
)
from chargeback.store.queries.datasets import BILLING_LINES, CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from tests.support.clock import NOW
from tests.support.laws import first_of
from tests.support.sources import DAY, RECALCULATE, Laboratory, line

HALF = {"bytes_in": {("lkc-1", "sa-a"): 50, ("lkc-1", "sa-b"): 50}}
NINE_TO_ONE = {"bytes_in": {("lkc-1", "sa-a"): 90, ("lkc-1", "sa-b"): 10}}
ACCEPT_LESS = RunRequest(recalculate=True, accept_less=True)
ONE_MINUTE = timedelta(minutes=1)
DAYS = [DAY - timedelta(days=number) for number in range(3)]


class Ticking:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def tick(self) -> datetime:
        """Return the present instant, and advance the clock."""
        instant = self.now
        self.now += ONE_MINUTE
        return instant


@pytest.fixture
def clock() -> Ticking:
    """Return a clock that a test moves."""
    return Ticking()


@pytest.fixture
def laboratory(tmp_path: Path, clock: Ticking) -> Iterator[Laboratory]:
    """Yield a tenant with three days, each billed for one cluster that two identities use."""
    with of_three_days(tmp_path, clock) as opened:
        yield opened


@contextmanager
def of_three_days(folder: Path, clock: Ticking) -> Iterator[Laboratory]:
    """Yield such a tenant in a folder."""
    with Laboratory(folder, days=len(DAYS)) as opened:
        opened.clock = clock
        opened.sources.lines = {day: [line("100", day=day)] for day in DAYS}
        opened.sources.totals = NINE_TO_ONE
        yield opened


def test_files_without_a_footer_have_their_rows(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of an earlier version have no footer: recalculating their day is no new revision."""
    with monkeypatch.context() as patched:
        patched.setattr(Footer, "metadata", {})
        assert laboratory.run().errors == ()
    before = served(laboratory)
    assert read_footer(laboratory.store.facts.snapshot(CHARGEBACKS_TABLE).files[0]) is None
    assert laboratory.run(RECALCULATE).errors == ()
    with laboratory.store.control.read() as connection:
        assert {each.revision for each in read_day_revisions(connection, DayDataset.CHARGEBACKS)} == {1}
    assert served(laboratory) == before
    laboratory.sources.totals = HALF
    assert laboratory.run(ACCEPT_LESS).errors == ()
    with laboratory.store.control.read() as connection:
        assert {each.revision for each in read_day_revisions(connection, DayDataset.CHARGEBACKS)} == {1, 2}


#: One query engine for all queries.
engine = cache(QueryEngine)


@contextmanager
def reading(laboratory: Laboratory, as_of: datetime | None) -> Iterator[TenantReader]:
    """Yield a reader of the data, now or as of an instant."""
    with open_reader(engine(), laboratory.store, CancellationToken(), LookupCaches(), as_of=as_of) as reader:
        yield reader


def served(laboratory: Laboratory, as_of: datetime | None = None) -> tuple[bytes, bytes]:
    """Return the CSV of charges and of topics, now or as of an instant."""
    with reading(laboratory, as_of) as reader:
        everything = Selection.of_days(DayRange.spanning(DAYS))
        charges, topics = (
            b"".join(bytes(piece) for piece in reader.export(dataset, everything))
            for dataset in (CHARGEBACKS, TOPIC_ATTRIBUTIONS)
        )
    return charges, topics


def sums(laboratory: Laboratory, as_of: datetime) -> tuple[Decimal, Decimal]:
    """Return the billed and the charged amount as of an instant."""
    with reading(laboratory, as_of) as reader:
        everything = Selection.of_days(DayRange.spanning(DAYS))
        billed, charged = (
            total(Decimal(amount) for (amount,) in _rows(reader, dataset, everything))
            for dataset in (BILLING_LINES, CHARGEBACKS)
        )
    return billed, charged


def _rows(reader: TenantReader, dataset: Dataset, selection: Selection) -> list[tuple[str]]:
    scan = reader.scan(dataset, selection)
    if not scan.files:
        return []
    sql = f"SELECT {dataset.amount}::VARCHAR FROM read_parquet($files, hive_partitioning = true)"
    found: list[tuple[str]] = reader.cursor.rows(sql, {"files": scan.files})
    return found


def known(laboratory: Laboratory, day: date = DAY, dataset: str = DayDataset.CHARGEBACKS) -> list[Revision]:
    """Return the revisions of a day."""
    with laboratory.store.control.read() as connection:
        return read_day_revisions(connection, dataset, DayRange.of_day(day))


def test_each_content_of_a_day_is_a_revision_with_its_cause(laboratory: Laboratory, clock: Ticking) -> None:
    """Every different content is a revision with its cause; the same bytes are not a revision."""
    laboratory.run()
    clock.tick()
    laboratory.run(RECALCULATE)
    clock.tick()
    laboratory.sources.lines[DAY] = [line("110")]
    laboratory.run()
    clock.tick()
    laboratory.sources.totals = HALF
    laboratory.run(ACCEPT_LESS)
    found = known(laboratory)
    assert [revision.cause for revision in found] == ["first", "bill_changed", "metrics_returned"]
    assert [revision.revision for revision in found] == [1, 2, 3]
    assert [revision.calculated_at for revision in found] == [NOW, NOW + 2 * ONE_MINUTE, NOW + 3 * ONE_MINUTE]
    assert [revision.total for revision in found] == [Decimal(100), Decimal(110), Decimal(110)]
    assert [revision.moved for revision in found] == [None, Decimal(5), Decimal(44)]
    assert all(revision.run_id is not None and revision.rows == 2 for revision in found)
    assert laboratory.state().chargebacks.revision == 3
    assert [revision.cause for revision in known(laboratory, DAYS[1])] == ["first", "metrics_returned"]


def test_other_policies_are_a_cause(laboratory: Laboratory) -> None:
    """A recalculation under other policies has the cause ``policy_changed``."""
    laboratory.run()
    laboratory.set_policies({"KAFKA_NETWORK_WRITE": {"portions": [{"share": "1", "try": ["even(active)"]}]}})
    laboratory.run(RECALCULATE)
    first, second = known(laboratory)
    assert (first.cause, second.cause) == ("first", "policy_changed")
    assert first.policies_hash != second.policies_hash


def test_the_same_file_is_kept(laboratory: Laboratory, clock: Ticking) -> None:
    """A superseded file is kept unchanged. Other engines find it in a separate table, with its revision; with hard
    links, it is on the disk once."""
    laboratory.run()
    facts = laboratory.store.facts
    (before,) = facts.snapshot(CHARGEBACKS_TABLE).of_day(DAY)
    clock.tick()
    laboratory.sources.lines[DAY] = [line("110")]
    laboratory.run()
    with laboratory.store.control.read() as connection:
        ended = [each for each in every_file(connection) if each.until is not None]
    assert {each.table for each in ended} == {BILLING_TABLE, CHARGEBACKS_TABLE, TOPICS_TABLE}
    assert before.path in {f"{facts.root}/{each.path}" for each in ended}
    ((path, day, rows, _, revision, _),) = files_in_log(facts.place, HISTORY_TABLES[CHARGEBACKS_TABLE])
    assert (day, rows, revision) == (DAY, 2, 1)
    assert (facts.root / path).samefile(before.path)
    assert not list(files_in_log(facts.place, HISTORY_TABLES[USAGE_TABLE]))


@pytest.mark.extensive
def test_before_the_first_revision_there_is_nothing(laboratory: Laboratory, clock: Ticking) -> None:
    """As of an instant before its first calculation, a day has neither rows nor a bill."""
    earlier = clock.tick()
    laboratory.run()
    assert served(laboratory, earlier)[0].count(b"\n") == 1
    assert sums(laboratory, earlier) == (Decimal(0), Decimal(0))
    assert served(laboratory, clock.now) == served(laboratory)


def test_a_bill_is_the_one_that_was_known(laboratory: Laboratory, clock: Ticking) -> None:
    """A changed bill that is not calculated yet is stored with the former charges, also as of then."""
    laboratory.run()
    clock.tick()
    laboratory.sources.lines[DAY] = [line("500")]
    laboratory.sources.fault = SourceUnavailable("HTTP 503", source="metrics")
    laboratory.configure(allocation_retry_limit=3)
    laboratory.sources.lines[DAY].append(line("1", resource="lkc-2"))
    laboratory.run()
    assert not laboratory.state().chargebacks.is_current
    then = clock.tick()
    assert sums(laboratory, then) == (Decimal(701), Decimal(300))
    laboratory.sources.fault = None
    laboratory.run()
    assert sums(laboratory, clock.now) == (Decimal(701), Decimal(701))
    assert sums(laboratory, then) == (Decimal(701), Decimal(300))


@pytest.mark.extensive
def test_history_that_has_gone_is_said(laboratory: Laboratory, clock: Ticking) -> None:
    """Reading before the history raises an error that has what is still known; present rows are served."""
    laboratory.run()
    earlier = clock.tick()
    laboratory.sources.lines[DAY] = [line("110")]
    laboratory.configure(history_days=0)
    laboratory.run()
    with pytest.raises(HistoryGone) as caught:
        served(laboratory, earlier)
    (gone,) = caught.value.known
    assert (gone.day, gone.revision, gone.rows, gone.total) == (DAY, 1, 2, "100.00")
    assert served(laboratory, clock.now) == served(laboratory)


def test_days_past_retention_are_empty_from_then_on(laboratory: Laboratory, clock: Ticking) -> None:
    """A removed day has a last revision without rows; its earlier rows are no longer kept."""
    laboratory.run()
    earlier = clock.tick()
    laboratory.configure(retention_days=7)
    laboratory.run()
    assert served(laboratory, clock.now) == served(laboratory)
    assert known(laboratory, DAYS[2])[-1].cause == "retention"
    with pytest.raises(HistoryGone, match="no longer kept"):
        served(laboratory, earlier)


def _kill_at(laboratory: Laboratory, step: int, *, after: bool) -> Callable[[], None]:
    """Let the process die before or after a commit; return a function that undoes this."""
    facts, steps = laboratory.store.facts, iter(range(1, 1000))

    @contextmanager
    def commit(lease: Lease, now: Clock) -> Iterator[tuple[Connection, datetime]]:
        number = next(steps)
        if number > step:
            raise StorageError("dead")
        with FactTables.commit(facts, lease, now) as found:
            yield found
            if number == step and not after:
                raise StorageError("killed before")
        if number == step:
            raise StorageError("killed after")

    facts.commit = commit  # type: ignore[method-assign]
    return lambda: facts.__dict__.pop("commit")


#: After each of these runs, every earlier instant is read: 91 times, 3,600 times in the drills, and 20,400 times
#: including those of the night.
_SCHEDULES, _RUNS = 1, 13
_DRILLED_SCHEDULES, _ALL_SCHEDULES, _DRILLED_RUNS = 12, 68, 24
_DRILL, _NIGHT = (pytest.mark.drill,), (pytest.mark.drill, pytest.mark.night)


@pytest.mark.extensive
@pytest.mark.parametrize(
    ("seed", "runs"),
    [
        *first_of(*((seed, _RUNS) for seed in range(_SCHEDULES))),
        *(
            pytest.param(
                1000 + seed, _DRILLED_RUNS, marks=_DRILL if seed < _DRILLED_SCHEDULES else _NIGHT, id=f"drill {seed}"
            )
            for seed in range(_ALL_SCHEDULES)
        ),
    ],
)
def test_what_was_served_can_be_served_again(tmp_path: Path, clock: Ticking, seed: int, runs: int) -> None:
    """After any sequence of late bills, failing metrics, recalculations and kills, each instant has the bytes that were
    served then."""
    assert _ask_after_schedule(tmp_path, clock, random.Random(seed), runs) == runs * (runs + 1) // 2


def _ask_after_schedule(folder: Path, clock: Ticking, chance: random.Random, runs: int) -> int:
    """Read every earlier instant after each run; return the number of reads."""
    asked = 0
    with Laboratory(folder, days=len(DAYS)) as laboratory:
        laboratory.clock = clock
        laboratory.sources.lines = {day: [line("100", day=day)] for day in DAYS[1:]}
        laboratory.sources.totals = NINE_TO_ONE
        laboratory.sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 3, ("lkc-1", "pay"): 1}}
        seen: list[tuple[datetime, tuple[bytes, bytes]]] = []
        for _ in range(runs):
            _run_after_changes(laboratory, chance)
            seen.append((clock.now, served(laboratory)))
            clock.tick()
            for instant, bytes_then in seen:
                assert served(laboratory, instant) == bytes_then
                asked += 1
        found = [each for dataset in DayDataset for day in DAYS for each in known(laboratory, day, dataset)]
        assert len(found) > len({(each.dataset, each.tracking_date) for each in found})
    return asked


def _run_after_changes(laboratory: Laboratory, chance: random.Random) -> None:
    """Change something outside, and run, perhaps until a kill."""
    _change(laboratory, chance)
    is_killed, step, after = chance.random() < 0.3, chance.randint(1, 6), chance.random() < 0.5
    undo = _kill_at(laboratory, step, after=after) if is_killed else None
    laboratory.run(chance.choice([None, None, RECALCULATE, ACCEPT_LESS]))
    if undo is not None:
        undo()


def _change(laboratory: Laboratory, chance: random.Random) -> None:
    """Change something outside between two runs."""
    sources, day = laboratory.sources, chance.choice(DAYS)
    match chance.randint(0, 4):
        case 0:
            sources.lines[day] = [line(str(chance.randint(1, 200)), day=day)]
        case 1:
            sources.totals = chance.choice([HALF, NINE_TO_ONE])
        case 2:
            sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): chance.randint(1, 9), ("lkc-1", "pay"): 1}}
        case 3:
            sources.fault = chance.choice([None, SourceUnavailable("HTTP 503", source="metrics")])
        case _:
            sources.lines.setdefault(day, []).append(line("0.7", day=day, product="KAFKA_BASE"))


#: A tenant as left by the version before revisions: three days; the bill of one had changed once.
BEFORE_REVISIONS = Path(__file__).parents[1] / "store" / "before-revisions.tar.gz"


def test_a_tenant_of_the_version_before_opens_without_a_step_by_hand(tmp_path: Path, clock: Ticking) -> None:
    """Its days get their first revision and are served at once, and contents that the next run replaces are kept."""
    with tarfile.open(BEFORE_REVISIONS) as archive:
        archive.extractall(tmp_path, filter="data")
    with Laboratory(tmp_path, days=len(DAYS)) as laboratory:
        laboratory.clock = clock
        present = served(laboratory)
        assert present[0].count(b"\n") > 1
        assert served(laboratory, NOW) == present
        laboratory.sources.lines = {
            day: [line("100", day=day), line("7.5", day=day, product="KAFKA_BASE")] for day in DAYS
        }
        laboratory.sources.lines[DAYS[1]] = [line("120", day=DAYS[1])]
        laboratory.sources.totals = NINE_TO_ONE
        laboratory.sources.topic_totals = {"bytes_in": {("lkc-1", "orders"): 3, ("lkc-1", "pay"): 1}}
        earlier = clock.tick()
        assert laboratory.run().errors == ()
        assert served(laboratory, earlier) == present
        assert served(laboratory) != present
        assert [(each.cause, each.total) for each in known(laboratory, DAYS[1])] == [
            ("first", Decimal(110)),
            ("bill_changed", Decimal(120)),
        ]
        assert [(each.cause, each.total) for each in known(laboratory)] == [("first", Decimal("107.5"))]
        assert sums(laboratory, earlier) == (Decimal(325), Decimal(325))
