"""The records of the generated organisation; ``shapes`` converts them to the provider's JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ProviderObject:
    """An object of the provider's API: an id, a name and a lifetime (UTC)."""

    id: str
    name: str
    created: datetime
    deleted: datetime | None = None

    def existed_on(self, day: date) -> bool:
        """Return whether it existed during any part of ``day``."""
        return self.created.date() <= day and (self.deleted is None or self.deleted.date() >= day)

    def listed_on(self, today: date) -> bool:
        """Return whether the provider lists it on ``today``: deleted objects are not listed."""
        return self.created.date() <= today and (self.deleted is None or self.deleted.date() > today)


@dataclass(frozen=True, kw_only=True)
class Environment(ProviderObject):
    """An environment; ``package`` is that of its stream governance."""

    package: Literal["ESSENTIALS", "ADVANCED"]


@dataclass(frozen=True, kw_only=True)
class Registry(ProviderObject):
    """The Schema Registry of an environment."""

    environment: str
    package: str
    cloud: str
    region: str


@dataclass(frozen=True, kw_only=True)
class Cluster(ProviderObject):
    """A Kafka cluster. ``written`` and ``read`` are the bytes of a usual day at the beginning."""

    environment: str
    kind: Literal["Basic", "Standard", "Dedicated", "Enterprise", "Freight"]
    cloud: str
    region: str
    cku: int
    written: int
    read: int


@dataclass(frozen=True, kw_only=True)
class User(ProviderObject):
    """A person; ``name`` is the full name."""

    email: str
    auth_type: str


@dataclass(frozen=True, kw_only=True)
class ServiceAccount(ProviderObject):
    """A service account."""

    description: str


@dataclass(frozen=True, kw_only=True)
class IdentityProvider(ProviderObject):
    """An identity provider."""

    issuer: str


@dataclass(frozen=True, kw_only=True)
class IdentityPool(ProviderObject):
    """An identity pool of a provider."""

    provider: str


@dataclass(frozen=True, kw_only=True)
class ApiKey(ProviderObject):
    """An API key. ``resource`` is ``cloud``, ``global``, a cluster's id or a Flink region (``aws.us-east-1``)."""

    owner: str
    owner_kind: Literal["User", "ServiceAccount"]
    resource: str
    resource_kind: Literal["Cloud", "Global", "Cluster", "SchemaRegistry", "Region", "ksqlDB"]
    environment: str | None = None


@dataclass(frozen=True, kw_only=True)
class Member:
    """A principal that uses a cluster, with the bytes of a usual day: 0 if it is idle."""

    cluster: str
    principal: str
    since: date
    until: date | None
    written: int
    read: int
    rhythm: str


@dataclass(frozen=True, kw_only=True)
class Topic(ProviderObject):
    """A topic; the bytes of a usual day, and the bytes on disk at the beginning."""

    cluster: str
    written: int
    read: int
    retained: int
    rhythm: str


@dataclass(frozen=True, kw_only=True)
class Connector(ProviderObject):
    """A connector. ``auth`` is the authentication in its configuration: only ``service_account`` names the owner."""

    environment: str
    cluster: str
    plugin: str
    direction: Literal["source", "sink"]
    auth: Literal["service_account", "api_key", "absent", "custom"]
    owner: str
    tasks: int
    state: str
    bytes_a_day: int


@dataclass(frozen=True, kw_only=True)
class KsqlCluster(ProviderObject):
    """A ksqlDB cluster."""

    environment: str
    cluster: str
    csu: int
    owner: str
    owner_kind: Literal["User", "ServiceAccount"]


@dataclass(frozen=True, kw_only=True)
class ComputePool(ProviderObject):
    """A Flink compute pool."""

    environment: str
    cloud: str
    region: str
    max_cfu: int

    @property
    def region_id(self) -> str:
        """The id of its region: ``aws.us-east-1``."""
        return f"{self.cloud.lower()}.{self.region}"


@dataclass(frozen=True, kw_only=True)
class Statement(ProviderObject):
    """A Flink statement; ``name`` is its key. ``cfu`` is in thousandths of a CFU minute a day.

    ``principal`` is None if the provider does not name it.
    """

    environment: str
    pool: str
    principal: str | None
    phase: str
    cfu: int
    rhythm: str
    listed: bool = True


@dataclass(frozen=True, kw_only=True)
class Link:
    """A cluster link into ``cluster``."""

    cluster: str
    name: str
    read_share: int
    write_share: int


@dataclass(frozen=True)
class DemoInventory:
    """All objects that exist at some time until the end of the generated period."""

    organization_id: str
    organization_name: str
    environments: list[Environment] = field(default_factory=list)
    registries: list[Registry] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    service_accounts: list[ServiceAccount] = field(default_factory=list)
    providers: list[IdentityProvider] = field(default_factory=list)
    pools: list[IdentityPool] = field(default_factory=list)
    api_keys: list[ApiKey] = field(default_factory=list)
    members: dict[str, list[Member]] = field(default_factory=dict)
    topics: dict[str, list[Topic]] = field(default_factory=dict)
    connectors: list[Connector] = field(default_factory=list)
    ksql_clusters: list[KsqlCluster] = field(default_factory=list)
    compute_pools: list[ComputePool] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    tableflow: list[str] = field(default_factory=list)
