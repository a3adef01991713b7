"""Whatever a plugin does wrong is an error that says who, in which method, where, and what is expected."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import SecretStr

from chargeback.ecosystems.contract import Capabilities, Finding, GatheredDay, Gatherer, MeasuredUsage, TopicEcosystem
from chargeback.ecosystems.guarded import GuardedEcosystem, guarded
from chargeback.ecosystems.settings import PluginSettings
from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.errors import AllocationError, LeaseLost, PluginError, SourceUnavailable, Stopped
from chargeback.model.days import ONE_DAY, DayRange, start_of_day
from chargeback.model.inventory import Grant, Identity, Inventory, ListedInventory, Resource
from chargeback.model.usage import USAGE
from tests.ecosystems.plugins import Tiny, TinyGatherer, context_for, line, listing, measured, row

DAY = date(2026, 1, 2)
DAYS = DayRange(DAY, DAY + timedelta(days=3))
SECOND = DAY + ONE_DAY


class Keyed(PluginSettings):
    """Settings with a secret."""

    key: SecretStr = SecretStr("s3cret-0123456789")


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Any]:
    """Asks a guarded gatherer, made of replaced answers."""

    def asking(question: Callable[[Gatherer], Any], **answers: Any) -> Any:
        plugin = guarded(Tiny(on_open=lambda *_: TinyGatherer(**answers), settings_model=Keyed))
        with plugin.open(context_for(tmp_path, DAY), Keyed()) as gatherer:
            return question(gatherer)

    return asking


class Resolving(Tiny):
    """A plugin whose statements belong to whom the inventory says."""

    def __init__(self, resolved: Any) -> None:
        super().__init__()
        self._resolved = resolved

    def resolve_usage(self, day: date, usage: pa.Table, inventory: Inventory) -> pa.Table:
        """What the test says."""
        return self._resolved


def test_kept_usage_is_resolved_by_the_plugin() -> None:
    """What a plugin makes of kept usage is used, after a check; usage of one that resolves nothing stays as it is."""
    kept, owned = (measured(row(DAY, subject=subject)).table for subject in ("statement-1", "sa-1"))
    nothing = Inventory()
    assert GuardedEcosystem(Resolving(owned)).resolve_usage(DAY, kept, nothing).equals(owned)
    assert GuardedEcosystem(Tiny()).resolve_usage(DAY, kept, nothing).equals(kept)
    with pytest.raises(
        PluginError, match=r"plugin tiny: resolve_usage of 2026-01-02: table should be a Table, not dict"
    ):
        GuardedEcosystem(Resolving({"sa-1": 3})).resolve_usage(DAY, kept, nothing)


def bill(gatherer: Gatherer) -> dict[date, GatheredDay]:
    """The last that was said of every day."""
    return {gathered.day: gathered for gathered in gatherer.billing(DAYS)}


def one_wrong_line(**wrong: Any) -> Callable[[DayRange], Iterator[GatheredDay]]:
    """Days of two lines each, the second of which is wrong on the second day."""
    return lambda days: (GatheredDay(day, [line(day), line(day, **(wrong if day == SECOND else {}))]) for day in days)


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
    """The error names the plugin, the method, the line and the field; the other days are as they were answered."""
    days = ask(bill, on_billing=one_wrong_line(**wrong))
    (error,) = [gathered.error for gathered in days.values() if gathered.error is not None]
    assert error == days[SECOND].error
    assert error.startswith("plugin tiny: billing: line 2: ")
    assert re.search(expected, error), error
    assert [len(gathered.lines) for gathered in days.values()] == [2, 0, 2]


#: Of which tests make what no type checker lets pass.
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
    """No day is taken for one without cost because its lines are no list, or its error says nothing."""
    days = ask(bill, on_billing=lambda days: (answer(day) if day == SECOND else GatheredDay(day) for day in days))
    assert {day: gathered.error for day, gathered in days.items() if gathered.error} == {
        SECOND: f"plugin tiny: billing: {expected}"
    }


def test_a_day_that_is_answered_twice_is_an_error(ask: Callable[..., Any]) -> None:
    """The second answer, an empty one too, is no answer: it says that the first is not to be trusted."""

    def answer(days: DayRange) -> Iterator[GatheredDay]:
        for day in days:
            yield GatheredDay(day, [line(day)])
        yield GatheredDay(SECOND)

    assert ask(bill, on_billing=answer)[SECOND] == GatheredDay(
        SECOND, error="plugin tiny: billing: the day was returned twice; return each day exactly once"
    )


def test_a_day_that_is_missing_is_an_error(ask: Callable[..., Any]) -> None:
    """It is not one without cost."""
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
    """It could be part of any day's bill; the days themselves are given before."""
    given = []
    with pytest.raises(PluginError, match=f"plugin tiny: billing of 2026-01-02 to 2026-01-05.*{expected}"):
        ask(lambda gatherer: given.extend(gatherer.billing(DAYS)), on_billing=answer)
    assert not any(gathered.error for gathered in given)


def test_an_answer_of_no_day_may_be_the_missing_one(ask: Callable[..., Any]) -> None:
    """A day that is missing says what was answered instead."""
    answers = [GatheredDay(DAY), None, GatheredDay(DAY + 2 * ONE_DAY)]
    given: list[GatheredDay] = []
    with pytest.raises(PluginError):
        ask(lambda gatherer: given.extend(gatherer.billing(DAYS)), on_billing=lambda days: answers)
    assert given[-1].error == (
        "plugin tiny: billing: the day was not returned (answer 2 should be a GatheredDay, not None)"
    )


def test_a_bill_that_breaks_off(ask: Callable[..., Any]) -> None:
    """The days before are given; the error names the type, the message and the line of the plugin's own code, and
    no secret of its settings."""

    def answer(days: DayRange) -> Iterator[GatheredDay]:
        yield GatheredDay(DAY, [line(DAY)])
        raise RuntimeError("no luck with s3cret-0123456789\nat all")

    given: list[GatheredDay] = []
    with pytest.raises(PluginError) as caught:
        ask(lambda gatherer: given.extend(gatherer.billing(DAYS)), on_billing=answer)
    assert caught.value.message.startswith(
        "plugin tiny: billing of 2026-01-02 to 2026-01-05 raised RuntimeError: no luck with *** at all (test_guarded.py"
    )
    assert [gathered.day for gathered in given] == [DAY]


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
    """Nothing of it is taken: half an inventory would charge the wrong people."""
    with pytest.raises(PluginError) as caught:
        ask(lambda gatherer: gatherer.inventory(), on_inventory=answer)
    assert caught.value.message.startswith("plugin tiny: inventory: ")
    assert expected in caught.value.message


def table(**columns: Any) -> MeasuredUsage:
    """One row of usage, some of its columns of another type."""
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
    (lambda: 1 / 0, "raised ZeroDivisionError: division by zero (test_guarded.py, line"),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_USAGE)
def test_wrong_usage_is_an_error(ask: Callable[..., Any], answer: Callable[[], Any], expected: str) -> None:
    """The error names the day, the row and the column; of topics as well."""
    for method, name in ((lambda g: g.usage(DAY, Inventory()), "usage"), (lambda g: g.topics(DAY), "topics")):
        with pytest.raises(PluginError) as caught:
            ask(method, on_usage=lambda day: answer(), on_topics=lambda day: answer())
        assert caught.value.message.startswith(f"plugin tiny: {name} of 2026-01-02")
        assert expected in caught.value.message


def test_the_reserved_measure_of_topics(ask: Callable[..., Any]) -> None:
    """What says that a topic existed is the service's own."""
    with pytest.raises(PluginError, match="measure should not be 'topic_existed', which is reserved"):
        ask(lambda g: g.topics(DAY), on_topics=lambda day: measured(row(day, measure="topic_existed")))


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
    """What can be seen without asking anything is an error when the plugin is found."""
    plugin = Tiny()
    for name, value in parts.items():
        setattr(plugin, name, value)
    with pytest.raises(InvalidValue, match=expected):
        guarded(plugin)


class Silent(TinyGatherer):
    """Forgets what a ``with`` gives."""

    def __enter__(self) -> Any:
        return None


def fail(error: BaseException) -> Any:
    """Raise, where only an expression can stand."""
    raise error


WRONG_OPENINGS = [
    (lambda *_: None, "open: it should return a context manager, not NoneType"),
    (lambda *_: Silent(), "open: the with-block should return a gatherer; None has no method billing, inventory,"),
    (lambda *_: fail(RuntimeError("no route")), "open raised RuntimeError: no route (test_guarded.py, line"),
    (lambda *_: fail(SystemExit(3)), "open raised SystemExit: 3"),
    (lambda *_: fail(AllocationError("mine")), "open raised AllocationError: mine"),
]


@pytest.mark.parametrize(("on_open", "expected"), WRONG_OPENINGS)
def test_a_plugin_that_cannot_be_opened(tmp_path: Path, on_open: Callable[..., Any], expected: str) -> None:
    """One line says why; it is no internal error."""
    plugin = guarded(Tiny(on_open=on_open))
    with pytest.raises(PluginError) as caught, plugin.open(context_for(tmp_path, DAY), PluginSettings()):
        pass
    assert caught.value.message.startswith(f"plugin tiny: {expected}")


def test_errors_of_the_contract_pass(ask: Callable[..., Any]) -> None:
    """What a gatherer may raise reaches the pipeline as it is, in characters that can be stored."""
    with pytest.raises(SourceUnavailable) as caught:
        ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: fail(SourceUnavailable("busy \ud83d")))
    assert not isinstance(caught.value, PluginError)
    assert str(caught.value) == "busy �"


def test_who_is_asked_to_stop_may_fail_in_any_way(tmp_path: Path) -> None:
    """Once the run is to end, a failure means just that."""
    context = context_for(tmp_path, DAY)
    plugin = guarded(Tiny(on_open=lambda *_: TinyGatherer(on_usage=lambda day: fail(RuntimeError("interrupted")))))
    with plugin.open(context, PluginSettings()) as gatherer:
        context.stop.set()
        with pytest.raises(Stopped):
            gatherer.usage(DAY, Inventory())


def test_the_traceback_is_for_debugging(ask: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    """It is logged at DEBUG and at no other level."""
    caplog.set_level(logging.DEBUG, "chargeback")
    with pytest.raises(PluginError):
        ask(lambda gatherer: gatherer.inventory(), on_inventory=lambda: fail(RuntimeError("no")))
    assert [record.levelname for record in caplog.records if record.exc_info] == ["DEBUG"]


def test_a_plugin_cannot_hide_what_happened_during_its_work(tmp_path: Path) -> None:
    """Whatever its ``__exit__`` returns, an error of the pipeline goes on."""
    plugin = guarded(Tiny(on_open=lambda *_: TinyGatherer(on_close=lambda: True)))
    with pytest.raises(LeaseLost), plugin.open(context_for(tmp_path, DAY), PluginSettings()):
        raise LeaseLost("taken over")


def test_a_plugin_that_cannot_be_closed_does_not_undo_the_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One line of the log says so."""
    plugin = guarded(Tiny(on_open=lambda *_: TinyGatherer(on_close=lambda: fail(OSError("stuck")))))
    with plugin.open(context_for(tmp_path, DAY), PluginSettings()):
        pass
    assert "plugin tiny: closing raised OSError: stuck" in caplog.text


@pytest.mark.parametrize(
    ("answer", "details"),
    [
        (lambda: iter([Finding("one", ok=True, detail=""), None]), "check: the answer should be a Finding, not None"),
        (lambda: iter([Finding("one", ok="yes", detail="")]), "check: ok should be a bool, not str 'yes'"),  # type: ignore[arg-type]
        (lambda: fail(KeyError("url")), "check raised KeyError: 'url'"),
        (lambda: None, "check should return an iterator, not NoneType"),
    ],
)
def test_a_check_that_fails_is_a_finding(ask: Callable[..., Any], answer: Callable[[], Any], details: str) -> None:
    """``check --online`` goes on to the next tenant."""
    last = ask(lambda gatherer: list(gatherer.check()), on_check=answer)[-1]
    assert (last.subject, last.ok) == ("plugin tiny", False)
    assert details in last.detail


def test_policies_and_topics_are_asked_with_care() -> None:
    """An answer of another type, and an exception, name the method."""
    topics = Capabilities(topic_overlay=True)
    answers: tuple[Callable[[Any], Any], ...] = (lambda settings: {}, lambda settings: 1 / 0)
    for wrong in answers:
        plugin = guarded(Tiny(capabilities=topics, on_catalogue=wrong, on_topic_plan=wrong))
        assert isinstance(plugin, TopicEcosystem)
        with pytest.raises(PluginError, match="plugin tiny: tenant_catalogue"):
            plugin.tenant_catalogue(PluginSettings())
        with pytest.raises(PluginError, match="plugin tiny: topic_plan"):
            plugin.topic_plan(PluginSettings())


def test_odd_texts_are_stored_as_they_can_be(ask: Callable[..., Any]) -> None:
    """Lone surrogates, NUL and control characters of the provider are replaced, names cut; no day is lost for it."""
    odd = {"resource_id": "th\0ing\x1f", "resource_name": "caf\ud83d", "description": "a\nb" + "x" * 3000}
    found = ask(bill, on_billing=one_wrong_line(**odd))[SECOND].lines[1]
    assert (found.resource_id, found.resource_name) == ("thing�", "caf�")
    assert found.description.startswith("a bx")
    assert len(found.description) == 2000


def test_long_ids_are_the_same_everywhere(ask: Callable[..., Any]) -> None:
    """A resource id that no column holds is cut in the same way in bill, inventory and usage; two stay two."""
    one, two = "r" * 300 + "1", "r" * 300 + "2"
    resources = [Resource(one, "thing", parent_id=two, owner_id=one), Resource(two, "thing")]
    listed = ask(lambda g: g.inventory(), on_inventory=lambda: listing(resources=resources)).inventory.resources
    used = ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: measured(row(day, resource_id=one)))
    billed = ask(bill, on_billing=one_wrong_line(resource_id=one))[SECOND].lines[1]
    assert listed[0].resource_id == billed.resource_id == used.table["resource_id"][0].as_py() == listed[0].owner_id
    assert listed[0].parent_id == listed[1].resource_id != listed[0].resource_id
    assert len(billed.resource_id) == 255


def test_usage_that_only_cleaning_made_the_same_is_added_up(ask: Callable[..., Any]) -> None:
    """Nothing is lost, and no row is there twice."""
    rows = [row(DAY, subject="web\0"), row(DAY, subject="web"), row(DAY, subject="\x01")]
    found = ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: measured(*rows)).table
    assert found.schema == USAGE
    assert sorted(zip(found["subject"].to_pylist(), found["value"].to_pylist(), strict=True)) == [
        ("web", Decimal(20)),
        ("�", Decimal(10)),
    ]


def test_what_is_right_passes_unchanged(ask: Callable[..., Any]) -> None:
    """Records without anything odd are the very ones that the plugin made."""
    days = {day: [line(day), line(day, quantity=Decimal("1.5"), environment_id=None, tier="a=1")] for day in DAYS}
    found = ask(bill, on_billing=lambda days_: [GatheredDay(day, tuple(days[day])) for day in reversed(list(days_))])
    assert all(a is b for day in DAYS for a, b in zip(found[day].lines, days[day], strict=True))
    listed = listing(more={"partial": frozenset({"grant"}), "failures": {"role": "HTTP 403"}})
    passed = ask(lambda g: g.inventory(), on_inventory=lambda: listed)
    assert passed.inventory.resources[0] is listed.inventory.resources[0]
    assert replace(passed, inventory=listed.inventory) == listed
    used = measured(row(DAY), row(DAY, subject="ops", value=Decimal(0)))
    assert ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: used).table == used.table
