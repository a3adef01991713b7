"""A response has an ETag that changes whenever the response may."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from chargeback.model.inventory import Identity, Inventory, ListedInventory
from chargeback.store.control.days import save_day
from chargeback.store.control.inventory import merge_listing
from chargeback.store.facts.tables import CHARGEBACKS_TABLE
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, DAYS, LAST, known
from tests.support.clock import NOW
from tests.support.facts import Share, line, remove_days, write_lines, write_shares
from tests.support.serving import client_of, services_for

PATHS = (
    "chargebacks",
    "chargebacks/dates",
    "chargebacks/aggregate",
    "chargebacks/allocation-issues",
    "billing",
    "costs",
)


def tag_of(client: httpx.Client, path: str = "costs", **parameters: str) -> str:
    """Return the ETag of a response."""
    response = client.get(f"{ACME}/{path}", params=parameters)
    assert response.status_code == 200, response.text
    return response.headers["etag"]


@pytest.mark.parametrize("path", PATHS)
def test_what_the_client_has_is_not_sent_again(client: httpx.Client, path: str) -> None:
    """A matching ETag gets 304 without a body and with the same headers; any other gets the whole response."""
    whole = client.get(f"{ACME}/{path}")
    tag = whole.headers["etag"]
    assert whole.headers["cache-control"] == "private, no-cache"
    assert whole.headers["vary"] == "Accept, Accept-Encoding"
    for sent in (tag, f'"other", {tag}'):
        response = client.get(f"{ACME}/{path}", headers={"If-None-Match": sent})
        assert (response.status_code, response.content) == (304, b"")
        assert response.headers["etag"] == tag
        assert response.headers["cache-control"] == "private, no-cache"
    response = client.get(f"{ACME}/{path}", headers={"If-None-Match": '"other"'})
    assert (response.status_code, response.content) == (200, whole.content)
    assert client.head(f"{ACME}/{path}").headers["etag"] == tag


def test_another_question_has_another_tag(client: httpx.Client) -> None:
    """Another path, parameter or value makes another ETag; sending a default does not."""
    tags = [tag_of(client, path) for path in PATHS]
    tags += [tag_of(client, by="product_type"), tag_of(client, top="3"), tag_of(client, identity_id="sa-1")]
    tags += [tag_of(client, **{"not.identity_id": "sa-1"}), tag_of(client, **{"tag:team": "a"})]
    assert len(set(tags)) == len(tags)
    assert tag_of(client, top="7") == tag_of(client)


def test_no_file_of_facts_is_opened(own_client: httpx.Client, own_store: TenantStore) -> None:
    """A matching ETag gets 304 without reading files, and a repeated sum comes from the cache."""
    tag, body = tag_of(own_client), own_client.get(f"{ACME}/chargebacks/aggregate").content
    for folder in (Path(own_store.facts.root) / CHARGEBACKS_TABLE).glob("date=*"):
        shutil.rmtree(folder)
    assert own_client.get(f"{ACME}/costs", headers={"If-None-Match": tag}).status_code == 304
    assert own_client.get(f"{ACME}/chargebacks/aggregate").content == body
    assert own_client.get(f"{ACME}/chargebacks").status_code == 503


def _calculate(store: TenantStore) -> None:
    write_shares(store.facts, [Share(LAST, "sa-1", "5.26")])


def _bill(store: TenantStore) -> None:
    write_lines(store.facts, [line(LAST, "9")])


def _forget(store: TenantStore) -> None:
    remove_days(store.facts, DAYS[1], CHARGEBACKS_TABLE)


def _find_pending(store: TenantStore) -> None:
    with store.control.write() as connection:
        save_day(connection, LAST + timedelta(days=2), billing_gathered=True)


def _name(store: TenantStore) -> None:
    listed = Inventory([], [Identity("sa-1", "service_account", "orders")], [])
    with store.control.write() as connection:
        merge_listing(
            connection, ListedInventory(listed, frozenset(["service_account"])), NOW, empty_listings_to_delete=-1
        )


def _tag(store: TenantStore) -> None:
    with client_of(services_for(store)) as client:
        tag = {"tag_key": "team", "tag_value": "a"}
        assert client.post(f"{ACME}/entities/identity/UNALLOCATED/tags", json=tag).status_code == 201


@pytest.mark.parametrize("change", [_calculate, _bill, _forget, _find_pending, _name, _tag])
def test_every_change_changes_the_tag(
    own_client: httpx.Client, own_store: TenantStore, change: Callable[[TenantStore], None]
) -> None:
    """A calculated day, a bill, retention, the state of a day, a name or a tag changes the ETag."""
    known(own_store, identities=["sa-1"])
    before = {path: tag_of(own_client, path) for path in PATHS}
    assert before == {path: tag_of(own_client, path) for path in PATHS}
    change(own_store)
    for path, tag in before.items():
        response = own_client.get(f"{ACME}/{path}", headers={"If-None-Match": tag})
        assert response.status_code == 200
        assert response.headers["etag"] != tag


def test_a_kept_answer_is_never_old(own_client: httpx.Client, own_store: TenantStore) -> None:
    """Cached sums are not used after the data has changed."""
    total = own_client.get(f"{ACME}/costs").json()["total"]["amount"]
    assert own_client.get(f"{ACME}/costs").json()["total"]["amount"] == total == "50.00"
    write_shares(own_store.facts, [Share(LAST, "sa-1", "6.25")])
    assert own_client.get(f"{ACME}/costs").json()["total"]["amount"] == "46.25"


def test_gzip(client: httpx.Client) -> None:
    """The body is the same with and without gzip."""
    plain = client.get(f"{ACME}/costs", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    for _ in range(2):
        smaller = client.get(f"{ACME}/costs", headers={"Accept-Encoding": "gzip"})
        assert smaller.headers["content-encoding"] == "gzip"
        assert smaller.content == plain.content
        assert int(smaller.headers["content-length"]) < len(plain.content)
    assert client.head(f"{ACME}/costs").status_code == 200
