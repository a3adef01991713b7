"""A result of a plugin that breaks the contract is an error of its line, its day or the whole result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from chargeback.ecosystems.contract import Capabilities, GatheredDay, MeasuredUsage
from chargeback.ecosystems.guarded import guarded
from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.errors import PluginError
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from chargeback.model.inventory import Grant, Identity, Inventory, ListedInventory, Resource
from chargeback.model.usage import USAGE
from tests.ecosystems.plugins import DAY, DAYS, SECOND, Tiny, bill, line, listing, measured, one_wrong_line, row

WRONG_LINES = [
    ({"resource_id": ""}, "resource_id should not be empty"),
    ({"resource_id": " \t"}, "resource_id should not be empty"),
    ({"resource_id": None}, "resource_id should be a str, not None"),
    ({"resource_id": 7}, "resource_id should be a str, not int 7"),
    ({"resource_id": "UNALLOCATED"}, "resource_id should not be 'UNALLOCATED', which is reserved"),
    ({"resource_type": "system"}, "resource_type should not be 'system', which is reserved"),
    ({"resource_type": "x" * 65}, "resource_type should have at most 64 characters"),
    ({"product_type": ""}, "product_type should not be empty"),
    ({"product_category": None}, "product_category should be a str, not None"),
    ({"granularity": None}, "granularity should be a str, not None"),
    ({"unit": 3}, "unit should be a str or None, not int 3"),
    ({"environment_id": b"env"}, "environment_id should be a str, not bytes"),
    ({"total_cost": 1.5}, "total_cost should be a Decimal, not float 1.5"),
    ({"total_cost": None}, "total_cost should be a Decimal, not None"),
    ({"total_cost": Decimal("NaN")}, "total_cost should be a finite number, not NaN"),
    ({"total_cost": Decimal("1e30")}, r"total_cost does not fit DECIMAL\(38,12\)"),
    ({"total_cost": Decimal("0.1234567890123")}, "total_cost has more than 12 decimal places; .*to_amount"),
    ({"quantity": 2}, "quantity should be a Decimal, not int 2"),
    ({"discount_amount": Decimal("Infinity")}, "discount_amount should be a finite number, not Infinity"),
    ({"currency": "EUR"}, "currency should be USD, the tenant's, not str 'EUR'"),
    ({"currency": None}, "currency should be USD, the tenant's, not None"),
    ({"timestamp": datetime(2026, 1, 3)}, "timestamp should have a time zone"),  # noqa: DTZ001 - that is what is wrong
    ({"timestamp": start_of_day(DAY)}, "timestamp should be within 2026-01-03 UTC"),
    (
        {"timestamp": datetime(2026, 1, 3, 1, tzinfo=timezone(timedelta(hours=2)))},
        "timestamp should be within 2026-01-03 UTC",
    ),
    ({"timestamp": "2026-01-03"}, "timestamp should be a datetime, not str"),
    ({"day": DAY}, "day should be 2026-01-03, the day that it is returned for, not 2026-01-02"),
    ({"day": datetime(2026, 1, 3, tzinfo=UTC)}, "day should be a date, not datetime"),
]


@pytest.mark.parametrize(("wrong", "expected"), WRONG_LINES, ids=lambda each: str(each)[:50])
def test_a_wrong_line_is_the_error_of_its_day(ask: Callable[..., Any], wrong: dict[str, Any], expected: str) -> None:
    """The error names the plugin, the method, the line and the field; other days do not change."""
    days = ask(bill, on_billing=one_wrong_line(**wrong))
    (error,) = [gathered.error for gathered in days.values() if gathered.error is not None]
    assert error == days[SECOND].error
    assert error.startswith("plugin tiny: billing: line 2: ")
    assert re.search(expected, error), error
    assert [len(gathered.lines) for gathered in days.values()] == [2, 0, 2]


#: Untyped, so that tests can make days that a type checker would reject.
A_DAY: Any = GatheredDay


WRONG_DAYS = [
    (lambda day: A_DAY(day, iter([])), "lines should be a list or a tuple, not list_iterator"),
    (lambda day: A_DAY(day, "lines"), "lines should be a list or a tuple, not str 'lines'"),
    (lambda day: A_DAY(day, None), "lines should be a list or a tuple, not None"),
    (lambda day: A_DAY(day, [{"cost": 1}]), "line 1 should be a BillingLine, not dict"),
    (lambda day: A_DAY(day, error=""), "error should not be empty"),
    (lambda day: A_DAY(day, error=ValueError("x")), "error should be a str, not ValueError"),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_DAYS)
def test_a_wrong_day_is_an_error_of_its_own(
    ask: Callable[..., Any], answer: Callable[[date], Any], expected: str
) -> None:
    """A day with invalid lines or an invalid error is an error, not a day without cost."""
    days = ask(bill, on_billing=lambda days: (answer(day) if day == SECOND else GatheredDay(day) for day in days))
    assert {day: gathered.error for day, gathered in days.items() if gathered.error} == {
        SECOND: f"plugin tiny: billing: {expected}"
    }


def test_a_day_that_is_answered_twice_is_an_error(ask: Callable[..., Any]) -> None:
    """A second result for a day, even an empty one, makes the day an error, because the first may be wrong."""

    def answer(days: DayRange) -> Iterator[GatheredDay]:
        for day in days:
            yield GatheredDay(day, [line(day)])
        yield GatheredDay(SECOND)

    assert ask(bill, on_billing=answer)[SECOND] == GatheredDay(
        SECOND, error="plugin tiny: billing: the day was returned twice; return each day exactly once"
    )


def test_a_day_that_is_missing_is_an_error(ask: Callable[..., Any]) -> None:
    """A missing day is an error, not a day without cost."""
    days = ask(bill, on_billing=lambda days: (GatheredDay(day) for day in days if day != SECOND))
    assert days[SECOND].error == "plugin tiny: billing: the day was not returned"


WRONG_BILLS = [
    (lambda days: None, "should return an iterator, not NoneType"),
    (lambda days: "days", "should return an iterator, not str"),
    (lambda days: [*map(GatheredDay, days), None], "answer 4 should be a GatheredDay, not None"),
    (lambda days: [*map(GatheredDay, days), GatheredDay(DAYS.end)], "2026-01-05 was not requested"),
    (
        lambda days: [*map(GatheredDay, days), GatheredDay(datetime(2026, 1, 2, tzinfo=UTC))],
        "day of answer 4 should be a date, not datetime",
    ),
    (lambda days: [*map(GatheredDay, days), GatheredDay("2026-01-02")], "day of answer 4 should be a date, not str"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_BILLS)
def test_an_answer_of_no_day_is_an_error_of_the_bill(
    ask: Callable[..., Any], answer: Callable[[DayRange], Any], expected: str
) -> None:
    """A result without a valid day is an error of the whole bill, after the valid days."""
    given = []
    with pytest.raises(PluginError, match=f"plugin tiny: billing of 2026-01-02 to 2026-01-05.*{expected}"):
        ask(lambda gatherer: given.extend(gatherer.billing(DAYS)), on_billing=answer)
    assert not any(gathered.error for gathered in given)


def test_an_answer_of_no_day_may_be_the_missing_one(ask: Callable[..., Any]) -> None:
    """The error for a missing day mentions the invalid result."""
    answers = [GatheredDay(DAY), None, GatheredDay(DAY + 2 * ONE_DAY)]
    given: list[GatheredDay] = []
    with pytest.raises(PluginError):
        ask(lambda gatherer: given.extend(gatherer.billing(DAYS)), on_billing=lambda days: answers)
    assert given[-1].error == (
        "plugin tiny: billing: the day was not returned (answer 2 should be a GatheredDay, not None)"
    )


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - that is what is wrong


WRONG_LISTINGS = [
    (lambda: None, "the answer should be a ListedInventory, not None"),
    (Inventory, "the answer should be a ListedInventory, not Inventory"),
    (lambda: ListedInventory(None, frozenset()), "inventory should be an Inventory, not None"),  # type: ignore[arg-type]
    (lambda: listing(resources="thing-1"), "inventory.resources should be a list or a tuple, not str 'thing-1'"),
    (lambda: listing(resources=[Identity("web", "team")]), "resource 1 should be a Resource, not Identity"),
    (lambda: listing(resources=[Resource("", "thing")]), "resource 1: resource_id should not be empty"),
    (lambda: listing(resources=[Resource("a", "")]), "resource 1 (a): resource_type should not be empty"),
    (lambda: listing(resources=[Resource("*", "thing")]), "resource 1 (*): resource_id should not be '*', which is"),
    (
        lambda: listing(resources=[Resource("a", "thing"), Resource("a", "thing", "other")]),
        "resource 2 (a): its resource_id was listed before; list each resource once",
    ),
    (
        lambda: listing(identities=[Identity("web", "team"), Identity("web", "team")]),
        "identity 2 (web): its identity_id was listed before",
    ),
    (
        lambda: listing(grants=[Grant("k", "thing-1", "web"), Grant("k", "thing-1", "ops")]),
        "grant 2 (k, thing-1): its grant_id and resource_id was listed before",
    ),
    (
        lambda: listing(identities=[Identity("me", "system")]),
        "identity 1 (me): identity_type should not be 'system', which is reserved",
    ),
    (lambda: listing(identities=[Identity("UNALLOCATED", "team")]), "identity_id should not be 'UNALLOCATED'"),
    (lambda: listing(identities=[Identity("web", "thing")]), "'thing' is both a resource type and an identity type"),
    (lambda: listing(identities=[Identity("web", "grant")], complete={"thing", "grant"}), "'grant' is reserved"),
    (
        lambda: listing(resources=[Resource("a", "thing", created_at=NAIVE)]),
        "resource 1 (a): created_at should have a time zone",
    ),
    (
        lambda: listing(identities=[Identity("web", "team", deleted_at=DAY)]),  # type: ignore[arg-type]
        "identity 1 (web): deleted_at should be a datetime, not date",
    ),
    (lambda: listing(resources=[Resource("a", "thing", owner_id=5)]), "resource 1 (a): owner_id should be a str"),  # type: ignore[arg-type]
    (
        lambda: listing(resources=[Resource("a", "thing", metadata={"tags": ["x"]})]),  # type: ignore[dict-item]
        "resource 1 (a): metadata['tags'] should be a str, an int, a bool or None, not list",
    ),
    (lambda: listing(complete="thing"), "complete should be a set of names, not str 'thing'"),
    (lambda: listing(complete=frozenset({"thing"})), "'team' was listed, but is in none of complete, partial and"),
    (
        lambda: listing(more={"partial": frozenset({"team"})}),
        "'team' is in both complete and partial; it should be in one of them",
    ),
    (lambda: listing(more={"failures": {"team": "no"}}), "'team' is in both complete and failures"),
    (lambda: listing(more={"failures": ["role"]}), "failures should be a dict, not list"),
    (lambda: listing(more={"failures": {"role": None}}), "failures['role'] should be a str, not None"),
    (lambda: listing(more={"required": "team"}), "required should be a set of names, not str 'team'"),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_LISTINGS)
def test_a_wrong_listing_is_an_error(ask: Callable[..., Any], answer: Callable[[], Any], expected: str) -> None:
    """An invalid listing is rejected as a whole, because half an inventory would charge the wrong identities."""
    with pytest.raises(PluginError) as caught:
        ask(lambda gatherer: gatherer.inventory(), on_inventory=answer)
    assert caught.value.message.startswith("plugin tiny: inventory: ")
    assert expected in caught.value.message


def table(**columns: Any) -> MeasuredUsage:
    """Return one row of usage with some columns replaced."""
    known = {field.name: pa.array([row(DAY)[field.name]], field.type) for field in USAGE}
    return MeasuredUsage(pa.table({name: column for name, column in (known | columns).items() if column is not None}))


WRONG_USAGE = [
    (lambda: None, "the answer should be a MeasuredUsage, not None"),
    (USAGE.empty_table, "the answer should be a MeasuredUsage, not Table"),
    (lambda: MeasuredUsage([row(DAY)]), "table should be a Table, not list"),
    (lambda: MeasuredUsage(USAGE.empty_table(), dropped=None), "dropped should be an int, not None"),  # type: ignore[arg-type]
    (lambda: MeasuredUsage(USAGE.empty_table(), dropped=-1), "dropped should be at least 0, not -1"),
    (lambda: table(value=pa.array([1.5])), r"column value of the table should be decimal128(38, 6), not double"),
    (lambda: table(value=pa.array([3])), r"column value of the table should be decimal128(38, 6), not int64"),
    (lambda: table(date=pa.array(["2026-01-02"])), "column date of the table should be date32[day], not string"),
    (
        lambda: table(subject=None),
        "table should have the columns date, measure, resource_id, subject, value; it lacks s",
    ),
    (lambda: table(unit=pa.array(["x"])), "it has unit too much"),
    (lambda: table(subject=pa.array([None], pa.string())), "row 1: subject should not be null"),
    (lambda: measured(row(DAY), row(SECOND)), "row 2: date should be 2026-01-02, not 2026-01-03"),
    (lambda: measured(row(DAY, value=Decimal(-1))), "row 1: value should be at least 0, not -1.000000"),
    (lambda: measured(row(DAY, value=Decimal("1e27"))), "row 1: value should be below 10^26"),
    (lambda: measured(row(DAY, subject="")), "row 1: subject should not be empty"),
    (lambda: measured(row(DAY, resource_id=" ")), "row 1: resource_id should not be empty"),
    (
        lambda: measured(row(DAY), row(DAY)),
        "2 rows have measure 'requests', resource_id 'thing-1', subject 'web'; add them up",
    ),
    (lambda: 1 / 0, "raised ZeroDivisionError: division by zero (test_gathered.py, line"),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_USAGE)
def test_wrong_usage_is_an_error(ask: Callable[..., Any], answer: Callable[[], Any], expected: str) -> None:
    """The error names the day, the row and the column, for usage and for topics."""
    for method, name in ((lambda g: g.usage(DAY, Inventory()), "usage"), (lambda g: g.topics(DAY), "topics")):
        with pytest.raises(PluginError) as caught:
            ask(method, on_usage=lambda day: answer(), on_topics=lambda day: answer())
        assert caught.value.message.startswith(f"plugin tiny: {name} of 2026-01-02")
        assert expected in caught.value.message


def test_the_reserved_measure_of_topics(ask: Callable[..., Any]) -> None:
    """The measure for the existence of topics is reserved."""
    with pytest.raises(PluginError, match="measure should not be 'topic_existed', which is reserved"):
        ask(lambda g: g.topics(DAY), on_topics=lambda day: measured(row(day, measure="topic_existed")))


def test_usage_that_only_cleaning_made_the_same_is_added_up(ask: Callable[..., Any]) -> None:
    """Rows that become equal when their texts are cleaned are added up."""
    rows = [row(DAY, subject="web\0"), row(DAY, subject="web"), row(DAY, subject="\x01")]
    found = ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: measured(*rows)).table
    assert found.schema == USAGE
    assert sorted(zip(found["subject"].to_pylist(), found["value"].to_pylist(), strict=True)) == [
        ("web", Decimal(20)),
        ("�", Decimal(10)),
    ]


def test_a_column_that_was_added_later_may_be_missing(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin may omit a column that was added later; if present, its values are kept."""
    longer = USAGE.append(pa.field("source", pa.string()))
    monkeypatch.setattr("chargeback.ecosystems.validation.gathered.USAGE", longer)
    without = measured(row(DAY))
    for said in (None, "metrics"):
        known = MeasuredUsage(without.table.append_column("source", pa.array([said], pa.string())))
        for answer, expected in ((without, None), (known, said)):
            found = ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day, answer=answer: answer).table
            assert (found.schema, found["source"].to_pylist()) == (longer, [expected])


WRONG_PLUGINS = [
    ({"name": ""}, "it has no name"),
    ({"name": 5}, "it has no name"),
    ({"capabilities": None}, "capabilities should be a Capabilities, not None"),
    ({"capabilities": Capabilities(payer_tiers="team")}, "payer_tiers should be a tuple, not str 'team'"),  # type: ignore[arg-type]
    (
        {"capabilities": Capabilities(payer_tiers=("team",))},  # type: ignore[arg-type]
        r"capabilities.payer_tiers\[0\] should be a set of names, not str 'team'",
    ),
    ({"capabilities": Capabilities(metrics_identity_type="system")}, "metrics_identity_type should not be 'system'"),
    ({"capabilities": Capabilities(billing_history_days=0)}, "billing_history_days should be at least 1, not 0"),
    ({"capabilities": Capabilities(topic_overlay="yes")}, "topic_overlay should be a bool, not str 'yes'"),  # type: ignore[arg-type]
    ({"catalogue": {}}, "catalogue should be a PolicyCatalogue, not dict"),
    ({"settings_model": dict}, "its settings_model does not extend"),
    ({"capabilities": Capabilities(topic_overlay=True), "topic_plan": None}, "topic_plan should be a method"),
]


@pytest.mark.parametrize(("parts", "expected"), WRONG_PLUGINS)
def test_a_wrong_plugin_is_refused_at_once(parts: dict[str, Any], expected: str) -> None:
    """Faults that are detectable without calling the plugin are errors at discovery."""
    plugin = Tiny()
    for name, value in parts.items():
        setattr(plugin, name, value)
    with pytest.raises(InvalidValue, match=expected):
        guarded(plugin)
