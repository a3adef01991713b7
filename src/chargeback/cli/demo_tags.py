"""Tags for the demo: the team of each identity, as set through the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chargeback.demo.people import team_of
from chargeback.store.control import tags
from chargeback.store.control.inventory import read_inventory
from chargeback.store.control.tags import IDENTITY, TagWrite
from chargeback.store.tenant import open_store

if TYPE_CHECKING:
    from chargeback.config import Tenant

KEY: Final = "team"
_PAYERS: Final = frozenset({"identity_pool", "service_account", "user"})


def tag_teams(tenant: Tenant, seed: int, *, with_principals: bool = False) -> None:
    """Tag most identities of the demo with their teams; do nothing if the tenant already has tags. Principals that only
    the metrics name are tagged if nothing else names identities.

    Raises:
        StorageError: the tenant's storage cannot be used.
    """
    store = open_store(tenant)
    try:
        with store.control.write() as connection:
            if tags.revision(connection):
                return
            types = _PAYERS | {"principal"} if with_principals else _PAYERS
            people = [each for each in read_inventory(connection).identities if each.identity_type in types]
            teams = {each.identity_id: team_of(seed, each.identity_id, each.display_name or "") for each in people}
            writes = [TagWrite(IDENTITY, who, KEY, team) for who, team in sorted(teams.items()) if team is not None]
            tags.write_many(connection, store.tenant_id, writes, created_by="demo", override=False)
    finally:
        store.close()
