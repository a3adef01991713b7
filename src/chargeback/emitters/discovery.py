"""Finds installed emitters, in the entry-point group ``chargeback.emitters``.

An emitter that cannot be loaded does not prevent the start, unless a tenant is configured for it: the reason is kept
for the error message. Emitters are wrapped: an undeclared exception, or an invalid result, becomes an error that names
the plugin and the method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import Event
from typing import Any, Final, TypeVar

from chargeback.ecosystems.validation.values import InvalidValue
from chargeback.emitters.contract import (
    AGGREGATIONS,
    Emitter,
    EmitterContext,
    EmitterParams,
    EmitterType,
    Facts,
    Period,
)
from chargeback.errors import ChargebackError, EmitterError, PluginError
from chargeback.plugins import calling, discover_plugins
from chargeback.settings import secrets_in

_T = TypeVar("_T")

GROUP: Final = "chargeback.emitters"


class GuardedEmitterType(EmitterType):
    """A type of emitter that keeps the contract, or raises an error that says where it does not.

    Raises:
        InvalidValue: it lacks a required member.
    """

    def __init__(self, name: str, plugin: Any) -> None:
        if not isinstance(plugin, EmitterType):
            raise InvalidValue("it is not an instance of a class that extends chargeback.emitters.contract.EmitterType")
        model: object = plugin.params_model
        if not (isinstance(model, type) and issubclass(model, EmitterParams)):
            raise InvalidValue("its params_model does not extend chargeback.emitters.contract.EmitterParams")
        aggregations: Any = plugin.aggregations
        if isinstance(aggregations, str) or not aggregations or set(aggregations) - set(AGGREGATIONS):
            raise InvalidValue(f"its aggregations are not among {', '.join(AGGREGATIONS)}")
        self._label = f"plugin {name}"
        self._plugin = plugin
        self.__dict__.update(params_model=model, aggregations=frozenset(aggregations))

    def open(self, context: EmitterContext, params: Any, stop: Event) -> Emitter:
        """Start work for one tenant."""
        secrets = frozenset(secrets_in(params))
        with _calling(self._label, "open", stop, secrets):
            opened = self._plugin.open(context, params, stop)
            return GuardedEmitter(self._label, opened, stop, secrets)

    def wants_newest_only(self, params: Any) -> bool:
        """Return whether only the newest period is emitted."""
        return self._told("wants_newest_only", self._plugin.wants_newest_only, params)

    def follows_books(self, params: Any) -> bool:
        """Return whether a period has what was posted to it."""
        return self._told("follows_books", self._plugin.follows_books, params)

    def destinations(self, context: EmitterContext, params: Any) -> tuple[str, ...]:
        """Return its destinations as texts."""
        found: Any = self._ask("destinations", lambda: self._plugin.destinations(context, params), params)
        if isinstance(found, str) or not isinstance(found, list | tuple) or not all(isinstance(e, str) for e in found):
            raise PluginError(
                f"{self._label}: destinations should return a tuple of strings, not {type(found).__name__}"
            )
        return tuple(found)

    def _told(self, method: str, call: Callable[[Any], object], params: Any) -> bool:
        found = self._ask(method, lambda: call(params), params)
        if not isinstance(found, bool):
            raise PluginError(f"{self._label}: {method} should return a bool, not {type(found).__name__}")
        return found

    def _ask(self, method: str, call: Callable[[], _T], params: Any) -> _T:
        with _calling(self._label, method, None, frozenset(secrets_in(params))):
            return call()


class GuardedEmitter(Emitter):
    """An open emitter whose calls are all guarded."""

    def __init__(self, label: str, emitter: Any, stop: Event, secrets: frozenset[str]) -> None:
        self._label = label
        self._emitter = emitter
        self._stop = stop
        self._secrets = secrets
        if not isinstance(emitter, Emitter):
            raise PluginError(f"{label}: open should return an Emitter, not {type(emitter).__name__}")
        batch: Any = emitter.batch
        if batch is not None and (not isinstance(batch, int) or isinstance(batch, bool) or batch < 1):
            raise PluginError(f"{label}: batch should be None or at least 1, not {batch!r}")
        self.batch = batch

    def emit(self, periods: Sequence[Period], facts: Facts) -> None:
        """Write these periods."""
        with _calling(self._label, "emit", self._stop, self._secrets):
            self._emitter.emit(periods, facts)

    def close(self) -> None:
        """Release all resources."""
        with _calling(self._label, "close", None, self._secrets):
            self._emitter.close()


@contextmanager
def _calling(label: str, method: str, stop: Event | None, secrets: frozenset[str]) -> Iterator[None]:
    """Guard a call as :func:`chargeback.plugins.calling` does; errors of the operating system keep their own
    message."""
    with calling(label, method, stop=stop, secrets=secrets, declared=(ChargebackError,)):
        try:
            yield
        except OSError as error:
            if error.strerror:
                raise EmitterError(error.strerror) from None
            raise


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
