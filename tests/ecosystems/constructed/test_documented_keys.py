"""The tables of settings in ``docs/costs.md``."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic.fields import FieldInfo

from chargeback.config.problems import walk
from chargeback.ecosystems.constructed.settings import ConstructedSettings
from chargeback.ecosystems.generic_metrics_only.settings import GenericMetricsSettings
from chargeback.ecosystems.self_managed_kafka.settings import PRESETS, SelfManagedKafkaSettings
from chargeback.ecosystems.settings import PluginSettings
from tests.config.test_documentation import default, holds_others

PAGE = (Path(__file__).parents[3] / "docs" / "costs.md").read_text(encoding="utf-8")


def documented(heading: str) -> dict[str, str]:
    """Return the defaults by key, as listed in one table of the page."""
    table = PAGE.partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (required|none|`[^`]+`) \|", table, re.MULTILINE))


def existing(model: type[PluginSettings], without: type[PluginSettings]) -> dict[str, FieldInfo]:
    """Return the keys of a model that another one does not have."""
    known = dict(walk(without)).keys()
    return {path: info for path, info in walk(model) if path not in known and not holds_others(info)}


def assert_same(heading: str, model: type[PluginSettings], without: type[PluginSettings]) -> None:
    """Check that the table lists exactly the model's keys and their defaults."""
    keys = existing(model, without)
    # a field with several possible types has no keys of its own to omit
    keys |= {path: info for path, info in walk(model) if path == "cost_types" or path.endswith("cost_quantity")}
    assert documented(heading) == {path: default(info) for path, info in keys.items()}


def test_the_keys_of_both() -> None:
    """The keys that both ecosystems share are documented."""
    assert_same("Of both", ConstructedSettings, PluginSettings)


def test_the_keys_of_a_cluster() -> None:
    """The keys of only a self-managed cluster are documented; ``metrics`` is documented with every ecosystem."""
    assert_same("Of `self_managed_kafka`", SelfManagedKafkaSettings, ConstructedSettings)


def test_the_keys_of_generic_metrics() -> None:
    """The keys of only generic metrics are documented."""
    assert_same("Of `generic_metrics_only`", GenericMetricsSettings, ConstructedSettings)


def test_the_presets() -> None:
    """The table of presets lists the names in the code."""
    rows = re.findall(
        r"^\| `(bytes_in|bytes_out|log_size|quota_in|quota_out)` \| `([^`]+)` \| `([^`]+)` \|$", PAGE, re.M
    )
    for column, preset in enumerate(("jmx_exporter", "confluent_jmx"), start=1):
        assert {row[0]: row[column] for row in rows} == PRESETS[preset]._asdict()
