"""Ecosystems are discovered among installed packages and in a folder."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from chargeback.ecosystems.discovery import load_ecosystems
from chargeback.errors import ConfigurationError

PLUGIN = textwrap.dedent(
    """
    from chargeback.allocation.policies import PolicyCatalogue
    from chargeback.ecosystems.contract import Capabilities
    from chargeback.ecosystems.settings import PluginSettings

    class Settings(PluginSettings):
        colour: str = "blue"

    class Tiny:
        name = "tiny"
        capabilities = Capabilities(constructs_costs=True)
        settings_model = Settings
        catalogue = PolicyCatalogue({}, {})

        def tenant_catalogue(self, settings):
            return self.catalogue

        def open(self, context, settings):
            raise RuntimeError("not in this test")

    ecosystem = Tiny()
    """
)


def test_confluent_cloud_is_installed() -> None:
    """The entry point of the package itself is discovered."""
    assert load_ecosystems().get("confluent_cloud").name == "confluent_cloud"


def test_a_file_in_a_folder(tmp_path: Path) -> None:
    """A module in the plugins folder is an ecosystem."""
    (tmp_path / "tiny.py").write_text(PLUGIN)
    found = load_ecosystems(str(tmp_path)).get("tiny")
    assert found.settings_model.model_validate({}).model_dump()["colour"] == "blue"


def test_a_package_in_a_folder(tmp_path: Path) -> None:
    """A package may have modules that import each other."""
    package = tmp_path / "tiny_package"
    package.mkdir()
    (package / "parts.py").write_text(PLUGIN)
    (package / "__init__.py").write_text("from .parts import ecosystem\n")
    assert load_ecosystems(str(tmp_path)).get("tiny").name == "tiny"


def test_what_is_no_plugin_is_left_alone(tmp_path: Path) -> None:
    """Notes, hidden and private files and empty folders are ignored."""
    for name in ("README.md", ".hidden.py", "_private.py"):
        (tmp_path / name).write_text("raise SystemExit")
    (tmp_path / "folder").mkdir()
    assert load_ecosystems(str(tmp_path)).failures == {}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module_anywhere", "no_such_module_anywhere"),
        ("syntax error here", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("x = 1", "ecosystem"),
        ("ecosystem = 7", "it lacks"),
        (PLUGIN.replace('name = "tiny"', 'name = ""'), "no name"),
        (PLUGIN.replace("class Settings(PluginSettings)", "class Settings"), "PluginSettings"),
    ],
)
def test_a_broken_plugin_is_told_only_when_it_is_wanted(tmp_path: Path, source: str, reason: str) -> None:
    """A broken plugin does not prevent the start; a tenant that uses it is a configuration error with the reason."""
    (tmp_path / "broken.py").write_text(source)
    found = load_ecosystems(str(tmp_path))
    assert "confluent_cloud" in found.ecosystems
    with pytest.raises(ConfigurationError, match=reason) as caught:
        found.get("broken", "tenants.acme.ecosystem")
    assert caught.value.problems[0].path == "tenants.acme.ecosystem"


def test_two_plugins_of_one_name_are_none(tmp_path: Path) -> None:
    """If two plugins have the same name, neither is used."""
    (tmp_path / "one.py").write_text(PLUGIN)
    (tmp_path / "two.py").write_text(PLUGIN)
    found = load_ecosystems(str(tmp_path))
    with pytest.raises(ConfigurationError, match="two plugins"):
        found.get("tiny")


def test_an_unknown_name_tells_the_known_ones() -> None:
    """The error for an unknown name lists the existing ones."""
    with pytest.raises(ConfigurationError, match="confluent_cloud"):
        load_ecosystems().get("conflunt_cloud")


def test_a_missing_folder_is_a_configuration_error(tmp_path: Path) -> None:
    """A plugins_path that does not exist is a configuration error."""
    with pytest.raises(ConfigurationError, match="plugins_path"):
        load_ecosystems(str(tmp_path / "nowhere"))


@pytest.mark.usefixtures("process")
def test_a_package_of_its_own_is_found_by_entry_point(tmp_path: Path) -> None:
    """The installed distribution of a third party is discovered in another interpreter without changes of our code."""
    (tmp_path / "tiny_plugin.py").write_text(PLUGIN)
    metadata = tmp_path / "tiny_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[chargeback.ecosystems]\ntiny = tiny_plugin:ecosystem\n")
    code = "from chargeback.ecosystems.discovery import load_ecosystems; print(load_ecosystems().get('tiny').name)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "tiny"
