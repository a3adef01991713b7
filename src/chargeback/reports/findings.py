"""Findings: resources and identities that have costs but are not used, with evidence and a remedy."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, Literal

from pydantic import Field
from sqlalchemy import Connection

from chargeback.model.chargeback import USAGE_COST
from chargeback.model.days import ONE_DAY, DayRange
from chargeback.model.inventory import UNALLOCATED
from chargeback.model.topics import RETAINED_BYTES_RATIO, UNATTRIBUTED, topic_resource_id
from chargeback.model.usage import ACTIVE
from chargeback.reports.answers import Exact, Instant, PageOf, ResponseModel, Sum
from chargeback.reports.topic_costs import BYTES_IN, BYTES_OUT
from chargeback.store.control.inventory_lists import IDENTITIES, RESOURCES, Named, names_of, owners_of
from chargeback.store.facts.tables import MEMBERS_TABLE, TOPIC_USAGE_TABLE, USAGE_TABLE
from chargeback.store.queries.datasets import CHARGEBACKS, TOPIC_ATTRIBUTIONS, Dataset
from chargeback.store.queries.keys import ByColumn, ByDay, Key, keys_of
from chargeback.store.queries.question import Sums
from chargeback.store.queries.reader import TenantReader
from chargeback.store.queries.scan import SOURCE
from chargeback.store.queries.selection import ColumnFilter, Selection
from chargeback.store.queries.sql_format import exact, named, sum_exact

FindingKind = Literal[
    "topic_without_traffic", "topic_never_read", "topic_never_written", "idle_resource", "idle_identity"
]
TOPIC_WITHOUT_TRAFFIC: Final = "topic_without_traffic"
TOPIC_NEVER_READ: Final = "topic_never_read"
TOPIC_NEVER_WRITTEN: Final = "topic_never_written"
IDLE_RESOURCE: Final = "idle_resource"
IDLE_IDENTITY: Final = "idle_identity"
KINDS: Final[tuple[FindingKind, ...]] = (
    TOPIC_WITHOUT_TRAFFIC,
    TOPIC_NEVER_READ,
    TOPIC_NEVER_WRITTEN,
    IDLE_RESOURCE,
    IDLE_IDENTITY,
)

#: How many days back traffic is searched.
LOOK_BACK_DAYS: Final = 90
#: The cost of a month is that of this many last days.
MONTH_DAYS: Final = 30

# By kind, as SQL over the columns of a subject's days: what counts as activity, and a condition on the sums since then.
_TOPIC_RULES: Final[Mapping[FindingKind, tuple[str, str]]] = {
    TOPIC_WITHOUT_TRAFFIC: ("used_in > 0 OR used_out > 0", "TRUE"),
    TOPIC_NEVER_READ: ("used_out > 0", "sum(used_in) > 0"),
    TOPIC_NEVER_WRITTEN: ("used_in > 0", "sum(used_out) > 0"),
}
_TOPIC: Final = ("cluster_resource_id", "topic_name")
_NOT_USED: Final = ("used_in > 0", "TRUE")


@dataclass(frozen=True)
class Unused:
    """A subject that has costs and was not used since ``since``.

    Attributes:
        kind: one of :data:`KINDS`.
        place: the cluster of a topic, the resource itself; empty for an identity.
        name: the topic, the identity; empty for a resource.
        since: the first measured day without use.
        last_active: the last day with use; None if there is none in :data:`LOOK_BACK_DAYS` days.
        measured_days: the days since then on which it was charged and measured.
        unmeasured_days: the days since then on which it was charged, but not measured.
        last_measured: the last measured day.
        used_in: the amount written since then, in the unit of the measure; for a resource or an identity, all usage.
        used_out: the amount read since then.
        monthly_cost: its cost on the last :data:`MONTH_DAYS` days.
        avoidable: the part of it that would not be charged without it.
    """

    kind: FindingKind
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
    """Return the subjects that were not used on at least ``min_days`` measured days up to the last ones, by descending
    cost.

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


def _topics(reader: TenantReader, kinds: Collection[FindingKind], min_days: int) -> list[Unused]:
    """Return unused topics. A topic without traffic has no series in the metrics, so its bytes are zero if both
    measures of its cluster exist."""
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
            # A topic without any traffic is not also reported as unread or unwritten: the first kind counts.
            found.setdefault((each.place, each.name), replace(each, avoidable=avoidable))
    return list(found.values())


def _resources(reader: TenantReader, min_days: int) -> list[Unused]:
    """Return resources for which every measure was zero. Resources without measurements may be used, and are left
    out."""
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
    """Return identities that are charged a part of measured resources because they may use them, but that used none.
    An identity that is charged by usage, or as an owner, is in use. Within a scope, an identity is in use if it uses a
    resource with a visible row on that day."""
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
    # Within a scope, the usage of other resources is not visible.
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
            WHERE name <> $unallocated GROUP BY date, name HAVING count(held.name) > 0""",
        {"unallocated": UNALLOCATED},
    )
    return _runs(reader, subject_days, IDLE_IDENTITY, *_NOT_USED, min_days)


def _days(reader: TenantReader, dataset: Dataset) -> DayRange | None:
    """Return the examined days, up to the last one with rows; None if the reader sees none of them."""
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
    amount = sums.amount() if sums.is_fine else exact(sums.amount(), None)
    return sums.table("subject_costs", f"SELECT date, {named(columns | {'total': amount})} FROM sums")


def _usage(reader: TenantReader, table: str, days: DayRange, measures: Collection[str]) -> str:
    """Make the table of the measurements by UTC day, resource and subject: written and read amounts from the two
    ``measures``, or the sum of all measures (``used_in``). Return its name."""
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
    reader: TenantReader, subject_days: str, kind: FindingKind, active: str, happened: str, min_days: int
) -> list[Unused]:
    """Return the subjects that were not ``active`` (SQL) on at least ``min_days`` measured days since their last
    activity, up to the last day with costs, and for which ``happened`` (SQL of the sums since) is true."""
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
            HAVING count(*) FILTER (measured) >= $min_days AND {happened}
                   AND any_value(monthly) > {exact("0", None)}""",
        {"min_days": min_days},
    )
    return [Unused(kind, *row) for row in rows]


def _stored(reader: TenantReader, days: DayRange) -> dict[tuple[str, str], Decimal]:
    """Return the cost of the stored bytes of each topic on the last days."""
    month = DayRange(days.end - timedelta(days=MONTH_DAYS), days.end)
    by_bytes = ColumnFilter("attribution_method", frozenset([RETAINED_BYTES_RATIO]))
    selection = Selection(Selection.of_days(month).window, (by_bytes,))

    sums = reader.sums(Sums(TOPIC_ATTRIBUTIONS, selection, keys_of(TOPIC_ATTRIBUTIONS, _TOPIC)))
    rows = sums.rows(f"SELECT d0, d1, {sums.amount()} FROM sums")
    return {(cluster, topic): amount for cluster, topic, amount in rows}


_TOPIC_SAVES: Final = (
    "Deleting it saves the cost of its stored bytes. Its part of the cluster's capacity and of other costs remains, "
    "and is charged to the other topics."
)
_WHY: Final = {
    TOPIC_WITHOUT_TRAFFIC: "Nothing was written to the topic or read from it on any measured day since {since}.",
    TOPIC_NEVER_READ: "The topic was written to, but not read on any measured day since {since}.",
    TOPIC_NEVER_WRITTEN: "The topic was read, but not written to on any measured day since {since}.",
    IDLE_RESOURCE: "Every measure of the resource was zero on all measured days since {since}, and it is billed.",
    IDLE_IDENTITY: "The identity is charged a part of resources that it may use, because it holds a key or owns "
    "something, but used none of them on any measured day since {since}.",
}
_ACTION: Final = {
    TOPIC_WITHOUT_TRAFFIC: f"Ask the owner whether the topic is still needed. {_TOPIC_SAVES}",
    TOPIC_NEVER_READ: f"Ask who needs the data; stop the producer or shorten the retention. {_TOPIC_SAVES}",
    TOPIC_NEVER_WRITTEN: f"Ask whether the readers still expect data, or stop them. {_TOPIC_SAVES}",
    IDLE_RESOURCE: "Delete the resource if no one needs it: its billing lines end with it.",
    IDLE_IDENTITY: "Delete the keys of the identity if no one needs them. This does not reduce the bill: its part is "
    "charged to the other users of the resources.",
}


class SnoozeItem(ResponseModel):
    """The snooze of a finding."""

    reason: str = Field(examples=["Kept for the audit of 2026"])
    until: date | None = Field(description="The UTC day on which the finding is open again; null for never.")
    created_by: str = Field(examples=["alice"])
    created_at: Instant


class FindingSubject(ResponseModel):
    """The subject of a finding."""

    type: str = Field(description="Its type in the inventory.", examples=["kafka_topic"])
    id: str = Field(examples=["lkc-abc123:topic:orders"])
    name: str | None = Field(examples=["orders"])
    cluster_id: str | None = Field(description="The cluster of a topic.", examples=["lkc-abc123"])


class FindingEvidence(ResponseModel):
    """The measurements since the subject was last used."""

    measured_days: int = Field(description="UTC days on which it was charged and measured.")
    unmeasured_days: int = Field(description="UTC days on which it was charged, but not measured.")
    last_measured: date
    bytes_in: Exact | None = Field(description="Bytes written on these days; of topics only.")
    bytes_out: Exact | None = Field(description="Bytes read on these days; of topics only.")


class FindingItem(ResponseModel):
    """A resource or identity that has costs but was not used, according to the measurements."""

    id: str = Field(description="The same for the same kind and subject.", examples=["66863039a46d3b69"])
    kind: FindingKind
    subject: FindingSubject
    owner: str | None = Field(description="Its owner in the inventory, if one is known.", examples=["sa-123abc"])
    tags: dict[str, str] = Field(examples=[{"team": "payments"}])
    since: date = Field(description="The first measured UTC day without use.")
    last_active: date | None = Field(
        description=f"The last UTC day with use; null if there was none in {LOOK_BACK_DAYS} days."
    )
    evidence: FindingEvidence
    monthly_cost: Sum = Field(
        description=f"Its cost on the last {MONTH_DAYS} calculated days, in the currency of the bill."
    )
    avoidable: Literal["none", "partial", "full"] = Field(
        description="How much of the monthly cost would be saved without it: the cost of stored bytes would, that of a "
        "cluster's capacity would not."
    )
    avoidable_cost: Sum
    why: str
    confidence: Literal["high", "medium", "low"] = Field(
        description="High: every day since was measured. Low: less than half were."
    )
    action: str
    snooze: SnoozeItem | None


class FindingList(PageOf[FindingItem]):
    """One page of the findings, those with the largest cost first."""

    currency: str = Field(examples=["USD"])
    snoozed: int = Field(description="The number of snoozed findings of these kinds.")


def finding_id(kind: str, subject_id: str) -> str:
    """Return the id of the finding of a kind about a subject.

    >>> finding_id("idle_identity", "sa-123abc")
    '66863039a46d3b69'
    """
    return hashlib.blake2b(f"{kind} {subject_id}".encode(), digest_size=8).hexdigest()


def findings(
    reader: TenantReader, connection: Connection, min_days: int, kinds: Collection[str] = KINDS
) -> list[FindingItem]:
    """Return the findings in the rows of a reader, by descending cost.

    Raises:
        QueryTimeout: the query was cancelled.
        StorageError: the tenant's storage cannot be read.
    """
    found = unused(reader, kinds or KINDS, min_days)
    identities = names_of(connection, IDENTITIES, {each.name for each in found if each.kind == IDLE_IDENTITY})
    ids = {_resource_id(each) for each in found if each.kind != IDLE_IDENTITY}
    resources, owners = names_of(connection, RESOURCES, ids), owners_of(connection, ids)
    return [_finding(reader, each, identities, resources, owners) for each in found]


def _resource_id(each: Unused) -> str:
    return topic_resource_id(each.place, each.name) if each.name else each.place


def _finding(
    reader: TenantReader,
    each: Unused,
    identities: Mapping[str, Named],
    resources: Mapping[str, Named],
    owners: Mapping[str, str],
) -> FindingItem:
    if each.kind == IDLE_IDENTITY:
        known, tags = identities.get(each.name), reader.tags.resolve(each.name, "", each.last_measured)
        kind = "identity" if known is None else known.type
        subject = FindingSubject(type=kind, id=each.name, name=None if known is None else known.name, cluster_id=None)
        return described(each, subject, each.name, tags)
    id_ = _resource_id(each)
    known, tags = resources.get(id_), reader.tags.resolve("", id_, each.last_measured)
    kind = ("topic" if each.name else "resource") if known is None else known.type
    name = each.name or (None if known is None else known.name)
    subject = FindingSubject(type=kind, id=id_, name=name, cluster_id=each.place if each.name else None)
    return described(each, subject, owners.get(id_), tags)


def described(each: Unused, subject: FindingSubject, owner: str | None, tags: Mapping[str, str]) -> FindingItem:
    """Return the finding about an unused subject, with evidence and a remedy."""
    is_topic = each.kind not in {IDLE_IDENTITY, IDLE_RESOURCE}
    return FindingItem(
        id=finding_id(each.kind, subject.id),
        kind=each.kind,
        subject=subject,
        owner=owner,
        tags=dict(tags),
        since=each.since,
        last_active=each.last_active,
        evidence=FindingEvidence(
            measured_days=each.measured_days,
            unmeasured_days=each.unmeasured_days,
            last_measured=each.last_measured,
            bytes_in=each.used_in if is_topic else None,
            bytes_out=each.used_out if is_topic else None,
        ),
        monthly_cost=each.monthly_cost,
        avoidable=_avoidable(each),
        avoidable_cost=each.avoidable,
        why=_WHY[each.kind].format(since=each.since),
        confidence=_confidence(each),
        action=_ACTION[each.kind],
        snooze=None,
    )


def _avoidable(each: Unused) -> Literal["none", "partial", "full"]:
    """Return how much of the monthly cost would be saved without the subject."""
    if not each.avoidable:
        return "none"
    return "full" if each.avoidable >= each.monthly_cost else "partial"


def _confidence(each: Unused) -> Literal["high", "medium", "low"]:
    """Return the confidence that the measurements allow."""
    if not each.unmeasured_days:
        return "high"
    return "medium" if each.unmeasured_days <= each.measured_days else "low"
