"""The identities that pay, if there is no directory: those named by the metrics and by the configuration."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, get_args

from chargeback.ecosystems.constructed.promql import with_step
from chargeback.ecosystems.constructed.settings import PRINCIPAL, IdentitySource, IdentityType
from chargeback.errors import SourceError
from chargeback.model.days import Clock
from chargeback.model.inventory import GRANT, UNALLOCATED, Grant, Identity, Inventory, ListedInventory, Resource
from chargeback.sources.prometheus import PrometheusClient

#: All identities of the inventory pay if none was active on any resource.
PAYER_TIERS: Final = (frozenset(get_args(IdentityType)),)

#: A series counts as present for five minutes after its last sample (Prometheus' lookback).
_LOOKBACK = timedelta(minutes=5)


@dataclass
class InventoryBuilder:
    """Builds an inventory. A part that cannot be listed is a failure of its types, not an exception."""

    resources: list[Resource] = field(default_factory=list)
    identities: list[Identity] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    complete: set[str] = field(default_factory=set)
    partial: set[str] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)

    def attempt(self, types: Collection[str], part: Callable[[], None], *, is_partial: bool = False) -> None:
        """List one part; ``types`` are complete (or partial) if it succeeds, and failures otherwise."""
        try:
            part()
        except SourceError as error:
            self.failures |= dict.fromkeys(types, str(error))
        else:
            listed = self.partial if is_partial else self.complete
            listed |= set(types)

    def listed(self, required: Collection[str]) -> ListedInventory:
        """Return the listing."""
        inventory = Inventory(self.resources, self.identities, self.grants)
        partial = frozenset(self.partial - self.failures.keys())
        complete = frozenset(self.complete - self.failures.keys() - partial)
        return ListedInventory(inventory, complete, partial, dict(self.failures), frozenset(required))


def list_static(listing: InventoryBuilder, source: IdentitySource, resource_id: str) -> None:
    """List the configured identities. Each is active on the resource."""
    for each in source.static_identities:
        team = each.team or source.team_of(each.identity_id)
        metadata: dict[str, Any] = {"team": team, "source": "static"}
        listing.identities.append(
            Identity(each.identity_id, each.identity_type, each.display_name or each.identity_id, metadata=metadata)
        )
        listing.grants.append(Grant(f"static:{each.identity_id}", resource_id, each.identity_id))
        listing.complete.add(each.identity_type)
    listing.complete.add(GRANT)


def list_discovered(
    listing: InventoryBuilder, source: IdentitySource, client: PrometheusClient, query: str, label: str, now: Clock
) -> None:
    """List the identities that ``query`` named within the last ``discovery_window_hours`` before ``now``. An identity
    that was not seen for longer is not deleted."""

    def part() -> None:
        known = {identity.identity_id for identity in listing.identities} | {UNALLOCATED}
        listing.identities += [
            Identity(name, PRINCIPAL, name, metadata={"team": source.team_of(name), "source": "metrics"})
            for name in sorted(recently_seen(client, query, label, source.discovery_window_hours, now) - known)
        ]

    listing.attempt([PRINCIPAL], part, is_partial=True)


def recently_seen(client: PrometheusClient, query: str, label: str, hours: int, now: Clock) -> set[str]:
    """Return the values of a label that a query returned within the hours before ``now``.

    Raises:
        SourceError: as for :meth:`PrometheusClient.range`.
    """
    end = now()
    found = client.range(with_step(query, _LOOKBACK), end - timedelta(hours=hours), end, _LOOKBACK)
    return {series.labels[label] for series in found if series.labels.get(label)}
