"""Emitters are found among what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.emitters.discovery import discover_emitters
from tests.emitters.plugins import TINY, install, installed


def test_the_built_in_emitters_are_installed() -> None:
    """The entry points of the package itself are found."""
    assert {"csv", "prometheus"} <= discover_emitters().types.keys()


def test_a_package_of_its_own_is_found(tmp_path: Path) -> None:
    """A third party's installed distribution is found without a word in our code."""
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
    """The others are found nevertheless."""
    with installed(tmp_path, source, "broken"):
        found = discover_emitters()
        assert "csv" in found.types
        assert "broken" not in found.types
        assert reason in found.failures["broken"]


def test_two_emitters_of_one_name_are_none(tmp_path: Path) -> None:
    """Nobody can tell which one is meant, so neither is taken."""
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
