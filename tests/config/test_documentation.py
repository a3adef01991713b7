"""The page of the documentation that lists every key, and the examples."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from chargeback.config import load_configuration
from chargeback.config.problems import models_in, walk
from chargeback.config.settings import FileSettings
from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings
from chargeback.ecosystems.confluent_cloud.topics import TopicSettings

DOCS = Path(__file__).parents[2] / "docs"
_ROW = re.compile(r"^\| `([^`]+)` \| (required|none|`[^`]+`) \|", re.MULTILINE)


def keys() -> dict[str, FieldInfo]:
    """Return every key; keys that only hold other keys are left out unless they are optional."""
    found = dict(walk(FileSettings))
    found |= dict(walk(ConfluentCloudSettings, "plugin_settings."))
    found |= dict(walk(TopicSettings, "plugin_settings.topic_attribution."))
    return found


def documented() -> dict[str, str]:
    """Return every key of the page with its default."""
    return dict(_ROW.findall((DOCS / "configuration.md").read_text(encoding="utf-8")))


def default(info: FieldInfo) -> str:
    """Return a default as the page writes it."""
    if info.is_required():
        return "required"
    value: Any = info.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, str | Decimal):
        return f"`{value}`"
    return f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"


def holds_others(info: FieldInfo) -> bool:
    """Return whether the key holds other keys that are documented themselves."""
    value = None if info.is_required() else info.get_default(call_default_factory=True)
    return isinstance(value, BaseModel) or (info.is_required() and bool(models_in(info.annotation)))


def test_every_key_is_documented() -> None:
    """No key is missing on the page."""
    expected = {path for path, info in keys().items() if not holds_others(info)} - {
        "plugin_settings.topic_attribution"  # kept as it is written; its own keys are listed
    }
    assert expected - documented().keys() == set()


def test_every_documented_key_exists() -> None:
    """The page has no key that does not exist."""
    assert documented().keys() - keys().keys() == set()


@pytest.mark.parametrize("path", sorted(documented()))
def test_documented_defaults_are_right(path: str) -> None:
    """The default on the page is the default in the code."""
    if path in keys():
        assert documented()[path] == default(keys()[path])


@pytest.mark.parametrize("file", sorted(DOCS.glob("examples/*.yaml")), ids=lambda file: str(file.name))
def test_examples_are_valid(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example is a valid configuration as soon as its variables are set."""
    for name in re.findall(r"\$\{(\w+)\}", file.read_text(encoding="utf-8")):
        monkeypatch.setenv(name, "http://localhost:9090" if name.endswith("URL") else "value")
    assert load_configuration(file).tenants


@pytest.mark.parametrize("file", ["src/chargeback/config/template.yaml", "examples/confluent-cloud.yaml"])
def test_the_configuration_asks_for_the_documented_role(file: str) -> None:
    """The comment above the key names exactly the role that the documentation requires for the service account."""
    page = (DOCS / "confluent-cloud.md").read_text(encoding="utf-8")
    (documented_role,) = re.findall(r"give it the role \*\*`(\w+)`\*\*", page)
    configuration = (DOCS.parent / file).read_text(encoding="utf-8")
    (comment,) = re.findall(r"# (.*)\n +ccloud_api:", configuration)
    assert re.findall(r"\w+(?:Admin|Viewer)\b", comment) == [documented_role]
