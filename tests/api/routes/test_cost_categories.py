"""Cost categories over HTTP, on both databases."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from chargeback.api.routes.cost_categories import CategoryHistoryItem, CategoryItem, CategoryList
from chargeback.reports.categories import editing
from chargeback.store.control.cost_categories import CategoryWrite, write_category
from chargeback.store.tenant import TenantStore
from tests.api.conftest import ACME, parameters_of

URL = f"{ACME}/cost-categories"
ONE = f"{URL}/cost_center"
RULE = {"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}}
CANONICAL = {"default": "UNASSIGNED", "rules": [RULE]}
HEAD = "entity_type,entity_id,value,percent,valid_from,valid_to\r\n"
SENTENCE = "Someone else was faster: api changed cost_center at {} (version 2, reason: CHG-2)."


def put(
    client: httpx.Client, document: Any = None, *, url: str = ONE, reason: str | None = None, **headers: str
) -> httpx.Response:
    """Write a document, by default one that is valid."""
    body = {"document": {"rules": [RULE]} if document is None else document, "reason": reason}
    return client.put(url, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def created(client: httpx.Client, document: Any = None, *, url: str = ONE) -> str:
    """Create a category and return its ETag."""
    response = put(client, document, url=url)
    assert response.status_code == 201, response.text
    return response.headers["etag"]


def detail(response: httpx.Response, status: int) -> str:
    """Return the detail of an error response."""
    assert response.status_code == status, response.text
    text: str = response.json()["detail"]
    return text


def test_the_life_of_a_category(own_client: httpx.Client) -> None:
    """A category is created, read, changed and removed; the list has counts, the history every version."""
    made = put(own_client, reason="CHG-1")
    assert made.status_code == 201
    CategoryItem.model_validate(made.json())
    assert made.json() | {"at": None} == {
        "key": "cost_center",
        "version": 1,
        "who": "api",
        "at": None,
        "reason": "CHG-1",
        "document": CANONICAL,
        "warnings": [],
    }
    read = own_client.get(ONE)
    assert (read.json(), read.headers["etag"]) == (made.json(), made.headers["etag"])
    assert read.headers["etag"].startswith('"1-')
    changed = put(own_client, {"values": {"a": None, "b": {"parent": "a"}}}, If_Match=read.headers["etag"])
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    listed = own_client.get(URL).json()
    CategoryList.model_validate(listed)
    assert [{**each, "at": None} for each in listed["items"]] == [
        {"key": "cost_center", "version": 2, "who": "api", "at": None, "reason": None, "rules": 0, "values": 2}
    ]
    gone = own_client.delete(ONE, params={"reason": "unused"}, headers={"If-Match": changed.headers["etag"]})
    assert (gone.status_code, gone.content) == (204, b"")
    assert own_client.get(URL).json() == {"items": []}
    assert detail(own_client.get(ONE), 404) == "There is no cost category cost_center."
    history = own_client.get(f"{ONE}/history").json()
    assert (history["total"], history["pages"]) == (3, 1)
    for each in history["items"]:
        CategoryHistoryItem.model_validate(each)
    assert [(each["version"], each["removed"], each["reason"], each["rules"]) for each in history["items"]] == [
        (3, True, "unused", 0),
        (2, False, None, 0),
        (1, False, "CHG-1", 1),
    ]
    page = own_client.get(f"{ONE}/history", params={"page": 2, "page_size": 2}).json()
    assert (page["items"], page["pages"]) == (history["items"][2:], 2)
    assert put(own_client).json()["version"] == 4


def test_earlier_versions(own_client: httpx.Client) -> None:
    """Versions do not change; that of a removal has no document."""
    tag = created(own_client)
    first = own_client.get(ONE)
    assert first.headers["etag"] == tag
    second = put(own_client, {}, If_Match=tag)
    own_client.delete(ONE, headers={"If-Match": second.headers["etag"]})
    assert own_client.get(ONE, params={"version": 1}).json() == first.json()
    assert own_client.get(ONE, params={"version": 2}).json() == second.json()
    assert detail(own_client.get(ONE, params={"version": 3}), 404) == "Version 3 removed the cost category cost_center."
    missing = "There is no version 4 of the cost category cost_center."
    assert detail(own_client.get(ONE, params={"version": 4}), 404) == missing
    assert parameters_of(own_client.get(ONE, params={"version": 0})) == ["version"]


def test_of_two_editors_the_second_is_told(own_client: httpx.Client) -> None:
    """Two editors replace the same version: the second gets a 412 with the name of the first; a request without
    If-Match gets a 428."""
    tag = created(own_client)
    changed = put(own_client, {}, If_Match=tag, reason="CHG-2")
    at = changed.json()["at"]
    faster = f"{SENTENCE.format(at)} Read it again, and repeat your change."
    for headers in ({"If_Match": tag}, {"If_Match": f"W/{changed.headers['etag']}"}, {"If_Match": '"2"'}):
        assert detail(put(own_client, **headers), 412) == faster
    assert detail(own_client.delete(ONE, headers={"If-Match": tag}), 412) == faster
    needed = (
        "Version 2 of the cost category cost_center exists: send the ETag that GET returns as If-Match, so that "
        "no change is lost."
    )
    assert detail(put(own_client), 428) == needed
    assert detail(own_client.delete(ONE), 428) == needed
    assert detail(put(own_client, If_None_Match="*"), 412) == (
        f"{SENTENCE.format(at)} To replace it, send its ETag as If-Match."
    )
    assert own_client.get(ONE).json() == changed.json()
    for tags in ("*", f'"other", {changed.headers["etag"]}'):
        assert put(own_client, {}, If_Match=tags).status_code == 200


def test_what_is_not_there(own_client: httpx.Client) -> None:
    """A missing category can be created with If-None-Match, but neither replaced nor removed."""
    assert detail(put(own_client, If_Match="*"), 412) == (
        "There is no cost category cost_center. Read it again, and repeat your change."
    )
    missing = "There is no cost category cost_center."
    assert detail(own_client.delete(ONE, headers={"If-Match": "*"}), 404) == missing
    for path in (ONE, f"{ONE}/history", f"{ONE}/rules.csv"):
        assert detail(own_client.get(path), 404) == missing
    assert put(own_client, If_None_Match="*").status_code == 201


def test_the_same_document_is_no_change(own_client: httpx.Client) -> None:
    """Writing the same document in another form makes no version."""
    tag = created(own_client)
    again = put(own_client, {"rules": [RULE], "share": [], "values": {}}, If_Match=tag, reason="once more")
    assert (again.status_code, again.headers["etag"], again.json()["reason"]) == (200, tag, None)
    assert own_client.get(f"{ONE}/history").json()["total"] == 1
    costs = own_client.get(f"{ACME}/costs").headers["etag"]
    put(own_client, If_Match=tag)
    assert own_client.get(f"{ACME}/costs").headers["etag"] == costs


def test_every_problem_of_a_document_is_told(client: httpx.Client) -> None:
    """A 400 has the path of each mistake; nothing is written."""
    response = put(client, {"rules": [{"match": {"identity": "sa-1"}}, {"assign": "a"}], "defualt": "x"})
    assert parameters_of(response) == ["document.defualt", "document.rules[0]", "document.rules[1].match"]
    assert response.json()["errors"][0] == {
        "parameter": "document.defualt",
        "message": "unknown key; did you mean default?",
    }
    assert parameters_of(client.put(ONE, json={"document": []})) == ["document"]
    assert parameters_of(client.put(ONE, json={"reason": "x" * 2001, "rules": []})) == ["document", "reason", "rules"]
    assert parameters_of(client.put(ONE, json={"document": {}, "reason": "a\x00"})) == ["reason"]
    assert parameters_of(client.put(ONE, content=b"default: x", headers={"Content-Type": "application/yaml"})) == [
        "Content-Type"
    ]
    assert client.get(URL).json() == {"items": []}


@pytest.mark.parametrize("key", ["1", "a b", "a.b", "x" * 65, "%C3%A9"])
def test_what_is_no_key(client: httpx.Client, key: str) -> None:
    """An invalid key is 404, for reading and writing."""
    assert client.get(f"{URL}/{key}").status_code == 404
    assert put(client, url=f"{URL}/{key}").status_code == 404


def test_warnings(own_client: httpx.Client) -> None:
    """The response warns of rules that are probably not intended."""
    rules = [{"match": {"identity": ["sa-1"]}, "assign": value} for value in ("Payments", "payments")]
    response = put(own_client, {"rules": rules})
    assert response.json()["warnings"] == [
        {"path": "rules[1].assign", "message": "the values Payments and payments differ only in case"}
    ]
    assert own_client.get(ONE).json() == response.json()


def test_not_more_than_so_many(own_client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another category beyond the limit is a 409; existing ones can be changed."""
    monkeypatch.setattr(editing, "MOST_CATEGORIES", 1)
    tag = created(own_client)
    assert detail(put(own_client, url=f"{URL}/team"), 409) == "There are 1 cost categories already; remove some."
    assert put(own_client, {}, If_Match=tag).status_code == 200


def test_pages_of_other_sites_change_nothing(client: httpx.Client) -> None:
    """Cross-origin requests are refused."""
    headers = {"Origin": "https://elsewhere.example"}
    assert put(client, **headers).status_code == 403
    assert client.delete(ONE, headers=headers).status_code == 403
    csv = headers | {"Content-Type": "text/csv"}
    assert client.put(f"{ONE}/rules.csv", content=HEAD, headers=csv).status_code == 403


def test_the_tag_of_facts_changes(own_client: httpx.Client) -> None:
    """Changing a category changes the ETag of costs."""
    before = own_client.get(f"{ACME}/costs").headers["etag"]
    created(own_client)
    assert own_client.get(f"{ACME}/costs").headers["etag"] != before


def test_a_repeated_question_is_answered_304(own_client: httpx.Client) -> None:
    """The version, the document and the file return 304 for their ETag."""
    tag = created(own_client)
    for path in (ONE, f"{ONE}/rules.csv", f"{ONE}?version=1"):
        answer = own_client.get(path)
        assert answer.headers["etag"] == tag
        again = own_client.get(path, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        assert own_client.get(path, headers={"If-None-Match": '"1"'}).status_code == 200


FILE = (
    "identity,sa-1,payments,,2026-03-01,2026-10-01\r\n"
    "identity,sa-1,retail,,,2026-03-01\r\n"
    "identity,sa-1,retail,,2026-10-01,\r\n"
    "identity,sa-2,retail,,,\r\n"
    "resource,lkc-shared,payments,60,,\r\n"
    "resource,lkc-shared,retail,40,,\r\n"
    """topic,"'=sum(1;2)",payments,,,\r\n"""
)
RULES = [
    {
        "id": "reorg-42",
        "match": {"identity": ["sa-1"]},
        "assign": "payments",
        "valid_from": "2026-03-01",
        "valid_to": "2026-10-01",
        "reason": "CHG-42",
    },
    RULE,
    {"match": {"identity": ["sa-1", "sa-2"]}, "assign": "retail"},
    {"match": {"resource": ["lkc-shared"]}, "split": {"payments": "60", "retail": "40"}},
    {"match": {"topic": ["=sum(1;2)"]}, "assign": "payments"},
    {"match": {"topic": ["pay.*"]}, "assign": "payments"},
]


def test_rules_as_a_file(own_client: httpx.Client) -> None:
    """The file has the rules that CSV can express, with their dates and guarded against formulas; sending it back
    changes nothing."""
    tag = created(own_client, {"rules": RULES})
    got = own_client.get(f"{ONE}/rules.csv")
    assert got.text == HEAD + FILE
    assert got.headers["content-type"].startswith("text/csv")
    assert got.headers["content-disposition"] == "attachment; filename=cost_center.csv"
    headers = {"If-Match": tag, "Content-Type": "text/csv; charset=utf-8"}
    same = own_client.put(f"{ONE}/rules.csv", content=got.content, headers=headers)
    assert (same.status_code, same.headers["etag"]) == (200, tag)


def test_a_file_replaces_what_a_file_can_say(own_client: httpx.Client) -> None:
    """An imported file replaces only the rules that CSV can express; unchanged ones keep their id and reason."""
    tag = created(own_client, {"rules": RULES})
    text = (
        "\ufeffentity_id;entity_type;value;valid_from;valid_to\r\n"
        "sa-3;Identity;new;;\r\n"
        "sa-1;identity;payments;01.03.2026;2026-10-01\r\n"
    )
    headers = {"If-Match": tag}
    body = {"csv": text, "reason": "from finance"}
    done = own_client.put(f"{ONE}/rules.csv", json=body, headers=headers)
    assert (done.status_code, done.json()["reason"]) == (200, "from finance")
    assert done.json()["document"]["rules"] == [
        {"match": {"identity": ["sa-3"]}, "assign": "new"},
        RULES[0],
        RULES[1],
        RULES[5],
    ]
    assert own_client.put(f"{ONE}/rules.csv", json=body, headers=headers).status_code == 412
    assert own_client.put(f"{ONE}/rules.csv", json=body).status_code == 428


def test_a_reason_that_cannot_be_seen_is_refused(own_client: httpx.Client) -> None:
    """A blank reason is refused; an empty one counts as none."""
    made = put(own_client, reason="")
    assert (made.status_code, made.json()["reason"]) == (201, None)
    headers = {"If-Match": made.headers["etag"]}
    for answer in (
        put(own_client, reason=" \t\u200b", **{"If-Match": headers["If-Match"]}),
        own_client.put(f"{ONE}/rules.csv", json={"csv": HEAD, "reason": " "}, headers=headers),
        own_client.delete(ONE, params={"reason": " "}, headers=headers),
    ):
        assert (answer.status_code, answer.json()["errors"]) == (
            400,
            [{"parameter": "reason", "message": "should not be blank"}],
        )
    assert own_client.get(ONE).json()["version"] == 1


def test_what_an_earlier_service_wrote(own_client: httpx.Client, own_store: TenantStore) -> None:
    """An invalid stored document can be read and replaced, but not exported or changed by a file."""
    with own_store.control.write() as connection:
        write_category(connection, CategoryWrite("cost_center", '{"rules":[{}]}'), expected=None)
    found = own_client.get(ONE)
    assert [each["path"] for each in found.json()["warnings"]] == ["rules[0].match", "rules[0]"]
    headers = {"If-Match": found.headers["etag"]}
    refused = (
        "An earlier version of the service wrote version 1 of cost_center, and this one refuses it: the warnings of "
        "the category say why. Put a corrected document first."
    )
    assert detail(own_client.get(f"{ONE}/rules.csv"), 409) == refused
    assert detail(own_client.put(f"{ONE}/rules.csv", json={"csv": HEAD}, headers=headers), 409) == refused
    assert put(own_client, If_Match=headers["If-Match"]).status_code == 200


def test_a_category_can_begin_as_a_file(own_client: httpx.Client) -> None:
    """Importing into a new category creates it with only these rules."""
    done = own_client.put(
        f"{ONE}/rules.csv", content=HEAD + "topic,orders,a,,,\n", headers={"Content-Type": "text/csv"}
    )
    assert (done.status_code, done.json()["document"]["rules"]) == (
        201,
        [{"match": {"topic": ["orders"]}, "assign": "a"}],
    )


def test_mistakes_in_a_file(own_client: httpx.Client) -> None:
    """A 400 names each mistake with its line, including values that the register does not have."""
    tag = created(own_client, {"values": {"payments": None}, "rules": []})
    lines = "identity,sa-1,payments,,,\nidentity,sa-2,paymnts,,,\n"
    body: dict[str, Any] = {"content": HEAD + lines, "headers": {"If-Match": tag, "Content-Type": "text/csv"}}
    response = own_client.put(f"{ONE}/rules.csv", **body)
    assert parameters_of(response) == ["csv"]
    assert response.json()["errors"] == [
        {
            "parameter": "csv",
            "message": "line 3: unknown value 'paymnts'; did you mean payments?; values has payments",
        }
    ]
    broken = own_client.put(f"{ONE}/rules.csv", **body | {"content": HEAD.encode() + b"\xff\n"})
    assert [each["message"] for each in broken.json()["errors"]] == [
        "line 2: is not UTF-8; in a spreadsheet, save the file as “CSV UTF-8”"
    ]
    assert set(parameters_of(own_client.put(f"{ONE}/rules.csv", **body | {"content": b""}))) == {"csv"}
    assert parameters_of(own_client.put(f"{ONE}/rules.csv", params={"reason": "x"}, **body)) == ["reason"]
    assert parameters_of(own_client.put(f"{ONE}/rules.csv", json={"csv": ""})) == ["csv"]
