"""The calculation of one day: billing lines, usage and members in, chargeback rows out.

It is a pure function of its evidence and the policies: the same inputs give the same bytes, and the rows of every line
sum to the line. It has three steps, each in a module:

- :mod:`~chargeback.allocation.targets`: the portions to split (lines, divided into the portions of their policies);
- :mod:`~chargeback.allocation.targets`: the targets (the identities of each portion, and the reasons);
- :mod:`~chargeback.allocation.rows`: the rows as columns.

Lines, portions and methods are processed one by one in Python; rows, which can be millions, are calculated as columns.
Lines with a proportional policy are split like the charges of the other lines, so they come last.

An example with a bill of two lines. On 31 January the cluster ``lkc-1`` cost 10 for writing and 1 as a base fee:

>>> from datetime import UTC, datetime
>>> from chargeback.allocation.policies import parse_policies
>>> from chargeback.model.billing import BillingLine, billing_table
>>> from chargeback.model.usage import MEMBERS, USAGE
>>> day, midnight = date(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC)
>>> billing = billing_table(
...     [
...         BillingLine(day, midnight, "lkc-1", "KAFKA", "KAFKA_BASE", Decimal("1.00"), "USD"),
...         BillingLine(day, midnight, "lkc-1", "KAFKA", "KAFKA_NETWORK_WRITE", Decimal("10.00"), "USD"),
...     ],
...     ecosystem="confluent_cloud",
...     tenant_id="acme",
... )

The cost of writing is split by the bytes written; the base fee is split evenly among all identities that are active on
the cluster:

>>> catalogue = PolicyCatalogue(
...     parse_policies(
...         {
...             "KAFKA_BASE": {"portions": [{"share": "1", "try": ["even(active)"]}]},
...             "KAFKA_NETWORK_WRITE": {"portions": [{"share": "1", "try": ["usage(bytes_in)", "even(active)"]}]},
...         },
...         "policies",
...     ),
...     aliases={},
... )

``orders`` wrote three times as much as ``payments``; ``reports`` only read:

>>> wrote = [("orders", Decimal(3000)), ("payments", Decimal(1000))]
>>> usage = pa.Table.from_pylist(
...     [
...         {"date": day, "measure": "bytes_in", "resource_id": "lkc-1", "subject": subject, "value": value}
...         for subject, value in wrote
...     ],
...     schema=USAGE,
... )
>>> members = pa.Table.from_pylist(
...     [
...         {"date": day, "resource_id": "lkc-1", "identity_id": identity_id, "relation": "active"}
...         for identity_id in ("orders", "payments", "reports")
...     ],
...     schema=MEMBERS,
... )

*Portions*: each line has one portion here. From here on, amounts are integers of 10⁻¹²:

>>> lines = billable_lines(billing)
>>> for cost in portion_costs(lines, catalogue.policies):
...     print(cost.line_index, cost.portion.methods[0], cost.units)
0 even(active) 1000000000000
1 usage(bytes_in) 10000000000000

*Targets*: identities are positions in ``identity_ids``; an even split has no weights:

>>> targets = AllocationTargets(usage, members, catalogue.policies["KAFKA_NETWORK_WRITE"].portions[0].methods)
>>> targets.identity_ids
['UNALLOCATED', 'orders', 'payments', 'reports']
>>> for cost in portion_costs(lines, catalogue.policies):
...     group = targets.allocate(cost, metrics_available=True).group
...     print(cost.policy.portions[0].methods[0], group.identity_index.to_pylist(), group.usage)
even(active) [1, 2, 3] None
usage(bytes_in) [1, 2] [
  3000.000000,
  1000.000000
]

*Rows*: the whole calculation. The unit that remains after splitting 1.00 in three goes to the first id:

>>> calculator = DayCalculator(catalogue)
>>> rows = calculator.calculate(Evidence(day, billing, usage, members)).rows
>>> calculator.close()
>>> for row in rows.to_pylist():
...     print(row["identity_id"], row["product_type"], row["amount"], row["allocation_method"])
orders KAFKA_BASE 0.333333333334 even_split
orders KAFKA_NETWORK_WRITE 7.500000000000 usage_ratio
payments KAFKA_BASE 0.333333333333 even_split
payments KAFKA_NETWORK_WRITE 2.500000000000 usage_ratio
reports KAFKA_BASE 0.333333333333 even_split
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from chargeback.allocation.columns import INTEGER, WIDE_INTEGER, repeat
from chargeback.allocation.policies import Policy, PolicyCatalogue
from chargeback.allocation.rows import FIRST_OVERFLOW, SHARES, RowBuilder, check_digits, shares_of
from chargeback.allocation.targets import (
    AllocatedPortion,
    AllocationTargets,
    PortionCost,
    TargetGroup,
    billable_lines,
    portion_costs,
)
from chargeback.model.usage import QUANTITY


@dataclass(frozen=True)
class Evidence:
    """The inputs of a day's calculation.

    ``billing``, ``usage`` and ``members`` have the schemas of :mod:`chargeback.model`. ``metrics_available`` is False
    if the metrics source has been unavailable for so long that the day is calculated without it.
    """

    day: date
    billing: pa.Table
    usage: pa.Table
    members: pa.Table
    metrics_available: bool = True


@dataclass(frozen=True)
class CalculatedDay:
    """The result of a day.

    ``rows`` are its chargebacks (schema CHARGEBACKS, in list order), ``dimensions`` are theirs, each once (schema
    DIMENSIONS, and a ``dimension_check``); texts are dictionary-encoded in both. ``policies`` has the policy of each
    product type on the bill; ``unknown_types`` are the types without one. ``policy_version`` is the hash of the version
    of the tenant's own policies that is in force on the day; None where none is.
    """

    rows: pa.Table
    dimensions: pa.Table
    policies: Mapping[str, Policy]
    unknown_types: tuple[str, ...]
    policy_version: str | None = None


class DayCalculator:
    """Calculates days, one after the other. Not to be shared between threads.

    A large day uses ``threads`` threads; ``memory_limit``, for example ``"1GB"``, bounds the engine that hashes
    dimensions.
    """

    def __init__(self, catalogue: PolicyCatalogue, *, threads: int = 2, memory_limit: str = "1GB") -> None:
        self._catalogue = catalogue
        self._db = duckdb.connect(config={"threads": threads, "memory_limit": memory_limit})
        self._row_builder = RowBuilder(self._db, threads)

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Return another connection to the engine, with tables of its own; the caller closes it."""
        return self._db.cursor()

    def close(self) -> None:
        """Release the engine's memory."""
        self._db.close()

    def calculate(self, evidence: Evidence) -> CalculatedDay:
        """Return the day's rows.

        Raises:
            AllocationError: the amounts of the day do not fit 38 digits.
        """
        types = sorted(set(evidence.billing["product_type"].to_pylist()))
        catalogue = self._catalogue.on(evidence.day)
        policies = catalogue.policies_of(types)
        methods = {m for policy in policies.values() for portion in policy.portions for m in portion.methods}
        lines = billable_lines(evidence.billing)
        costs = list(portion_costs(lines, policies))
        allocation = Allocation(evidence, AllocationTargets(evidence.usage, evidence.members, methods))
        shares = allocation.allocate_others(costs)
        shares = pa.concat_tables([shares, allocation.allocate(cost for cost in costs if cost.policy.is_proportional)])
        rows, dimensions = self._row_builder.build(evidence.day, lines, allocation.portions, allocation.targets, shares)
        unknown = tuple(name for name in types if catalogue.match(name) is None)
        return CalculatedDay(rows, dimensions, policies, unknown, self._catalogue.version_hash(evidence.day))


class Allocation:
    """The allocation of one day in progress: ``portions`` grows with each call of :meth:`allocate`."""

    def __init__(self, evidence: Evidence, targets: AllocationTargets) -> None:
        self.targets = targets
        self.portions: list[AllocatedPortion] = []
        self._day = evidence.day
        self._metrics_available = evidence.metrics_available

    def allocate_others(self, costs: Iterable[PortionCost]) -> pa.Table:
        """Return the shares of those of ``costs`` without a proportional policy; lines with one are then split like
        them.

        Raises:
            AllocationError: what an identity is charged does not fit 38 digits.
        """
        shares = self.allocate(cost for cost in costs if not cost.policy.is_proportional)
        self.targets.add_charged(self._charged(shares))
        return shares

    def allocate(self, costs: Iterable[PortionCost]) -> pa.Table:
        """Return the shares of ``costs`` that are not zero, in schema SHARES."""
        new = [self.targets.allocate(cost, metrics_available=self._metrics_available) for cost in costs]
        first = len(self.portions)
        self.portions += new
        groups = [portion.group for portion in new]
        units = [shares_of(portion.cost.units, portion.group) for portion in new]
        columns = {
            "portion_index": repeat(range(first, first + len(new)), [len(group.identity_index) for group in groups]),
            "identity_index": pa.chunked_array([group.identity_index for group in groups], pa.int32()),
            "units": pa.chunked_array(units, INTEGER),
            "usage": pa.chunked_array([_usage(group) for group in groups], QUANTITY),
        }
        shares = pa.table(columns, schema=SHARES)
        return shares.filter(pc.not_equal(shares["units"], pa.scalar(Decimal(0), INTEGER)))

    def _charged(self, shares: pa.Table) -> pa.Table:
        """Return what ``shares`` charge to each identity: columns ``identity_index``, ascending, and ``units``.

        Raises:
            AllocationError: a sum does not fit 38 digits.
        """
        no_sum_is_larger = sum(abs(portion.cost.units) for portion in self.portions)
        units = shares["units"] if no_sum_is_larger < FIRST_OVERFLOW else shares["units"].cast(WIDE_INTEGER)
        charged = pa.table({"identity_index": shares["identity_index"], "units": units})
        sums = charged.group_by("identity_index", use_threads=False).aggregate([("units", "sum")])
        summed = sums.sort_by("identity_index")
        if summed.num_rows:
            check_digits([int(pc.max(pc.abs(summed["units_sum"])).as_py())], self._day)
        return pa.table({"identity_index": summed["identity_index"], "units": summed["units_sum"].cast(INTEGER)})


def _usage(group: TargetGroup) -> pa.Array:
    return pa.nulls(len(group.identity_index), QUANTITY) if group.usage is None else group.usage
