"""Anomalies of charges: at constant prices, without credits and fees, on complete days."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.access.scope import RowScope
from chargeback.categories.parsing import parse_category
from chargeback.model.anomalies import Criteria, Floors
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.reports.anomalies import AnomaliesAnswer, AnomaliesRequest, Remembered, anomalies
from chargeback.reports.categories.editing import save_categories
from chargeback.store.control.anomalies import MarkedDays, MarkStatus, add_mark, read_marks
from chargeback.store.control.days import read_days
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import open_reader
from tests.support.sources import DAY, Laboratory, line

LENGTH = 30
DAYS = DayRange(DAY - (LENGTH - 1) * ONE_DAY, DAY + ONE_DAY)
WILD = DAY - 5 * ONE_DAY
CRITERIA = Criteria()
#: Floors that only both identities together exceed.
OF_BOTH = Criteria(Floors(amount=70))


def bill(day: date, quantity: int = 100, price: str = "1", **more: Any) -> Any:
    """Return a line with a quantity and a price, of another product or resource if given."""
    amount = Decimal(quantity)
    return line(str(amount * Decimal(price)), day=day, quantity=amount, unit_price=Decimal(price), unit="GB", **more)


@pytest.fixture
def laboratory(tmp_path: Path) -> Iterator[Laboratory]:
    """Yield a tenant of thirty days of 100, in which one identity uses three times as much as another."""
    with Laboratory(tmp_path / "laboratory", days=LENGTH) as opened:
        opened.share(DAYS)
        opened.sources.lines = {day: [bill(day)] for day in DAYS}
        yield opened


def found(laboratory: Laboratory, scope: RowScope | None = None, by: Criteria = CRITERIA) -> AnomaliesAnswer:
    """Return the anomalies after a run."""
    laboratory.run()
    store = laboratory.store
    with store.control.read() as connection:
        states = {each.tracking_date: each for each in read_days(connection)}
        remembered = Remembered(read_marks(connection))
    with (
        closing(QueryEngine()) as engine,
        open_reader(engine, store, CancellationToken(), LookupCaches(), scope=scope) as reader,
    ):
        request = AnomaliesRequest(DayRange(DAY - 9 * ONE_DAY, DAY + ONE_DAY), by, 10, contributors=True)
        return anomalies(
            reader, states, request, "USD", remembered, lambda _, ids: {each: f"Name of {each}" for each in ids}
        )


def stories(answer: AnomaliesAnswer) -> list[tuple[str | None, date, float]]:
    """Return identity, first day and impact of each anomaly."""
    return [(each.identity_id, each.first_date, each.impact) for each in answer.items]


def test_who_ran_wild_is_found(laboratory: Laboratory) -> None:
    """A spike is found on its day, with a sentence, for each identity that pays for it."""
    laboratory.sources.lines[WILD] = [bill(WILD, 300)]
    answer = found(laboratory)
    assert stories(answer) == [("sa-a", WILD, 150.0), ("sa-b", WILD, 50.0)]
    first = answer.items[0]
    assert (first.state, first.direction) == ("resolved", "up")
    assert first.sentence == (
        f"Name of sa-a was charged 225.00 USD for KAFKA on {WILD}, 3.0 times the usual 75.00 USD; "
        "mostly KAFKA_NETWORK_WRITE of Name of lkc-1"
    )
    assert answer.names == {each: f"Name of {each}" for each in ("sa-a", "sa-b")}
    assert answer.resource_names == {"lkc-1": "Name of lkc-1"}
    assert (answer.judged_through, answer.not_judged, answer.series, answer.more) == (DAY, [], 2, 0)


def test_what_a_story_comes_from(laboratory: Laboratory) -> None:
    """Contributors have the direction of the anomaly, the largest first, each with a link to its explanation."""
    for day in DAYS:
        laboratory.sources.lines[day] = [
            *(bill(day, 300 if day == WILD and number == 1 else 100, resource=f"lkc-{number}") for number in (1, 2)),
            bill(day, 40 if day == WILD else 20, product="KAFKA_STORAGE"),
        ]
    first = found(laboratory).items[0]
    names = [(each.product_type, each.resource_id) for each in first.contributors]
    assert names[0] == ("KAFKA_NETWORK_WRITE", "lkc-1")
    assert [each.impact for each in first.contributors] == sorted((e.impact for e in first.contributors), reverse=True)
    assert ("KAFKA_NETWORK_WRITE", "lkc-2") not in names
    explain = first.contributors[0].explain
    assert explain is not None
    assert explain.startswith(f"chargebacks/explain?date={WILD}&line_id=")
    assert explain.endswith(f"&identity_id={first.identity_id}")


def mark(laboratory: Laboratory, status: MarkStatus, first: date, last: date, category: str | None = None) -> None:
    """Mark days of the first identity."""
    with laboratory.store.control.write() as connection:
        add_mark(connection, MarkedDays("", "sa-a", category, status, first, last, "Load test", "ann"))


def test_days_that_were_planned(laboratory: Laboratory) -> None:
    """Planned days are listed with their mark and never become the level, however many there are."""
    for day in DayRange(WILD, DAY):
        laboratory.sources.lines[day] = [bill(day, 300)]
    mark(laboratory, "planned", WILD, DAY - ONE_DAY)
    mark(laboratory, "planned", WILD, DAY, "SCHEMA_REGISTRY")
    answer = found(laboratory)
    mine, other = answer.items
    assert (mine.identity_id, mine.state, len(mine.days)) == ("sa-a", "resolved", 5)
    assert mine.mark is not None
    assert (mine.mark.status, mine.mark.note, mine.mark.created_by) == ("planned", "Load test", "ann")
    assert (other.identity_id, other.state, other.mark) == ("sa-b", "level_shift", None)
    assert (answer.marked, answer.days_to_detection) == ({"planned": 1}, None)


def test_what_goes_on_for_longer_than_planned(laboratory: Laboratory) -> None:
    """The days after the marked ones are a separate anomaly without a mark."""
    for day in DayRange(WILD, DAY + ONE_DAY):
        laboratory.sources.lines[day] = [bill(day, 300)]
    mark(laboratory, "expected", WILD, DAY - ONE_DAY)
    assert [
        (each.first_date, each.state, each.mark is not None)
        for each in found(laboratory).items
        if each.identity_id == "sa-a"
    ] == [(WILD, "resolved", True), (DAY, "open", False)]


def test_what_is_confirmed_stays_what_it_is(laboratory: Laboratory) -> None:
    """A confirmed anomaly still becomes the level; of two marks, the newer one counts."""
    for day in DayRange(WILD, DAY + ONE_DAY):
        laboratory.sources.lines[day] = [bill(day, 300)]
    mark(laboratory, "confirmed", WILD, WILD)
    answer = found(laboratory)
    assert [(each.state, each.mark and each.mark.status) for each in answer.items] == [
        ("level_shift", "confirmed"),
        ("level_shift", None),
    ]
    mark(laboratory, "dismissed", WILD, WILD)
    assert found(laboratory).marked == {"dismissed": 1}


def test_what_moves_slowly_is_listed(laboratory: Laboratory) -> None:
    """Drifts are listed with names, the largest first; a change of price is not a drift."""
    for number, day in enumerate(DAYS):
        laboratory.sources.lines[day] = [bill(day, 100 + 3 * number, price="2" if number > 20 else "1")]
    answer = found(laboratory)
    assert answer.items == []
    assert [(each.identity_id, each.now > each.before * 1.2) for each in answer.drifts] == [
        ("sa-a", True),
        ("sa-b", True),
    ]
    assert answer.names == {each: f"Name of {each}" for each in ("sa-a", "sa-b")}


def test_a_price_stands_out_of_nothing(laboratory: Laboratory) -> None:
    """Prices, credits and a fee on the first of each month are not anomalies."""
    for day in DayRange(WILD, DAY + ONE_DAY):
        laboratory.sources.lines[day] = [bill(day, price="3")]
    laboratory.sources.lines[WILD].append(line("-5000", day=WILD, product="PROMO_CREDIT"))
    for day in DAYS:
        if day.day == 1:
            laboratory.sources.lines[day].append(line("900", day=day, product="KAFKA_BASE"))
    assert stories(found(laboratory)) == []


def test_a_fee_that_has_changed_is_listed(laboratory: Laboratory) -> None:
    """A changed fee is listed with that of the month before; a negligible change is not listed, and no fee is an
    anomaly."""
    first, second = DAYS.start.replace(day=28), DAY - 2 * ONE_DAY
    for product, before, now in (("SUPPORT", "100", "150"), ("KAFKA_BASE", "100", "110")):
        laboratory.sources.lines[first].append(line(before, day=first, product=product))
        laboratory.sources.lines[second].append(line(now, day=second, product=product))
    answer = found(laboratory)
    assert answer.items == []
    assert [(each.product_type, each.before, each.now, each.last_date) for each in answer.fees] == [
        ("SUPPORT", 100.0, 150.0, second),
    ]
    assert answer.resource_names == {"lkc-1": "Name of lkc-1"}


def test_a_scope_sees_its_own(laboratory: Laboratory) -> None:
    """A caller with a scope sees its own anomalies with their exact amounts, and no others."""
    laboratory.sources.lines[WILD] = [bill(WILD, 300)]
    answer = found(laboratory, RowScope.of({"identity_id": ["sa-b"]}))
    assert (stories(answer), answer.series) == ([("sa-b", WILD, 50.0)], 1)


def test_a_tenant_without_costs(laboratory: Laboratory) -> None:
    """Without costs there is no anomaly."""
    laboratory.sources.lines = {}
    answer = found(laboratory)
    assert (answer.items, answer.series) == ([], 0)


def test_what_goes_with_a_larger_story(laboratory: Laboratory) -> None:
    """Of two anomalies of an identity on one day, the smaller one refers to the larger one."""
    for day in DAYS:
        times = 3 if day == WILD else 1
        other = replace(bill(day, 20 * times, resource="lkc-1", product="KAFKA_STORAGE"), product_category="CONNECT")
        laboratory.sources.lines[day] = [bill(day, 100 * times), other]
    answer = found(laboratory)
    mine = [each for each in answer.items if each.identity_id == "sa-a"]
    assert [(each.product_category, each.goes_with) for each in mine] == [("KAFKA", None), ("CONNECT", mine[0].id)]


def teams(laboratory: Laboratory, *rules: dict[str, Any], **values: dict[str, Any]) -> None:
    """Assign costs to teams by rules."""
    document = {"rules": list(rules)} | ({"values": values} if values else {})
    with laboratory.store.control.write() as connection:
        save_categories(connection, [parse_category("team", document)], who="ann")


def rule(team: str, *identities: str, **more: Any) -> dict[str, Any]:
    """Return the rule that assigns identities to a team."""
    return {"match": {"identity": list(identities)}, "assign": team, **more}


def values(answer: AnomaliesAnswer) -> list[tuple[str | None, str | None, float]]:
    """Return value, product group and impact of each anomaly of a team."""
    return [(each.value, each.product_category, each.impact) for each in answer.items if each.category == "team"]


def test_a_value_whose_members_do_not_stand_out(laboratory: Laboratory) -> None:
    """The contributors to an anomaly of a value are its members, each with its name and a link to its explanation."""
    teams(laboratory, rule("payments", "sa-a", "sa-b"))
    laboratory.sources.lines[WILD] = [bill(WILD, 180)]
    answer = found(laboratory, by=OF_BOTH)
    assert values(answer) == [("payments", "KAFKA", 80.0)]
    (story,) = answer.items
    assert story.sentence == (
        f"payments was charged 180.00 USD for KAFKA on {WILD}, 80% more than the usual 100.00 USD; "
        "mostly Name of sa-a: KAFKA_NETWORK_WRITE of Name of lkc-1"
    )
    assert [(each.identity_id, each.impact) for each in story.contributors] == [("sa-a", 60.0), ("sa-b", 20.0)]
    assert all(f"identity_id={each.identity_id}" in (each.explain or "") for each in story.contributors)
    assert not story.is_explained


def test_members_that_explain_their_value(laboratory: Laboratory) -> None:
    """The members are reported instead of the value."""
    teams(laboratory, rule("payments", "sa-a", "sa-b"))
    laboratory.sources.lines[WILD] = [bill(WILD, 300)]
    answer = found(laboratory)
    assert values(answer) == [("payments", "KAFKA", 200.0)]
    by_who = {each.identity_id or each.value: each for each in answer.items}
    assert by_who["payments"].goes_with == by_who["sa-a"].id
    assert by_who["sa-a"].goes_with is None


def test_products_together(laboratory: Laboratory) -> None:
    """A value may have an anomaly for all product groups together even if none of them has one alone."""
    teams(laboratory, rule("payments", "sa-a", "sa-b"))
    for day in DAYS:
        amount = 160 if day == WILD else 100
        other = replace(bill(day, amount, resource="lkc-1", product="KAFKA_STORAGE"), product_category="CONNECT")
        laboratory.sources.lines[day] = [bill(day, amount), other]
    answer = found(laboratory, by=OF_BOTH)
    assert values(answer) == [("payments", None, 120.0)]
    assert answer.items[0].sentence.startswith(f"payments was charged 320.00 USD on {WILD}, 60% more")


def test_a_product_that_is_most_of_a_value(laboratory: Laboratory) -> None:
    """If one product causes most of it, the product is reported instead of all products together."""
    teams(laboratory, rule("payments", "sa-a", "sa-b"))
    for day in DAYS:
        kafka, connect = (190, 110) if day == WILD else (100, 100)
        other = replace(bill(day, connect, resource="lkc-1", product="KAFKA_STORAGE"), product_category="CONNECT")
        laboratory.sources.lines[day] = [bill(day, kafka), other]
    whole, kafka_alone = found(laboratory, by=OF_BOTH).items
    assert (whole.product_category, kafka_alone.product_category) == (None, "KAFKA")
    assert (whole.goes_with, kafka_alone.goes_with) == (kafka_alone.id, None)


def test_what_values_belong_to(laboratory: Laboratory) -> None:
    """A department may have an anomaly even if none of its teams has one; a team that causes most of it is reported
    instead."""
    departments = {each: {"parent": "engineering"} for each in ("payments", "search")}
    teams(laboratory, rule("payments", "sa-a"), rule("search", "sa-b"), engineering={}, **departments)
    laboratory.sources.lines[WILD] = [bill(WILD, 180)]
    assert values(found(laboratory, by=OF_BOTH)) == [("engineering", None, 80.0)]
    laboratory.sources.lines[WILD] = [bill(WILD, 220)]
    answer = found(laboratory, by=OF_BOTH)
    assert values(answer) == [("engineering", None, 120.0), ("payments", "KAFKA", 90.0)]
    assert len({each.goes_with for each in answer.items if each.category}) == 1


def test_a_rule_that_changes_stands_out_of_nothing(laboratory: Laboratory) -> None:
    """A dated change of rules is not an anomaly: the present assignment applies to all earlier days."""
    teams(laboratory, rule("payments", "sa-a", valid_to=f"{WILD}"), rule("search", "sa-a", "sa-b"))
    assert found(laboratory).items == []
    laboratory.sources.lines[WILD] = [bill(WILD, 180)]
    assert values(found(laboratory, by=OF_BOTH)) == [("search", "KAFKA", 80.0)]


def test_days_of_a_value_that_were_planned(laboratory: Laboratory) -> None:
    """A mark of a value does not apply to its members."""
    teams(laboratory, rule("payments", "sa-a", "sa-b"))
    laboratory.sources.lines[WILD] = [bill(WILD, 300)]
    with laboratory.store.control.write() as connection:
        add_mark(connection, MarkedDays("team", "payments", None, "planned", WILD, WILD, "Load test", "ann"))
    marks = {each.identity_id or each.value: each.mark for each in found(laboratory).items}
    assert {who for who, mark in marks.items() if mark} == {"payments"}
    assert marks["payments"] is not None
    assert (marks["payments"].category, marks["payments"].value) == ("team", "payments")


def test_another_category_or_none(laboratory: Laboratory) -> None:
    """Of several categories, one must be chosen; a category that does not exist has no anomalies."""
    teams(laboratory, rule("payments", "sa-a", "sa-b"))
    with laboratory.store.control.write() as connection:
        save_categories(connection, [parse_category("site", {"rules": [rule("north", "sa-a", "sa-b")]})], who="ann")
    laboratory.sources.lines[WILD] = [bill(WILD, 300)]
    assert [each.category for each in found(laboratory).items] == [None, None]
    named = found(laboratory, by=Criteria(category="site")).items
    assert {each.value for each in named if each.category} == {"north"}
    assert [each.category for each in found(laboratory, by=Criteria(category="gone")).items] == [None, None]


def test_a_policy_that_changes_is_listed_and_not_told(laboratory: Laboratory) -> None:
    """An anomaly caused by a new policy is listed as explained, and not reported."""
    evenly = {"KAFKA_NETWORK_WRITE": {"portions": [{"share": "1", "try": ["even(active)"]}]}}
    laboratory.set_policies(
        [
            {"effective_from": f"{DAYS.start}", "reason": "As shipped", "policies": {}},
            {"effective_from": f"{WILD}", "reason": "Evenly", "policies": evenly},
        ]
    )
    answer = found(laboratory)
    assert [(each.first_date, each.by_policy, each.is_explained) for each in answer.items] == [(WILD, True, True)] * 2
    assert {each.state for each in answer.items} == {"level_shift"}


def test_growth_is_listed_and_not_told(laboratory: Laboratory) -> None:
    """An anomaly is explained if the measure that drives the costs grew as much; higher costs are reported."""
    drivers = Criteria(drivers={"KAFKA": "bytes_in"})
    laboratory.sources.lines[WILD] = [bill(WILD, 300)]
    laboratory.sources.totals_on[WILD] = {"bytes_in": {("lkc-1", "sa-a"): 9, ("lkc-1", "sa-b"): 3}}
    answer = found(laboratory, by=drivers)
    assert [(each.growth_of, each.is_explained) for each in answer.items] == [("bytes_in", True)] * 2
    assert answer.items[0].sentence.endswith(
        "; mostly KAFKA_NETWORK_WRITE of Name of lkc-1; bytes_in has grown by 200%"
    )
    assert [each.growth_of for each in found(laboratory).items] == [None, None]
    laboratory.sources.lines[WILD] = [bill(WILD, 400)]
    assert [each.growth_of for each in found(laboratory, by=drivers).items] == [None, None]
