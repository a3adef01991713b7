"""The policies of Confluent Cloud, from ``policies.yaml`` beside this file, and a tenant's changes to them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import yaml

from chargeback.allocation.policies import Policy, PolicyCatalogue, Portion, parse_policies
from chargeback.ecosystems.confluent_cloud.settings import ConfluentCloudSettings

CKUS = "KAFKA_NUM_CKUS"


@cache
def catalogue() -> PolicyCatalogue:
    """Return the built-in policies."""
    document = yaml.safe_load((files(__package__) / "policies.yaml").read_text("utf-8"))
    return PolicyCatalogue(parse_policies(document["policies"], "policies"), document["aliases"])


def tenant_catalogue(settings: ConfluentCloudSettings) -> PolicyCatalogue:
    """Return the policies with the changes of a tenant's ``allocator_params`` and then of ``allocation_policies``."""
    shipped = catalogue()
    params = settings.allocator_params
    usage, shared = shipped.policies[CKUS].portions
    portions = (
        Portion(params.kafka_cku_usage_ratio, usage.methods),
        Portion(params.kafka_cku_shared_ratio, shared.methods),
    )
    ckus = Policy(tuple(portion for portion in portions if portion.share))
    own = parse_policies(settings.allocation_policies, "allocation_policies")
    return shipped.override({CKUS: ckus}).override(own)
