"""What the demo prints at its end: costs by identity and product type, compared with the bill to the last digit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from chargeback.config import Tenant
from chargeback.model.days import instants
from chargeback.model.money import total
from chargeback.recompute.verify import CALCULATED, DayCheck, verify
from chargeback.store.control.inventory import read_inventory
from chargeback.store.queries.datasets import CHARGEBACKS
from chargeback.store.queries.engine import CancellationToken, QueryEngine
from chargeback.store.queries.lookups import LookupCaches
from chargeback.store.queries.reader import TenantReader, open_reader
from chargeback.store.queries.selection import Selection
from chargeback.store.queries.sums import sums_by
from chargeback.store.tenant import open_store


@dataclass(frozen=True)
class Summary:
    """The summary of one tenant's stored days. Amounts are exact, the largest first. ``names`` maps identity ids to
    display names."""

    tenant: str
    currency: str
    days: tuple[DayCheck, ...]
    by_identity: tuple[tuple[str, Decimal], ...]
    by_product: tuple[tuple[str, Decimal], ...]
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def billed(self) -> Decimal:
        """Return the bill of all calculated days."""
        return total([day.billing for day in self.days])

    @property
    def charged(self) -> Decimal:
        """Return the amount charged for them."""
        return total([day.chargebacks for day in self.days])


def summarise(tenant: Tenant) -> Summary:
    """Return the summary of the calculated days of a tenant, from the same store and queries as the API's.

    Raises:
        StorageError: the tenant's storage cannot be read.
    """
    store = open_store(tenant)
    engine = QueryEngine()
    try:
        days = tuple(day for day in verify(store) if day.state == CALCULATED)
        with open_reader(engine, store, CancellationToken(), LookupCaches()) as reader:
            by_identity = _grouped(reader, days, "identity_id")
            by_product = _grouped(reader, days, "product_type")
        with store.control.read() as connection:
            known = read_inventory(connection).identities
        names = {each.identity_id: each.display_name for each in known if each.display_name}
        return Summary(tenant.name, tenant.settings.currency, days, by_identity, by_product, names)
    finally:
        engine.close()
        store.close()


def _grouped(reader: TenantReader, days: tuple[DayCheck, ...], column: str) -> tuple[tuple[str, Decimal], ...]:
    if not days:
        return ()
    found = sums_by(reader, CHARGEBACKS, Selection(instants(days[0].day, days[-1].day)), (column,))
    sums = [(name or "", amount) for (name,), amount in found.items()]
    return tuple(sorted(sums, key=lambda pair: (-pair[1], pair[0])))
