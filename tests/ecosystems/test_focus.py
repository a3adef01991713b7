"""Profiles of ecosystems and tenants for the bill in FOCUS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chargeback.ecosystems.confluent_cloud import ConfluentCloud
from chargeback.ecosystems.contract import FocusEcosystem
from chargeback.ecosystems.discovery import load_ecosystems
from chargeback.ecosystems.focus import OTHER, FocusProfile, FocusSettings
from chargeback.ecosystems.guarded import guarded
from chargeback.ecosystems.validation.values import InvalidValue

KAFKA = {"name": "Kafka", "category": "Integration", "subcategory": "Messaging"}
PROFILE = FocusProfile.model_validate(
    {"services": {"KAFKA": KAFKA, "SUPPORT*": {**KAFKA, "name": "Help"}}, "units": {"bytes_in": "B", "bytes_out": "B"}}
)


def test_every_ecosystem_has_a_profile() -> None:
    """An ecosystem without a profile of its own has the default one, without any details."""
    found = load_ecosystems().ecosystems
    assert all(isinstance(each, FocusEcosystem) for each in found.values())
    profiles = {name: each.focus_profile for name, each in found.items() if isinstance(each, FocusEcosystem)}
    assert profiles["confluent_cloud"].issuer == "Confluent"
    assert profiles["confluent_cloud"].is_credit("PROMO_CREDIT")
    assert profiles["confluent_cloud"].is_recurring("SUPPORT_CLOUD_BASIC")
    assert not profiles["confluent_cloud"].is_recurring("KAFKA_BASE")
    assert profiles["self_managed_kafka"].service("KAFKA").subcategory == "Messaging"
    assert profiles["generic_metrics_only"] == FocusProfile()


def test_services_by_product() -> None:
    """A name takes precedence over a pattern; unknown products belong to the service Other."""
    assert PROFILE.service("KAFKA").name == "Kafka"
    assert PROFILE.service("SUPPORT_CLOUD").name == "Help"
    assert PROFILE.service("MAPS") == OTHER


def test_units_of_sums() -> None:
    """A sum of measures has a unit if all of them have the same one."""
    assert PROFILE.unit(["bytes_in", "bytes_out"]) == "B"
    assert PROFILE.unit(["bytes_in", "requests"]) is None
    assert PROFILE.unit([]) is None


def test_a_tenant_changes_what_it_names() -> None:
    """A tenant's settings replace single values and add services."""
    settings = FocusSettings.model_validate({"issuer": "Us", "services": {"MAPS": {**KAFKA, "name": "Maps"}}})
    changed = PROFILE.changed(settings)
    assert (changed.issuer, changed.service("MAPS").name, changed.service("KAFKA").name) == ("Us", "Maps", "Kafka")
    assert changed.units == PROFILE.units
    assert PROFILE.changed(FocusSettings()) == PROFILE


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ({**KAFKA, "category": "Kafka"}, "category should be one of AI and Machine Learning, Analytics, "),
        ({**KAFKA, "subcategory": "Search"}, "subcategory of Integration should be one of API Management, Messaging, "),
    ],
)
def test_services_have_a_place_that_focus_knows(service: dict[str, Any], words: str) -> None:
    """The message lists the allowed values."""
    with pytest.raises(ValueError, match=words):
        FocusSettings.model_validate({"services": {"X": service}})


def test_a_service_has_one_place() -> None:
    """One name in two subcategories is an error, even if one of them is the ecosystem's."""
    other = {**KAFKA, "subcategory": "API Management"}
    with pytest.raises(ValueError, match="'Kafka' should have one category and one subcategory"):
        FocusSettings.model_validate({"services": {"X": KAFKA, "Y": other}})
    with pytest.raises(ValueError, match="'Kafka' should have one category and one subcategory"):
        PROFILE.changed(FocusSettings.model_validate({"services": {"X": other}}))


def test_a_plugin_with_another_thing_for_a_profile() -> None:
    """The error names the attribute."""
    wrong: Any = {"issuer": "x"}
    with pytest.raises(InvalidValue, match="focus_profile should be a FocusProfile, not"):
        guarded(replace(ConfluentCloud(), focus_profile=wrong))
