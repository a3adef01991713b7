"""A configuration file to write, and the problems or the configuration that come out of it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from chargeback.config import Configuration, load_configuration
from chargeback.errors import ConfigurationError

Load = Callable[[str], Configuration]
Problems = Callable[[str], list[str]]

#: The rest of a valid tenant.
CLOUD = 'ccloud_api: {key: KEY, secret: "top-secret-1"}'


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Reads a configuration from text, written to ``chargeback.yaml`` in the test's folder."""

    def read(text: str) -> Configuration:
        file = tmp_path / "chargeback.yaml"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_configuration(file)

    return read


@pytest.fixture
def problems(load: Load) -> Problems:
    """Return the problems of a configuration, as a user reads them."""

    def read(text: str) -> list[str]:
        with pytest.raises(ConfigurationError) as caught:
            load(text)
        return [str(problem) for problem in caught.value.problems]

    return read


def tenant(**keys: str) -> str:
    """A valid file with one tenant, ``acme``, on one line of flow style; ``keys`` replace or add keys of the tenant."""
    given = {
        "ecosystem": "confluent_cloud",
        "tenant_id": "acme",
        "storage": '{connection_string: "sqlite:///acme.db"}',
        "plugin_settings": f"{{{CLOUD}}}",
    } | keys
    return "tenants:\n  acme:\n" + "".join(f"    {name}: {value}\n" for name, value in given.items())
