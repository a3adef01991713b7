"""Finished answers are sent as gzip to whoever takes it."""

from __future__ import annotations

import gzip

import pytest
from starlette.responses import Response

from chargeback.api.compression import SMALLEST, accepts_gzip, compressed


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("br, GZIP ; q=0.5", True),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=0.000, *", False),
        ("", False),
        ("br", False),
        ("not-gzip", False),
    ],
)
def test_who_takes_gzip(header: str, accepted: bool) -> None:
    """What the client refuses it does not get."""
    assert accepts_gzip(header) is accepted


def test_a_large_body_becomes_smaller() -> None:
    """The same body, with its new length; other headers stay."""
    body = b"costs " * 1000
    answer = compressed(Response(body, media_type="application/json", headers={"etag": "x"}))
    assert gzip.decompress(bytes(answer.body)) == body
    assert answer.headers["content-encoding"] == "gzip"
    assert (answer.headers["etag"], answer.headers["content-type"]) == ("x", "application/json")
    assert int(answer.headers["content-length"]) == len(answer.body) < len(body)


def test_a_small_body_stays_as_it_is() -> None:
    """It fits a packet anyway."""
    answer = Response(bytes(SMALLEST - 1))
    assert compressed(answer) is answer
