"""Finds installed sources of cost categories, in the entry-point group ``chargeback.category_sources``.

A source that cannot be loaded does not affect the others: the reason is kept for the error message of a request for
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from chargeback.category_sources.contract import CategorySource
from chargeback.category_sources.guarded import GuardedCategorySource
from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.errors import ConfigProblem, ConfigurationError
from chargeback.plugins import discover_plugins

GROUP: Final = "chargeback.category_sources"


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
