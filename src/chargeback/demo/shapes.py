"""The provider's JSON objects, made from the inventory. Field by field as in its OpenAPI documents (Confluent Cloud:
org/v2, cmk/v2, iam/v2, srcm/v3, ksqldbcm/v2, fcpm/v2, sql/v1, connect/v1). Costs are in ``bills``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from chargeback.demo.inventory import (
    ApiKey,
    Cluster,
    ComputePool,
    Connector,
    Environment,
    IdentityPool,
    IdentityProvider,
    KsqlCluster,
    ProviderObject,
    Registry,
    ServiceAccount,
    Statement,
    User,
)
from chargeback.demo.randomness import token

Json = dict[str, Any]
HIDDEN = "****************"
CRN = "crn://confluent.cloud"


def moment(value: datetime) -> str:
    """Return RFC 3339 in UTC."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


class Shapes:
    """Makes the objects of one organisation; ``base`` is the URL under which it is served."""

    def __init__(self, organization_id: str, organization_name: str, base: str) -> None:
        self.organization_id = organization_id
        self.organization_name = organization_name
        self._base = base
        self._crn = f"{CRN}/organization={organization_id}"

    def organization(self, created: datetime) -> Json:
        """org/v2 Organization."""
        path, crn = f"/org/v2/organizations/{self.organization_id}", self._crn
        return {
            "api_version": "org/v2",
            "kind": "Organization",
            "id": self.organization_id,
            "metadata": {"self": self._base + path, "resource_name": crn, "created_at": moment(created)},
            "display_name": self.organization_name,
            "jit_enabled": False,
        }

    def environment(self, item: Environment) -> Json:
        """org/v2 Environment."""
        return {
            **self._head("org/v2", "Environment", item, f"environments/{item.id}", f"environment={item.id}"),
            "display_name": item.name,
            "stream_governance_config": {"package": item.package},
        }

    def cluster(self, item: Cluster) -> Json:
        """cmk/v2 Cluster."""
        config: Json = {"kind": item.kind}
        status: Json = {"phase": "PROVISIONED"}
        if item.kind == "Dedicated":
            config |= {"cku": item.cku, "zones": ["use1-az1", "use1-az2", "use1-az4"]}
            status["cku"] = item.cku
        elif item.kind == "Freight":
            config |= {"max_ecku": 20, "zones": ["use1-az1"]}
        else:
            config["max_ecku"] = 10
        host = f"pkc-{item.id[4:]}.{item.region}.aws.confluent.cloud"
        crn = f"environment={item.environment}/cloud-cluster={item.id}"
        return {
            **self._head("cmk/v2", "Cluster", item, f"clusters/{item.id}", crn),
            "spec": {
                "display_name": item.name,
                "availability": "SINGLE_ZONE" if item.kind == "Basic" else "MULTI_ZONE",
                "cloud": item.cloud,
                "region": item.region,
                "config": config,
                "kafka_bootstrap_endpoint": f"SASL_SSL://{host}:9092",
                "http_endpoint": f"https://{host}",
                "environment": self._environment_reference(item.environment),
            },
            "status": status,
        }

    def user(self, item: User) -> Json:
        """iam/v2 User."""
        return {
            **self._head("iam/v2", "User", item, f"users/{item.id}", f"user={item.id}"),
            "email": item.email,
            "full_name": item.name,
            "auth_type": item.auth_type,
        }

    def service_account(self, item: ServiceAccount) -> Json:
        """iam/v2 ServiceAccount."""
        path, crn = f"service-accounts/{item.id}", f"service-account={item.id}"
        return {
            **self._head("iam/v2", "ServiceAccount", item, path, crn),
            "display_name": item.name,
            "description": item.description,
        }

    def api_key(self, item: ApiKey) -> Json:
        """iam/v2 ApiKey; without the secret."""
        owners = {"User": "users", "ServiceAccount": "service-accounts"}
        resource = self._key_resource(item)
        return {
            **self._head("iam/v2", "ApiKey", item, f"api-keys/{item.id}", f"api-key={item.id}"),
            "spec": {
                "secret": "",
                "display_name": item.name,
                "description": "",
                "owner": {
                    "id": item.owner,
                    "related": f"{self._base}/iam/v2/{owners[item.owner_kind]}/{item.owner}",
                    "resource_name": f"{self._crn}/{owners[item.owner_kind][:-1]}={item.owner}",
                    "api_version": "iam/v2",
                    "kind": item.owner_kind,
                },
                "resource": resource,
                "resources": [resource],
            },
        }

    def provider(self, item: IdentityProvider) -> Json:
        """iam/v2 IdentityProvider."""
        path, crn = f"identity-providers/{item.id}", f"identity-provider={item.id}"
        return {
            **self._head("iam/v2", "IdentityProvider", item, path, crn),
            "display_name": item.name,
            "description": f"Sign-on of {item.name}",
            "identity_claim": "claims.sub",
            "state": "ENABLED",
            "issuer": item.issuer,
            "jwks_uri": f"{item.issuer}/keys",
        }

    def pool(self, item: IdentityPool) -> Json:
        """iam/v2 IdentityPool."""
        path = f"identity-providers/{item.provider}/identity-pools/{item.id}"
        return {
            **self._head("iam/v2", "IdentityPool", item, path, f"identity-pool={item.id}"),
            "display_name": item.name,
            "description": f"Workloads of {item.name}",
            "identity_claim": "claims.sub",
            "filter": f'claims.team == "{item.name}"',
            "principal": item.id,
            "state": "ENABLED",
        }

    def registry(self, item: Registry) -> Json:
        """srcm/v3 Cluster."""
        crn = f"environment={item.environment}/schema-registry={item.id}"
        return {
            **self._head("srcm/v3", "Cluster", item, f"clusters/{item.id}", crn),
            "spec": {
                "display_name": item.name,
                "package": item.package,
                "http_endpoint": f"https://psrc-{item.id[5:]}.{item.region}.aws.confluent.cloud",
                "cloud": item.cloud,
                "region": item.region,
                "environment": self._environment_reference(item.environment),
            },
            "status": {"phase": "PROVISIONED"},
        }

    def ksql_cluster(self, item: KsqlCluster) -> Json:
        """ksqldbcm/v2 Cluster; ``credential_identity`` is the identity it runs as."""
        owners = {"User": "users", "ServiceAccount": "service-accounts"}[item.owner_kind]
        crn = f"environment={item.environment}/ksql={item.id}"
        environment = self._environment_reference(item.environment)
        return {
            **self._head("ksqldbcm/v2", "Cluster", item, f"clusters/{item.id}", crn),
            "spec": {
                "display_name": item.name,
                "use_detailed_processing_log": True,
                "csu": item.csu,
                "kafka_cluster": {
                    "id": item.cluster,
                    "environment": item.environment,
                    "related": f"{self._base}/cmk/v2/clusters/{item.cluster}",
                    "resource_name": f"{self._crn}/environment={item.environment}/cloud-cluster={item.cluster}",
                    "api_version": "cmk/v2",
                    "kind": "Cluster",
                },
                "credential_identity": {
                    "id": item.owner,
                    "related": f"{self._base}/iam/v2/{owners}/{item.owner}",
                    "resource_name": f"{self._crn}/{owners[:-1]}={item.owner}",
                    "api_version": "iam/v2",
                    "kind": item.owner_kind,
                },
                "environment": {**environment, "api_version": "org/v2", "kind": "Environment"},
            },
            "status": {
                "http_endpoint": f"https://pksqlc-{item.id[7:]}.us-east-1.aws.confluent.cloud",
                "phase": "PROVISIONED",
                "is_paused": False,
                "storage": 125 * item.csu,
                "topic_prefix": f"pksqlc-{item.id[7:]}",
            },
        }

    def compute_pool(self, item: ComputePool) -> Json:
        """fcpm/v2 ComputePool."""
        crn = f"environment={item.environment}/flink-region={item.region_id}/compute-pool={item.id}"
        return {
            **self._head("fcpm/v2", "ComputePool", item, f"compute-pools/{item.id}", crn),
            "spec": {
                "display_name": item.name,
                "cloud": item.cloud,
                "region": item.region,
                "max_cfu": item.max_cfu,
                "enable_ai": False,
                "default_pool": False,
                "environment": self._environment_reference(item.environment),
            },
            "status": {"phase": "PROVISIONED", "current_cfu": item.max_cfu // 2},
        }

    def region(self, cloud: str, name: str, gateway: str) -> Json:
        """fcpm/v2 Region; ``gateway`` is the host that lists its statements."""
        region_id = f"{cloud.lower()}.{name}"
        return {
            "api_version": "fcpm/v2",
            "kind": "Region",
            "id": region_id,
            "metadata": {
                "self": f"{self._base}/fcpm/v2/regions/{region_id}",
                "resource_name": f"{self._crn}/region={region_id}",
            },
            "display_name": name,
            "cloud": cloud,
            "region_name": name,
            "http_endpoint": gateway,
        }

    def statement(self, item: Statement, gateway: str) -> Json:
        """sql/v1 Statement, as in the responses of its region's gateway."""
        place = f"/sql/v1/organizations/{self.organization_id}/environments/{item.environment}/statements"
        spec: Json = {
            "statement": f"INSERT INTO sink_{item.id} SELECT * FROM source_{item.id};",
            "properties": {"sql.current-catalog": "prod", "sql.current-database": "orders"},
            "compute_pool_id": item.pool,
            "stopped": item.phase == "STOPPED",
        }
        status: Json = {"phase": item.phase, "detail": ""}
        if item.principal is not None:
            spec["principal"] = item.principal
            status["identity"] = f"{self._crn}/identity={item.principal}"
        return {
            "api_version": "sql/v1",
            "kind": "Statement",
            "metadata": {
                "self": f"{gateway}{place}/{item.name}",
                "created_at": moment(item.created),
                "updated_at": moment(item.created),
                "uid": token(32, item.id),
                "resource_version": "2",
                "labels": {},
            },
            "name": item.name,
            "organization_id": self.organization_id,
            "environment_id": item.environment,
            "spec": spec,
            "status": status,
        }

    def connector(self, item: Connector, parts: set[str]) -> Json:
        """One value of connect/v1's map of connectors; ``parts`` are the requested expansions (id, info, status)."""
        full: Json = {
            "id": {"id": item.id, "id_type": "ID"},
            "info": {
                "name": item.name,
                "type": item.direction,
                "config": _connector_config(item),
                "tasks": [{"connector": item.name, "task": number} for number in range(item.tasks)],
            },
            "status": {
                "name": item.name,
                "type": item.direction,
                "connector": {"state": item.state, "worker_id": item.name, "trace": ""},
                "tasks": [
                    {"id": number, "state": item.state, "worker_id": item.name, "msg": ""}
                    for number in range(item.tasks)
                ],
            },
        }
        return {name: value for name, value in full.items() if name in parts}

    def _head(self, version: str, kind: str, item: ProviderObject, path: str, crn: str) -> Json:
        return {
            "api_version": version,
            "kind": kind,
            "id": item.id,
            "metadata": {
                "self": f"{self._base}/{version}/{path}",
                "resource_name": f"{self._crn}/{crn}",
                "created_at": moment(item.created),
                "updated_at": moment(item.created),
            },
        }

    def _environment_reference(self, environment: str) -> Json:
        return {
            "id": environment,
            "related": f"{self._base}/org/v2/environments/{environment}",
            "resource_name": f"{self._crn}/environment={environment}",
        }

    def _key_resource(self, item: ApiKey) -> Json:
        versions = {"Cluster": "cmk/v2", "SchemaRegistry": "srcm/v3", "Region": "fcpm/v2", "ksqlDB": "ksqldbcm/v2"}
        version = versions.get(item.resource_kind)
        path = f"{version}/clusters" if version and item.resource_kind != "Region" else "fcpm/v2/regions"
        found: Json = {
            "id": item.resource,
            "related": f"{self._base}/{path}/{item.resource}",
            "resource_name": f"{self._crn}/{item.resource_kind.lower()}={item.resource}",
        }
        if item.environment is not None:
            found["environment"] = item.environment
        if version is not None:
            found["api_version"] = version
        if item.resource_kind != "Global":
            # Schema Registry and ksqlDB clusters are of kind Cluster, too: the api_version distinguishes them.
            found["kind"] = item.resource_kind if item.resource_kind in ("Cloud", "Region") else "Cluster"
        return found


def _connector_config(item: Connector) -> dict[str, str]:
    """Return the configuration. Secrets are asterisks, including ``kafka.api.key``, so it does not name the owner."""
    config = {
        "cloud.environment": "prod",
        "cloud.provider": "aws",
        "connector.class": item.plugin,
        "kafka.api.key": HIDDEN,
        "kafka.api.secret": HIDDEN,
        "kafka.endpoint": f"SASL_SSL://pkc-{item.cluster[4:]}.us-east-1.aws.confluent.cloud:9092",
        "kafka.region": "us-east-1",
        "name": item.name,
        "tasks.max": str(item.tasks),
    }
    if item.auth == "service_account":
        config |= {"kafka.auth.mode": "SERVICE_ACCOUNT", "kafka.service.account.id": item.owner}
    elif item.auth == "api_key":
        config["kafka.auth.mode"] = "KAFKA_API_KEY"
    elif item.auth == "custom":
        config |= {
            "confluent.connector.type": "CUSTOM",
            "confluent.custom.plugin.id": f"ccp-{item.id[5:]}",
            "kafka.auth.mode": "KAFKA_API_KEY",
        }
    return config
