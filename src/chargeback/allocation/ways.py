"""The ways of the policies as tables and SQL: who could take a share, which way applies, and why the first did not.

A *charge* is one portion of one line. Relations (all temporary, of one day):

- ``lines``: the billing lines, numbered in list order;
- ``portions``, ``chain``, ``measures``: the policies spelt out, see :func:`spell_out`;
- ``parts``: the lines split into their portions;
- ``candidates``: per way and scope (a resource, or ``*`` for the whole tenant) the recipients, their weights and,
  for even splits, their rank by id;
- ``reasons``: per first way and scope why it fails, should it fail;
- ``chosen``: per charge the first way that has candidates, in this pass (``charges``: in all passes);
- ``shares``: the outcome, one row per charge and recipient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from chargeback.allocation.policies import UNKNOWN, Kind, Policy, Way
from chargeback.model import chargeback as words
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.money import to_units
from chargeback.model.usage import ACTIVE, EVERYTHING, OWNER, OWNERS, PERIOD

#: The relation that members are kept under, by kind of way and, for ``even``, scope.
_RELATIONS: Final = {
    (Kind.EVEN, "active"): ACTIVE,
    (Kind.EVEN, "period"): PERIOD,
    (Kind.EVEN, "owners"): OWNERS,
    (Kind.OWNER, None): OWNER,
}

#: Per kind of way: the row's cost type, its method, and its detail when the first way applied.
OUTCOMES: Final = {
    Kind.USAGE: (words.USAGE_COST, words.USAGE_RATIO, words.USAGE_RATIO_ALLOCATION),
    Kind.OWNER: (words.USAGE_COST, words.DIRECT, words.OWNER_ALLOCATION),
    Kind.EVEN: (words.SHARED_COST, words.EVEN_SPLIT, words.EVEN_SPLIT_ALLOCATION),
    Kind.PROPORTIONAL: (words.SHARED_COST, words.PROPORTIONAL, words.PROPORTIONAL_ALLOCATION),
    Kind.UNALLOCATED: (words.SHARED_COST, words.TERMINAL, words.NO_IDENTITIES_LOCATED),
}


class SpeltOut(NamedTuple):
    """Policies as tables.

    - ``portions``: product_type, portion, weight (10⁻¹² of the line), share, policy_hash
    - ``ways``: product_type, portion, position, way, kind, relation, everywhere, cost_type, method, detail
    - ``measures``: way, measure
    """

    portions: pa.Table
    ways: pa.Table
    measures: pa.Table


def spell_out(policies: Mapping[str, Policy]) -> SpeltOut:
    """The policies of the day's product types as tables."""
    portions: list[dict[str, Any]] = []
    ways: list[dict[str, Any]] = []
    measures: dict[str, tuple[str, ...]] = {}
    for product_type, policy in policies.items():
        for number, portion in enumerate(policy.portions, start=1):
            where = {"product_type": product_type, "portion": number}
            portions.append(
                {**where, "weight": to_units(portion.share), "share": portion.share, "policy_hash": policy.hash}
            )
            for position, way in enumerate(portion.ways, start=1):
                ways.append({**where, "position": position, **_spell_way(way, known=policy is not UNKNOWN)})
                if way.kind is Kind.USAGE:
                    measures[str(way)] = way.arguments
    return SpeltOut(
        pa.Table.from_pylist(portions, schema=_PORTIONS),
        pa.Table.from_pylist(ways, schema=_WAYS),
        pa.Table.from_pylist(
            [{"way": way, "measure": measure} for way, names in measures.items() for measure in names],
            schema=_MEASURES,
        ),
    )


def _spell_way(way: Way, *, known: bool) -> dict[str, Any]:
    cost_type, method, detail = OUTCOMES[way.kind]
    scope = way.arguments[0] if way.kind is Kind.EVEN else None
    return {
        "way": str(way),
        "kind": str(way.kind),
        "relation": _RELATIONS.get((way.kind, scope)),
        "everywhere": way.kind in {Kind.PROPORTIONAL, Kind.UNALLOCATED} or scope == "period",
        "cost_type": cost_type,
        "method": method,
        "detail": detail if known else words.UNKNOWN_PRODUCT_TYPE,
    }


_PORTIONS = pa.schema(
    [
        ("product_type", pa.string()),
        ("portion", pa.int16()),
        ("weight", pa.int64()),
        ("share", pa.decimal128(38, 12)),
        ("policy_hash", pa.string()),
    ]
)
_WAYS = pa.schema(
    [
        ("product_type", pa.string()),
        ("portion", pa.int16()),
        ("position", pa.int16()),
        ("way", pa.string()),
        ("kind", pa.string()),
        ("relation", pa.string()),
        ("everywhere", pa.bool_()),
        ("cost_type", pa.string()),
        ("method", pa.string()),
        ("detail", pa.string()),
    ]
)
_MEASURES = pa.schema([("way", pa.string()), ("measure", pa.string())])

#: Lines of zero cost have no rows.
LINES: Final = """
    CREATE OR REPLACE TEMP TABLE lines AS
    SELECT row_number() OVER (ORDER BY timestamp, resource_id, product_type, line_id) AS line,
           * EXCLUDE (units), units::HUGEINT AS units
    FROM billing_in WHERE units <> 0
"""

#: What :func:`~chargeback.allocation.split.split_sql` splits first: each line into the portions of its policy.
PORTIONS_TO_SPLIT: Final = """
    (SELECT line AS charge, portion AS id, units, weight::HUGEINT AS weight
     FROM lines JOIN portions USING (product_type))
"""

CANDIDATES: Final = f"""
    CREATE OR REPLACE TEMP TABLE candidates AS
    WITH used AS (
        SELECT way, resource_id AS scope, subject AS id, sum(micro::HUGEINT) AS weight, sum(value) AS quantity
        FROM usage_in JOIN measures USING (measure) GROUP BY ALL
    ), members AS (
        SELECT DISTINCT way, kind, resource_id AS scope, identity_id AS id
        FROM members_in JOIN (SELECT DISTINCT way, kind, relation FROM chain) USING (relation)
        WHERE identity_id <> '{UNALLOCATED}'
    )
    SELECT way, scope, id, weight::HUGEINT AS weight, quantity::DECIMAL(38,6) AS quantity,
           NULL::BIGINT AS rank, NULL::BIGINT AS many
    FROM used WHERE weight > 0
    UNION ALL
    SELECT way, scope, id, 1::HUGEINT, NULL,
           row_number() OVER (PARTITION BY way, scope ORDER BY id), count(*) OVER (PARTITION BY way, scope)
    FROM members
    UNION ALL
    SELECT '{Kind.UNALLOCATED}', '{EVERYTHING}', '{UNALLOCATED}', 1::HUGEINT, NULL, 1, 1
"""

#: Follows what each identity was charged by the lines that are not proportional; who was credited counts as zero.
PROPORTIONAL_CANDIDATES: Final = f"""
    INSERT INTO candidates
    SELECT '{Kind.PROPORTIONAL}', '{EVERYTHING}', id, sum(share)::HUGEINT, NULL, NULL, NULL
    FROM shares WHERE id <> '{UNALLOCATED}' GROUP BY id HAVING sum(share) > 0
"""

#: Why a first way fails, per way and, where it depends on the resource, per resource.
REASONS: Final = f"""
    CREATE OR REPLACE TEMP TABLE reasons AS
    SELECT line, portion, CASE
        WHEN kind = '{Kind.USAGE}' AND NOT $metrics_available THEN '{words.METRICS_UNAVAILABLE}'
        WHEN kind = '{Kind.USAGE}' AND (way, resource_id) IN (
            SELECT (way, resource_id) FROM usage_in JOIN measures USING (measure)
        ) THEN '{words.NO_USAGE_FOR_ACTIVE_IDENTITIES}'
        WHEN kind = '{Kind.USAGE}' THEN '{words.NO_METRICS_LOCATED}'
        WHEN relation IN ('{OWNER}', '{OWNERS}') THEN '{words.NO_OWNER_LOCATED}'
        WHEN relation = '{PERIOD}' THEN '{words.NO_IDENTITIES_LOCATED}'
        ELSE '{words.NO_ACTIVE_IDENTITIES_LOCATED}' END AS reason
    FROM lines JOIN chain USING (product_type) WHERE position = 1
"""

NO_SHARES: Final = """
    CREATE OR REPLACE TEMP TABLE shares (
        charge BIGINT, id VARCHAR, quantity DECIMAL(38,6), share HUGEINT
    );
    CREATE OR REPLACE TEMP TABLE charges (
        charge BIGINT, line BIGINT, portion SMALLINT, units HUGEINT, position SMALLINT, way VARCHAR, scope VARCHAR,
        total HUGEINT, quantity DECIMAL(38,6), is_even BOOLEAN, is_wide BOOLEAN
    )
"""

#: Per charge the first way of its chain that finds somebody. A charge is numbered by line and portion.
CHOSEN: Final = f"""
    CREATE OR REPLACE TEMP TABLE chosen AS
    WITH found AS (
        SELECT way, scope, sum(weight) AS total, max(weight) AS largest, sum(quantity) AS quantity,
               bool_and(rank IS NOT NULL) AS is_even
        FROM candidates GROUP BY ALL
    ), possible AS (
        SELECT parts.charge AS line, parts.id AS portion, parts.share AS units, position, found.*
        FROM parts
        JOIN lines ON lines.line = parts.charge
        JOIN chain ON chain.product_type = lines.product_type AND chain.portion = parts.id
        JOIN found ON found.way = chain.way
                  AND found.scope = CASE WHEN everywhere THEN '{EVERYTHING}' ELSE lines.resource_id END
        WHERE parts.share <> 0 AND list_contains($types, lines.product_type)
    )
    SELECT line * 1000 + portion AS charge, line, portion, units, position, way, scope, total, quantity, is_even,
           NOT is_even
           AND least(abs(units)::DOUBLE, total::DOUBLE) * largest::DOUBLE >= $largest AS is_wide
    FROM possible QUALIFY row_number() OVER (PARTITION BY line, portion ORDER BY position) = 1
"""

KEEP_CHOSEN: Final = "INSERT INTO charges SELECT * FROM chosen"

INTO_SHARES: Final = "INSERT INTO shares BY NAME SELECT charge, id, quantity, share FROM"

#: An even split needs no remainders to be compared: the first ones by id get the units that are left.
EVEN_SHARES: Final = f"""
    {INTO_SHARES} (
        SELECT charge, id, NULL AS quantity, (CASE WHEN units < 0 THEN -1 ELSE 1 END)::HUGEINT
               * (abs(units) // many + CASE WHEN rank <= abs(units) % many THEN 1 ELSE 0 END) AS share
        FROM chosen JOIN candidates USING (way, scope) WHERE is_even
    ) WHERE share <> 0
"""

WEIGHTED_TO_SPLIT: Final = """
    (SELECT charge, id, units, weight, candidates.quantity
     FROM chosen JOIN candidates USING (way, scope) WHERE NOT is_even AND NOT is_wide)
"""

WIDE_TO_SPLIT: Final = """
    SELECT charge, units, id, weight, candidates.quantity
    FROM chosen JOIN candidates USING (way, scope) WHERE is_wide ORDER BY charge, id
"""

#: Each charge with the words that its rows carry. A line's number follows (timestamp, resource, type, line id), so that
#: ordering rows by (timestamp, identity, line, portion) is the order of lists.
EXPLAINED: Final = f"""
    CREATE OR REPLACE TEMP TABLE explained AS
    SELECT charges.charge, charges.line, charges.portion, charges.position, charges.quantity, lines.* EXCLUDE (line),
           cost_type, method AS allocation_method, chain.kind, portions.share AS portion_share, policy_hash,
           CASE WHEN charges.position = 1 THEN chain.detail
                WHEN chain.kind = '{Kind.UNALLOCATED}' THEN '{words.NO_IDENTITIES_LOCATED}'
                ELSE reason END AS detail
    FROM charges
    JOIN lines USING (line)
    JOIN portions ON portions.product_type = lines.product_type AND portions.portion = charges.portion
    JOIN chain ON chain.product_type = lines.product_type AND chain.portion = charges.portion
              AND chain.position = charges.position
    JOIN reasons ON reasons.line = charges.line AND reasons.portion = charges.portion
"""

ROWS: Final = f"""
    WITH named AS (
        SELECT explained.* EXCLUDE (charge, quantity, units), id AS identity_id, share, shares.quantity AS own,
               explained.quantity AS total,
               CASE WHEN kind = '{Kind.USAGE}' AND id = '{UNALLOCATED}' THEN '{words.NO_OWNER_LOCATED}'
                    ELSE detail END AS allocation_detail
        FROM shares JOIN explained USING (charge) WHERE share <> 0
    )
    SELECT $day::DATE AS date, timestamp, line_id, portion, {words.DIMENSION_ID_SQL} AS dimension_id,
           ecosystem, tenant_id, resource_id, environment_id, product_category, product_type, identity_id,
           cost_type, share AS units, allocation_method, allocation_detail, portion_share,
           position AS chain_position, own AS identity_usage, total AS total_usage, policy_hash
    FROM named ORDER BY timestamp, identity_id, line, portion
"""
