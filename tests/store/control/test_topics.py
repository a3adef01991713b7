"""Data of the topic overlay in the control database."""

from __future__ import annotations

from datetime import UTC, date, datetime

from sqlalchemy import select

from chargeback.model.inventory import Resource
from chargeback.model.topics import topic_resource_id
from chargeback.store.control import days, inventory, topics
from chargeback.store.control.database import ControlDatabase
from chargeback.store.control.schema import resources
from chargeback.store.control.topics import Lifetime

FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TYPE = "kafka_topic"
TOPICS = days.DayDataset.TOPICS
LONGEST = "t" * 249


def test_failures_are_counted_per_cluster_and_day(database: ControlDatabase) -> None:
    """Each cluster of each day has its own count, which restarts when the day is queued or done."""
    with database.write() as connection:
        days.save_day(connection, FIRST, billing_gathered=True)
        assert topics.count_topic_failures(connection, FIRST, ["lkc-1"]) == {"lkc-1": 1}
        assert topics.count_topic_failures(connection, FIRST, ["lkc-1", "lkc-2"]) == {"lkc-1": 2, "lkc-2": 1}
        assert topics.count_topic_failures(connection, SECOND, ["lkc-1"]) == {"lkc-1": 1}
        topics.queue_topics(connection, [FIRST])
        assert topics.count_topic_failures(connection, FIRST, ["lkc-1"]) == {"lkc-1": 1}
        topics.forget_failures(connection, [FIRST])
        assert topics.count_topic_failures(connection, FIRST, ["lkc-1"]) == {"lkc-1": 1}
        assert topics.count_topic_failures(connection, SECOND, ["lkc-1"]) == {"lkc-1": 2}


def test_a_day_goes_through_the_queue(database: ControlDatabase) -> None:
    """A day is queued, done, reviewed, and reset when its rows are removed."""
    with database.write() as connection:
        days.save_day(connection, FIRST, billing_gathered=True)
        topics.queue_topics(connection, [FIRST])
        assert days.read_day_state(connection, FIRST).topics.is_queued
        days.mark_current(connection, TOPICS, FIRST, fingerprint="f", rows=3, revision=1, is_measured=True)
        done = days.read_day_state(connection, FIRST).topics
        assert (done.is_queued, done.is_measured, done.is_current) == (False, True, True)
        assert (done.fingerprint, done.rows, done.revision) == ("f", 3, 1)
        topics.reconsider_topics(connection, [FIRST])
        again = days.read_day_state(connection, FIRST).topics
        assert (again.is_queued, again.is_current) == (True, True)
        topics.forget_topics(connection, [FIRST])
        gone = days.read_day_state(connection, FIRST).topics
        assert (gone.is_queued, gone.is_measured, gone.is_current) == (False, False, False)


def test_lives_are_read_as_they_were_saved(database: ControlDatabase) -> None:
    """New topics and changed lifetimes are stored, also with names of the maximum length."""
    with database.write() as connection:
        new = {"lkc-123456": {LONGEST: Lifetime(), "a": Lifetime(NOON)}}
        topics.save_topic_lifetimes(connection, TYPE, new, {}, seen_at=NOON)
        topics.save_topic_lifetimes(connection, TYPE, {}, {"lkc-123456": {"a": Lifetime(None, NOON)}}, seen_at=NOON)
        assert topics.read_topic_lifetimes(connection, TYPE) == {
            "lkc-123456": {LONGEST: Lifetime(), "a": Lifetime(None, NOON)}
        }
        assert topics.resource_ids(connection, TYPE) == {
            topic_resource_id("lkc-123456", LONGEST),
            "lkc-123456:topic:a",
        }


def test_sightings_are_replaced(database: ControlDatabase) -> None:
    """The latest range of each cluster is stored; other clusters are unchanged."""
    with database.write() as connection:
        topics.save_seen_ranges(connection, {"lkc-1": (FIRST, FIRST), "lkc-2": (FIRST, FIRST)})
        topics.save_seen_ranges(connection, {"lkc-1": (FIRST, SECOND)})
        assert topics.read_seen_ranges(connection) == {"lkc-1": (FIRST, SECOND), "lkc-2": (FIRST, FIRST)}


def test_topics_end_with_their_cluster(database: ControlDatabase) -> None:
    """Living topics were seen until the end of their cluster's last day, and are deleted with the cluster."""
    with database.write() as connection:
        clusters = [Resource("lkc-1", "kafka_cluster"), Resource("lkc-2", "kafka_cluster", deleted_at=NOON)]
        inventory.ensure_known(connection, NOON, billed=clusters)
        new = {cluster: {"a": Lifetime()} for cluster in ("lkc-1", "lkc-2")}
        topics.save_topic_lifetimes(connection, TYPE, new, {}, seen_at=NOON)
        topics.save_seen_ranges(connection, {"lkc-1": (FIRST, SECOND)})
        topics.touch_topics(connection, TYPE, ["lkc-1"])
        seen = select(resources.c.last_seen_at).where(resources.c.resource_id == "lkc-1:topic:a")
        assert connection.execute(seen).scalar_one() == datetime(2026, 1, 3, tzinfo=UTC)
        lives = topics.read_topic_lifetimes(connection, TYPE)
        assert (lives["lkc-1"]["a"].deleted_at, lives["lkc-2"]["a"].deleted_at) == (None, NOON)
