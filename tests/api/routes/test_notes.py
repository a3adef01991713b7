"""Notes over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from chargeback.api.routes import notes
from chargeback.api.routes.notes import NoteItem
from chargeback.reports.answers import PageOf
from tests.api.conftest import ACME, LAST, parameters_of

URL = f"{ACME}/notes"
NOTE = {"start_date": str(LAST), "text": "Load test of search"}


def _written(client: httpx.Client, **more: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Write a note; return it, and the If-Match header to change it."""
    response = client.post(URL, json=NOTE | more)
    assert response.status_code == 201, response.text
    return response.json(), {"If-Match": response.headers["ETag"]}


def test_the_life_of_a_note(own_client: httpx.Client) -> None:
    """A note is written, listed, read, changed without losing its author, and removed."""
    note, header = _written(own_client, created_by="ann")
    days = {"start_date": str(LAST), "end_date": str(LAST)}
    assert {**NOTE, **days, "version": 1, "created_by": "ann", "changed_by": "ann"}.items() <= note.items()
    listed = own_client.get(URL).json()
    PageOf[NoteItem].model_validate(listed)
    assert (listed["items"], listed["total"]) == ([note], 1)
    read = own_client.get(f"{URL}/{note['id']}")
    assert (read.json(), read.headers["ETag"]) == (note, header["If-Match"])
    known = own_client.get(f"{URL}/{note['id']}", headers={"If-None-Match": header["If-Match"]})
    assert (known.status_code, known.content) == (304, b"")
    wanted = {"start_date": str(LAST - timedelta(days=2)), "end_date": str(LAST), "text": "Repeated"}
    changed = own_client.put(f"{URL}/{note['id']}", json=wanted, headers=header)
    again = {"version": 2, "changed_by": "api", "changed_at": changed.json()["changed_at"]}
    assert (changed.status_code, changed.json()) == (200, note | wanted | again)
    same = own_client.put(f"{URL}/{note['id']}", json=wanted, headers={"If-Match": changed.headers["ETag"]})
    assert (same.json(), same.headers["ETag"]) == (changed.json(), changed.headers["ETag"])
    removed = own_client.delete(f"{URL}/{note['id']}", headers={"If-Match": changed.headers["ETag"]})
    assert (removed.status_code, removed.content) == (204, b"")
    assert own_client.get(URL).json()["items"] == []


def test_a_change_names_what_it_replaces(own_client: httpx.Client) -> None:
    """A change without If-Match is a 428, one of another version a 412 that names the other editor; nothing changes."""
    note, header = _written(own_client, created_by="ann")
    address = f"{URL}/{note['id']}"
    for refused in (own_client.put(address, json=NOTE), own_client.delete(address)):
        assert refused.status_code == 428
        assert refused.json()["detail"].startswith(f"Version 1 of the note {note['id']} exists: send the ETag")
    assert own_client.put(address, json=NOTE | {"text": "Changed"}, headers=header).status_code == 200
    for refused in (own_client.put(address, json=NOTE, headers=header), own_client.delete(address, headers=header)):
        assert refused.status_code == 412
        assert f"Someone else was faster: api changed the note {note['id']} at " in refused.json()["detail"]
    assert own_client.get(address).json()["text"] == "Changed"


def test_the_period_of_a_list(own_client: httpx.Client) -> None:
    """The list has the notes on any day of a period, by their first day, in pages; by default those of the last
    days."""
    early = _written(own_client, start_date="2020-01-30", end_date="2020-02-01", text="Long ago")[0]
    late = _written(own_client, start_date="2999-12-31", text="To come")[0]
    last = _written(own_client)[0]

    def _listed(**params: str | int) -> list[Any]:
        items: list[Any] = own_client.get(URL, params=params).json()["items"]
        return items

    assert _listed() == _listed(period="1d") == [last]
    assert _listed(start_date="2020-02-01", end_date="2020-02-01") == _listed(period="2020-01") == [early]
    assert _listed(start_date="2020-02-02", end_date="2020-02-03") == []
    everything = {"start_date": "2020-01-01", "end_date": str(LAST)}
    assert _listed(**everything) == [early, last]
    page = own_client.get(URL, params=everything | {"page_size": 1, "page": 2}).json()
    assert (page["items"], page["total"], page["pages"]) == ([last], 2, 2)
    assert _listed(period="2999-12") == [late]


def test_not_more_than_so_many(own_client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another note beyond the limit is a 409, until one is removed."""
    monkeypatch.setattr(notes, "MAX_NOTES", 1)
    note, header = _written(own_client)
    refused = own_client.post(URL, json=NOTE)
    assert (refused.status_code, refused.json()["detail"]) == (409, "There are 1 notes already; remove some first.")
    own_client.delete(f"{URL}/{note['id']}", headers=header)
    _written(own_client)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"text": ""}, ["text"]),
        ({"text": " \u200b"}, ["text"]),
        ({"text": "x" * 501}, ["text"]),
        *(({"text": f"a{character}b"}, ["text"]) for character in "\x00\t\n\r\x1b\x7f\x9b\u2028"),
        ({"text": 1, "start_date": "2026-02-30", "id": "7"}, ["id", "start_date", "text"]),
        ({"start_date": None}, ["start_date"]),
        ({"end_date": str(LAST - timedelta(days=1))}, ["end_date"]),
        ({"end_date": str(LAST + timedelta(days=367))}, ["end_date"]),
        ({"created_by": ""}, ["created_by"]),
    ],
)
def test_what_is_refused(client: httpx.Client, more: dict[str, Any], wrong: list[str]) -> None:
    """A 400 names every invalid field; nothing is written."""
    assert parameters_of(client.post(URL, json=NOTE | more)) == wrong
    assert client.get(URL).json()["items"] == []


def test_a_refusal_says_what_would_do(client: httpx.Client) -> None:
    """The message says what the field should be."""
    errors = client.post(URL, json=NOTE | {"text": "a\nb", "end_date": "2020-01-01"}).json()["errors"]
    assert {each["parameter"]: each["message"] for each in errors} == {
        "text": "should be one line: without line breaks, tabs and other control characters",
        "end_date": f"should be between start_date, {LAST}, and 366 days later",
    }


def test_any_other_text_is_kept(own_client: httpx.Client) -> None:
    """Any text of one line is accepted, and markup is kept as text."""
    for text in ("<b>bold</b> & 'quoted'", "Überlastung 🚀", "=1+1", "x" * 500, " spaces around "):
        assert _written(own_client, text=text)[0]["text"] == text


@pytest.mark.parametrize("note_id", ["1", "999999999", "0", "one", "-1", "1234567890"])
def test_what_is_not_there(client: httpx.Client, note_id: str) -> None:
    """A missing note is a 404 for each method."""
    headers = {"If-Match": "*"}
    assert client.get(f"{URL}/{note_id}").status_code == 404
    assert client.put(f"{URL}/{note_id}", json=NOTE, headers=headers).status_code == 404
    assert client.delete(f"{URL}/{note_id}", headers=headers).status_code == 404
