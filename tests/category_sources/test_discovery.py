"""Sources are found among what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.category_sources.contract import CategoryEntry, RegisteredValue
from chargeback.category_sources.discovery import discover_sources
from chargeback.errors import ConfigurationError
from tests.category_sources.plugins import install, installed


def test_the_built_in_sources_are_installed() -> None:
    """The entry points of the package itself are found."""
    assert {"backstage", "csv", "strimzi"} <= discover_sources().sources.keys()


def test_a_package_of_its_own_is_found(tmp_path: Path) -> None:
    """A third party's installed distribution is found without a word in our code, and read."""
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
    """The others are found nevertheless; who asks for it is told why."""
    with installed(tmp_path, source, "broken"):
        found = discover_sources()
        assert "csv" in found.sources
        assert reason in found.failures["broken"]
        with pytest.raises(ConfigurationError) as error:
            found.named("broken")
        assert str(error.value) == f"the source broken cannot be used: {found.failures['broken']}"


def test_two_sources_of_one_name_are_none(tmp_path: Path) -> None:
    """Nobody can tell which one is meant."""
    install(tmp_path, module="other_source")
    with installed(tmp_path), pytest.raises(ConfigurationError) as error:
        discover_sources().named("tiny")
    assert str(error.value) == (
        "the source tiny cannot be used: two sources have this name: other_source:source and tiny_source:source"
    )
