"""``chargeback verify``: does every day's allocation sum to its bill?"""

from __future__ import annotations

import typer

from chargeback.cli.exits import FAILED
from chargeback.cli.options import ConfigOption, TenantOption, chosen_tenants


def verify(config: ConfigOption, tenant: TenantOption = None) -> None:
    """Compare each day's chargebacks with its bill, digit by digit."""
    from chargeback.cli.display import print_days
    from chargeback.config import load_configuration
    from chargeback.pipeline.run import open_store
    from chargeback.pipeline.verify import verify as compare

    configuration = load_configuration(config)
    right = True
    for each in chosen_tenants(configuration, tenant):
        database = each.storage.database_file
        if database is not None and not database.exists():
            typer.echo(f"tenant {each.name}: nothing was gathered yet")
            continue
        store = open_store(each)
        try:
            right = print_days(each.name, compare(store)) and right
        finally:
            store.close()
    if not right:
        raise typer.Exit(FAILED)
