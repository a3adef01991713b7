"""Advice about settings that are valid but probably not intended."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from chargeback.allocation.policies import parse_policies
from chargeback.config.access import AccessSettings
from chargeback.config.configuration import Configuration, Tenant
from chargeback.config.problems import suggestion


def advice_about(configuration: Configuration) -> Iterator[str]:
    """Yield one sentence per suspicious setting; it names the key, and the tenant if it is one's."""
    yield from _roles_without_effect(configuration.access)
    for tenant in configuration.tenants.values():
        yield from _unknown_policies(tenant)
        if configuration.features.enable_periodic_refresh:
            yield from _long_gap(tenant, configuration.features.refresh_interval)


def _roles_without_effect(access: AccessSettings) -> Iterator[str]:
    """Find roles that grant nothing, and callers who get no role."""
    if access.mode == "none" and access.roles:
        yield "access.roles has no effect, because access.mode is none: everybody may see and change everything"
    if access.mode != "none" and not access.roles:
        yield "no one may see anything, because access.roles is empty; only tokens (`chargeback token`) give rights"


def _long_gap(tenant: Tenant, interval: int) -> Iterator[str]:
    """Find a tenant that is refreshed less often than ``features.refresh_interval`` says."""
    gap = tenant.plugin_settings.min_refresh_gap_seconds
    if gap > interval:
        yield (
            f"tenant {tenant.name} is refreshed only every {gap} s: its min_refresh_gap_seconds is longer than "
            f"features.refresh_interval ({interval} s)"
        )


def _unknown_policies(tenant: Tenant) -> Iterator[str]:
    """Find policies for product types that the ecosystem does not know: new ones of the provider, or typing errors. An
    ecosystem that reads any bill knows none."""
    own = parse_policies(tenant.plugin_settings.allocation_policies, "allocation_policies").names
    if not own:
        return
    without = tenant.plugin_settings.model_copy(update={"allocation_policies": {}})
    known = tenant.ecosystem.tenant_catalogue(without)
    names = sorted({*known.policies, *known.aliases})
    for name in own if names else ():
        if known.find(name) is None and not any(fnmatchcase(each, name) for each in names):
            hint = suggestion(name, names) or "; it applies only to bills with lines of this type"
            yield (
                f"tenant {tenant.name}: plugin_settings.allocation_policies has a policy for {name}, "
                f"a product type that is unknown to {tenant.ecosystem.name}{hint}"
            )
