"""The evidence of generated days: billing lines, usage and members, made by set-based SQL in milliseconds.

The evidence depends only on the shape and the day: it is the same on every machine.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import duckdb
import pyarrow as pa

from benchmarks.shapes import CLUSTER_TYPES, CONNECTORS, ENVIRONMENTS, ORGANISATION_TYPES, Shape
from chargeback.allocation.day import Evidence
from chargeback.model.billing import BILLING
from chargeback.model.usage import MEMBERS, USAGE

ECOSYSTEM: Final = "confluent_cloud"
TENANT_ID: Final = "bench"
ORGANISATION: Final = "org-bench"

_MEMBERS_OF_CLUSTERS: Final = """
    SELECT cluster, 'sa-' || lpad(((cluster * greatest($identities // $clusters, 1) + number) % $identities)::VARCHAR,
                                  6, '0') AS identity
    FROM range($clusters) AS clusters(cluster), range($members) AS numbers(number)
"""

_LINES: Final = f"""
    SELECT 'lkc-' || cluster AS resource_id, 'env-' || (cluster % {ENVIRONMENTS}) AS environment_id,
           'KAFKA' AS product_category, product_type
    FROM range($clusters) AS clusters(cluster), (SELECT unnest($cluster_types::VARCHAR[]) AS product_type)
    UNION ALL
    SELECT 'lsrc-' || env, 'env-' || env, 'STREAM_GOVERNANCE', 'SCHEMA_REGISTRY'
    FROM range({ENVIRONMENTS}) AS environments(env)
    UNION ALL
    SELECT 'lcc-' || n, 'env-' || (n % $clusters % {ENVIRONMENTS}), 'CONNECT', 'CONNECT_CAPACITY'
    FROM range({CONNECTORS}) AS connectors(n)
    UNION ALL
    SELECT '{ORGANISATION}', NULL, 'SUPPORT', unnest($organisation_types::VARCHAR[])
    UNION ALL
    SELECT 'lkc-0', 'env-0', 'KAFKA', 'SOMETHING_NEW'
"""

_BILLING: Final = f"""
    SELECT $day::DATE AS date, md5(concat_ws('/', $day, resource_id, product_type)) AS line_id,
           '{ECOSYSTEM}' AS ecosystem, '{TENANT_ID}' AS tenant_id, $day::DATE::TIMESTAMPTZ AS timestamp,
           resource_id, environment_id, product_category, product_type,
           1::DECIMAL(38,12) AS quantity, cost AS unit_price, cost AS original_amount,
           0::DECIMAL(38,12) AS discount_amount, cost AS total_cost, 'USD' AS currency, 'daily' AS granularity,
           'Hour' AS unit, resource_id AS resource_name, NULL AS network_access_type, NULL AS description,
           NULL AS tier, NULL AS provider_id, NULL AS original_text
    FROM (SELECT *, (CASE WHEN product_type = 'PROMO_CREDIT' THEN -1 ELSE 1 END
                     * (hash($day, resource_id, product_type) % 1000000000)::DECIMAL(18,0)
                     * 0.000001)::DECIMAL(38,12) AS cost
          FROM ({_LINES}))
    ORDER BY timestamp, resource_id, product_type, line_id
"""

_USAGE: Final = f"""
    SELECT $day::DATE AS date, measure, 'lkc-' || cluster AS resource_id, identity AS subject,
           ((hash($day, cluster, identity, measure) % 1000000000000) + 1)::DECIMAL(38,6) AS value
    FROM ({_MEMBERS_OF_CLUSTERS}), (VALUES ('bytes_in'), ('bytes_out')) AS measures(measure)
    WHERE hash(identity, cluster) % 20 <> 0
    ORDER BY measure, resource_id, subject
"""

_MEMBERS: Final = f"""
    WITH pairs AS ({_MEMBERS_OF_CLUSTERS})
    SELECT $day::DATE AS date, resource_id, identity_id, relation FROM (
        SELECT 'lkc-' || cluster AS resource_id, identity AS identity_id, 'active' AS relation FROM pairs
        UNION ALL
        SELECT 'lsrc-' || cluster, identity, 'active' FROM pairs WHERE cluster < {ENVIRONMENTS}
        UNION ALL
        SELECT 'lcc-' || n, 'sa-' || lpad((n % $identities)::VARCHAR, 6, '0'), 'owner'
        FROM range({CONNECTORS}) AS connectors(n)
        UNION ALL
        SELECT '*', 'sa-' || lpad(n::VARCHAR, 6, '0'), 'period' FROM range($identities) AS everybody(n)
    ) ORDER BY relation, resource_id, identity_id
"""


class EvidenceMaker:
    """Generates the days of one shape, one at a time."""

    def __init__(self, shape: Shape) -> None:
        self._parameters = {
            "identities": shape.identities,
            "clusters": shape.clusters,
            "members": shape.members,
            "cluster_types": list(CLUSTER_TYPES),
            "organisation_types": list(ORGANISATION_TYPES),
        }
        self._db = duckdb.connect()
        self._db.execute("SET TimeZone = 'UTC'")

    def close(self) -> None:
        """Release the engine's memory."""
        self._db.close()

    def day(self, day: date) -> Evidence:
        """Return the evidence of one day, each table in its stored order."""
        return Evidence(
            day,
            self._table(_BILLING, day, BILLING),
            self._table(_USAGE, day, USAGE),
            self._table(_MEMBERS, day, MEMBERS),
        )

    def _table(self, sql: str, day: date, schema: pa.Schema) -> pa.Table:
        named: dict[str, Any] = {**self._parameters, "day": day.isoformat()}
        used = {name: value for name, value in named.items() if f"${name}" in sql}
        found = self._db.sql(sql, params=used).to_arrow_table()
        return found.select(schema.names).cast(schema)
