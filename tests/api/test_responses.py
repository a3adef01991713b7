"""The sending of responses."""

from __future__ import annotations

import json
from datetime import date

from chargeback.api.responses import json_response, page_response


def test_a_page_in_its_envelope() -> None:
    """A page has the number of pages, rounded up; an empty list has 0."""
    assert json.loads(bytes(page_response([1], 101, page=2, page_size=100).body)) == {
        "items": [1],
        "total": 101,
        "page": 2,
        "page_size": 100,
        "pages": 2,
    }
    assert json.loads(bytes(page_response([], 0, page=1, page_size=100).body))["pages"] == 0


def test_dates_are_written_as_dates() -> None:
    """Dates are written in ISO format without a model."""
    answer = json_response({"day": date(2026, 1, 31)}, status=202)
    assert (answer.status_code, bytes(answer.body)) == (202, b'{"day":"2026-01-31"}')
