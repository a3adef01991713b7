"""A caller with a scope: responses contain nothing from outside, and everything within is as filters would select
it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from chargeback.access.caller import Caller, Right
from tests.contract.deployment import Deployment
from tests.contract.endpoints import BY_NAME, ENDPOINTS, TENANT, Endpoint
from tests.contract.records import Client, Everything, key_of, statement_key_of, topic_key_of, total
from tests.contract.rights import WHOLE
from tests.contract.seen import Scoped, Seen, scopes_of
from tests.contract.test_export import records
from tests.support.callers import Callers, asked_by, caller

ACME = "/api/v1/tenants/acme"
NAMES = ("identity", "environment", "category")
READ = [
    each
    for each in ENDPOINTS
    if each.name not in WHOLE
    and not each.path.endswith(("/pipeline/run", "/metrics/chargebacks"))
    and (each.method == "GET" or each.path.endswith("/export") or "bulk-by-filter" in each.path)
]


@pytest.fixture(scope="session")
def scopes(everything: Everything) -> dict[str, Scoped]:
    """Scopes of an identity, of an environment, and of a category value that splits rows."""
    return scopes_of(everything.chargebacks, everything.topics)


@pytest.fixture(scope="session")
def callers(deployment: Deployment, scopes: dict[str, Scoped]) -> Iterator[Client]:
    """A client of the same tenants, where the caller's name selects the scope; callers have all rights within it."""
    known: list[Caller] = [caller(name, Right.ADMIN, scope=each.scope) for name, each in scopes.items()]
    known += [caller("nothing", Right.ADMIN, scope={"identity_id": []}), caller("whole", Right.ADMIN)]
    with (
        deployment.served(mode="api", authenticate=Callers.of(known)) as address,
        Client(base_url=address, timeout=60) as client,
    ):
        yield client


@pytest.fixture(params=NAMES)
def scoped(request: pytest.FixtureRequest, scopes: dict[str, Scoped]) -> Scoped:
    """Each of the scopes."""
    return scopes[request.param]


@pytest.fixture(scope="session")
def all_seen(client: Client, scopes: dict[str, Scoped]) -> dict[str, Seen]:
    """Return what each scope sees."""
    return {name: Seen(client, "acme", each) for name, each in scopes.items()}


@pytest.fixture
def seen(scoped: Scoped, all_seen: dict[str, Seen]) -> Seen:
    """Return what the scope sees."""
    found = all_seen[scoped.name]
    assert found.chargebacks
    assert found.outside
    return found


def _asked(endpoint: Endpoint, seen: Seen) -> dict[str, Any]:
    """Return the request of an endpoint about something visible."""
    row = seen.chargebacks[0]
    parameters: dict[str, Any] = dict(endpoint.needed)
    if "topic_name" in parameters:
        parameters |= topic_key_of(seen.topics[0]) if seen.topics else {}
    elif "identity_id" in parameters:
        parameters |= key_of(row)
    elif "by" in parameters:
        parameters = {name: value for name, value in statement_key_of(row).items() if name in parameters}
    elif "names" in endpoint.query:
        parameters |= {"names": "true"}
    elif "q" in endpoint.query and "search" in endpoint.path:
        parameters |= {"q": "e"}
    elif "include" in endpoint.query and "top" in endpoint.query:
        parameters |= {"by": ["identity_id", "resource_id", "environment_id"], "top": 50}
    if endpoint.path.endswith(("/aggregate", "/aggregate.csv")):
        parameters |= {"group_by": ["env_id", "topic_name"] if "topic" in endpoint.path else ["identity_id"]}
    path = endpoint.of("acme", entity_id=row["resource_id"], dimension_id=row["dimension_id"])
    body = None
    if endpoint.method != "GET":
        body = {"dry_run": True, "tag_key": "team", "display_name": "x"} if endpoint.body >= {"dry_run"} else {}
    return {"method": endpoint.method, "url": path, "params": parameters, "json": body}


@pytest.mark.parametrize("endpoint", READ, ids=lambda endpoint: endpoint.name)
def test_no_answer_tells_of_the_outside(callers: Client, scoped: Scoped, seen: Seen, endpoint: Endpoint) -> None:
    """No endpoint that reads returns an id or a name that occurs in no visible row."""
    answer = callers.request(**_asked(endpoint, seen), headers=asked_by(scoped.name))
    # The budget of the whole bill and the note of an unscoped caller do not exist for a caller with a scope.
    missing = ("topic-attributions/explain" in endpoint.path and not seen.topics) or any(
        each in endpoint.path for each in ("{budget_id}", "{note_id}")
    )
    assert answer.status_code == (404 if missing else endpoint.success), answer.text
    assert seen.told(answer.text) == []


def test_the_search_for_outside_ids_finds_them(client: Client, seen: Seen) -> None:
    """Without a scope, the responses contain outside ids, so the test above would notice them."""
    for name in (f"GET {TENANT}/chargebacks", f"GET {TENANT}/identities", f"GET {TENANT}/resources.csv"):
        assert seen.told(client.request(**_asked(BY_NAME[name], seen)).text), name


def test_rows_and_sums_are_those_of_the_filters(client: Client, callers: Client, scoped: Scoped, seen: Seen) -> None:
    """Rows and sums within a scope are those that an unscoped caller gets with the same filters."""
    by = asked_by(scoped.name)
    callers.headers.update(by)
    rows = callers.all_items(f"{ACME}/chargebacks")
    assert [row["dimension_id"] for row in rows] == [row["dimension_id"] for row in seen.chargebacks]
    asked = {"group_by": ["product_type", "identity_id"], "time_bucket": "day"}
    mine = callers.answer(f"{ACME}/chargebacks/aggregate", **asked)
    assert mine == client.answer(f"{ACME}/chargebacks/aggregate", **asked, **scoped.chargebacks)
    assert mine["total_amount"] == callers.answer(f"{ACME}/chargebacks/aggregate")["total_amount"]
    if scoped.name != "category":  # sums by category include reallocated cost, which is in no row
        assert total(rows) == total(mine["buckets"], "total_amount")
    file = list(csv.DictReader(io.StringIO(callers.post(f"{ACME}/export", json={}).text)))
    assert total(file) == total(rows)
    for form in ("parquet", "jsonl"):
        assert total(records(callers.post(f"{ACME}/export", json={"format": form}).content, form)) == total(rows)
    topics = callers.all_items(f"{ACME}/topic-attributions")
    assert len(topics) == len(seen.topics)
    assert len(callers.all_items(f"{ACME}/billing")) == len(seen.billing)
    flow = {"by": ["environment_id", "identity_id"], "period": "30d"}
    assert callers.answer(f"{ACME}/flow", **flow) == client.answer(f"{ACME}/flow", **flow, **scoped.chargebacks)


@pytest.mark.extensive
def test_explanations_have_the_amounts_of_lists(everything: Everything, callers: Client, scoped: Scoped) -> None:
    """An explanation of a row that a category splits has the visible part, and the rest as the part of others."""
    callers.headers.update(asked_by(scoped.name))
    whole = {str(key_of(row)): Decimal(row["amount"]) for row in everything.chargebacks}
    rows = callers.all_items(f"{ACME}/chargebacks")
    split = [row for row in rows if Decimal(row["amount"]) != whole[str(key_of(row))]]
    assert bool(split) == (scoped.name == "category")
    for row in [*split[:3], *rows[:: max(1, len(rows) // 3)]]:
        found, amount = callers.answer(f"{ACME}/chargebacks/explain", **key_of(row)), whole[str(key_of(row))]
        assert found["row"]["amount"] == row["amount"] == found["revisions"][-1]["amount"]
        assert Decimal(found["arithmetic"]["amount"]) == amount
        assert found["recomputed"] == "same"
        assert (found["visible"] is None) == (row not in split)
        assert ("to what you see." in found["sentence"]) == (row in split)
        if found["visible"] is not None:
            assert found["visible"]["amount"] == row["amount"]
            assert sum(map(Decimal, found["visible"].values())) == amount


@pytest.mark.parametrize("scoped", ["identity", "environment"], indirect=True)
def test_what_is_outside_is_not_there(everything: Everything, callers: Client, scoped: Scoped, seen: Seen) -> None:
    """Filters return nothing, ids are a 404, and outside entities cannot be tagged; no error mentions missing
    rights."""
    callers.headers.update(asked_by(scoped.name))
    row = next(
        each
        for each in everything.chargebacks
        if each["identity_id"] not in {*seen.identities, "UNALLOCATED"} and each["resource_id"] not in seen.resources
    )
    assert callers.answer(f"{ACME}/chargebacks", identity_id=row["identity_id"])["total"] == 0
    assert callers.answer(f"{ACME}/costs", identity_id=row["identity_id"])["total"]["amount"] == "0.00"
    assert callers.get(f"{ACME}/chargebacks/{row['dimension_id']}").status_code == 404
    assert callers.get(f"{ACME}/chargebacks/explain", params=key_of(row)).status_code == 404
    tags = callers.tag_path("acme", "resource", row["resource_id"])
    new = {"tag_key": "team", "tag_value": "mine"}
    assert callers.get(tags).status_code == 404
    assert callers.post(tags, json=new).status_code == 404
    assert callers.put(f"{tags}/team", json={"tag_value": "mine"}).status_code == 404
    assert callers.delete(f"{tags}/team").status_code == 404
    place = {"entity_type": "resource", "entity_id": row["resource_id"], "tag_key": "team"}
    assert callers.post(f"{ACME}/tags/bulk", json={"items": [place | {"tag_value": "mine"}]}).status_code == 404
    removed = callers.post(f"{ACME}/tags/bulk-delete", json={"items": [place]})
    assert removed.json() == {"deleted_count": 0, "missing_count": 1}


def test_tags_of_visible_entities(client: Client, callers: Client, scoped: Scoped, seen: Seen) -> None:
    """A caller with the right to tag does so within the scope, under its own name, and sees no other tags."""
    callers.headers.update(asked_by(scoped.name))
    identity = sorted(seen.identities - {"UNALLOCATED"})[0]
    mine = client.tag_path("acme", "identity", identity)
    other = client.tag_path("acme", "resource", sorted(set(seen.outside) & set(_ids(client)))[0])
    assert client.post(other, json={"tag_key": "secret", "tag_value": "theirs"}).status_code == 201
    try:
        made = callers.post(mine, json={"tag_key": "squad", "tag_value": "mine", "created_by": "somebody else"})
        assert (made.status_code, made.json()["created_by"]) == (201, scoped.name)
        assert callers.answer(f"{ACME}/tags/keys") == {"keys": ["squad"]}
        assert callers.answer(f"{ACME}/tags/keys/secret/values") == {"values": []}
        assert [tag["entity_id"] for tag in callers.all_items(f"{ACME}/tags")] == [identity]
        assert [each["key"] for each in callers.answer(ACME)["tag_keys"]] == ["squad"]
    finally:
        assert client.delete(f"{mine}/squad").status_code == 204
        assert client.delete(f"{other}/secret").status_code == 204


def _ids(client: Client) -> list[str]:
    return [each["resource_id"] for each in client.all_items(f"{ACME}/resources")]


def test_an_empty_scope_sees_nothing(callers: Client) -> None:
    """A condition without values matches no row."""
    callers.headers.update(asked_by("nothing"))
    for name in ("chargebacks", "billing", "topic-attributions", "resources", "identities", "tags"):
        assert callers.answer(f"{ACME}/{name}")["total"] == 0
    assert callers.answer(f"{ACME}/chargebacks/aggregate")["total_amount"] == "0.00"
    assert callers.answer(f"{ACME}/search", q="a")["items"] == []


@pytest.mark.extensive
def test_answers_are_kept_for_each_scope(callers: Client, scoped: Scoped) -> None:
    """An ETag or a cached response of a caller who sees more is not used for a caller with a scope."""
    for path in ("chargebacks/aggregate", "costs", "series", "resources", "search?q=a", "flow"):
        whole = callers.get(f"{ACME}/{path}", headers=asked_by("whole"))
        mine = callers.get(f"{ACME}/{path}", headers=asked_by(scoped.name) | {"If-None-Match": whole.headers["etag"]})
        assert (mine.status_code, mine.headers["etag"] != whole.headers["etag"]) == (200, True), path
        again = callers.get(f"{ACME}/{path}", headers=asked_by(scoped.name) | {"If-None-Match": mine.headers["etag"]})
        assert again.status_code == 304
        assert mine.text != whole.text


def test_notes_are_those_of_the_scope(callers: Client, scoped: Scoped) -> None:
    """A caller with a scope sees the notes written within it; a caller who sees the whole bill sees all notes."""
    day = {"start_date": "2026-01-01", "end_date": "2026-01-01"}
    note = {**day, "text": "Load test", "created_by": "somebody else"}
    others = callers.post(f"{ACME}/notes", json=note, headers=asked_by("whole")).json()
    mine = callers.post(f"{ACME}/notes", json=note, headers=asked_by(scoped.name)).json()
    try:
        assert (others["created_by"], mine["created_by"]) == ("whole", scoped.name)
        for name, expected in ((scoped.name, [mine]), ("whole", [others, mine]), ("nothing", [])):
            listed = callers.get(f"{ACME}/notes", params=day, headers=asked_by(name)).json()
            assert (listed["items"], listed["total"]) == (expected, len(expected))
        change, theirs = {**day, "text": "Changed"}, f"{ACME}/notes/{others['id']}"
        anything = asked_by(scoped.name) | {"If-Match": "*"}
        assert callers.get(theirs, headers=asked_by(scoped.name)).status_code == 404
        assert callers.put(theirs, json=change, headers=anything).status_code == 404
        assert callers.delete(theirs, headers=anything).status_code == 404
        changed = callers.put(f"{ACME}/notes/{mine['id']}", json=change, headers=asked_by("whole") | {"If-Match": "*"})
        assert (changed.json()["changed_by"], changed.json()["created_by"]) == ("whole", scoped.name)
        seen = callers.get(f"{ACME}/notes/{mine['id']}", headers=asked_by(scoped.name))
        assert (seen.json(), seen.headers["etag"]) == (changed.json(), changed.headers["etag"])
    finally:
        for each in (others, mine):
            headers = asked_by("whole") | {"If-Match": "*"}
            assert callers.delete(f"{ACME}/notes/{each['id']}", headers=headers).status_code == 204


def test_restatements_are_about_the_whole_bill(callers: Client, scoped: Scoped) -> None:
    """Restatements have totals of all rows, so they are refused to callers with a scope."""
    path = f"{ACME}/restatements"
    assert callers.get(path, headers=asked_by("whole")).status_code == 200
    refused = callers.get(path, headers=asked_by(scoped.name))
    assert refused.status_code == 403
    assert "about the whole bill" in refused.json()["detail"]


def test_views_are_those_of_the_caller(callers: Client, scoped: Scoped) -> None:
    """A caller with a scope has views of its own; a caller who sees the whole bill sees all views."""
    view = {"name": f"View of {scoped.name}", "page": "costs", "query": "", "created_by": "somebody else"}
    others = callers.post(f"{ACME}/views", json=view | {"name": "Others"}, headers=asked_by("whole")).json()
    mine = callers.post(f"{ACME}/views", json=view, headers=asked_by(scoped.name)).json()
    try:
        assert (others["created_by"], mine["created_by"]) == ("whole", scoped.name)
        # The name of a hidden view is accepted: refusing it would reveal that it exists.
        same = callers.post(f"{ACME}/views", json=view | {"name": "Others"}, headers=asked_by(scoped.name))
        assert same.status_code == 201
        again = callers.post(f"{ACME}/views", json=view | {"name": "Others"}, headers=asked_by(scoped.name))
        assert again.status_code == 409
        theirs = f"{ACME}/views/{same.json()['id']}"
        kept = {"name": "Others", "page": "map", "query": ""}
        assert callers.put(theirs, json=kept, headers=asked_by("whole")).status_code == 200
        assert callers.delete(theirs, headers=asked_by(scoped.name)).status_code == 204
        for name, expected in ((scoped.name, [mine]), ("whole", [others, mine])):
            assert callers.get(f"{ACME}/views", headers=asked_by(name)).json()["items"] == expected
        address, change = f"{ACME}/views/{others['id']}", {"name": "Mine", "page": "costs", "query": ""}
        assert callers.put(address, json=change, headers=asked_by(scoped.name)).status_code == 404
        assert callers.delete(address, headers=asked_by(scoped.name)).status_code == 404
        assert callers.put(f"{ACME}/views/{mine['id']}", json=change, headers=asked_by(scoped.name)).status_code == 200
    finally:
        for each in (others, mine):
            assert callers.delete(f"{ACME}/views/{each['id']}", headers=asked_by("whole")).status_code == 204
