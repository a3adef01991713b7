"""Emitters are discovered among installed packages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pydantic import SecretStr

from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.emitters.contract import Emitter, EmitterContext, EmitterParams, EmitterType, Facts, Period
from chargeback.emitters.discovery import GuardedEmitterType, discover_emitters
from chargeback.errors import EmitterError, PluginError, Stopped, StorageError
from tests.emitters.plugins import TINY, install, installed


def test_the_built_in_emitters_are_installed() -> None:
    """The entry points of the package itself are discovered."""
    assert {"csv", "prometheus"} <= discover_emitters().types.keys()


def test_a_package_of_its_own_is_found(tmp_path: Path) -> None:
    """The installed distribution of a third party is discovered without changes of our code."""
    with installed(tmp_path):
        assert discover_emitters().types["tiny"].aggregations == {"daily", "weekly"}
    assert "tiny" not in discover_emitters().types


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("syntax error here", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("x = 1", "emitter_type"),
        ("emitter_type = 7", "EmitterType"),
        (TINY.replace("class Params(EmitterParams)", "class Params"), "EmitterParams"),
        (TINY.replace('"weekly"', '"yearly"'), "aggregations"),
    ],
)
def test_a_broken_plugin_is_remembered_with_its_reason(tmp_path: Path, source: str, reason: str) -> None:
    """A broken plugin is reported with its reason, and the others are discovered."""
    with installed(tmp_path, source, "broken"):
        found = discover_emitters()
        assert "csv" in found.types
        assert "broken" not in found.types
        assert reason in found.failures["broken"]


def test_two_emitters_of_one_name_are_none(tmp_path: Path) -> None:
    """If two emitters have the same name, neither is used."""
    install(tmp_path)
    (tmp_path / "tiny_emitter-1.0.dist-info").rename(tmp_path / "other-1.0.dist-info")
    (tmp_path / "other.py").write_text(TINY)
    for file, old, new in (("entry_points.txt", "tiny_emitter:", "other:"), ("METADATA", "tiny-emitter", "other")):
        path = tmp_path / "other-1.0.dist-info" / file
        path.write_text(path.read_text().replace(old, new))
    with installed(tmp_path):
        found = discover_emitters()
        assert "tiny" not in found.types
        assert "two emitters" in found.failures["tiny"]


CONTEXT = EmitterContext("finance", "acme", "acme-1", "confluent_cloud", "USD")


class Params(EmitterParams):
    """Parameters with a secret."""

    token: SecretStr = SecretStr("s3cret-0123456789")


class Writer(Emitter):
    """An emitter whose methods call a function of the test."""

    def __init__(self, on_emit: Callable[[], Any] = lambda: None, batch: Any = 1) -> None:
        self.on_emit = on_emit
        self.batch = batch

    def emit(self, periods: Sequence[Period], facts: Facts) -> None:
        self.on_emit()

    def close(self) -> None:
        self.on_emit()


class Kind(EmitterType):
    """An emitter type with methods that a test replaces."""

    params_model = Params

    def __init__(self, **answers: Callable[[], Any]) -> None:
        self.answers: dict[str, Callable[[], Any]] = {"open": Writer} | answers

    def open(self, context: EmitterContext, params: Any, stop: Event) -> Emitter:
        return self.answers["open"]()  # type: ignore[no-any-return]

    def wants_newest_only(self, params: Any) -> bool:
        return self.answers["wants_newest_only"]()  # type: ignore[no-any-return]

    def follows_books(self, params: Any) -> bool:
        return self.answers["follows_books"]()  # type: ignore[no-any-return]

    def destinations(self, context: EmitterContext, params: Any) -> tuple[str, ...]:
        return self.answers["destinations"]()  # type: ignore[no-any-return]


def fail(error: BaseException) -> Any:
    """Raise an error within an expression."""
    raise error


def opened(answer: Callable[[], Any], stop: Event | None = None) -> Emitter:
    """Open the emitter."""
    return GuardedEmitterType("webhook", Kind(open=answer)).open(CONTEXT, Params(), stop or Event())


FACTS: Any = None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda: None, "open should return an Emitter, not NoneType"),
        (lambda: Writer(batch=0), "batch should be None or at least 1, not 0"),
        (lambda: Writer(batch="all"), "batch should be None or at least 1, not 'all'"),
        (
            lambda: fail(KeyError("s3cret-0123456789")),
            r"open raised KeyError: '\*\*\*' \(test_discovery.py, line \d+\)",
        ),
        (lambda: fail(SystemExit(3)), "open raised SystemExit: 3"),
    ],
)
def test_an_emitter_that_cannot_be_opened(answer: Callable[[], Any], expected: str) -> None:
    """The error is one line without secrets of the parameters."""
    with pytest.raises(PluginError, match=f"plugin webhook: {expected}"):
        opened(answer)


@pytest.mark.parametrize("method", ["emit", "close"])
def test_an_emitter_that_fails(method: str) -> None:
    """An unexpected error names the method; an error of the operating system keeps its message."""
    calls: dict[str, Callable[[Emitter], None]] = {"emit": lambda e: e.emit([], FACTS), "close": lambda e: e.close()}
    with pytest.raises(PluginError, match=f"plugin webhook: {method} raised ZeroDivisionError: division by zero"):
        calls[method](opened(lambda: Writer(lambda: 1 / 0)))
    with pytest.raises(EmitterError, match=r"^No space left on device$"):
        calls[method](opened(lambda: Writer(lambda: fail(OSError(28, "No space left on device")))))


@pytest.mark.parametrize("error", [EmitterError("no ink"), StorageError("away"), Stopped("asked to")])
def test_errors_of_the_contract_pass(error: Exception) -> None:
    """Declared errors are raised unchanged."""
    with pytest.raises(type(error)) as caught:
        opened(lambda: Writer(lambda: fail(error))).emit([], FACTS)
    assert caught.value is error


def test_who_is_asked_to_stop_may_fail_in_any_way() -> None:
    """After a stop is requested, any failure counts as stopped."""
    stop = Event()
    emitter = opened(lambda: Writer(lambda: 1 / 0), stop)
    stop.set()
    with pytest.raises(Stopped):
        emitter.emit([], FACTS)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda: "/srv/finance", "destinations should return a tuple of strings, not str"),
        (lambda: None, "destinations should return a tuple of strings, not NoneType"),
        (lambda: (1,), "destinations should return a tuple of strings"),
        (lambda: 1 / 0, "destinations raised ZeroDivisionError"),
    ],
)
def test_wrong_destinations(answer: Callable[[], Any], expected: str) -> None:
    """Destinations must be a tuple of strings; a single string is an error."""
    with pytest.raises(PluginError, match=f"plugin webhook: {expected}"):
        GuardedEmitterType("webhook", Kind(destinations=answer)).destinations(CONTEXT, Params())


@pytest.mark.parametrize("answer", [lambda: None, lambda: 1 / 0])
def test_a_wrong_wish(answer: Callable[[], Any]) -> None:
    """The result of wants_newest_only must be true or false."""
    with pytest.raises(PluginError, match="plugin webhook: wants_newest_only"):
        GuardedEmitterType("webhook", Kind(wants_newest_only=answer)).wants_newest_only(Params())


def test_aggregations_are_no_text() -> None:
    """Aggregations must be a set; a ``str`` is an error."""
    kind = Kind()
    kind.__dict__["aggregations"] = "daily"
    with pytest.raises(InvalidValue, match="its aggregations are not among hourly, daily"):
        GuardedEmitterType("webhook", kind)
