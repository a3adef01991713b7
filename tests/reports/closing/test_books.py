"""Closed months never change: later changes are posted to later months, and nothing is lost or counted twice."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from chargeback.errors import PeriodBlocked, PeriodRefused, PreviewStale, ReachesIntoClosed
from chargeback.model.accounting import AccountingPeriod, periods_within
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.run_request import RunRequest
from chargeback.reports.closing.adjusting import adjust
from chargeback.reports.closing.close import ClosingOrder, close
from chargeback.reports.closing.documents import check_closings, kept_statements
from chargeback.reports.closing.preview import prepare
from chargeback.reports.closing.reach import check_recalculation
from chargeback.reports.statements.compile import compile_statements
from chargeback.reports.statements.posted import compile_posted
from chargeback.store.control.adjustments import NewAdjustment
from chargeback.store.control.closings import read_books, read_receipts
from chargeback.store.control.invoices import Invoice, save_invoice
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.keys import CHARGE_PERIOD, POSTED_PERIOD
from chargeback.store.queries.paging import Page
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import KeyValues, sums_by
from tests.support.months import AUGUST, OCTOBER, SEPTEMBER, Months, amounts, learned, months

#: Includes the first open month when all three are closed: corrections are posted to it.
EVERYTHING = Selection.of_days(DayRange(AUGUST.start, OCTOBER.next.days.end))
TEN = Decimal(10)


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Months]:
    """Yield a tenant of three months."""
    with months(tmp_path) as opened:
        yield opened


def sums(reader: TenantReader, *by: str, selection: Selection = EVERYTHING) -> dict[KeyValues, Decimal]:
    """Return the sums of what a reader sees."""
    return amounts(sums_by(reader, CHARGEBACKS, selection, by))


def posted(tenant: Months, *by: str, as_of: datetime | None = None) -> dict[KeyValues, Decimal]:
    """Return the sums of the books."""
    with tenant.books(as_of) as reader:
        return sums(reader, *by)


def test_without_a_closed_month_everything_is_posted_to_itself(tenant: Months) -> None:
    """Without a closed month, the books equal what is known now."""
    found = posted(tenant, POSTED_PERIOD, CHARGE_PERIOD)
    assert found == {(each.id, each.id): Decimal(20) for each in (AUGUST, SEPTEMBER, OCTOBER)}


def test_a_late_bill_is_posted_to_the_first_open_month(tenant: Months) -> None:
    """The closed month keeps its amounts, and the difference has the month that it is about."""
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4.5")
    by = (POSTED_PERIOD, CHARGE_PERIOD, "identity_id")
    assert posted(tenant, *by) == {
        (AUGUST.id, AUGUST.id, "sa-1"): Decimal(12),
        (AUGUST.id, AUGUST.id, "sa-2"): Decimal(8),
        (SEPTEMBER.id, AUGUST.id, "sa-1"): Decimal(1),
        (SEPTEMBER.id, AUGUST.id, "sa-2"): Decimal("0.5"),
        (SEPTEMBER.id, SEPTEMBER.id, "sa-1"): Decimal(12),
        (SEPTEMBER.id, SEPTEMBER.id, "sa-2"): Decimal(8),
        (OCTOBER.id, OCTOBER.id, "sa-1"): Decimal(12),
        (OCTOBER.id, OCTOBER.id, "sa-2"): Decimal(8),
    }


def test_a_day_that_was_accepted_without_a_bill_is_a_correction_when_it_comes(tenant: Months) -> None:
    """A day accepted without a bill has no booked amounts; its late bill is a correction."""
    tenant.close(AUGUST)
    tenant.charge(AUGUST.last_day, sa_1="3")
    with tenant.books() as reader:
        found = sums(reader, CHARGE_PERIOD, "identity_id", selection=Selection(SEPTEMBER.window))
        statements = compile_posted(tenant.view, reader, SEPTEMBER, "identity_id")
    assert found[AUGUST.id, "sa-1"] == 3
    assert statements.tie_out is not None
    assert statements.tie_out.difference == 0


def test_rows_that_move_between_identities_net_to_nothing_in_sum(tenant: Months) -> None:
    """Each identity has a correction; in total they are zero."""
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="4", sa_2="6")
    of_september = Selection(SEPTEMBER.window)
    with tenant.books() as reader:
        found = sums(reader, CHARGE_PERIOD, "identity_id", selection=of_september)
        whole = sums(reader, CHARGE_PERIOD, selection=of_september)
    assert found[AUGUST.id, "sa-1"] == -2
    assert found[AUGUST.id, "sa-2"] == 2
    assert whole == {(SEPTEMBER.id,): Decimal(20)}


def test_the_list_has_corrections_behind_the_rows_of_their_month(tenant: Months) -> None:
    """The list has regular rows and corrections, each with its class and month; pages span both."""
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    of_september = Selection(SEPTEMBER.window)
    with tenant.books() as reader:
        rows, total = reader.list_rows(CHARGEBACKS, of_september, Page(0, 10))
        paged = [reader.list_rows(CHARGEBACKS, of_september, Page(place, 1))[0][0] for place in range(total)]
        net = b"".join(map(bytes, reader.export(CHARGEBACKS, of_september, ["identity_id", "amount"])))
        ledger = b"".join(
            map(bytes, reader.export(CHARGEBACKS, of_september, ["identity_id", "amount"], style="ledger"))
        )
    assert [(each["charge_class"], each["charge_period"], each["identity_id"], each["amount"]) for each in rows] == [
        *[("regular", SEPTEMBER.id, identity, amount) for identity, amount in (("sa-1", "6.00"), ("sa-2", "4.00"))] * 2,
        ("correction", AUGUST.id, "sa-1", "1.00"),
    ]
    assert paged == rows
    assert net.decode().splitlines()[-1] == f"sa-1,1.00,{SEPTEMBER.id},correction,{AUGUST.id}"
    assert ledger.decode().splitlines()[-2:] == [
        f"sa-1,-6.00,{SEPTEMBER.id},correction,{AUGUST.id},reversal",
        f"sa-1,7.00,{SEPTEMBER.id},correction,{AUGUST.id},replacement",
    ]


def test_tags_of_a_closed_month_move_later(tenant: Months) -> None:
    """By tag, an edit of tags is a correction, even if no row has changed."""
    tenant.by = ("tag:team",)
    tenant.tag("sa-1", "payments")
    tenant.close(AUGUST)
    tenant.tag("sa-1", "search")
    found = posted(tenant, POSTED_PERIOD, CHARGE_PERIOD, "tag:team")
    assert found[AUGUST.id, AUGUST.id, "payments"] == 12
    assert found[SEPTEMBER.id, AUGUST.id, "payments"] == -12
    assert found[SEPTEMBER.id, AUGUST.id, "search"] == 12
    assert (SEPTEMBER.id, SEPTEMBER.id, "payments") not in found


def test_months_are_closed_in_order_and_reopened_from_the_end(tenant: Months) -> None:
    """Any other order is refused, and the message has the month to begin with."""
    tenant.close(AUGUST)
    with pytest.raises(PeriodRefused, match=r"close 2026-09 first"):
        tenant.close(OCTOBER)
    with pytest.raises(PeriodRefused, match="closed already"):
        tenant.close(AUGUST)
    with pytest.raises(PeriodRefused, match=r"before the books, which begin with 2026-08"):
        tenant.close(AUGUST.previous)
    tenant.close(SEPTEMBER)
    with pytest.raises(PeriodRefused, match=r"reopen 2026-09 first"):
        tenant.reopen(AUGUST)
    tenant.reopen(SEPTEMBER)
    tenant.seal(AUGUST)
    with pytest.raises(PeriodRefused, match="sealed"):
        tenant.reopen(AUGUST)


def test_what_is_learned_of_a_sealed_month_is_not_posted(tenant: Months) -> None:
    """Changes of a month are posted until it is sealed, and not after that."""
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    tenant.seal(AUGUST)
    tenant.charge(tenant.days[0], sa_1="9", sa_2="4")
    with tenant.books() as reader:
        found = sums(reader, CHARGE_PERIOD, selection=Selection(SEPTEMBER.window))
    assert found == {(AUGUST.id,): Decimal(1), (SEPTEMBER.id,): Decimal(20)}


def test_a_sealed_month_between_others_stays_out_of_their_corrections(tenant: Months) -> None:
    """Changes of the months around a sealed one are posted; its own changes are not."""
    tenant.close(AUGUST)
    tenant.close(SEPTEMBER)
    tenant.seal(SEPTEMBER)
    tenant.close(OCTOBER)
    for day in tenant.days[::2]:  # the first day of each month
        tenant.charge(day, sa_1="7", sa_2="4")
    with tenant.books() as reader:
        learned = reader.corrections_by_month(OCTOBER.next)
    assert learned == {AUGUST: Decimal(1), OCTOBER: Decimal(1)}


@pytest.mark.parametrize("by", ["identity_id", "tag:team", "cluster_id"])
def test_what_is_posted_is_kept_where_files_decide_it(tenant: Months, by: str) -> None:
    """Sums decided by files alone are cached; tags and clusters may change without the files."""
    tenant.close(AUGUST)
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    kept = len(tenant.caches.posted)
    first, again = posted(tenant, by), posted(tenant, by)
    assert first == again
    assert len(tenant.caches.posted) - kept == (3 if by == "identity_id" else 0), "both sides, and the answer"
    tenant.charge(tenant.days[0], sa_1="8", sa_2="4")
    assert sum(posted(tenant, by).values()) == sum(again.values()) + 1
    tenant.charge(tenant.days[-1], sa_1="7", sa_2="4")
    assert sum(posted(tenant, by).values()) == sum(again.values()) + 2, "a day of an open month"


def test_blockers_have_to_be_accepted_and_damage_cannot_be(tenant: Months) -> None:
    """Blockers must be accepted and have ids; a month that is still accruing cannot be closed."""
    order = ClosingOrder(AUGUST, "ann")
    with pytest.raises(PeriodBlocked) as blocked:
        close(tenant.view, tenant.books, lambda: tenant.store.control.write(durable=True), order, tenant.clock)
    assert len(blocked.value.blockers) == 29
    assert blocked.value.blockers[0]["id"] == "day-missing:2026-08-03"
    with pytest.raises(PeriodBlocked, match="accruing"):
        tenant.now = datetime.fromisoformat("2026-08-20T00:00:00Z")
        tenant.close(AUGUST)


def test_a_stale_preview_books_nothing(tenant: Months) -> None:
    """The digest depends on the amounts only: a change refuses the close, and the same amounts again allow it."""
    with tenant.books() as reader:
        seen = prepare(tenant.view, reader, AUGUST, tenant.now).answer
    tenant.charge(tenant.days[0], sa_1="7", sa_2="4")
    with pytest.raises(PreviewStale) as stale:
        tenant.close(AUGUST, expected_digest=seen.digest)
    assert stale.value.moved == ()
    with pytest.raises(PreviewStale, match=r"such as 13\.00 instead of 12\.00 of sa-1; look") as stale:
        tenant.close(AUGUST, expected_digest=seen.digest, looked_at=seen.as_of)
    assert [(each["by"], each["value"], each["before"], each["after"]) for each in stale.value.moved] == [
        ("totals", "billed", "20.00", "21.00"),
        ("totals", "posted", "20.00", "21.00"),
        ("totals", "regular", "20.00", "21.00"),
        ("identity_id", "sa-1", "12.00", "13.00"),
    ]
    tenant.charge(tenant.days[0], sa_1="6", sa_2="4")
    closed = tenant.close(AUGUST, expected_digest=seen.digest, looked_at=seen.as_of).closing
    assert closed is not None


def test_a_stale_preview_tells_invoices_and_adjustments_apart(tenant: Months) -> None:
    """Both change the digest: an adjustment changes an amount, an invoice none."""
    with tenant.books() as reader:
        seen = prepare(tenant.view, reader, AUGUST, tenant.now).answer
    invoice = Invoice(AUGUST, "INV-1", {"kind": "invoice", "status": "issued", "total": "20"}, "ann", tenant.now)
    with tenant.store.control.write() as connection:
        save_invoice(connection, invoice)
    with pytest.raises(PreviewStale, match="its invoices, adjustments or statements have changed") as stale:
        tenant.close(AUGUST, expected_digest=seen.digest, looked_at=seen.as_of)
    assert stale.value.moved == ()
    new = NewAdjustment(AUGUST, AUGUST, "identity_id", "sa-1", None, Decimal(5), "fee", None, "Care", None)
    adjust(partial(tenant.store.control.write, durable=True), new, "ann", tenant.clock)
    with pytest.raises(PreviewStale, match=r"such as 17\.00 instead of 12\.00 of sa-1"):
        tenant.close(AUGUST, expected_digest=seen.digest, looked_at=seen.as_of)


def test_days_of_closed_months_are_calculated_again_only_if_it_is_meant(tenant: Months) -> None:
    """Recalculating closed months is refused, with the months and the first free day. Sealed months do not count,
    because none of their changes are posted."""

    def check(request: RunRequest) -> None:
        with tenant.store.control.read() as connection:
            check_recalculation(read_books(connection), request, "USD")

    everything = RunRequest(recalculate=True)
    check(everything)
    tenant.close(AUGUST)
    tenant.close(SEPTEMBER)
    with pytest.raises(ReachesIntoClosed, match=r"\(2026-08, 2026-09\).* begin on 2026-10-01"):
        check(everything)
    with pytest.raises(ReachesIntoClosed, match=r"\(2026-09\)"):
        check(replace(everything, start=SEPTEMBER.last_day))
    check(replace(everything, start=OCTOBER.start))
    check(replace(everything, end=AUGUST.start - ONE_DAY))
    check(RunRequest())
    tenant.seal(AUGUST)
    check(replace(everything, end=AUGUST.last_day))


def test_closing_again_without_a_change_gives_the_same_digest(tenant: Months) -> None:
    """Both receipts and their documents stay; the numbers of the statements show that they are the second ones."""
    tenant.close(AUGUST)
    tenant.reopen(AUGUST)
    tenant.close(AUGUST)
    with tenant.store.control.read() as connection:
        first, reopened, again = map(json.loads, read_receipts(connection))
    assert (first["kind"], reopened["kind"], again["kind"]) == ("closed", "reopened", "closed")
    assert first["digest"] == again["digest"]
    with tenant.books() as reader, tenant.store.control.read() as connection:
        closed = reader.books.find(AUGUST)
        assert closed is not None
        kept = kept_statements(tenant.store.facts.place, connection, closed, "identity_id")
    assert kept is not None
    assert [(each.number, each.supersedes) for each in kept.items] == [
        ("CB-acme-2026-08-sa-1-2", "CB-acme-2026-08-sa-1"),
        ("CB-acme-2026-08-sa-2-2", "CB-acme-2026-08-sa-2"),
    ]


def test_receipts_are_a_chain_that_anybody_can_check(tenant: Months) -> None:
    """Each receipt has the digest of the previous one; a changed statement in the document is found."""
    tenant.close(AUGUST)
    tenant.close(SEPTEMBER)
    with tenant.store.control.read() as connection:
        texts = read_receipts(connection)
    assert json.loads(texts[1])["previous"] == hashlib.sha256(texts[0].encode()).hexdigest()
    with tenant.books() as reader:
        assert list(check_closings(tenant.view, reader)) == []
    (document,) = [
        each for each in tenant.store.facts.root.glob("closings/statements-*") if AUGUST.id in each.read_text()
    ][:1]
    document.write_text(document.read_text().replace('"amount":"12.00"', '"amount":"13.00"'))
    with tenant.books() as reader:
        problems = list(check_closings(tenant.view, reader))
    assert any("statement of sa-1" in each for each in problems)


def test_the_same_key_closes_once(tenant: Months) -> None:
    """A repeated request returns the first entry; for another month the key is refused."""
    first, second = (tenant.close(AUGUST, idempotency_key="k").closing for _ in range(2))
    assert first == second
    with pytest.raises(PeriodRefused, match="idempotency_key has closed 2026-08"):
        tenant.close(SEPTEMBER, idempotency_key="k")


def test_cents_of_corrections_do_not_drift(tenant: Months) -> None:
    """Changes of 0.004 are not lost, and changes of 0.006 do not each add a cent: the booked cents of a value sum to
    its present statement."""
    tenant.close(AUGUST)
    period, booked = AUGUST, {"sa-1": Decimal(0), "sa-2": Decimal(0)}
    day = tenant.days[0]
    for number in range(1, 6):
        tenant.charge(day, sa_1=f"{6 + number * Decimal('0.004')}", sa_2=f"{4 + number * Decimal('0.006')}")
        period = period.next
        tenant.now = datetime.combine(period.next.next.start, tenant.now.timetz())
        with tenant.books() as reader:
            for each in compile_posted(tenant.view, reader, period, "identity_id").items:
                booked[each.recipient.value] += sum((part.rounded for part in each.corrections or ()), Decimal(0))
        tenant.close(period)
    with tenant.books() as reader:
        now = compile_statements(tenant.view, reader.known(None), AUGUST.start, "identity_id")
    assert booked == {
        each.recipient.value: each.rounded - before for each, before in zip(now.items, (12, 8), strict=True)
    }


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.drill) for seed in range(2, 60))])
def test_books_are_facts_whatever_happens(tmp_path: Path, seed: int) -> None:
    """Late bills, moved shares, tag edits, closings, reopenings and seals, in any order: by every grouping, all months
    sum to what is known now, or was known when a month was sealed; a closed month never changes; the books as of an
    instant stay the same."""
    chance = random.Random(seed)
    with months(tmp_path) as tenant:
        tenant.by = ("identity_id", "tag:team")
        kept: dict[AccountingPeriod, object] = {}
        then: dict[datetime, object] = {}
        for _ in range(12):
            open_months = [each for each in periods_within(AUGUST, OCTOBER) if each not in kept]
            what = chance.random()
            if what < 0.5:
                amount = Decimal(chance.randint(0, 900)) / 100
                day = chance.choice([*tenant.days, AUGUST.last_day, SEPTEMBER.last_day])
                tenant.charge(day, sa_1=f"{amount}", sa_2=f"{TEN - amount}")
            elif what < 0.7:
                tenant.tag(chance.choice(["sa-1", "sa-2"]), chance.choice("xyz"))
            elif what < 0.9 and open_months:
                tenant.close(open_months[0])
                kept[open_months[0]] = _of_month(tenant, open_months[0])
            elif kept and chance.random() < 0.3:
                sealed = chance.choice([*kept])
                with suppress(PeriodRefused):  # it was sealed before
                    tenant.seal(sealed)
            elif kept:
                last = max(kept)
                with suppress(PeriodRefused):  # it is sealed
                    tenant.reopen(last)
                    del kept[last]
            with tenant.books() as reader:
                for by in ("identity_id", "tag:team", "identity_id"):
                    assert sums(reader, by) == learned(reader, EVERYTHING, by), f"by {by}"
            for period, found in kept.items():
                assert _of_month(tenant, period) == found, f"{period.id} has changed"
            now = _last_change(tenant)
            then[now] = posted(tenant, POSTED_PERIOD, "tag:team")
        for at, found in then.items():
            assert posted(tenant, POSTED_PERIOD, "tag:team", as_of=at) == found, f"as of {at}"


def _of_month(tenant: Months, period: AccountingPeriod) -> object:
    with tenant.books() as reader:
        return [
            sums(reader, by, CHARGE_PERIOD, selection=Selection(period.window)) for by in ("identity_id", "tag:team")
        ]


def _last_change(tenant: Months) -> datetime:
    with tenant.store.control.read() as connection:
        found: str = connection.exec_driver_sql("SELECT facts_changed_at FROM tenant").scalar_one()
    return datetime.fromisoformat(found).replace(tzinfo=tenant.now.tzinfo)
