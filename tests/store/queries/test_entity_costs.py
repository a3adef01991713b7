"""What everything cost in the last days."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from chargeback.store.control.revisions import ControlRevisions
from chargeback.store.facts.tables import FactTables
from chargeback.store.queries import entity_costs as module
from chargeback.store.queries.entity_costs import DAYS, EntityCostCache, EntityCosts, entity_costs
from chargeback.store.queries.tag_index import TagIndex
from chargeback.store.queries.version import DataVersion
from tests.support.facts import Share, write_shares
from tests.support.readers import Read
from tests.support.topics import TopicShare, write_topic_shares

LAST = date(2026, 2, 28)
TAGS = TagIndex.undated({"sa-1": {"team": "a"}}, {"lkc-1": {"team": "b", "tier": "gold"}})


def _version(tags: int = 0, last: date | None = LAST) -> DataVersion:
    return DataVersion(TAGS, ControlRevisions(tags, 0, "", last), {})


@pytest.fixture
def written(facts: FactTables) -> FactTables:
    """A day inside the last thirty, its first one, and the day before that."""
    first = LAST - timedelta(days=DAYS - 1)
    huge = "12345678901234567890.000000000001"
    write_shares(
        facts,
        [
            Share(LAST, "sa-1", huge),
            Share(LAST, "sa-2", "2", resource="lkc-1", portion=1),
            Share(first, "sa-1", "3", resource="lkc-2"),
            Share(first - timedelta(days=1), "sa-1", "100"),
        ],
    )
    write_topic_shares(facts, [TopicShare(LAST, "orders", "4"), TopicShare(first, "orders", "1", cluster="lkc-2")])
    return facts


def test_sums_of_everything(read: Read, written: FactTables) -> None:
    """To the last digit; the tags of a row are resolved as everywhere, the identity's first."""
    found: EntityCosts = read(lambda reader: entity_costs(reader, _version()), TAGS)
    assert found.identities == {"sa-1": Decimal("12345678901234567893.000000000001"), "sa-2": Decimal(2)}
    assert found.resources == {"lkc-1": Decimal("12345678901234567892.000000000001"), "lkc-2": Decimal(3)}
    assert found.topics == {"lkc-1:topic:orders": Decimal(4), "lkc-2:topic:orders": Decimal(1)}
    assert found.tags == {
        ("team", "a"): Decimal("12345678901234567893.000000000001"),
        ("team", "b"): Decimal(2),
        ("tier", "gold"): Decimal("12345678901234567892.000000000001"),
    }


def test_nothing_is_calculated_yet(read: Read, facts: FactTables) -> None:
    """Then nothing cost anything."""
    assert read(lambda reader: entity_costs(reader, _version(last=None))) == EntityCosts()
    assert read(lambda reader: entity_costs(reader, _version())) == EntityCosts()


def test_the_same_version_is_summed_once(read: Read, written: FactTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version is summed anew; so many tenants are remembered, those that were asked for last."""
    monkeypatch.setattr(module, "_MOST", 2)
    cache = EntityCostCache()
    first = read(lambda reader: cache.load("a", reader, _version()), TAGS)
    assert read(lambda reader: cache.load("a", reader, _version()), TAGS) is first
    second = read(lambda reader: cache.load("a", reader, _version(tags=1)), TAGS)
    assert second is not first
    others = [read(lambda reader, name=name: cache.load(name, reader, _version(tags=1)), TAGS) for name in "bac"]
    assert read(lambda reader: cache.load("a", reader, _version(tags=1)), TAGS) is second is others[1]
    assert read(lambda reader: cache.load("b", reader, _version(tags=1)), TAGS) is not others[0]
