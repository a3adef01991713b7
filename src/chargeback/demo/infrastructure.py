"""The resources of the generated organisation: environments, clusters, registries, connectors, ksqlDB and Flink."""

from __future__ import annotations

from typing import Literal, cast

from chargeback.demo.inventory import (
    Cluster,
    ComputePool,
    Connector,
    DemoInventory,
    Environment,
    KsqlCluster,
    Link,
    Registry,
    Statement,
)
from chargeback.demo.people import TEAMS, GenerationPlan
from chargeback.demo.sizes import CLUSTER_PLAN, DAILY_BYTES, FLINK_REGIONS
from chargeback.demo.traffic import RHYTHMS

ENVIRONMENTS = ("prod", "staging", "dev", "analytics")
ClusterKind = Literal["Basic", "Standard", "Dedicated", "Enterprise", "Freight"]
ConnectorAuth = Literal["service_account", "api_key", "absent", "custom"]
PLUGINS: tuple[tuple[str, Literal["source", "sink"]], ...] = (
    ("S3_SINK", "sink"),
    ("PostgresCdcSource", "source"),
    ("DatagenSource", "source"),
    ("BigQuerySink", "sink"),
    ("SnowflakeSink", "sink"),
)
#: How the n-th connector names its owner.
AUTHS: tuple[ConnectorAuth, ...] = ("service_account", "api_key", "absent", "custom", "service_account")
STATES = ("RUNNING", "RUNNING", "RUNNING", "PAUSED", "FAILED")


def add_infrastructure(plan: GenerationPlan, inventory: DemoInventory) -> None:
    """Add everything that can be billed, except what belongs to members of clusters (keys, topics)."""
    _add_environments(plan, inventory)
    _add_clusters(plan, inventory)
    _add_connectors(plan, inventory)
    _add_ksql(plan, inventory)
    _add_flink(plan, inventory)
    _add_links(plan, inventory)


def environment_id(inventory: DemoInventory, name: str) -> str:
    """Return the id of the environment of that name."""
    return next(item.id for item in inventory.environments if item.name == name)


def _add_environments(plan: GenerationPlan, inventory: DemoInventory) -> None:
    rng = plan.rng("environments")
    for name in ENVIRONMENTS:
        package: Literal["ESSENTIALS", "ADVANCED"] = "ADVANCED" if name in ("prod", "analytics") else "ESSENTIALS"
        created = plan.moment(-800, rng)
        environment = Environment(id=plan.ids.make("env-"), name=name, created=created, package=package)
        inventory.environments.append(environment)
        inventory.registries.append(
            Registry(
                id=plan.ids.make("lsrc-"),
                name="Stream Governance Package",
                created=created,
                environment=environment.id,
                package=package,
                cloud="AWS",
                region="eu-west-1" if name == "analytics" else "us-east-1",
            )
        )


def _add_clusters(plan: GenerationPlan, inventory: DemoInventory) -> None:
    """Add the planned clusters, and a Basic one in dev that is deleted on the tenth day."""
    rng = plan.rng("clusters")
    chosen = [CLUSTER_PLAN[index % len(CLUSTER_PLAN)] for index in range(plan.size_spec.clusters)]
    for index, (environment, kind) in enumerate([*chosen, ("dev", "Basic")]):
        sunset = index == len(chosen)
        written = DAILY_BYTES[kind] * rng.randrange(60, 141) // 100
        inventory.clusters.append(
            Cluster(
                id=plan.ids.make("lkc-"),
                name="sandbox-old" if sunset else f"{environment}-{kind.lower()}-{index}",
                created=plan.long_ago(rng),
                deleted=plan.moment(9, rng) if sunset else None,
                environment=environment_id(inventory, environment),
                kind=cast("ClusterKind", kind),
                cloud="AWS",
                region="eu-west-1" if environment == "analytics" else "us-east-1",
                cku=rng.randrange(2, 7) if kind == "Dedicated" else 0,
                written=written,
                read=written * rng.randrange(90, 320) // 100,
            )
        )


def _add_connectors(plan: GenerationPlan, inventory: DemoInventory) -> None:
    rng = plan.rng("connectors")
    homes = [cluster for cluster in inventory.clusters if cluster.deleted is None and cluster.kind != "Freight"]
    for index in range(plan.size_spec.connectors):
        home, auth = homes[index % len(homes)], AUTHS[index % len(AUTHS)]
        plugin, direction = PLUGINS[index % len(PLUGINS)]
        inventory.connectors.append(
            Connector(
                id=plan.ids.make("clcc-" if auth == "custom" else "lcc-"),
                name=f"{TEAMS[index % len(TEAMS)]}-{plugin.lower().replace('_', '-')}-{index}",
                created=plan.long_ago(rng),
                environment=home.environment,
                cluster=home.id,
                plugin=plugin,
                direction=direction,
                auth=auth,
                owner=inventory.service_accounts[index % 8].id,
                tasks=rng.randrange(1, 5),
                state=STATES[rng.randrange(len(STATES))],
                bytes_a_day=rng.randrange(1, 90) * 1_000_000_000,
            )
        )


def _add_ksql(plan: GenerationPlan, inventory: DemoInventory) -> None:
    """Add ksqlDB clusters; the last one runs as a user, the others as service accounts."""
    rng = plan.rng("ksql")
    homes = [cluster for cluster in inventory.clusters if cluster.kind in ("Standard", "Basic", "Dedicated")]
    homes = [cluster for cluster in homes if cluster.deleted is None]
    for index in range(plan.size_spec.ksql_clusters):
        home, is_user = homes[index % len(homes)], index == plan.size_spec.ksql_clusters - 1
        owner = inventory.users[1].id if is_user else inventory.service_accounts[(index + 3) % 8].id
        inventory.ksql_clusters.append(
            KsqlCluster(
                id=plan.ids.make("lksqlc-"),
                name=f"ksql-{TEAMS[index % len(TEAMS)]}-{index}",
                created=plan.long_ago(rng),
                environment=home.environment,
                cluster=home.id,
                csu=(1, 4, 8, 2)[index % 4],
                owner=owner,
                owner_kind="User" if is_user else "ServiceAccount",
            )
        )


def _add_flink(plan: GenerationPlan, inventory: DemoInventory) -> None:
    rng = plan.rng("flink")
    for index in range(plan.size_spec.compute_pools):
        cloud, region = FLINK_REGIONS[index % 2]
        pool = ComputePool(
            id=plan.ids.make("lfcp-"),
            name=f"pool-{TEAMS[index % len(TEAMS)]}-{index}",
            created=plan.long_ago(rng),
            environment=environment_id(inventory, "prod" if index % 2 == 0 else "analytics"),
            cloud=cloud,
            region=region,
            max_cfu=(10, 20, 50)[index % 3],
        )
        inventory.compute_pools.append(pool)
        for number in range(plan.size_spec.statements):
            inventory.statements.append(_statement(plan, inventory, pool, number))


def _statement(plan: GenerationPlan, inventory: DemoInventory, pool: ComputePool, number: int) -> Statement:
    """Return a statement. Owners alternate: service account, user, pool; each pool's last statement is in the metrics
    only, and its second to last does not name its principal."""
    rng = plan.rng("statement", pool.id, number)
    owners = (inventory.service_accounts[number % 8].id, inventory.users[0].id, inventory.pools[0].id)
    principal: str | None = owners[number % 3]
    nameless = plan.size_spec.statements > 3 and number == plan.size_spec.statements - 2
    return Statement(
        id=plan.ids.make("", 12),
        name=f"insert-{TEAMS[number % len(TEAMS)]}-{pool.id[5:]}-{number}",
        created=plan.long_ago(rng),
        environment=pool.environment,
        pool=pool.id,
        principal=None if nameless else principal,
        phase=("RUNNING", "RUNNING", "STOPPED", "COMPLETED")[rng.randrange(4)],
        cfu=rng.randrange(200, 6000) * 1440,
        rhythm=RHYTHMS[rng.randrange(len(RHYTHMS))],
        listed=number != plan.size_spec.statements - 1,
    )


def _add_links(plan: GenerationPlan, inventory: DemoInventory) -> None:
    """Add cluster links into dedicated clusters, and Tableflow on dedicated and enterprise ones (every fourth
    cluster)."""
    rng = plan.rng("links")
    for cluster in inventory.clusters:
        if cluster.kind == "Dedicated":
            inventory.links.append(
                Link(
                    cluster=cluster.id,
                    name=f"dr-{cluster.name}",
                    read_share=rng.randrange(50, 200),
                    write_share=rng.randrange(50, 200),
                )
            )
    inventory.tableflow.extend(
        cluster.id
        for index, cluster in enumerate(inventory.clusters)
        if cluster.kind in ("Dedicated", "Enterprise") and index % 4 == 1 and cluster.deleted is None
    )
