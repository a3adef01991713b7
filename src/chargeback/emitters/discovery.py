"""Finds installed emitters, in the entry-point group ``chargeback.emitters``.

An emitter that cannot be loaded does not prevent the start, unless a tenant is configured for it: the reason is kept
for the error message.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.emitters.contract import EmitterType
from chargeback.emitters.guarded import GuardedEmitterType
from chargeback.errors import PluginError
from chargeback.plugins import installed_plugins, loading

log = logging.getLogger(__name__)

GROUP: Final = "chargeback.emitters"


@dataclass(frozen=True, slots=True)
class DiscoveredEmitters:
    """Types of emitters by their name in ``type:``, and why others cannot be used."""

    types: Mapping[str, EmitterType] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


@cache
def discover_emitters() -> DiscoveredEmitters:
    """Return all available types of emitters; they are searched once per process."""
    types: dict[str, EmitterType] = {}
    failures: dict[str, str] = {}
    origins: dict[str, str] = {}
    for entry in installed_plugins(GROUP):
        try:
            with loading(InvalidValue):
                found = GuardedEmitterType(entry.name, entry.load())
        except PluginError as error:
            log.warning("emitter %s (entry point %s) cannot be used: %s", entry.name, entry.value, error)
            failures[entry.name] = f"entry point {entry.value}: {error}"
            continue
        if origins.get(entry.name, entry.value) != entry.value:
            failures[entry.name] = f"two emitters have this name: {origins[entry.name]} and {entry.value}"
        else:
            types[entry.name], origins[entry.name] = found, entry.value
    return DiscoveredEmitters({name: kind for name, kind in types.items() if name not in failures}, failures)
