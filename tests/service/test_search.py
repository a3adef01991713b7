"""What is searched for is found, the best first."""

from __future__ import annotations

from pathlib import Path

from chargeback.model.inventory import Identity, Resource
from chargeback.service.search import Found, search
from chargeback.service.tenant_view import TenantView
from chargeback.store.control.inventory import ensure_known
from chargeback.store.control.tags import TagWrite, create
from chargeback.store.queries.cancellation import CancellationToken
from chargeback.store.queries.engine import QueryEngine
from chargeback.store.queries.reader import open_reader
from chargeback.store.queries.tag_index import TagCache
from tests.support.clock import NOW, TODAY
from tests.support.facts import Share, tenant_store, write_shares
from tests.support.topics import TopicShare, write_topic_shares


def test_the_best_comes_first(tmp_path: Path) -> None:
    """What begins with the text, then what cost most, then the rest; in whatever case, by id or by name."""
    with tenant_store(tmp_path) as store:
        resources = [
            Resource("lkc-1", "cluster", "Orders"),
            Resource("lkc-2", "cluster", "old orders"),
            Resource("lkc-1:topic:orders", "topic", "orders", parent_id="lkc-1"),
            Resource("other", "cluster", "x"),
        ]
        with store.control.write() as connection:
            ensure_known(connection, NOW, billed=resources, charged=[Identity("orders-sa", "user")])
            create(connection, "acme", TagWrite("identity", "orders-sa", "team", "no orders"), "me")
        write_shares(store.facts, [Share(TODAY, "orders-sa", "2"), Share(TODAY, "sa", "3", resource="lkc-1")])
        write_topic_shares(store.facts, [TopicShare(TODAY, "orders", "4")])
        view = TenantView("acme", "a", "e", 200, store)
        engine = QueryEngine(threads=1)
        try:
            with open_reader(engine, store, CancellationToken(), TagCache()) as reader:
                found = search(view, reader, "ORDERS", TODAY, 10)
                assert [(each.kind, each.id, each.amount and int(each.amount)) for each in found] == [
                    ("resource", "lkc-1", 5),
                    ("resource", "lkc-1:topic:orders", 4),
                    ("identity", "orders-sa", 2),
                    ("resource", "lkc-2", None),
                    ("tag", "no orders", None),
                ]
                assert found[1] == Found("resource", "lkc-1:topic:orders", "orders", "topic", "lkc-1", found[1].amount)
                assert found[-1].type == "team"
                assert search(view, reader, "orders", TODAY, 2) == found[:2]
                assert [each.amount for each in search(view, reader, "orders", None, 10)] == [None] * 5
        finally:
            engine.close()
