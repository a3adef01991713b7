"""Bills made from measurements, when they are measured again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.ecosystems.contract import GatheredDay
from chargeback.errors import SourceUnavailable
from chargeback.model.billing import BillingLine, partly_measured
from chargeback.model.run_request import RunRequest
from chargeback.pipeline.evidence import richer_bill, unmeasured_part
from chargeback.pipeline.run_messages import RunOutcome
from chargeback.store.control.days import BILL
from chargeback.store.facts.tables import BILLING_TABLE
from tests.support.facts import new_facts, write_lines
from tests.support.sources import DAY, RECALCULATE, Laboratory, line

ANY_DAY = date(2026, 1, 1)
HALF = partly_measured(720, 1440)


def measured(quantity: str, *, rate: str = "2", product: str = "STORAGE", seen: str | None = None) -> BillingLine:
    """Return a measured line."""
    cost = str(Decimal(quantity) * Decimal(rate))
    of_it = {"quantity": Decimal(quantity), "unit_price": Decimal(rate), "unit": "GiB", "description": seen}
    more: dict[str, Any] = {"day": ANY_DAY, **of_it}
    return line(cost, product=product, **more)


@pytest.mark.parametrize(
    ("stored", "new", "poorer"),
    [
        (measured("300"), measured("150"), ["STORAGE: 150.00 GiB instead of 300.00 GiB"]),
        (measured("300"), measured("400", seen=HALF), [f"STORAGE: 400.00 GiB ({HALF}) instead of 300.00 GiB"]),
        (measured("300"), measured("300.000000000001"), []),
        (measured("300"), measured("299.99999999999"), []),
        (measured("300"), measured("300", rate="3"), []),
        (measured("400", seen=HALF), measured("300"), []),
    ],
)
def test_the_richer_measurement_stays(tmp_path: Path, stored: BillingLine, new: BillingLine, poorer: list[str]) -> None:
    """Less of the day, or a smaller quantity, never replaces more; more of the day replaces a larger quantity."""
    facts = new_facts(tmp_path)
    write_lines(facts, [stored])
    found = richer_bill(facts, ANY_DAY, [new])
    assert list(found.poorer) == poorer
    assert [each.quantity for each in found.lines] == [stored.quantity if poorer else new.quantity]
    assert found.lines[0].content() == (stored if poorer else new).content()


def test_each_product_type_is_judged_by_itself(tmp_path: Path) -> None:
    """Each product type keeps its better measurement; a type that is no longer billed is removed."""
    facts = new_facts(tmp_path)
    write_lines(facts, [measured("10", product="IN"), measured("10", product="OUT"), measured("1", product="OLD")])
    found = richer_bill(facts, ANY_DAY, [measured("5", product="IN"), measured("20", product="OUT")])
    assert {each.product_type: int(each.quantity or 0) for each in found.lines} == {"IN": 10, "OUT": 20}


def test_what_was_not_seen_is_named() -> None:
    """The parts of a bill that were measured for only a part of the day are listed."""
    assert unmeasured_part([measured("1"), measured("1", product="IN", seen=HALF)]) == f"IN: {HALF}"
    assert unmeasured_part([measured("1")]) is None


def bill(quantity: int, seen: str | None = None) -> list[BillingLine]:
    """Return the bill of the laboratory's day, at a unit price of one."""
    return [line(str(quantity), quantity=Decimal(quantity), unit_price=Decimal(1), unit="GiB", description=seen)]


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant whose bills are made from measurements."""
    with Laboratory(tmp_path, measured=True) as opened:
        yield opened


def total(laboratory: Laboratory) -> Decimal:
    """Return the bill of the day."""
    return sum(laboratory.stored(BILLING_TABLE)["total_cost"].to_pylist(), Decimal(0))


def test_a_recalculation_does_not_halve_a_bill(laboratory: Laboratory) -> None:
    """A smaller measurement is an error of the run and changes nothing, unless the request accepts less."""
    laboratory.sources.lines[DAY] = bill(300)
    laboratory.run()
    laboratory.sources.lines[DAY] = bill(150)
    assert laboratory.run().outcome is RunOutcome.COMPLETED
    result = laboratory.run(RECALCULATE)
    assert result.outcome is RunOutcome.COMPLETED_WITH_ERRORS
    assert any("150.00 GiB instead of 300.00 GiB" in error and "--accept-less" in error for error in result.errors)
    assert total(laboratory) == 300
    assert laboratory.run(RunRequest(recalculate=True, accept_less=True)).outcome is RunOutcome.COMPLETED
    assert total(laboratory) == 150
    assert sum(map(Decimal, laboratory.charged().values())) == 150


@pytest.mark.extensive
def test_a_bill_that_was_measured_in_part_is_measured_again(laboratory: Laboratory) -> None:
    """A partly measured day is marked; a run that measures more of it replaces the bill and queries usage again; one
    that measures less changes nothing."""
    sources = laboratory.sources
    sources.lines[DAY], sources.totals = bill(150, HALF), {"bytes_in": {("lkc-1", "sa-a"): 1}}
    laboratory.run()
    assert laboratory.state().incomplete == {BILL: f"KAFKA_NETWORK_WRITE: {HALF}"}
    assert laboratory.charged() == {"sa-a": "150"}
    sources.lines[DAY] = bill(10, partly_measured(10, 1440))
    assert laboratory.run().outcome is RunOutcome.COMPLETED
    assert total(laboratory) == 150
    sources.lines[DAY], sources.totals = bill(300), {"bytes_in": {("lkc-1", "sa-a"): 1, ("lkc-1", "sa-b"): 2}}
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "100", "sa-b": "200"}
    assert laboratory.state().incomplete == {}
    asked = sources.asked
    sources.lines[DAY] = bill(400)
    assert laboratory.run().dates_gathered == 0
    assert sources.asked == asked


def test_a_day_that_cannot_be_measured_again_stays(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the metrics have lost a day, only a run that recalculates it has an error."""
    laboratory.sources.lines[DAY] = bill(150, HALF)
    laboratory.run()
    forgotten = [GatheredDay(DAY, error="no sample of it on this day")]
    monkeypatch.setattr(laboratory.sources, "billing", lambda _: iter(forgotten))
    assert laboratory.run().errors == ()
    assert laboratory.run(RECALCULATE).errors[0] == f"{DAY}: no sample of it on this day"
    assert total(laboratory) == 150


def test_usage_that_cannot_be_asked_for_again_is_kept(laboratory: Laboratory) -> None:
    """A better measured bill is split by the stored usage until the metrics are available."""
    sources = laboratory.sources
    sources.lines[DAY], sources.totals = bill(150, HALF), {"bytes_in": {("lkc-1", "sa-a"): 1}}
    laboratory.run()
    sources.lines[DAY], sources.fault = bill(300), SourceUnavailable("HTTP 503")
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "300"}
    sources.totals, sources.fault = {"bytes_in": {("lkc-1", "sa-a"): 1, ("lkc-1", "sa-b"): 1}}, None
    laboratory.run()
    assert laboratory.charged() == {"sa-a": "150", "sa-b": "150"}
