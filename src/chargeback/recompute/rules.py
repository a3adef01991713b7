"""The rules that calculate the days of a tenant: its present policies, those that were in force when rows were
calculated, and the plan of its topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final, Self

import pyarrow as pa
from sqlalchemy import Connection

from chargeback.allocation.policies import UNKNOWN, Policy, PolicyCatalogue, with_versions
from chargeback.config import Tenant
from chargeback.config.configuration import TopicStatus
from chargeback.ecosystems.contract import ResolveUsage, TopicEcosystem, usage_resolver
from chargeback.model.chargeback import UNKNOWN_PRODUCT_TYPE
from chargeback.model.topics import TopicPlan
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.policies import UsedPolicy, policies_revision, read_applied, read_shipped

SHIPPED: Final = "shipped"
CONFIGURED: Final = "configured"
RECORDED: Final = "recorded"


def topic_plan(tenant: Tenant) -> TopicPlan | None:
    """Return the topic plan of a tenant, or None if the overlay is disabled or its settings are invalid."""
    ecosystem = tenant.ecosystem
    if tenant.topic_status is not TopicStatus.ENABLED or not isinstance(ecosystem, TopicEcosystem):
        return None
    return ecosystem.topic_plan(tenant.plugin_settings)


@dataclass(frozen=True)
class AllocationRules:
    """How the days of a tenant are calculated.

    Attributes:
        catalogue: the tenant's policies.
        shipped: those of its ecosystem, without the tenant's changes.
        resolve: returns stored usage with identities as subjects; None if it is stored with them.
        topics: how clusters are attributed to topics; None if they are not.
    """

    catalogue: PolicyCatalogue = field(default_factory=lambda: PolicyCatalogue({}, {}))
    shipped: PolicyCatalogue = field(default_factory=lambda: PolicyCatalogue({}, {}))
    resolve: ResolveUsage | None = None
    topics: TopicPlan | None = None

    @classmethod
    def of(cls, tenant: Tenant) -> Self:
        """Return the rules of a configured tenant."""
        ecosystem = tenant.ecosystem
        shipped = ecosystem.catalogue.with_shipped(tenant.shipped, ecosystem.catalogue.policies)
        return cls(tenant.catalogue, shipped, usage_resolver(ecosystem), topic_plan(tenant))

    def on(self, day: date) -> AllocationRules:
        """Return the rules of a UTC day."""
        return replace(self, catalogue=self.catalogue.on(day), shipped=self.shipped.on(day))


def with_stored(tenant: Tenant, connection: Connection) -> Tenant:
    """Return a configured tenant with what its control database has of its policies: the versions that were applied
    from a plan, and what its ecosystem shipped before.

    Raises:
        StorageError: the control database cannot be read.
    """
    shipped = read_shipped(connection, tenant.ecosystem.catalogue.policies)
    applied = read_applied(connection)
    settings = tenant.plugin_settings
    if applied:
        own = with_versions(settings.allocation_policies, [each.raw for each in applied])
        settings = settings.model_copy(update={"allocation_policies": own})
    return replace(tenant, plugin_settings=settings, shipped=shipped)


def present_tenant(tenant: Tenant, control: ControlDatabase) -> Tenant:
    """Return the same of a control database.

    Raises:
        StorageError: the control database cannot be read.
    """
    with control.read() as connection:
        return with_stored(tenant, connection)


class RulesInForce:
    """The rules of a tenant as they are now, of which ``rules`` are the configured ones: they are read again when a
    version of its policies was applied or shipped. Thread-safe."""

    def __init__(self, tenant: Tenant, control: ControlDatabase, rules: AllocationRules) -> None:
        self._tenant = tenant
        self._control = control
        self._known = (0, rules)

    def at(self, revision: int) -> AllocationRules:
        """Return the rules at a revision of the applied policies, or at a later one.

        Raises:
            PluginError: the ecosystem's plugin fails.
            StorageError: the control database cannot be read.
        """
        known = self._known
        if known[0] != revision:
            with self._control.read() as connection:
                read = policies_revision(connection), with_stored(self._tenant, connection)
            known = self._known = read[0], AllocationRules.of(read[1])
        return known[1]


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """The policy of a line, and where it comes from: it is that of the ecosystem (``shipped``), of the tenant's
    configuration (``configured``), or was in force when the row was calculated and is not any more (``recorded``).

    ``matched`` is the name or pattern in the catalogue; None for a policy that is not in it.
    """

    product_type: str
    policy: Policy
    source: str
    matched: str | None


class AppliedPolicies:
    """The policies by which the chargeback rows of a day were calculated, if they are recorded."""

    def __init__(self, rules: AllocationRules, used: Sequence[UsedPolicy], rows: pa.Table) -> None:
        """Identify the policies of ``rows`` by their hashes; ``used`` are those that were ever used."""
        self._rules = rules
        self._used = used
        self._by_type = _used_by_type(rows)

    def find(self, product_type: str) -> AppliedPolicy | None:
        """Return the policy by which the lines of a type were split, or None if it is not recorded."""
        used_hash, _ = self._by_type.get(product_type, (None, False))
        matched = self._rules.catalogue.match(product_type)
        configured = UNKNOWN if matched is None else self._rules.catalogue.policies[matched]
        if used_hash in {None, configured.hash}:
            shipped = self._rules.shipped.find(product_type) or UNKNOWN
            source = SHIPPED if shipped.hash == configured.hash else CONFIGURED
            return AppliedPolicy(product_type, configured, source, matched)
        if used_hash == UNKNOWN.hash:
            return AppliedPolicy(product_type, UNKNOWN, RECORDED, None)
        policy = next((each.policy for each in self._used if each.hash == used_hash), None)
        return None if policy is None else AppliedPolicy(product_type, policy, RECORDED, None)

    def is_unknown(self, product_type: str) -> bool:
        """Return whether the rows of a type say that it had no policy."""
        used = self._by_type.get(product_type)
        return self._rules.catalogue.match(product_type) is None if used is None else used[1]


def _used_by_type(rows: pa.Table) -> dict[str, tuple[str, bool]]:
    """Return the hash of the policy of each product type of some rows, and whether the type was unknown."""
    columns = ["product_type", "policy_hash", "allocation_detail"]
    used = rows.select(columns).group_by(columns).aggregate([])
    return {
        each["product_type"]: (each["policy_hash"], each["allocation_detail"] == UNKNOWN_PRODUCT_TYPE)
        for each in used.to_pylist()
    }
