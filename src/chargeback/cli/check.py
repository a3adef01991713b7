"""``chargeback check``: validate the configuration, and test its addresses and credentials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from chargeback.cli.options import DEFAULT_CONFIG, FAILED, ConfigOption

if TYPE_CHECKING:
    from chargeback.config import Tenant
    from chargeback.config.access import AccessSettings
    from chargeback.config.compute import ComputeSettings
    from chargeback.ecosystems.contract import Finding


def check(
    config: ConfigOption = DEFAULT_CONFIG,
    online: Annotated[
        bool, typer.Option("--online", help="Also test the credentials and addresses of every tenant.")
    ] = False,
) -> None:
    """Check the configuration. With --online, also test its addresses and credentials."""
    from chargeback.cli.display import print_findings, print_tenants
    from chargeback.config import load_configuration
    from chargeback.config.advice import advice_about

    configuration = load_configuration(config)
    tenants = list(configuration.tenants.values())
    typer.echo(f"{config} is valid.")
    typer.echo(_described(configuration.access))
    print_tenants(tenants)
    for sentence in advice_about(configuration):
        typer.echo(f"warning: {sentence}", err=True)
    works = [_keys_can_be_read(configuration.access, online=online)]
    if online and configuration.features.compute.type == "dask":
        works.append(_workers_may_be_used(configuration.features.compute))
    usable = [tenant for tenant in tenants if _storage_may_be_used(tenant, online=online)]
    works.append(len(usable) == len(tenants))
    if online:
        works += [_clocks_agree(tenant) for tenant in usable]
        works += [print_findings(tenant.name, _findings(tenant)) for tenant in tenants]
    if not all(works):
        raise typer.Exit(FAILED)


def _described(access: AccessSettings) -> str:
    """Return the access of callers in one sentence."""
    if access.mode == "none":
        return "access: none; everybody who reaches the service may see and change everything"
    noun = "role" if len(access.roles) == 1 else "roles"
    return f"access: {access.mode}, {len(access.roles)} {noun}; `chargeback access explain` shows what a user may do"


def _keys_can_be_read(access: AccessSettings, *, online: bool) -> bool:
    """Check the keys of the issuer of tokens; an address is only contacted with ``online``."""
    from chargeback.errors import ConfigurationError

    if access.mode != "jwt" or access.jwt is None or not (online or access.jwt.jwks_file):
        return True
    from chargeback.api.signing_keys import check_keys

    try:
        check_keys(access.jwt)
    except ConfigurationError as error:
        typer.echo(f"error: {error}", err=True)
        return False
    return True


def _workers_may_be_used(compute: ComputeSettings) -> bool:
    """Check that the Dask cluster can be reached, and that its workers have the versions of this process."""
    from chargeback.errors import WorkersUnavailable
    from chargeback.pipeline.fleet import connect, where_of

    try:
        with connect(compute) as client:
            workers = len(client.nthreads())
    except WorkersUnavailable as error:
        typer.echo(f"error: {error}", err=True)
        return False
    count = "1 worker" if workers == 1 else f"{workers} workers"
    typer.echo(f"compute: {where_of(compute)} has {count}, with the versions of this process")
    return True


def _storage_may_be_used(tenant: Tenant, *, online: bool) -> bool:
    """Check that existing storage belongs to the tenant, and that policies with dates are those by which its days were
    calculated. Servers are contacted only with ``online``; then object storage is tried out."""
    from chargeback.errors import PoliciesChanged, SchemaError, StorageError
    from chargeback.recompute.policies import check_policies
    from chargeback.store.tenant import check_storage

    try:
        check_storage(tenant, check_policies, ask_server=online, try_out=online)
    except PoliciesChanged as error:
        typer.echo(f"error: {error}", err=True)
        return False
    except StorageError as error:
        if online or isinstance(error, SchemaError):
            typer.echo(f"error: {error}", err=True)
            return False
    return True


def _clocks_agree(tenant: Tenant) -> bool:
    """Compare this machine's clock with those of the tenant's storage."""
    from chargeback.errors import StorageError
    from chargeback.store.clocks import MOST, USUAL
    from chargeback.store.tenant import read_clocks

    try:
        readings = read_clocks(tenant)
    except StorageError as error:
        typer.echo(f"error: {error}", err=True)
        return False
    for name, reading in readings.items():
        if reading.difference > USUAL:
            level = "error" if reading.difference > MOST else "warning"
            seconds = reading.ahead.total_seconds()
            where = "ahead of" if seconds > 0 else "behind"
            typer.echo(
                f"{level}: tenant {tenant.name}: the clock of {name} is {abs(seconds):.0f} s {where} this machine's: "
                "synchronise both, for example by NTP",
                err=True,
            )
    return all(reading.difference <= MOST for reading in readings.values())


def _findings(tenant: Tenant) -> Iterator[Finding]:
    """Return the findings of the ecosystem's check for a tenant."""
    from chargeback.config.configuration import state_dir
    from chargeback.ecosystems.contract import Finding, TenantContext
    from chargeback.errors import ChargebackError
    from chargeback.model.days import utc_today

    context = TenantContext(
        tenant_name=tenant.name,
        tenant_id=tenant.settings.tenant_id,
        currency=tenant.settings.currency,
        today=utc_today(),
        stop=Event(),
        state_dir=str(state_dir()),
        is_awaited=True,
    )
    try:
        with tenant.ecosystem.open(context, tenant.plugin_settings) as gatherer:
            yield from gatherer.check()
    except ChargebackError as error:
        yield Finding(tenant.ecosystem.name, ok=False, detail=str(error))
    for bill in tenant.additional_bills:
        try:
            with bill.ecosystem.open(
                replace(context, currency=bill.currency, bill_only=True), bill.plugin_settings
            ) as gatherer:
                yield from (replace(each, subject=f"{bill.name}: {each.subject}") for each in gatherer.check())
        except ChargebackError as error:
            yield Finding(bill.name, ok=False, detail=str(error))
