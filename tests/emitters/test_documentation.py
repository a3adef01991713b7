"""The documentation page about emitters."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chargeback.emitters.contract import AGGREGATIONS, EmitterParams
from chargeback.emitters.csv_files import CsvParams
from chargeback.emitters.focus import FocusParams
from chargeback.emitters.prometheus import DAILY_GAUGES, ENDPOINT, LAST_DAY_GAUGES, PrometheusParams
from chargeback.store.control.emissions import EmissionState

PAGE = (Path(__file__).parents[2] / "docs" / "emitters.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "model"), [("csv", CsvParams), ("focus", FocusParams), ("prometheus", PrometheusParams)]
)
def test_every_parameter_is_documented_with_its_default(name: str, model: type[EmitterParams]) -> None:
    """The table of each emitter lists exactly its parameters and their defaults."""
    section = PAGE.partition(f"\n## `{name}`")[2].partition("\n## ")[0]
    table = section.partition("| parameter |")[2].partition("\n\n")[0]
    documented = dict(re.findall(r"^\| `(\w+)` \| (required|none|`[^`]+`) \|", table, re.MULTILINE))
    expected = {}
    for key, info in model.model_fields.items():
        default = None if info.is_required() else info.default
        text = default if isinstance(default, str) else json.dumps(default)
        expected[key] = "required" if info.is_required() else "none" if default is None else f"`{text}`"
    assert documented == expected


def test_every_gauge_aggregation_and_state_is_documented() -> None:
    """The page names every gauge, aggregation and state."""
    gauges = [gauge.name for gauge in (*DAILY_GAUGES, *LAST_DAY_GAUGES)]
    for name in (*gauges, *AGGREGATIONS, *EmissionState):
        assert f"`{name}`" in PAGE
    assert f"`GET {ENDPOINT}`" in PAGE


def test_the_example_of_a_plugin_is_one() -> None:
    """The Python example on the page runs and defines an emitter type."""
    from chargeback.emitters.contract import EmitterType

    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "docs/emitters.md", "exec"), names)
    assert isinstance(names["emitter_type"], EmitterType)
