"""Amounts drawn from commitments: exact, and independent of the order in which costs become known."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chargeback.model.contracts import Commitment, DayCost, Drawing, draw, outlook
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.money import from_units, total

START = date(2026, 1, 31)
TERM = DayRange(START, date(2026, 7, 31))
PLACES = ("KAFKA", "FLINK", "CONNECT")


def commitment(size: str = "100", **more: Any) -> Commitment:
    """Return a commitment of money for the whole term, unless ``more`` overrides it."""
    values: dict[str, Any] = {"contract": "c", "id": "a", "kind": "spend", "unit": None, "interval": "term"}
    return Commitment(**(values | {"size": Decimal(size), "days": TERM} | more))


def cost(day: int, charges: str, credit: str = "0", place: str = "KAFKA", quantity: str = "0") -> DayCost:
    """Return the cost of a product group, ``day`` days after the start of the term."""
    at = {"product_category": place}
    return DayCost(START + timedelta(days=day), at, "GB", Decimal(charges), Decimal(credit), Decimal(quantity))


def drawn(drawing: Drawing, each: Commitment, day: int = 30) -> list[tuple[Decimal, Decimal]]:
    """Return what is drawn from a commitment and what remains, by interval."""
    found = drawing.of(each, START + timedelta(days=day))
    return [(from_units(now.drawn), from_units(now.remaining)) for now in found]


def test_intervals_begin_on_the_day_of_the_contract() -> None:
    """An interval begins on the contract's day, or a shorter month's last one; the last ends with the contract."""
    found = [(each.start, each.end) for each in commitment(interval="monthly").intervals]
    assert found[:3] == [
        (date(2026, 1, 31), date(2026, 2, 28)),
        (date(2026, 2, 28), date(2026, 3, 31)),
        (date(2026, 3, 31), date(2026, 4, 30)),
    ]
    assert found[-1] == (date(2026, 6, 30), date(2026, 7, 31))
    assert len(commitment(interval="quarterly").intervals) == 2
    assert commitment(interval="annual").intervals == (TERM,)


def test_the_day_that_crosses_the_limit_is_split() -> None:
    """The cost that crosses the limit goes to the next commitment; what exceeds both is not applied."""
    first, second = commitment("100", priority=1), commitment("10", id="b", interval="monthly")
    drawing = draw([second, first], [cost(0, "60"), cost(2, "60.000000000001")])
    assert drawn(drawing, first) == [(Decimal(100), Decimal(0))]
    assert drawn(drawing, second, 0) == [(Decimal(10), Decimal(0))]
    assert drawing.of(first, START)[0].exhausted_on == START + 2 * ONE_DAY
    (shares,) = drawing.shares.values()
    assert (from_units(shares.applied), from_units(shares.not_applied)) == (Decimal(110), Decimal("10.000000000001"))
    assert from_units(drawing.of(second, START)[0].overage) == Decimal("10.000000000001")


def test_what_is_left_may_be_used_later() -> None:
    """With rollover, what is left can be used in the next interval."""
    costs = [cost(0, "30"), cost(30, "150")]
    assert drawn(draw([commitment(interval="monthly")], costs), commitment(interval="monthly")) == [
        (Decimal(30), Decimal(70)),
        (Decimal(100), Decimal(0)),
    ]
    over = commitment(interval="monthly", rollover=True)
    assert drawn(draw([over], costs), over) == [(Decimal(30), Decimal(70)), (Decimal(150), Decimal(20))]


def test_credits_give_back() -> None:
    """Credits return what was drawn and no more; a commitment that counts costs before credits ignores them."""
    billed, before = commitment(), commitment(counts="before_credits")
    costs = [cost(0, "40"), cost(1, "5", "-50")]
    drawing = draw([billed], costs)
    assert drawn(drawing, billed) == [(Decimal(0), Decimal(100))]
    assert from_units(drawing.shares["c"].not_applied) == Decimal(-5)
    assert drawn(draw([before], costs), before) == [(Decimal(45), Decimal(55))]
    used_up = draw([commitment("40")], [*costs[:1], cost(1, "0", "-1")])
    assert used_up.of(commitment("40"), START)[0].exhausted_on is None


def test_a_commitment_of_usage() -> None:
    """A commitment of usage draws quantities in its unit, and applies the matching part of the cost."""
    usage = commitment("8", kind="usage", unit="GB")
    drawing = draw([usage], [cost(0, "30", quantity="6"), cost(1, "30", quantity="3")])
    (now,) = drawing.of(usage, START)
    assert (from_units(now.drawn), from_units(now.applied), from_units(now.overage)) == (
        Decimal(8),
        Decimal(50),
        Decimal(10),
    )
    assert drawing.shares["c"].not_applied == now.overage
    other = commitment("8", kind="usage", unit="hours")
    assert drawn(draw([other], [cost(0, "30", quantity="6")]), other) == [(Decimal(0), Decimal(8))]


def test_only_what_it_applies_to() -> None:
    """A cost that the commitment excludes is not applied; a cost outside its days is not counted."""
    kafka = commitment(applies_to={"product_category": frozenset({"KAFKA"})})
    drawing = draw([kafka], [cost(0, "1"), cost(0, "2", place="FLINK"), cost(-1, "4"), cost(181, "8")])
    shares = drawing.shares["c"]
    assert (from_units(shares.billed), from_units(shares.applied)) == (Decimal(3), Decimal(1))


_AMOUNTS = st.integers(0, 10**14).map(from_units)
_COSTS = st.builds(
    lambda day, place, charges, credit, quantity: DayCost(
        START + timedelta(days=day), {"product_category": place}, "GB", charges, -credit, quantity
    ),
    st.integers(-3, 200),
    st.sampled_from(PLACES),
    _AMOUNTS,
    _AMOUNTS,
    _AMOUNTS,
)
_COMMITMENTS = st.builds(
    lambda kind, size, interval, counts, rollover, priority, places, start: commitment(
        str(size),
        contract=f"c{start}",
        kind=kind,
        unit=None if kind == "spend" else "GB",
        interval=interval,
        counts=counts,
        rollover=rollover,
        priority=priority,
        applies_to={"product_category": frozenset(places)} if places else {},
        days=DayRange(START + timedelta(days=start * 20), TERM.end),
    ),
    st.sampled_from(["spend", "usage"]),
    _AMOUNTS.filter(bool),
    st.sampled_from(["monthly", "quarterly", "annual", "term"]),
    st.sampled_from(["billed", "before_credits"]),
    st.booleans(),
    st.integers(1, 3),
    st.sets(st.sampled_from(PLACES)),
    st.integers(0, 2),
)


@given(
    st.lists(_COMMITMENTS, min_size=1, max_size=4),
    st.lists(_COSTS, max_size=30, unique_by=lambda cost: str(cost.key)),
    st.randoms(),
)
def test_everything_is_somewhere(commitments: list[Commitment], costs: list[DayCost], shuffled: Any) -> None:
    """Applied and other costs sum to the bill exactly, no commitment exceeds its size, and the order of costs does not
    matter."""
    named = [Commitment(**(vars(each) | {"id": f"{number}"})) for number, each in enumerate(commitments)]
    drawing = draw(named, costs)
    for each in named:
        shares = drawing.shares[each.contract]
        billed = total(value for one in costs if one.day in each.days for value in (one.charges, one.credits))
        assert from_units(shares.applied + shares.to_others + shares.not_applied) == billed == from_units(shares.billed)
        for now in drawing.of(each, TERM.end):
            assert 0 <= now.drawn <= now.committed
            assert (now.remaining == 0) >= (now.exhausted_on is not None)
    for contract, shares in drawing.shares.items():
        mine = [now for each in named if each.contract == contract for now in drawing.of(each, TERM.end)]
        assert sum(now.applied for now in mine) == shares.applied
    again = list(costs)
    shuffled.shuffle(again)
    other = draw(named, again)
    assert other.shares == drawing.shares
    assert [other.of(each, TERM.end) for each in named] == [drawing.of(each, TERM.end) for each in named]


def test_when_it_will_be_used_up() -> None:
    """The outlook has the day of exhaustion for high, median and low weeks, and what is left at the end."""
    each = commitment("1000")
    costs = [cost(day, str(10 + day % 7)) for day in range(28)]
    counted = [START + timedelta(days=day) for day in range(28)]
    found = outlook(each, draw([each], costs).of(each, counted[-1]), counted)
    assert found is not None
    # 1000 − 364 are left, and 13 a day are drawn.
    assert found.early == found.middle == found.late == counted[-1] + timedelta(days=49)
    assert found.shortfall == 0
    much = commitment("10000")
    later = outlook(much, draw([much], costs).of(much, counted[-1]), counted)
    assert later is not None
    assert (later.early, later.late) == (None, None)
    assert from_units(later.shortfall) == 10_000 - 364 - 13 * (len(TERM) - 28)
    assert outlook(each, draw([each], costs).of(each, counted[-1]), counted[:13]) is None
