"""Plugins: third-party code, which may fail in any way when it is loaded or called.

:func:`calling` converts every exception of a plugin to an error of this service that names the plugin and the method.
The traceback is logged at DEBUG, for the plugin's author.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from threading import Event
from typing import Any, Final, TypeVar

from chargeback.errors import ChargebackError, ConfigurationError, PluginError, SourceError, Stopped
from chargeback.model.texts import clean_text

log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_MESSAGE_LENGTH: Final = 300
_SHORTEST_SECRET: Final = 4
_MASK: Final = "***"

#: The errors that a plugin may raise deliberately; they reach the caller unchanged.
_DECLARED: Final = (SourceError, ConfigurationError, Stopped)


def installed_plugins(group: str) -> list[EntryPoint]:
    """Return the entry points of a group in a fixed order: by name, then by value."""
    return sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))


@contextmanager
def loading(declared: type[Exception]) -> Iterator[None]:
    """Convert any exception raised while a plugin is loaded inside the ``with`` to a PluginError that says why it
    cannot be used. The message of a ``declared`` error is used unchanged.

    Raises:
        PluginError: the plugin cannot be used.
    """
    try:
        yield
    except declared as mistake:
        raise PluginError(str(mistake)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the edge of a plugin
        raise PluginError(f"{type(error).__name__}: {error}") from None


def discover_plugins(
    group: str, noun: str, guarded: Callable[[str, Any], T], *, declared: type[Exception]
) -> tuple[dict[str, T], dict[str, str]]:
    """Return the plugins of a group by name, and the reasons why others cannot be used. A plugin that cannot be loaded
    does not affect the others.

    ``guarded`` returns the plugin for a name and a loaded object; the message of a ``declared`` error is used
    unchanged. ``noun`` is the name of such plugins in messages.
    """
    found: dict[str, T] = {}
    failures: dict[str, str] = {}
    origins: dict[str, str] = {}
    for entry in installed_plugins(group):
        try:
            with loading(declared):
                plugin = guarded(entry.name, entry.load())
        except PluginError as error:
            log.warning("%s %s (entry point %s) cannot be used: %s", noun, entry.name, entry.value, error)
            failures[entry.name] = f"entry point {entry.value}: {error}"
            continue
        if origins.get(entry.name, entry.value) != entry.value:
            failures[entry.name] = f"two {noun}s have this name: {origins[entry.name]} and {entry.value}"
        else:
            found[entry.name], origins[entry.name] = plugin, entry.value
    return {name: plugin for name, plugin in found.items() if name not in failures}, failures


@contextmanager
def calling(
    plugin: str,
    method: str,
    *,
    stop: Event | None = None,
    secrets: Collection[str] = (),
    declared: tuple[type[ChargebackError], ...] = _DECLARED,
) -> Iterator[None]:
    """Convert any exception of the call inside the ``with`` to a PluginError, except those in ``declared``.

    ``plugin`` and ``method`` name them in the message; ``secrets`` are masked in it. Once ``stop`` is set, any failure
    becomes Stopped.

    Raises:
        PluginError: the plugin raised an undeclared error.
        Stopped: the work was asked to stop.
    """
    try:
        yield
    except declared as error:
        error.message = clean_text(error.message)
        raise
    except (Exception, SystemExit) as error:
        if stop is not None and stop.is_set():
            raise Stopped(f"stopped while {plugin} was at work") from None
        log.debug("%s: %s failed", plugin, method, exc_info=error)
        raise PluginError(f"{plugin}: {method} raised {describe(error, secrets)}") from None


def describe(error: BaseException, secrets: Collection[str] = ()) -> str:
    """Return the type, the message and the place of an error in one line, with ``secrets`` masked."""
    try:
        message = clean_text(str(error))
    except Exception:  # noqa: BLE001 - the error is a plugin's too
        message = ""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            message = message.replace(secret, _MASK)
    message = " ".join(message.split())
    if len(message) > _MAX_MESSAGE_LENGTH:
        message = f"{message[:_MAX_MESSAGE_LENGTH]}…"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{place}" if message else f"{type(error).__name__}{place}"
