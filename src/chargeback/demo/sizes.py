"""The sizes of generated organisations, and their clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Size = Literal["small", "usual", "large"]

#: Environment and kind of the n-th cluster; large organisations repeat the list.
CLUSTER_PLAN: tuple[tuple[str, str], ...] = (
    ("prod", "Dedicated"),
    ("prod", "Enterprise"),
    ("staging", "Standard"),
    ("dev", "Basic"),
    ("analytics", "Freight"),
    ("prod", "Standard"),
    ("staging", "Basic"),
    ("analytics", "Dedicated"),
)

#: Bytes written on a usual day, by kind.
DAILY_BYTES = {
    "Basic": 20_000_000_000,
    "Standard": 200_000_000_000,
    "Enterprise": 800_000_000_000,
    "Dedicated": 2_000_000_000_000,
    "Freight": 3_000_000_000_000,
}

FLINK_REGIONS = (("AWS", "us-east-1"), ("AWS", "eu-west-1"))
OTHER_REGIONS = (("AZURE", "westeurope"), ("GCP", "europe-west3"))


@dataclass(frozen=True)
class SizeSpec:
    """Counts. ``members`` and ``topics`` are per cluster, ``statements`` per compute pool.

    Chargeback rows a day are about clusters × members × lines per cluster (4 to 9), plus registries, support and
    audit log spread over all identities.
    """

    service_accounts: int
    users: int
    pools: int
    clusters: int
    members: int
    registry_users: int
    topics: int
    connectors: int
    ksql_clusters: int
    compute_pools: int
    statements: int


SIZES: dict[Size, SizeSpec] = {
    "small": SizeSpec(14, 4, 2, 5, 6, 5, 5, 5, 2, 2, 3),
    "usual": SizeSpec(60, 12, 4, 8, 25, 20, 20, 12, 3, 3, 6),
    "large": SizeSpec(600, 60, 12, 40, 180, 150, 100, 60, 10, 8, 20),
}
