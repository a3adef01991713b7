"""Statements describe the days from which they are made, over real runs of the pipeline."""

from __future__ import annotations

import csv
import io
import itertools
import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from chargeback.config.journal import JournalProfile
from chargeback.model.days import Clock, month_of
from chargeback.model.run_request import RunRequest
from chargeback.recompute.rules import AllocationRules
from chargeback.reports.statements.as_csv import statements_csv
from chargeback.reports.statements.as_html import index_html
from chargeback.reports.statements.compile import compile_statements
from chargeback.reports.statements.content import Statements
from chargeback.reports.statements.journal import journal_of
from chargeback.reports.tenant_view import TenantView
from chargeback.store.control.cost_categories import CategoryWrite, write_category
from chargeback.store.control.statement_replies import ACKNOWLEDGED, StatementKey, add_reply
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from tests.support.clock import NOW, FixedClock
from tests.support.sources import DAY, RECALCULATE, Laboratory, line


def statements_of(
    laboratory: Laboratory,
    as_of: datetime | None = None,
    *,
    month: date = DAY,
    currency: str = "USD",
    by: str = "identity_id",
) -> Statements:
    """Return the statements of the month of a day."""
    tenant = TenantView(
        "acme", "t", "eco", 30, laboratory.store, currency=currency, rules=AllocationRules.of(laboratory.tenant)
    )
    known = (laboratory.store, CancellationToken(), LookupCaches())
    with QueryEngine() as engine, open_reader(engine, *known, as_of=as_of) as reader:
        return compile_statements(tenant, reader, month, by)


@pytest.mark.extensive
def test_a_new_bill_is_a_new_revision(tmp_path: Path) -> None:
    """A new bill gives a new revision that supersedes the last one, which is still available as of then."""
    with Laboratory(tmp_path) as laboratory:
        assert statements_of(laboratory).heading.issued_at is None
        laboratory.sources.lines[DAY] = [line("100")]
        laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 60, ("lkc-1", "sa-b"): 40}}
        laboratory.run()
        first = statements_of(laboratory)
        assert (first.heading.revision, first.heading.data_through, first.heading.calculated_days) == (1, DAY, 1)
        assert (first.heading.issued_at, first.items[0].supersedes) == (NOW, None)
        later = NOW + timedelta(hours=1)
        laboratory.clock = FixedClock(later)
        laboratory.sources.lines[DAY] = [line("120")]
        laboratory.run(RunRequest(recalculate=True))
        second = statements_of(laboratory)
        assert (second.heading.revision, second.heading.issued_at) == (2, later)
        assert [each.supersedes for each in second.items] == [each.number for each in first.items]
        assert (first.total.amount, second.total.amount) == (Decimal(100), Decimal(120))
        for found in (first, second):
            assert found.tie_out is not None
            assert (found.tie_out.state, found.tie_out.difference) == ("equal", Decimal(0))
        again = statements_of(laboratory, as_of=NOW + timedelta(minutes=30))
        assert again.listed() == first.listed()


@pytest.mark.extensive
def test_a_renamed_value_supersedes_nothing(tmp_path: Path) -> None:
    """A renamed value supersedes nothing, because no earlier statement has its name; a new bill afterwards does
    supersede."""
    with Laboratory(tmp_path) as laboratory:
        laboratory.sources.lines[DAY] = [line("100")]
        laboratory.run()
        told: list[tuple[str, str | None]] = []
        for hour, value in enumerate(("old", "new"), start=1):
            laboratory.clock = FixedClock(NOW + timedelta(hours=hour))
            document = json.dumps({"default": value, "rules": []})
            with laboratory.store.control.write() as connection:
                write_category(
                    connection, CategoryWrite("cc", document), expected=hour - 1 or None, clock=laboratory.clock
                )
            told += [(each.number, each.supersedes) for each in statements_of(laboratory, by="category:cc").items]
        laboratory.clock = FixedClock(NOW + timedelta(hours=3))
        laboratory.sources.lines[DAY] = [line("120")]
        laboratory.run(RECALCULATE)
        told += [(each.number, each.supersedes) for each in statements_of(laboratory, by="category:cc").items]
        assert [
            (number.rpartition(".")[2], supersedes and supersedes.rpartition(".")[2])
            for number, supersedes in told
            if not number.rpartition(".")[2].startswith("UNALLOCATED")
        ] == [("old-r1", None), ("new-r2", None), ("new-r3", "new-r2")]


def test_a_bill_that_is_not_calculated_is_pending(tmp_path: Path) -> None:
    """The pending amount is shown with the tie-out; statements of the former bill have no difference."""
    with Laboratory(tmp_path) as laboratory:
        laboratory.sources.lines[DAY] = [line("100")]
        laboratory.run()
        with laboratory.store.control.write() as connection:
            connection.exec_driver_sql("UPDATE dataset_days SET state = 'due' WHERE dataset = 'chargebacks'")
        tie = statements_of(laboratory).tie_out
        assert tie is not None
        assert (tie.state, tie.difference, tie.pending.amount, tie.outdated.amount) == (
            "pending",
            Decimal(0),
            Decimal(100),
            Decimal(100),
        )


def test_days_of_one_transaction_are_one_revision(tmp_path: Path) -> None:
    """Three days replaced by one run change the statements once: each run adds one to the revision."""
    days = [DAY - timedelta(days=number) for number in range(3)]
    with Laboratory(tmp_path, days=len(days)) as laboratory:
        laboratory.clock = _passing_time(NOW)
        for cost in ("100", "120", "130"):
            laboratory.sources.lines = {day: [line(cost, day=day)] for day in days}
            laboratory.run(RECALCULATE)
        found = statements_of(laboratory)
        assert found.heading.revision == 3
        numbers = {each.number: each.supersedes for each in found.items}
        assert all(number.endswith("-r3") for number in numbers)
        assert numbers == {number: f"{number.removesuffix('3')}2" for number in numbers}


def _passing_time(start: datetime) -> Clock:
    """Return a clock that advances by a millisecond each time it is read."""
    ticks = itertools.count()
    return lambda: start + timedelta(milliseconds=next(ticks))


def test_without_a_calculated_day_there_are_no_statements(tmp_path: Path) -> None:
    """Costs of the previous month make no statement before a day of this month is calculated."""
    with Laboratory(tmp_path) as laboratory:
        laboratory.sources.lines[DAY] = [line("100")]
        laboratory.run()
        assert statements_of(laboratory).items
        after = statements_of(laboratory, month=month_of(DAY).end)
        assert (after.items, after.total.amount, after.heading.calculated_days) == ([], Decimal(0), 0)
        assert after.tie_out is not None
        assert (after.tie_out.state, after.tie_out.difference) == ("none", Decimal(0))


@pytest.mark.extensive
def test_a_reply_belongs_to_what_was_said(tmp_path: Path) -> None:
    """A reply applies to the content it was given for: another bill makes it lapse, and the same content restores it,
    even under another number. Every reply shows whether it is current."""
    earlier = DAY - timedelta(days=1)
    with Laboratory(tmp_path, days=2) as laboratory:
        laboratory.sources.lines = {earlier: [line("100", day=earlier)]}
        laboratory.run()
        first = replied(laboratory)
        assert seen(laboratory) == (first.number, first.digest, "acknowledged", [True])
        laboratory.sources.lines[DAY] = [line("20")]
        laboratory.run()
        number, digest, verdict, is_current = seen(laboratory)
        assert (digest != first.digest, verdict, is_current) == (True, None, [False])
        second = replied(laboratory)
        assert (second.digest, seen(laboratory)) == (digest, (number, digest, "acknowledged", [False, True]))
        for cost, expected in (("30", [False, False]), ("20", [False, True])):
            laboratory.clock = FixedClock(laboratory.clock() + timedelta(hours=1))
            laboratory.sources.lines[DAY] = [line(cost)]
            laboratory.run(RECALCULATE)
            assert seen(laboratory)[2:] == ("acknowledged" if any(expected) else None, expected)
            assert seen(laboratory)[0] != number


def replied(laboratory: Laboratory) -> StatementKey:
    """Acknowledge the first statement; return the key of its content."""
    found = statements_of(laboratory)
    one, heading = found.items[0], found.heading
    key = StatementKey(one.number, heading.period, heading.by, one.recipient.value, heading.revision, one.digest)
    with laboratory.store.control.write() as connection:
        add_reply(connection, key, ACKNOWLEDGED, "Booked", heading.data_through, "ann")
    return key


def seen(laboratory: Laboratory) -> tuple[str, str, str | None, list[bool]]:
    """Return the number and digest of the first statement, its verdict, and whether each reply is current."""
    found = statements_of(laboratory)
    one = found.items[0]
    return one.number, one.digest, one.verdict, [each.is_current for each in one.replies or ()]


@pytest.mark.parametrize(("currency", "total", "parts"), [("JPY", "100", ["51", "49"]), ("KWD", "100.400", None)])
def test_statements_are_rounded_to_the_minor_unit(
    tmp_path: Path, currency: str, total: str, parts: list[str] | None
) -> None:
    """A yen has no cents and a dinar has three places, in JSON, CSV, pages and journals."""
    with Laboratory(tmp_path) as laboratory:
        laboratory.sources.lines[DAY] = [line("100.4")]
        laboratory.sources.totals = {"bytes_in": {("lkc-1", "sa-a"): 507, ("lkc-1", "sa-b"): 493}}
        laboratory.run()
        found = statements_of(laboratory, currency=currency)
    written = found.listed().model_dump(mode="json")
    assert written["total"] == {"amount": "100.40", "rounded": total}
    if parts is not None:
        assert [each["rounded"] for each in written["items"]] == parts
    tie = written["tie_out"]
    assert (tie["billed"]["rounded"], tie["difference"]) == (total, "0.00")
    journal = journal_of(found, JournalProfile()).model_dump(mode="json")
    assert journal["debit"] == journal["credit"] == total
    assert [row["rounded"] for row in csv.DictReader(io.StringIO(statements_csv(found)))] == [
        each["rounded"] for each in written["items"]
    ]
    assert f">{total}</data>" in index_html(found, {each.number: {} for each in found.items})
