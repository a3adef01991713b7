"""Responses from the control database have an ETag that changes whenever the response may."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from chargeback.model.inventory import Identity, Inventory, ListedInventory
from chargeback.store.control.days import save_day
from chargeback.store.control.inventory import merge_listing
from chargeback.store.control.notes import NoteWrite, create_note
from chargeback.store.control.runs import finish_run, start_run
from chargeback.store.control.tags import TagWrite, create
from chargeback.store.control.views import ViewWrite, create_view
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, LAST, known
from tests.support.clock import NOW

ENTITIES = (
    *("resources", "identities", "inventory/summary", "tags", "tags/keys", "tags/keys/team/values"),
    *("entities/identity/UNALLOCATED/tags", "resources.csv", "identities.csv", "tags.csv"),
)
ANYTHING = ("status", "runs", "pipeline/status", "views", "notes")


@pytest.mark.parametrize("path", [*ENTITIES, *ANYTHING])
def test_what_the_client_has_is_not_sent_again(client: httpx.Client, path: str) -> None:
    """A matching ETag gets 304 without a body and with the same headers; any other gets the whole response."""
    whole = client.get(f"{ACME}/{path}")
    assert whole.status_code == 200
    tag = whole.headers["etag"]
    assert whole.headers["cache-control"] == "private, no-cache"
    assert whole.headers["vary"] == "Accept, Accept-Encoding"
    again = client.get(f"{ACME}/{path}", headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    other = client.get(f"{ACME}/{path}", headers={"If-None-Match": '"other"'})
    assert (other.status_code, other.content) == (200, whole.content)


def test_another_question_has_another_tag(client: httpx.Client) -> None:
    """Another path, parameter or format makes another ETag."""
    asked = [("resources", {}), ("resources", {"status": "active"}), ("resources.csv", {}), ("identities", {})]
    tags = [client.get(f"{ACME}/{path}", params=params).headers["etag"] for path, params in asked]
    tags.append(client.get(f"{ACME}/resources", headers={"Accept": "text/csv"}).headers["etag"])
    assert len(set(tags)) == len(tags)


def _tag(store: TenantStore) -> None:
    with store.control.write() as connection:
        assert create(connection, "acme", TagWrite("identity", "UNALLOCATED", "team", "a"), "me") is not None


def _list(store: TenantStore) -> None:
    found = ListedInventory(Inventory([], [Identity("sa-9", "user")], []), frozenset(["user"]))
    with store.control.write() as connection:
        merge_listing(connection, found, NOW, empty_listings_to_delete=-1)


def _lack(store: TenantStore) -> None:
    with store.control.write() as connection:
        save_day(connection, LAST, incomplete={"metrics": "the source did not answer"})


def _run(store: TenantStore) -> None:
    with store.control.write() as connection:
        finish_run(connection, start_run(connection, 1), outcome="completed", errors=[], counts={})


def _save(store: TenantStore) -> None:
    with store.control.write() as connection:
        create_view(connection, ViewWrite("mine", "costs", ""), "me")


def _note(store: TenantStore) -> None:
    with store.control.write() as connection:
        create_note(connection, NoteWrite(LAST, LAST, "Load test"), "me")


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        (_tag, ENTITIES),
        (_list, ENTITIES),
        (_lack, ["status"]),
        (_run, ["runs", "pipeline/status"]),
        (_save, ["views"]),
        (_note, ["notes"]),
    ],
)
def test_every_change_changes_the_tag(
    own_client: httpx.Client, own_store: TenantStore, change: Callable[[TenantStore], None], paths: list[str]
) -> None:
    """A change of a tag, an entity, the state of a day, a run, a view or a note changes the ETag of the responses."""
    known(own_store)
    before = {path: own_client.get(f"{ACME}/{path}").headers["etag"] for path in paths}
    change(own_store)
    for path, tag in before.items():
        response = own_client.get(f"{ACME}/{path}", headers={"If-None-Match": tag})
        assert response.status_code == 200
        assert response.headers["etag"] != tag


def test_gzip(own_client: httpx.Client, own_store: TenantStore) -> None:
    """The body and the ETag are the same with and without gzip."""
    known(own_store, resources=[f"lkc-{number}" for number in range(30)])
    for path in ("resources", "resources.csv", "status"):
        plain = own_client.get(f"{ACME}/{path}", headers={"Accept-Encoding": "identity"})
        smaller = own_client.get(f"{ACME}/{path}", headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in plain.headers
        assert smaller.headers["content-encoding"] == "gzip"
        assert (smaller.content, smaller.headers["etag"]) == (plain.content, plain.headers["etag"])


def test_what_does_not_exist_has_no_tag(client: httpx.Client) -> None:
    """An error is returned whatever ETag the client sends."""
    answer = client.get(f"{ACME}/entities/identity/nobody/tags", headers={"If-None-Match": "*"})
    assert answer.status_code == 404
    assert "etag" not in answer.headers
