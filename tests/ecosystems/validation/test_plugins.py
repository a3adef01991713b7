"""A plugin whose parts are not as the contract asks is refused when it is found."""

from __future__ import annotations

from typing import Any

import pytest

from chargeback.ecosystems.contract import Capabilities
from chargeback.ecosystems.guarded import guarded
from chargeback.ecosystems.validation.values import InvalidValue
from tests.ecosystems.plugins import Tiny

WRONG_PLUGINS = [
    ({"name": ""}, "it has no name"),
    ({"name": 5}, "it has no name"),
    ({"capabilities": None}, "capabilities should be a Capabilities, not None"),
    ({"capabilities": Capabilities(payer_tiers="team")}, "payer_tiers should be a tuple, not str 'team'"),  # type: ignore[arg-type]
    (
        {"capabilities": Capabilities(payer_tiers=("team",))},  # type: ignore[arg-type]
        r"capabilities.payer_tiers\[0\] should be a set of names, not str 'team'",
    ),
    ({"capabilities": Capabilities(metrics_identity_type="system")}, "metrics_identity_type should not be 'system'"),
    ({"capabilities": Capabilities(billing_history_days=0)}, "billing_history_days should be at least 1, not 0"),
    ({"capabilities": Capabilities(topic_overlay="yes")}, "topic_overlay should be a bool, not str 'yes'"),  # type: ignore[arg-type]
    ({"catalogue": {}}, "catalogue should be a PolicyCatalogue, not dict"),
    ({"settings_model": dict}, "its settings_model does not extend"),
    ({"capabilities": Capabilities(topic_overlay=True), "topic_plan": None}, "topic_plan should be a method"),
]


@pytest.mark.parametrize(("parts", "expected"), WRONG_PLUGINS)
def test_a_wrong_plugin_is_refused_at_once(parts: dict[str, Any], expected: str) -> None:
    """What can be seen without asking anything is an error when the plugin is found."""
    plugin = Tiny()
    for name, value in parts.items():
        setattr(plugin, name, value)
    with pytest.raises(InvalidValue, match=expected):
        guarded(plugin)
