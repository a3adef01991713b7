"""Loading and calling plugins: every error has the reason."""

from __future__ import annotations

import logging
from threading import Event

import pytest

from chargeback.errors import AllocationError, ConfigurationError, PluginError, SourceRejected, Stopped
from chargeback.plugins import calling, describe, installed_plugins, loading


class Unspeakable(Exception):
    """An error whose message cannot be formatted."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def fail(error: Exception) -> None:
    """Raise an error at a known line."""
    raise error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("url"), "KeyError: 'url'"),
        (ValueError(), "ValueError"),
        (ValueError("two\nlines\x1b"), "ValueError: two lines\ufffd"),
        (ValueError("x" * 1000), f"ValueError: {'x' * 300}\u2026"),
        (ValueError("key s3cret, abc"), "ValueError: key ***, abc"),
        (Unspeakable(), "Unspeakable"),
    ],
)
def test_an_error_in_one_line(error: Exception, told: str) -> None:
    """The text has the type, the message without secrets, and the location in the plugin."""
    with pytest.raises(type(error)) as caught:
        fail(error)
    place = f" (test_plugins.py, line {fail.__code__.co_firstlineno + 2})"
    assert describe(caught.value, {"s3cret", "abc"}) == told + place


def test_what_is_declared_passes() -> None:
    """A declared error is raised unchanged, apart from characters that cannot be stored."""
    for error in (SourceRejected("no \ud83d"), ConfigurationError([]), Stopped("asked to")):
        with pytest.raises(type(error)) as caught, calling("plugin tiny", "open"):
            raise error
        assert caught.value is error
        error.message.encode()


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(1), AllocationError("mine")])
def test_what_is_not_declared_names_the_plugin(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """Other errors name the plugin, and the traceback is logged at DEBUG."""
    caplog.set_level(logging.DEBUG, "chargeback")
    with (
        pytest.raises(PluginError, match=f"plugin tiny: open raised {type(error).__name__}"),
        calling("plugin tiny", "open"),
    ):
        raise error
    (record,) = caplog.records
    assert (record.levelname, record.exc_info is not None) == ("DEBUG", True)


def test_a_key_press_is_nobodys_mistake() -> None:
    """KeyboardInterrupt is raised unchanged."""
    with pytest.raises(KeyboardInterrupt), calling("plugin tiny", "open"):
        raise KeyboardInterrupt


def test_after_a_wish_to_stop_everything_is_stopping() -> None:
    """After a stop is requested, any error counts as stopped."""
    stop = Event()
    stop.set()
    with pytest.raises(Stopped), calling("plugin tiny", "open", stop=stop):
        raise RuntimeError("interrupted")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ValueError("it has no name"), "it has no name"),
        (KeyError("url"), "KeyError: 'url'"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_why_a_plugin_cannot_be_loaded(error: BaseException, why: str) -> None:
    """A declared error keeps its message; any other error has its type."""
    with pytest.raises(PluginError) as caught, loading(ValueError):
        raise error
    assert str(caught.value) == why


def test_what_is_asked_to_end_ends() -> None:
    """Ctrl-C while a plugin is loaded is not reported as an error of the plugin."""
    with pytest.raises(KeyboardInterrupt), loading(ValueError):
        raise KeyboardInterrupt


def test_installed_plugins_are_in_order() -> None:
    """Plugins are ordered by name; an unknown group is empty."""
    names = [entry.name for entry in installed_plugins("chargeback.ecosystems")]
    assert names == sorted(names) != []
    assert installed_plugins("chargeback.nothing") == []
