"""Finds installed sources of cost categories, in the entry-point group ``chargeback.category_sources``.

A source that cannot be loaded does not affect the others: the reason is kept for the error message of a request for it.
Sources are wrapped: an undeclared exception, or an invalid result, becomes an error that names the plugin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final

from chargeback.category_sources.contract import (
    ENTITY_TYPES,
    CategoryEntry,
    CategorySource,
    RegisteredValue,
    SourceContent,
)
from chargeback.ecosystems.validation.values import (
    InvalidValue,
    check_day,
    check_id,
    check_records,
    check_text,
    expect,
    optional_text,
    quote,
)
from chargeback.errors import ConfigProblem, ConfigurationError, PluginError
from chargeback.model.dated import Period
from chargeback.plugins import calling, discover_plugins

_MAX_ID_LENGTH: Final = 512

GROUP: Final = "chargeback.category_sources"


class GuardedCategorySource(CategorySource):
    """A source that keeps the contract, or raises an error that says where it does not.

    Raises:
        InvalidValue: it is not a source.
    """

    def __init__(self, name: str, plugin: Any) -> None:
        if not isinstance(plugin, CategorySource):
            raise InvalidValue(
                "it is not an instance of a class that extends chargeback.category_sources.contract.CategorySource"
            )
        self._label = f"plugin {name}"
        self._plugin = plugin

    def read(self, path: Path, key: str) -> SourceContent:
        """Return what the plugin has read, with every value checked."""
        with calling(self._label, "read"):
            found: Any = self._plugin.read(path, key)
        try:
            content = expect(SourceContent, found, "read: the result")
            return SourceContent(
                [_entry(*each) for each in check_records(CategoryEntry, content.entries, "read: entries", "entry")],
                [_value(*each) for each in check_records(RegisteredValue, content.values, "read: values", "value")],
                [check_text(note, f"note {n}") for n, note in enumerate(content.notes, start=1)],
            )
        except InvalidValue as error:
            raise PluginError(f"{self._label}: {error}") from None


def _entry(place: str, entry: CategoryEntry) -> CategoryEntry:
    if entry.entity_type not in ENTITY_TYPES:
        raise InvalidValue(
            f"{place}: entity_type should be one of {', '.join(ENTITY_TYPES)}, not {quote(entry.entity_type)}"
        )
    percent: Any = entry.percent
    if percent is not None and not (isinstance(percent, Decimal) and percent.is_finite()):
        raise InvalidValue(f"{place}: percent should be a finite Decimal or None, not {quote(percent)}")
    during = expect(Period, entry.during, f"{place}: during")
    for day in (during.first, during.end):
        if day is not None:
            check_day(day, f"{place}: a day of during")
    if during.is_empty:
        raise InvalidValue(f"{place}: during should not be empty")
    return CategoryEntry(
        entry.entity_type,
        check_id(entry.entity_id, f"{place}: entity_id", _MAX_ID_LENGTH),
        check_text(entry.value, f"{place}: value"),
        percent,
        during,
        optional_text(entry.place, f"{place}: place") or place,
    )


def _value(place: str, value: RegisteredValue) -> RegisteredValue:
    return RegisteredValue(
        check_text(value.key, f"{place}: key"),
        optional_text(value.name, f"{place}: name"),
        optional_text(value.parent, f"{place}: parent"),
    )


@dataclass(frozen=True, slots=True)
class DiscoveredSources:
    """Sources by name, and why others cannot be used."""

    sources: Mapping[str, CategorySource] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    def named(self, name: str) -> CategorySource:
        """Return a source.

        Raises:
            ConfigurationError: there is none of that name, or it cannot be used.
        """
        if name in self.sources:
            return self.sources[name]
        reason = self.failures.get(name)
        message = f"cannot be used: {reason}" if reason else f"is not installed; there are {', '.join(self.sources)}"
        raise ConfigurationError([ConfigProblem("", f"the source {name} {message}")])


@cache
def discover_sources() -> DiscoveredSources:
    """Return all available sources; they are searched once per process."""
    sources, failures = discover_plugins(GROUP, "source", GuardedCategorySource, declared=InvalidValue)
    return DiscoveredSources(sources, failures)
