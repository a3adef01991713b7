"""The policies of a self-managed cluster, from ``policies.yaml`` beside this file, and a tenant's changes to them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from chargeback.allocation.policies import PolicyCatalogue, parse_policies
from chargeback.ecosystems.self_managed_kafka.bill import COMPUTE
from chargeback.ecosystems.self_managed_kafka.settings import TRAFFIC, PricedKind, SelfManagedKafkaSettings


def catalogue() -> PolicyCatalogue:
    """Return the built-in policies."""
    return PolicyCatalogue(parse_policies(_document(), "policies"), {})


def tenant_catalogue(settings: SelfManagedKafkaSettings) -> PolicyCatalogue:
    """Return the policies with the changes of a tenant's ``allocation_policies``. What a kind of topics costs is split
    as the same costs of all topics, by the traffic of the kind."""
    by_kind = [_of_kind(kind) for kind in settings.rates.of_kinds()]
    built_in = _document() | {name: policy for each in by_kind for name, policy in each.items()}
    own = parse_policies(settings.allocation_policies, "allocation_policies")
    return PolicyCatalogue(parse_policies(built_in, "policies"), {}).override(own)


@cache
def _document() -> dict[str, Any]:
    document = yaml.safe_load((files(__package__) / "policies.yaml").read_text("utf-8"))
    policies: dict[str, Any] = document["policies"]
    return policies


def _of_kind(kind: PricedKind) -> dict[str, Any]:
    return {
        kind.product_type(product_type): {
            "portions": [
                {"share": portion["share"], "try": _methods(portion["try"], kind)} for portion in policy["portions"]
            ]
        }
        for product_type, policy in _document().items()
        if product_type != COMPUTE
    }


def _methods(methods: Sequence[str], kind: PricedKind) -> list[str]:
    measured = {f"usage({base})": f"usage({kind.measure(base)})" for base in TRAFFIC}
    return [measured.get(method, method) for method in methods]
