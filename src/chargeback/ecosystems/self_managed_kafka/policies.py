"""The policies of a self-managed cluster, from ``policies.yaml`` beside this file, and a tenant's changes to them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import yaml

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.ecosystems.self_managed_kafka.settings import SelfManagedKafkaSettings


@cache
def catalogue() -> PolicyCatalogue:
    """Return the built-in policies."""
    document = yaml.safe_load((files(__package__) / "policies.yaml").read_text("utf-8"))
    return PolicyCatalogue(parse_policies(document["policies"], "policies"), {})


def tenant_catalogue(settings: SelfManagedKafkaSettings) -> PolicyCatalogue:
    """Return the policies with the changes of a tenant's ``allocation_policies``."""
    return catalogue().override(parse_policies(settings.allocation_policies, "allocation_policies"))
