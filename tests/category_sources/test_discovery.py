"""Sources are discovered among the installed packages."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from chargeback.category_sources.contract import CategoryEntry, CategorySource, RegisteredValue, SourceContent
from chargeback.category_sources.discovery import GuardedCategorySource, discover_sources
from chargeback.errors import ConfigurationError, PluginError, SourceUnavailable
from chargeback.model.dated import Period
from tests.category_sources.plugins import install, installed


def test_the_built_in_sources_are_installed() -> None:
    """The entry points of the package itself are found."""
    assert {"backstage", "csv", "strimzi"} <= discover_sources().sources.keys()


def test_a_package_of_its_own_is_found(tmp_path: Path) -> None:
    """A source of a third-party distribution is found by its entry point, and can be read."""
    with installed(tmp_path):
        content = discover_sources().named("tiny").read(Path("orders"), "team")
    assert content.entries == [CategoryEntry("topic", "orders", "team", place="entry 1")]
    assert (content.values, content.notes) == ([RegisteredValue("team")], ["one note"])
    assert "tiny" not in discover_sources().sources


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("raise SystemExit(3)", "SystemExit"),
        ("x = 1", "source"),
        ("source = 7", "CategorySource"),
    ],
)
def test_a_broken_plugin_is_remembered_with_its_reason(tmp_path: Path, source: str, reason: str) -> None:
    """A broken plugin does not affect other sources; using it is an error with the reason."""
    with installed(tmp_path, source, "broken"):
        found = discover_sources()
        assert "csv" in found.sources
        assert reason in found.failures["broken"]
        with pytest.raises(ConfigurationError) as error:
            found.named("broken")
        assert str(error.value) == f"the source broken cannot be used: {found.failures['broken']}"


def test_two_sources_of_one_name_are_none(tmp_path: Path) -> None:
    """If two sources have the same name, neither can be used."""
    install(tmp_path, module="other_source")
    with installed(tmp_path), pytest.raises(ConfigurationError) as error:
        discover_sources().named("tiny")
    assert str(error.value) == (
        "the source tiny cannot be used: two sources have this name: other_source:source and tiny_source:source"
    )


class Fixed(CategorySource):
    """A source that returns, or raises, a given object."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def read(self, path: Path, key: str) -> SourceContent:
        if isinstance(self._answer, Exception):
            raise self._answer
        content: SourceContent = self._answer
        return content


def read(answer: Any) -> SourceContent:
    """Return the result of a source after the checks of its guard."""
    return GuardedCategorySource("tiny", Fixed(answer)).read(Path(), "team")


def entry(**fields: Any) -> SourceContent:
    """Return content with one entry and some other fields."""
    return SourceContent([CategoryEntry(**{"entity_type": "topic", "entity_id": "a", "value": "b"} | fields)])


def test_errors() -> None:
    """Declared errors are passed on; others name the plugin and the method."""
    with pytest.raises(SourceUnavailable, match="nobody answers"):
        read(SourceUnavailable("nobody answers"))
    with pytest.raises(PluginError) as error:
        read(LookupError("no such thing"))
    assert str(error.value).startswith("plugin tiny: read raised LookupError: no such thing (test_discovery.py, line")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "read: the result should be a SourceContent, not None"),
        (SourceContent("x"), "read: entries should be a list or a tuple, not str 'x'"),  # type: ignore[arg-type]
        (SourceContent([1]), "entry 1 should be a CategoryEntry, not int 1"),  # type: ignore[list-item]
        (SourceContent(values=[1]), "value 1 should be a RegisteredValue, not int 1"),  # type: ignore[list-item]
        (SourceContent(values=[RegisteredValue("")]), "value 1: key should not be empty"),
        (SourceContent(notes=[""]), "note 1 should not be empty"),
        (entry(entity_type="user"), "entry 1: entity_type should be one of identity, resource, topic, not str 'user'"),
        (entry(entity_id=""), "entry 1: entity_id should not be empty"),
        (entry(value=None), "entry 1: value should be a str, not None"),
        (entry(percent=60.0), "entry 1: percent should be a finite Decimal or None, not float 60.0"),
        (entry(percent=Decimal("NaN")), "entry 1: percent should be a finite Decimal or None, not Decimal NaN"),
        (entry(during=None), "entry 1: during should be a Period, not None"),
        (entry(during=Period("2026")), "entry 1: a day of during should be a date, not str '2026'"),  # type: ignore[arg-type]
        (entry(during=Period(date(2026, 1, 2), date(2026, 1, 1))), "entry 1: during should not be empty"),
    ],
)
def test_invalid_results(answer: Any, message: str) -> None:
    """Each value is checked, and the message says where it is."""
    with pytest.raises(PluginError) as error:
        read(answer)
    assert str(error.value) == f"plugin tiny: {message}".replace("Decimal NaN", "Decimal Decimal('NaN')")


def test_a_place_is_optional() -> None:
    """An entry without a place is named by its number."""
    assert read(entry()).entries[0].place == "entry 1"
    assert read(entry(place="line 7")).entries[0].place == "line 7"
