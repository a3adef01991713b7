"""Chargeback rows: one share of one billing line."""

from __future__ import annotations

import hashlib
from typing import Final, Literal

import pyarrow as pa

from chargeback.model.billing import INSTANT, MONEY
from chargeback.model.usage import QUANTITY

#: The columns that make a dimension, in the order in which they are hashed.
DIMENSION_COLUMNS: Final = (
    "ecosystem",
    "tenant_id",
    "resource_id",
    "product_category",
    "product_type",
    "identity_id",
    "cost_type",
    "allocation_method",
    "allocation_detail",
)

#: One row is one share of one billing line. ``portion``, ``portion_share``, ``chain_position``, ``identity_usage``
#: and ``total_usage`` are rendered as the row's metadata. A row's key is (line_id, portion, identity_id).
CHARGEBACKS = pa.schema(
    [
        pa.field("date", pa.date32(), nullable=False),
        pa.field("timestamp", INSTANT, nullable=False),
        pa.field("line_id", pa.string(), nullable=False),
        pa.field("portion", pa.int16(), nullable=False),
        pa.field("dimension_id", pa.int64(), nullable=False),
        pa.field("ecosystem", pa.string(), nullable=False),
        pa.field("tenant_id", pa.string(), nullable=False),
        pa.field("resource_id", pa.string(), nullable=False),
        pa.field("environment_id", pa.string()),
        pa.field("product_category", pa.string(), nullable=False),
        pa.field("product_type", pa.string(), nullable=False),
        pa.field("identity_id", pa.string(), nullable=False),
        pa.field("cost_type", pa.string(), nullable=False),
        pa.field("amount", MONEY, nullable=False),
        pa.field("allocation_method", pa.string(), nullable=False),
        pa.field("allocation_detail", pa.string(), nullable=False),
        pa.field("portion_share", MONEY, nullable=False),
        pa.field("chain_position", pa.int16(), nullable=False),
        pa.field("identity_usage", QUANTITY),
        pa.field("total_usage", QUANTITY),
        pa.field("policy_hash", pa.string(), nullable=False),
    ]
)

#: The order of rows in a day's file and in every list: time first, then ids.
CHARGEBACK_ORDER: Final = ("timestamp", "identity_id", "resource_id", "product_type", "line_id", "portion")

#: Every dimension ever written, to look one up and to detect two with the same id.
DIMENSIONS = pa.schema(
    [pa.field("dimension_id", pa.int64(), nullable=False)] + [CHARGEBACKS.field(name) for name in DIMENSION_COLUMNS]
)


def encoded(schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionary-encoded texts, for large tables in memory."""
    texts = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(texts) if field.type == pa.string() else field for field in schema])


# cost_type
CostType = Literal["usage", "shared"]
USAGE_COST = "usage"
SHARED_COST = "shared"

# allocation_method
USAGE_RATIO = "usage_ratio"
EVEN_SPLIT = "even_split"
PROPORTIONAL = "proportional"
DIRECT = "direct"
TERMINAL = "terminal"

# allocation_detail, if the first method of the chain applied …
USAGE_RATIO_ALLOCATION = "USAGE_RATIO_ALLOCATION"
OWNER_ALLOCATION = "OWNER_ALLOCATION"
EVEN_SPLIT_ALLOCATION = "EVEN_SPLIT_ALLOCATION"
PROPORTIONAL_ALLOCATION = "PROPORTIONAL_ALLOCATION"
# … and if it did not: the reason.
NO_METRICS_LOCATED = "NO_METRICS_LOCATED"
METRICS_UNAVAILABLE = "METRICS_UNAVAILABLE"
NO_USAGE_FOR_ACTIVE_IDENTITIES = "NO_USAGE_FOR_ACTIVE_IDENTITIES"
NO_OWNER_LOCATED = "NO_OWNER_LOCATED"
NO_ACTIVE_IDENTITIES_LOCATED = "NO_ACTIVE_IDENTITIES_LOCATED"
NO_IDENTITIES_LOCATED = "NO_IDENTITIES_LOCATED"
UNKNOWN_PRODUCT_TYPE = "UNKNOWN_PRODUCT_TYPE"

ALLOCATION_ISSUES: Final = (
    NO_METRICS_LOCATED,
    METRICS_UNAVAILABLE,
    NO_USAGE_FOR_ACTIVE_IDENTITIES,
    NO_OWNER_LOCATED,
    NO_ACTIVE_IDENTITIES_LOCATED,
    NO_IDENTITIES_LOCATED,
    UNKNOWN_PRODUCT_TYPE,
)


def dimension_id(values: tuple[str, ...]) -> int:
    """Return the id of a dimension: a positive integer below 2⁵³, the same on every machine and in every version.

    ``values`` are those of :data:`DIMENSION_COLUMNS`, in that order.
    """
    digest = hashlib.md5("\x1f".join(values).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little") % (2**53 - 1) + 1


# (DuckDB's `md5_number_lower` is the upper half of `md5_number`, and takes three times as long.)
_DIGEST_SQL: Final = f"md5_number(concat_ws(chr(31), {', '.join(DIMENSION_COLUMNS)}))"

#: The same in DuckDB's SQL, over columns of these names: millions of rows never pass through Python.
DIMENSION_ID_SQL: Final = f"(({_DIGEST_SQL} >> 64)::UBIGINT % {2**53 - 1} + 1)::BIGINT"

#: The half of the digest that is not in the id: it distinguishes two dimensions with the same id.
DIMENSION_CHECK_SQL: Final = f"({_DIGEST_SQL} & {2**64 - 1}::UHUGEINT)::UBIGINT"
