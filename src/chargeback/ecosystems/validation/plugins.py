"""Checks of a plugin itself: the parts that it must have before any method is called."""

from __future__ import annotations

from typing import Any, Final

from chargeback.allocation.policies import PolicyCatalogue
from chargeback.ecosystems.contract import Capabilities, Finding, FocusEcosystem
from chargeback.ecosystems.focus import FocusProfile
from chargeback.ecosystems.settings import PluginSettings
from chargeback.ecosystems.validation.values import (
    InvalidValue,
    check_count,
    check_names,
    check_text,
    check_type,
    expect,
    quote,
)

PARTS: Final = ("name", "capabilities", "settings_model", "catalogue", "tenant_catalogue", "open")
GATHERER_PARTS: Final = ("billing", "inventory", "usage", "topics", "check")
TOPIC_PARTS: Final = ("topic_settings", "topic_plan")


def check_plugin(plugin: Any) -> None:
    """Check that ``plugin`` has all members of :class:`chargeback.ecosystems.contract.Ecosystem`."""
    missing = [part for part in PARTS if not hasattr(plugin, part)]
    if missing:
        raise InvalidValue(f"it lacks {', '.join(missing)}")
    if not isinstance(plugin.name, str) or not plugin.name:
        raise InvalidValue("it has no name")
    model = plugin.settings_model
    if not (isinstance(model, type) and issubclass(model, PluginSettings)):
        raise InvalidValue("its settings_model does not extend chargeback.ecosystems.settings.PluginSettings")
    capabilities = expect(Capabilities, plugin.capabilities, "capabilities")
    _check_capabilities(capabilities)
    expect(PolicyCatalogue, plugin.catalogue, "catalogue")
    if isinstance(plugin, FocusEcosystem):
        expect(FocusProfile, plugin.focus_profile, "focus_profile")
    methods = ("tenant_catalogue", "open", *(TOPIC_PARTS if capabilities.topic_overlay else ()))
    for name in methods:
        if not callable(getattr(plugin, name, None)):
            raise InvalidValue(f"{name} should be a method")


def _check_capabilities(capabilities: Capabilities) -> None:
    for name in ("topic_overlay", "constructs_costs"):
        expect(bool, getattr(capabilities, name), f"capabilities.{name}")
    expect(tuple, capabilities.payer_tiers, "capabilities.payer_tiers")
    for number, tier in enumerate(capabilities.payer_tiers):
        check_names(tier, f"capabilities.payer_tiers[{number}]")
    check_type(capabilities.metrics_identity_type, "capabilities.metrics_identity_type")
    check_count(capabilities.billing_history_days, "capabilities.billing_history_days", least=1)


def check_gatherer(gatherer: Any) -> None:
    """Check that the result of ``open`` has all methods."""
    missing = [name for name in GATHERER_PARTS if not callable(getattr(gatherer, name, None))]
    if missing:
        raise InvalidValue(
            f"the with-block should return a gatherer; {quote(gatherer)} has no method {', '.join(missing)}"
        )


def check_finding(answer: object) -> Finding:
    """Return one finding of a check."""
    finding = expect(Finding, answer, "the answer")
    for name in ("ok", "warning"):
        expect(bool, getattr(finding, name), name)
    detail = check_text(finding.detail, "detail") if finding.detail else ""
    return Finding(check_text(finding.subject, "subject"), finding.ok, detail, finding.warning)
