"""The attribution of a day's cluster cost to topics: a pure function of lines, measurements and the plan.

Topics take the place of identities: each method becomes a policy, and the day's calculation is used. So the split is
exact to the last digit, for any sign and any number of topics.

A split by a measure is among topics with a positive value. An even split is among all topics of the evidence, whether
measured (even as zero) or only known to have existed.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation import methods
from chargeback.allocation.day import DayCalculator, Evidence
from chargeback.allocation.methods import EVEN_ACTIVE, AllocationMethod, MethodKind
from chargeback.allocation.policies import Policy, PolicyCatalogue, Portion
from chargeback.errors import DimensionCollision
from chargeback.model import chargeback as chargeback_model
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.topics import (
    ATTRIBUTION_FAILED,
    EVEN_SPLIT,
    EXISTED,
    TOPIC_ATTRIBUTIONS,
    TOPIC_DIMENSION_COLUMNS,
    TOPIC_DIMENSION_ID_SQL,
    TOPIC_ORDER,
    UNATTRIBUTED,
    TopicMethod,
    TopicPlan,
)
from chargeback.model.usage import ACTIVE, MEMBERS, USAGE

#: The prefix of topic names during the calculation, because a topic may have the name ``UNALLOCATED``.
MARK: Final = "."


class TopicAttributor:
    """Attributes days, one after the other. Not to be shared between threads."""

    def __init__(self, plan: TopicPlan, *, threads: int = 2, memory_limit: str = "1GB") -> None:
        self._plan = plan
        policies = {name: topic_policy(method, plan) for name, method in plan.methods.items()}
        catalogue = PolicyCatalogue(policies, plan.aliases)
        self._calculator = DayCalculator(catalogue, threads=threads, memory_limit=memory_limit)
        self._db = self._calculator.connect()

    def close(self) -> None:
        """Release the engine's memory."""
        self._db.close()
        self._calculator.close()

    def attribute(self, day: date, lines: pa.Table, evidence: pa.Table) -> pa.Table:
        """Return the topic rows of a day (schema TOPIC_ATTRIBUTIONS, in list order).

        ``lines`` is the result of :func:`lines_of_clusters`. ``evidence`` has the measurements in schema USAGE with
        topics as subjects, and a row of measure EXISTED for each topic that existed but was not measured. The rows of
        every line sum to its cost; if the plan says so, lines without measurements have no rows.

        Raises:
            AllocationError: the amounts of the day do not fit 38 digits.
            DimensionCollision: two dimensions of the day have the same id.
        """
        return self._rows(self._calculator.calculate(day_of_topics(day, lines, evidence, self._plan)).rows, lines)

    def failed(self, day: date, lines: pa.Table) -> pa.Table:
        """Return one row with the full cost for each line that costs something, if the metrics are not available."""
        charged = lines.filter(pc.not_equal(lines["total_cost"], Decimal(0)))
        return self._ordered(
            f"SELECT date, timestamp, line_id, ecosystem, tenant_id, environment_id AS env_id,"
            f" resource_id AS cluster_resource_id, '{UNATTRIBUTED}' AS topic_name, product_category, product_type,"
            f" '{ATTRIBUTION_FAILED}' AS attribution_method, total_cost AS amount,"
            f" NULL AS topic_usage, NULL AS total_usage FROM given",
            given=charged,
        )

    def _rows(self, shares: pa.Table, lines: pa.Table) -> pa.Table:
        """Return chargeback rows, whose identities are topics, as topic rows."""
        types = lines["product_type"].unique().to_pylist()
        methods = pa.table({"product_type": types, "named": [self._method_name(each) for each in types]})
        kept = "true" if self._plan.spreads_missing else f"identity_id <> '{UNALLOCATED}'"
        return self._ordered(
            f"SELECT date, timestamp, line_id, ecosystem, tenant_id, environment_id AS env_id,"
            f" resource_id AS cluster_resource_id,"
            f" CASE WHEN identity_id = '{UNALLOCATED}' THEN '{UNATTRIBUTED}' ELSE identity_id[2:] END AS topic_name,"
            f" product_category, product_type,"
            f" CASE WHEN allocation_method = '{chargeback_model.USAGE_RATIO}' THEN named ELSE '{EVEN_SPLIT}' END"
            f" AS attribution_method, amount, identity_usage AS topic_usage, total_usage"
            f" FROM given JOIN methods USING (product_type) WHERE {kept}",
            given=shares,
            methods=methods.cast(pa.schema([("product_type", pa.string()), ("named", pa.string())])),
        )

    def _method_name(self, product_type: str) -> str:
        method = self._plan.method_of(product_type)
        return EVEN_SPLIT if method is None else method.method

    def _ordered(self, query: str, **tables: pa.Table) -> pa.Table:
        for name, table in tables.items():
            self._db.register(name, table)
        columns = ", ".join(
            f"{TOPIC_DIMENSION_ID_SQL} AS dimension_id" if field.name == "dimension_id" else field.name
            for field in TOPIC_ATTRIBUTIONS
        )
        rows = self._db.sql(f"SELECT {columns} FROM ({query}) ORDER BY {', '.join(TOPIC_ORDER)}").to_arrow_table()
        self._check_collisions(rows)
        for name in tables:
            self._db.unregister(name)
        return rows.cast(TOPIC_ATTRIBUTIONS)

    def _check_collisions(self, rows: pa.Table) -> None:
        self._db.register("rows_of_day", rows)
        names = ", ".join(TOPIC_DIMENSION_COLUMNS)
        twice = self._db.execute(
            f"SELECT dimension_id FROM (SELECT DISTINCT dimension_id, {names} FROM rows_of_day)"
            " GROUP BY dimension_id HAVING count(*) > 1"
        ).fetchone()
        self._db.unregister("rows_of_day")
        if twice is not None:
            raise DimensionCollision(f"different topic dimensions share the id {twice[0]}")


def lines_of_clusters(billing: pa.Table, clusters: Collection[str], plan: TopicPlan | None = None) -> pa.Table:
    """Return the lines billed to one of ``clusters``, in their order; with a plan, only those that it attributes."""
    of_clusters = pc.is_in(billing["resource_id"], value_set=pa.array(sorted(clusters), pa.string()))
    if plan is None:
        return billing.filter(of_clusters)
    types = [each for each in billing["product_type"].unique().to_pylist() if plan.method_of(each) is not None]
    of_types = pc.is_in(billing["product_type"], value_set=pa.array(types, pa.string()))
    return billing.filter(pc.and_(of_clusters, of_types))


def day_of_topics(day: date, lines: pa.Table, evidence: pa.Table, plan: TopicPlan) -> Evidence:
    """Return lines and measurements as the evidence of a day whose identities are topics, marked by :data:`MARK`."""
    marked = _marked(_included(evidence, plan))
    clusters = lines["resource_id"].unique()
    marked = marked.filter(pc.is_in(marked["resource_id"], value_set=clusters.cast(pa.string())))
    return Evidence(day, lines, marked.filter(pc.not_equal(marked["measure"], EXISTED)), _members(marked))


def topic_policy(method: TopicMethod, plan: TopicPlan) -> Policy:
    """Return the policy that splits a line among topics by a method: the whole line, by one chain of methods."""
    by_usage = [AllocationMethod(MethodKind.USAGE, method.measures)] if method.measures else []
    evenly = [EVEN_ACTIVE] if plan.spreads_missing or not by_usage else []
    return Policy((Portion(Decimal(1), (*by_usage, *evenly, methods.UNALLOCATED)),))


def _included(evidence: pa.Table, plan: TopicPlan) -> pa.Table:
    excluded = [topic for topic in evidence["subject"].unique().to_pylist() if plan.excludes(topic)]
    if not excluded:
        return evidence
    return evidence.filter(pc.invert(pc.is_in(evidence["subject"], value_set=pa.array(excluded, pa.string()))))


def _marked(evidence: pa.Table) -> pa.Table:
    marked = pc.binary_join_element_wise(MARK, evidence["subject"], "")
    return evidence.set_column(USAGE.get_field_index("subject"), USAGE.field("subject"), marked)


def _members(evidence: pa.Table) -> pa.Table:
    """Return every topic of the evidence as active on its cluster."""
    topics = (
        evidence.select(["date", "resource_id", "subject"]).group_by(["date", "resource_id", "subject"]).aggregate([])
    )
    relation = pa.array([ACTIVE] * topics.num_rows, pa.string())
    return (
        topics.rename_columns(["date", "resource_id", "identity_id"]).append_column("relation", relation).cast(MEMBERS)
    )
