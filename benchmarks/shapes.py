"""The sizes of the generated tenants, and their days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

#: Increased whenever the generator or the layout of the facts changes: tenants of older versions are not used again.
GENERATOR: Final = 4

#: 200 days with one change of the clock (1 November in America/Denver).
FIRST_DAY: Final = date(2026, 4, 29)
DAYS: Final = 200
LAST_DAY: Final = FIRST_DAY + timedelta(days=DAYS - 1)

ENVIRONMENTS: Final = 5
CONNECTORS: Final = 12
#: The product types that every cluster is billed for; the first makes two portions.
CLUSTER_TYPES: Final = (
    "KAFKA_NUM_CKUS",
    "KAFKA_NETWORK_WRITE",
    "KAFKA_NETWORK_READ",
    "KAFKA_STORAGE",
    "KAFKA_PARTITION",
    "KAFKA_BASE",
)
#: Lines of the whole organisation, split among all identities; the last is a refund.
ORGANISATION_TYPES: Final = ("SUPPORT_CLOUD_BUSINESS", "AUDIT_LOG_READ", "PROMO_CREDIT")


@dataclass(frozen=True)
class Shape:
    """The size of a tenant: numbers of identities, clusters, and members per cluster (and per schema registry).

    A day has about ``clusters × members × 6.85 + registries × members + 3 × identities`` chargeback rows: 5 % of the
    members have no traffic. ``resources`` is the number of further entries of the inventory without billing lines,
    ``topics`` the number of topics per cluster, which share each of its lines.
    """

    name: str
    identities: int
    clusters: int
    members: int
    days: int = DAYS
    resources: int = 0
    topics: int = 0

    @property
    def last_day(self) -> date:
        """Return the last day that has facts."""
        return FIRST_DAY + timedelta(days=self.days - 1)

    @property
    def folder(self) -> str:
        """Return the name of its folder below the folder of generated data; every shape has its own."""
        numbers = (self.identities, self.clusters, self.members, self.days, self.resources, self.topics)
        return f"v{GENERATOR}-{self.name}-{'-'.join(map(str, numbers))}"

    def dates(self) -> list[date]:
        """Return its days."""
        return [FIRST_DAY + timedelta(days=offset) for offset in range(self.days)]


USUAL: Final = Shape("usual", identities=80, clusters=10, members=25, topics=30)
MIDDLE: Final = Shape("middle", identities=800, clusters=12, members=88, topics=100)
LARGE: Final = Shape("large", identities=5_000, clusters=20, members=250, resources=100_000, topics=200)
#: A month of ten million rows, and the two days before it: a thousand statements to close it with.
MONTH: Final = Shape("month", identities=1_000, clusters=46, members=1_000, days=33)
#: A hundred million rows; see ``--huge``.
HUGE: Final = Shape("huge", identities=20_000, clusters=60, members=1_200, days=180)
#: One day of a million rows, for the calculation alone.
HUGE_DAY: Final = Shape("huge-day", identities=20_000, clusters=50, members=2_750, days=1)
