"""Finds installed emitters, in the entry-point group ``chargeback.emitters``.

An emitter that cannot be loaded does not prevent the start, unless a tenant is configured for it: the reason is kept
for the error message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.emitters.contract import EmitterType
from chargeback.emitters.guarded import GuardedEmitterType
from chargeback.plugins import discover_plugins

GROUP: Final = "chargeback.emitters"


@dataclass(frozen=True, slots=True)
class DiscoveredEmitters:
    """Types of emitters by their name in ``type:``, and why others cannot be used."""

    types: Mapping[str, EmitterType] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)


@cache
def discover_emitters() -> DiscoveredEmitters:
    """Return all available types of emitters; they are searched once per process."""
    types, failures = discover_plugins(GROUP, "emitter", GuardedEmitterType, declared=InvalidValue)
    return DiscoveredEmitters(types, failures)
