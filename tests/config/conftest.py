"""Load a configuration file from text, and return the configuration or its problems."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from chargeback.config import Configuration, load_configuration
from chargeback.errors import ConfigurationError

Load = Callable[[str], Configuration]
Problems = Callable[[str], list[str]]

#: The required settings of a valid tenant.
CLOUD = 'ccloud_api: {key: KEY, secret: "top-secret-1"}'


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a function that loads a configuration from text."""

    def read(text: str) -> Configuration:
        file = tmp_path / "chargeback.yaml"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_configuration(file)

    return read


@pytest.fixture
def problems(load: Load) -> Problems:
    """Return a function that returns the problems of a text, as users see them."""

    def read(text: str) -> list[str]:
        with pytest.raises(ConfigurationError) as caught:
            load(text)
        return [str(problem) for problem in caught.value.problems]

    return read


def tenant(**keys: str) -> str:
    """Return a valid file with one tenant, ``acme``; ``keys`` replace or add keys of the tenant."""
    given = {
        "ecosystem": "confluent_cloud",
        "tenant_id": "acme",
        "storage": '{connection_string: "sqlite:///acme.db"}',
        "plugin_settings": f"{{{CLOUD}}}",
    } | keys
    return "tenants:\n  acme:\n" + "".join(f"    {name}: {value}\n" for name, value in given.items())
