"""Every fault of a plugin is an error that names the plugin, the method, the location, and the expected value."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from chargeback.ecosystems.contract import Capabilities, Finding, GatheredDay, TopicEcosystem, usage_resolver
from chargeback.ecosystems.guarded import GuardedEcosystem, guarded
from chargeback.ecosystems.settings import PluginSettings
from chargeback.errors import AllocationError, LeaseLost, PluginError, SourceUnavailable, Stopped
from chargeback.model.days import DayRange
from chargeback.model.inventory import Inventory, Resource
from tests.ecosystems.plugins import (
    DAY,
    DAYS,
    SECOND,
    Tiny,
    TinyGatherer,
    bill,
    context_for,
    line,
    listing,
    measured,
    one_wrong_line,
    row,
)


class Resolving(Tiny):
    """A plugin whose resolved usage is chosen by the test."""

    named_measures = frozenset({"requests"})

    def __init__(self, resolved: Any) -> None:
        super().__init__()
        self._resolved = resolved

    def resolve_usage(self, day: date, usage: pa.Table, inventory: Inventory) -> pa.Table:
        """Return the result that the test chose."""
        return self._resolved


def test_kept_usage_is_resolved_by_the_plugin() -> None:
    """Stored usage that the plugin resolves is checked and used; without a method for it, usage does not change."""
    kept, owned = (measured(row(DAY, subject=subject)).table for subject in ("statement-1", "sa-1"))
    nothing = Inventory()
    assert GuardedEcosystem(Resolving(owned)).resolve_usage(DAY, kept, nothing).equals(owned)
    assert GuardedEcosystem(Tiny()).resolve_usage(DAY, kept, nothing).equals(kept)
    with pytest.raises(
        PluginError, match=r"plugin tiny: resolve_usage of 2026-01-02: table should be a Table, not dict"
    ):
        GuardedEcosystem(Resolving({"sa-1": 3})).resolve_usage(DAY, kept, nothing)


def test_the_inventory_is_read_for_names_only() -> None:
    """Usage without a measure that has names is returned as it is stored, without a look at the inventory."""
    kept, owned = (measured(row(DAY, subject=subject)).table for subject in ("statement-1", "sa-1"))
    other = measured(row(DAY, measure="bytes_out", subject="sa-1")).table
    resolve = usage_resolver(GuardedEcosystem(Resolving(owned)))
    assert resolve is not None
    read: list[Inventory] = []

    def _read() -> Inventory:
        read.append(Inventory())
        return read[-1]

    assert (resolve(DAY, other, _read).equals(other), len(read)) == (True, 0)
    assert (resolve(DAY, kept, _read).equals(owned), len(read)) == (True, 1)
    assert usage_resolver(GuardedEcosystem(Tiny())) is None


def test_a_bill_that_breaks_off(ask: Callable[..., Any]) -> None:
    """The days before the failure are returned; the error has the type, the message and the line of the plugin's code,
    without secrets of its settings."""

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


class Silent(TinyGatherer):
    """A gatherer whose ``with`` returns None."""

    def __enter__(self) -> Any:
        return None


def fail(error: BaseException) -> Any:
    """Raise an error within an expression."""
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
    """The error of a plugin is one line, and not an internal error."""
    plugin = guarded(Tiny(on_open=on_open))
    with pytest.raises(PluginError) as caught, plugin.open(context_for(tmp_path, DAY), PluginSettings()):
        pass
    assert caught.value.message.startswith(f"plugin tiny: {expected}")


def test_errors_of_the_contract_pass(ask: Callable[..., Any]) -> None:
    """Declared errors of a gatherer reach the pipeline unchanged, except for characters that cannot be stored."""
    with pytest.raises(SourceUnavailable) as caught:
        ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: fail(SourceUnavailable("busy \ud83d")))
    assert not isinstance(caught.value, PluginError)
    assert str(caught.value) == "busy �"


def test_who_is_asked_to_stop_may_fail_in_any_way(tmp_path: Path) -> None:
    """After a stop is requested, any failure counts as stopped."""
    context = context_for(tmp_path, DAY)
    plugin = guarded(Tiny(on_open=lambda *_: TinyGatherer(on_usage=lambda day: fail(RuntimeError("interrupted")))))
    with plugin.open(context, PluginSettings()) as gatherer:
        context.stop.set()
        with pytest.raises(Stopped):
            gatherer.usage(DAY, Inventory())


def test_the_traceback_is_for_debugging(ask: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    """The traceback is logged only at DEBUG."""
    caplog.set_level(logging.DEBUG, "chargeback")
    with pytest.raises(PluginError):
        ask(lambda gatherer: gatherer.inventory(), on_inventory=lambda: fail(RuntimeError("no")))
    assert [record.levelname for record in caplog.records if record.exc_info] == ["DEBUG"]


def test_a_plugin_cannot_hide_what_happened_during_its_work(tmp_path: Path) -> None:
    """An error of the pipeline is raised even if the plugin's ``__exit__`` returns true."""
    plugin = guarded(Tiny(on_open=lambda *_: TinyGatherer(on_close=lambda: True)))
    with pytest.raises(LeaseLost), plugin.open(context_for(tmp_path, DAY), PluginSettings()):
        raise LeaseLost("taken over")


def test_a_plugin_that_cannot_be_closed_does_not_undo_the_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure to close the plugin is logged and does not fail the run."""
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
    """A failing check is a finding, so that ``check --online`` continues with the next tenant."""
    last = ask(lambda gatherer: list(gatherer.check()), on_check=answer)[-1]
    assert (last.subject, last.ok) == ("plugin tiny", False)
    assert details in last.detail


def test_policies_and_topics_are_asked_with_care() -> None:
    """For a result of a wrong type or an exception, the error names the method."""
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
    """Lone surrogates, NUL and control characters are replaced and long texts truncated, so that the day is kept."""
    odd = {"resource_id": "th\0ing\x1f", "resource_name": "caf\ud83d", "description": "a\nb" + "x" * 3000}
    found = ask(bill, on_billing=one_wrong_line(**odd))[SECOND].lines[1]
    assert (found.resource_id, found.resource_name) == ("thing�", "caf�")
    assert found.description.startswith("a bx")
    assert len(found.description) == 2000


def test_long_ids_are_the_same_everywhere(ask: Callable[..., Any]) -> None:
    """A resource id that is too long is shortened in the same way in bill, inventory and usage; different ids stay
    different."""
    one, two = "r" * 300 + "1", "r" * 300 + "2"
    resources = [Resource(one, "thing", parent_id=two, owner_id=one), Resource(two, "thing")]
    listed = ask(lambda g: g.inventory(), on_inventory=lambda: listing(resources=resources)).inventory.resources
    used = ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: measured(row(day, resource_id=one)))
    billed = ask(bill, on_billing=one_wrong_line(resource_id=one))[SECOND].lines[1]
    assert listed[0].resource_id == billed.resource_id == used.table["resource_id"][0].as_py() == listed[0].owner_id
    assert listed[0].parent_id == listed[1].resource_id != listed[0].resource_id
    assert len(billed.resource_id) == 255


def test_what_is_right_passes_unchanged(ask: Callable[..., Any]) -> None:
    """Valid records are passed on as the same objects."""
    days = {day: [line(day), line(day, quantity=Decimal("1.5"), environment_id=None, tier="a=1")] for day in DAYS}
    found = ask(bill, on_billing=lambda days_: [GatheredDay(day, tuple(days[day])) for day in reversed(list(days_))])
    assert all(a is b for day in DAYS for a, b in zip(found[day].lines, days[day], strict=True))
    listed = listing(more={"partial": frozenset({"grant"}), "failures": {"role": "HTTP 403"}})
    passed = ask(lambda g: g.inventory(), on_inventory=lambda: listed)
    assert passed.inventory.resources[0] is listed.inventory.resources[0]
    assert replace(passed, inventory=listed.inventory) == listed
    used = measured(row(DAY), row(DAY, subject="ops", value=Decimal(0)))
    assert ask(lambda g: g.usage(DAY, Inventory()), on_usage=lambda day: used).table == used.table
