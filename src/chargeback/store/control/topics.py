"""The topic overlay's part of the control database: its queue, its failures, and the topics seen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from chargeback.model.days import ONE_DAY, start_of_day
from chargeback.model.topics import topic_resource_id
from chargeback.store.control.days import DayDataset, mark_due, mark_for_review, mark_removed
from chargeback.store.control.revisions import raise_inventory_revision
from chargeback.store.control.schema import resources, topic_failures, topic_sightings


def queue_topics(connection: Connection, queued: Collection[date]) -> None:
    """Queue days for the attribution of topics, again if need be, and reset their failures."""
    mark_due(connection, DayDataset.TOPICS, queued)
    forget_failures(connection, queued)


def reconsider_topics(connection: Connection, affected: Collection[date]) -> None:
    """Queue attributed days again, and reset their failures."""
    mark_for_review(connection, DayDataset.TOPICS, affected)
    forget_failures(connection, affected)


def forget_topics(connection: Connection, forgotten: Collection[date]) -> None:
    """Record that the topic rows of days are removed."""
    mark_removed(connection, DayDataset.TOPICS, forgotten)
    forget_failures(connection, forgotten)


def forget_failures(connection: Connection, affected: Collection[date]) -> None:
    """Reset the failures of days."""
    connection.execute(delete(topic_failures).where(topic_failures.c.tracking_date.in_(affected)))


def count_topic_failures(connection: Connection, day: date, clusters: Iterable[str]) -> dict[str, int]:
    """Count one more failure for each of the clusters on that day; return the counts."""
    query = select(topic_failures).where(topic_failures.c.tracking_date == day)
    known: dict[str, int] = {row.cluster_id: row.failures for row in connection.execute(query)}
    counted = {cluster: known.get(cluster, 0) + 1 for cluster in clusters}
    for cluster, failures in counted.items():
        row = {"tracking_date": day, "cluster_id": cluster, "failures": failures}
        if cluster in known:
            here = (topic_failures.c.tracking_date == day) & (topic_failures.c.cluster_id == cluster)
            connection.execute(update(topic_failures).where(here).values(failures=failures))
        else:
            connection.execute(insert(topic_failures).values(row))
    return counted


def resource_ids(connection: Connection, resource_type: str) -> frozenset[str]:
    """Return the ids of all resources of a type, including deleted ones."""
    return frozenset(
        connection.execute(select(resources.c.resource_id).where(resources.c.resource_type == resource_type)).scalars()
    )


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The time in which a topic existed; without a known start, it always existed."""

    created_at: datetime | None = None
    deleted_at: datetime | None = None


#: Cluster → topic → its lifetime.
TopicLifetimes = dict[str, dict[str, Lifetime]]
#: Cluster → the first and the last day on which any topic of it was seen.
SeenRanges = dict[str, tuple[date, date]]


def read_topic_lifetimes(connection: Connection, topic_type: str) -> TopicLifetimes:
    """Return the lifetimes of all topics, including deleted ones."""
    columns = (resources.c.parent_id, resources.c.display_name, resources.c.created_at, resources.c.deleted_at)
    lifetimes: TopicLifetimes = {}
    for cluster, topic, created_at, deleted_at in connection.execute(
        select(*columns).where(resources.c.resource_type == topic_type)
    ):
        lifetimes.setdefault(cluster, {})[topic] = Lifetime(created_at, deleted_at)
    return lifetimes


def read_seen_ranges(connection: Connection) -> SeenRanges:
    """Return the first and last day on which topics were seen, per cluster."""
    return {cluster: (first, last) for cluster, first, last in connection.execute(select(topic_sightings))}


def save_topic_lifetimes(
    connection: Connection, topic_type: str, new: TopicLifetimes, changed: TopicLifetimes, *, seen_at: datetime
) -> None:
    """Add new topics to the inventory, and update the lifetimes of known ones."""
    raise_inventory_revision(connection)
    rows: list[dict[str, Any]] = [
        {
            "resource_id": topic_resource_id(cluster, topic),
            "resource_type": topic_type,
            "parent_id": cluster,
            "owner_id": None,
            "active_as": None,
            "display_name": topic,
            "created_at": life.created_at,
            "deleted_at": life.deleted_at,
            "last_seen_at": seen_at,
            "metadata": {},
        }
        for cluster, topics in new.items()
        for topic, life in topics.items()
    ]
    if rows:
        connection.execute(insert(resources), rows)
    lifetimes = [
        {"key": topic_resource_id(cluster, topic), "created": life.created_at, "deleted": life.deleted_at}
        for cluster, topics in changed.items()
        for topic, life in topics.items()
    ]
    if lifetimes:
        connection.execute(
            update(resources)
            .where(resources.c.resource_id == bindparam("key"))
            .values(created_at=bindparam("created"), deleted_at=bindparam("deleted")),
            lifetimes,
        )


def save_seen_ranges(connection: Connection, seen_ranges: Mapping[str, tuple[date, date]]) -> None:
    """Replace the seen ranges of these clusters."""
    connection.execute(delete(topic_sightings).where(topic_sightings.c.cluster_id.in_(seen_ranges)))
    rows = [
        {"cluster_id": cluster, "first_day": first, "last_day": last} for cluster, (first, last) in seen_ranges.items()
    ]
    if rows:
        connection.execute(insert(topic_sightings), rows)


def touch_topics(connection: Connection, topic_type: str, clusters: Sequence[str]) -> None:
    """Set the last sighting of existing topics to the end of their cluster's last day, and delete the topics of deleted
    clusters."""
    raise_inventory_revision(connection)
    of_type = resources.c.resource_type == topic_type
    for cluster, (_, last) in read_seen_ranges(connection).items():
        if cluster in clusters:
            alive = (resources.c.parent_id == cluster) & resources.c.deleted_at.is_(None)
            seen_at = start_of_day(last + ONE_DAY)
            connection.execute(update(resources).where(of_type, alive).values(last_seen_at=seen_at))
    parents = resources.alias("parents")
    gone = connection.execute(
        select(parents.c.resource_id, parents.c.deleted_at).where(
            parents.c.deleted_at.is_not(None),
            parents.c.resource_id.in_(
                select(func.distinct(resources.c.parent_id)).where(of_type, resources.c.deleted_at.is_(None))
            ),
        )
    ).all()
    for cluster, deleted_at in gone:
        alive = (resources.c.parent_id == cluster) & resources.c.deleted_at.is_(None)
        connection.execute(update(resources).where(of_type, alive).values(deleted_at=deleted_at))
