"""What costs something and is not used, by its measurements: topics, identities, resources.

A day says something about a subject only if the subject was charged on it and its traffic was measured. What was not
measured is never taken for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from chargeback.model.chargeback import USAGE_COST
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.topics import RETAINED_BYTES_RATIO, UNATTRIBUTED
from chargeback.model.usage import ACTIVE
from chargeback.store.facts.tables import MEMBERS_TABLE, TOPIC_USAGE_TABLE, USAGE_TABLE
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import ByColumn, ByDay, Key, keys_of
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.sql_format import exact, named, sum_exact
from chargeback.store.queries.topic_costs import BYTES_IN, BYTES_OUT

TOPIC_WITHOUT_TRAFFIC: Final = "topic_without_traffic"
TOPIC_NEVER_READ: Final = "topic_never_read"
TOPIC_NEVER_WRITTEN: Final = "topic_never_written"
IDLE_RESOURCE: Final = "idle_resource"
IDLE_IDENTITY: Final = "idle_identity"
KINDS: Final = (TOPIC_WITHOUT_TRAFFIC, TOPIC_NEVER_READ, TOPIC_NEVER_WRITTEN, IDLE_RESOURCE, IDLE_IDENTITY)

#: How many days back traffic is looked for.
LOOK_BACK_DAYS: Final = 90
#: How many days, the last ones, give the cost of a month.
MONTH_DAYS: Final = 30

# A kind's last activity, and what must have happened since then, as SQL over the columns of a subject's days.
_TOPIC_RULES: Final = {
    TOPIC_WITHOUT_TRAFFIC: ("used_in > 0 OR used_out > 0", "TRUE"),
    TOPIC_NEVER_READ: ("used_out > 0", "sum(used_in) > 0"),
    TOPIC_NEVER_WRITTEN: ("used_in > 0", "sum(used_out) > 0"),
}
_TOPIC: Final = ("cluster_resource_id", "topic_name")
_NOT_USED: Final = ("used_in > 0", "TRUE")


@dataclass(frozen=True)
class Unused:
    """A subject that costs something and was not used since ``since``.

    Attributes:
        kind: one of :data:`KINDS`.
        place: the cluster of a topic, the resource itself; empty for an identity.
        name: the topic, the identity; empty for a resource.
        since: the first measured day without use.
        last_active: the last day with use; None if there is none in :data:`LOOK_BACK_DAYS` days.
        measured_days: the days since then on which it was charged and measured.
        unmeasured_days: the days since then on which it was charged, but not measured.
        last_measured: the last measured day.
        used_in: what was written since then, in the unit of the measure; of a resource or an identity, everything.
        used_out: what was read.
        monthly_cost: its cost on the last :data:`MONTH_DAYS` days.
        avoidable: the part of it that would not be charged without it.
    """

    kind: str
    place: str
    name: str
    since: date
    last_active: date | None
    measured_days: int
    unmeasured_days: int
    last_measured: date
    used_in: Decimal
    used_out: Decimal
    monthly_cost: Decimal
    avoidable: Decimal = Decimal(0)


def unused(reader: TenantReader, kinds: Collection[str], min_days: int) -> list[Unused]:
    """Return what was not used on at least ``min_days`` measured days up to the last ones, by descending cost.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the facts cannot be read.
    """
    found: list[Unused] = []
    if topic_kinds := [kind for kind in _TOPIC_RULES if kind in kinds]:
        found += _topics(reader, topic_kinds, min_days)
    if IDLE_RESOURCE in kinds:
        found += _resources(reader, min_days)
    if IDLE_IDENTITY in kinds:
        found += _identities(reader, min_days)
    return sorted(found, key=lambda each: (-each.monthly_cost, each.kind, each.place, each.name))


def _topics(reader: TenantReader, kinds: Collection[str], min_days: int) -> list[Unused]:
    """Topics by what was written to them and read from them. A topic without traffic has no series in the metrics, so
    that its bytes are zero where both measures of its cluster are there."""
    days = _days(reader, TOPIC_ATTRIBUTIONS)
    if days is None:
        return []
    costs = _costs(reader, TOPIC_ATTRIBUTIONS, days, "cluster_resource_id", "topic_name")
    usage = _usage(reader, TOPIC_USAGE_TABLE, days, (BYTES_IN, BYTES_OUT))
    subject_days = _table(
        reader,
        "subject_days",
        f"""SELECT costs.date, costs.place, costs.name, total,
                   coalesce(has_in AND has_out, FALSE) AS measured,
                   coalesce(used_in, 0)::DECIMAL(38, 6) AS used_in, coalesce(used_out, 0)::DECIMAL(38, 6) AS used_out
            FROM {costs} AS costs
            LEFT JOIN (SELECT date, place, bool_or(in_rows > 0) AS has_in, bool_or(out_rows > 0) AS has_out
                       FROM {usage} GROUP BY ALL) AS clusters USING (date, place)
            LEFT JOIN {usage} AS used USING (date, place, name)
            WHERE name <> $everything""",
        {"everything": UNATTRIBUTED},
    )
    stored = _stored(reader, days)
    found: dict[tuple[str, str], Unused] = {}
    for kind in kinds:
        for each in _runs(reader, subject_days, kind, *_TOPIC_RULES[kind], min_days):
            avoidable = stored.get((each.place, each.name), Decimal(0))
            # A topic without any traffic is neither unread nor unwritten: the kinds are tried in their order.
            found.setdefault((each.place, each.name), replace(each, avoidable=avoidable))
    return list(found.values())


def _resources(reader: TenantReader, min_days: int) -> list[Unused]:
    """Resources of which every measure was zero. One that has no measurements at all may be used: it is left out."""
    days = _days(reader, CHARGEBACKS)
    if days is None:
        return []
    costs, usage = _costs(reader, CHARGEBACKS, days, "resource_id", ""), _usage(reader, USAGE_TABLE, days, ())
    subject_days = _table(
        reader,
        "subject_days",
        f"""SELECT date, place, name, total, used.place IS NOT NULL AS measured,
                   coalesce(used_in, 0)::DECIMAL(38, 6) AS used_in, 0::DECIMAL(38, 6) AS used_out
            FROM {costs} LEFT JOIN (
                SELECT date, place, sum(used_in) AS used_in FROM {usage} GROUP BY ALL) AS used
            USING (date, place)""",
    )
    found = _runs(reader, subject_days, IDLE_RESOURCE, *_NOT_USED, min_days)
    return [replace(each, avoidable=each.monthly_cost) for each in found]


def _identities(reader: TenantReader, min_days: int) -> list[Unused]:
    """Identities that bear a part of measured resources, because they belong to those that may use them, and used
    none. Whoever is charged by usage, or as an owner, is in use. Within a scope, an identity is in use if it uses a
    resource that the reader sees a row of on that day."""
    days = _days(reader, CHARGEBACKS)
    if days is None:
        return []
    costs = _costs(reader, CHARGEBACKS, days, "resource_id", "identity_id", "cost_type")
    usage = _usage(reader, USAGE_TABLE, days, ())
    members = reader.snapshot(MEMBERS_TABLE).within(days)
    held = (
        f"SELECT DISTINCT date, resource_id AS place, identity_id AS name FROM {SOURCE} WHERE relation = '{ACTIVE}'"
        if members
        else "SELECT NULL::DATE AS date, '' AS place, '' AS name WHERE FALSE"
    )
    held = _table(reader, "held", held, {"files": members} if members else {})
    # Within a scope, what an identity uses elsewhere is not seen.
    visible = "TRUE" if reader.sees_everything else f"(date, place) IN (SELECT (date, place) FROM {costs})"
    subject_days = _table(
        reader,
        "subject_days",
        f"""SELECT date, '' AS place, name, {sum_exact("total", where="held.name IS NOT NULL")} AS total,
                   bool_and(measured.place IS NOT NULL) FILTER (held.name IS NOT NULL) AS measured,
                   (coalesce(any_value(used.used), 0)
                    + count(*) FILTER (cost_type = '{USAGE_COST}'))::DECIMAL(38, 6) AS used_in,
                   0::DECIMAL(38, 6) AS used_out
            FROM {costs}
            LEFT JOIN {held} AS held USING (date, place, name)
            LEFT JOIN (SELECT DISTINCT date, place FROM {usage}) AS measured USING (date, place)
            LEFT JOIN (SELECT date, name, sum(used_in) AS used FROM {usage} WHERE {visible} GROUP BY ALL) AS used
                USING (date, name)
            WHERE name <> $nobody GROUP BY date, name HAVING count(held.name) > 0""",
        {"nobody": UNALLOCATED},
    )
    return _runs(reader, subject_days, IDLE_IDENTITY, *_NOT_USED, min_days)


def _days(reader: TenantReader, dataset: Dataset) -> DayRange | None:
    """Return the days that are looked at, up to the last that has rows; None if the reader sees none of them."""
    known = reader.dates(dataset)
    if not known:
        return None
    days = DayRange(known[-1] - timedelta(days=LOOK_BACK_DAYS - 1), known[-1] + ONE_DAY)
    return None if reader.days_of(dataset, Selection.of_days(days)) is None else days


def _costs(reader: TenantReader, dataset: Dataset, days: DayRange, place: str, name: str, *more: str) -> str:
    """Make the table of the visible amounts by UTC day, ``place``, ``name`` and ``more`` columns; return its name. A
    subject without a name has an empty one."""
    names = {"place": place} | ({"name": name} if name else {}) | {each: each for each in more}
    keys: tuple[Key, ...] = (ByDay(), *map(ByColumn, names.values()))
    sums = reader.sums(Sums(dataset, Selection.of_days(days), keys))
    columns = {each: f"d{number}" for number, each in enumerate(names)} | ({} if name else {"name": "''"})
    amount = sums.amount() if sums.is_fine else exact(sums.amount(), "0")
    return sums.table("subject_costs", f"SELECT date, {named(columns | {'total': amount})} FROM sums")


def _usage(reader: TenantReader, table: str, days: DayRange, measures: Collection[str]) -> str:
    """Make the table of what was measured: by UTC day, resource and subject what was written and read, of the two
    ``measures`` for these, or the sum of everything that was measured (``used_in``). Return its name."""
    files = reader.snapshot(table).within(days)
    columns = "date, resource_id AS place, subject AS name"
    if not files:
        nothing = "NULL::DATE AS date, '' AS place, '' AS name, 0::DECIMAL(38, 6) AS used_in"
        sql = f"SELECT {nothing}, 0::DECIMAL(38, 6) AS used_out, 0 AS in_rows, 0 AS out_rows WHERE FALSE"
        parameters: dict[str, object] = {}
    elif measures:
        into, out = (f"FILTER (measure = '{measure}')" for measure in measures)
        sql = f"""SELECT {columns}, sum(value) {into} AS used_in, sum(value) {out} AS used_out,
                         count(*) {into} AS in_rows, count(*) {out} AS out_rows FROM {SOURCE} GROUP BY ALL"""
        parameters = {"files": files}
    else:
        sql = f"SELECT {columns}, sum(value) AS used_in FROM {SOURCE} GROUP BY ALL"
        parameters = {"files": files}
    return _table(reader, "measured_usage", sql, parameters)


def _table(reader: TenantReader, name: str, sql: str, parameters: Mapping[str, object] | None = None) -> str:
    """Make a table of a query; return its name, which begins with ``name``."""
    table = reader.cursor.new_name(name)
    reader.cursor.run(f"CREATE TEMP TABLE {table} AS {sql}", parameters)
    return table


def _runs(
    reader: TenantReader, subject_days: str, kind: str, active: str, happened: str, min_days: int
) -> list[Unused]:
    """Return the subjects of a table of their days that were not ``active`` (SQL) on at least ``min_days`` measured
    days since they last were, up to the last day that has costs, and for which ``happened`` (SQL of the sums since)."""
    rows = reader.cursor.rows(
        f"""WITH last_days AS (
                SELECT place, name, max(date) FILTER ({active}) AS last_active, max(date) AS last_day,
                       (SELECT max(date) FROM {subject_days}) AS newest
                FROM {subject_days} GROUP BY ALL)
            SELECT place, name, min(date) FILTER (measured), any_value(last_active),
                   count(*) FILTER (measured), count(*) FILTER (NOT measured), max(date) FILTER (measured),
                   sum(used_in)::DECIMAL(38, 6), sum(used_out)::DECIMAL(38, 6), any_value(monthly)
            FROM {subject_days} JOIN last_days USING (place, name)
            JOIN (SELECT place, name, {sum_exact("total", where=f"date > newest - {MONTH_DAYS}")} AS monthly
                  FROM {subject_days} JOIN last_days USING (place, name) GROUP BY ALL) USING (place, name)
            WHERE (last_active IS NULL OR date > last_active) AND last_day = newest
            GROUP BY place, name
            HAVING count(*) FILTER (measured) >= $min_days AND {happened} AND any_value(monthly) > {exact("0", "0")}""",
        {"min_days": min_days},
    )
    return [Unused(kind, *row) for row in rows]


def _stored(reader: TenantReader, days: DayRange) -> dict[tuple[str, str], Decimal]:
    """Return what the stored bytes of each topic cost on the last days."""
    month = DayRange(days.end - timedelta(days=MONTH_DAYS), days.end)
    by_bytes = ColumnFilter("attribution_method", frozenset([RETAINED_BYTES_RATIO]))
    selection = Selection(Selection.of_days(month).window, (by_bytes,))

    sums = reader.sums(Sums(TOPIC_ATTRIBUTIONS, selection, keys_of(TOPIC_ATTRIBUTIONS, _TOPIC)))
    rows = sums.rows(f"SELECT d0, d1, {sums.amount()} FROM sums")
    return {(cluster, topic): amount for cluster, topic, amount in rows}
