"""The body of an answer: decompressed as it arrives, never larger than its limit."""

from __future__ import annotations

import gzip
import zlib

import pytest

from chargeback.errors import SourceTooLarge, SourceUnavailable
from chargeback.sources.http import Body

TEXT = b"what the provider says " * 50


def read(sent: bytes, encoding: str, largest: int = 10_000, *, pieces: int = 1) -> bytes:
    """The body that arrives in pieces of so many bytes."""
    body = Body(encoding, largest, "http://source/x")
    for start in range(0, len(sent), pieces):
        body.add(sent[start : start + pieces])
    return body.finish()


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("sent", "encoding"),
    [
        (TEXT, ""),
        (TEXT, "identity"),
        (gzip.compress(TEXT, mtime=0), "gzip"),
        (gzip.compress(TEXT, mtime=0), "X-GZIP"),
        (zlib.compress(TEXT), "deflate"),
        (gzip.compress(TEXT[:100], mtime=0) + gzip.compress(TEXT[100:], mtime=0), "gzip"),
    ],
)
def test_what_was_sent_arrives(sent: bytes, encoding: str, pieces: int) -> None:
    """However it is compressed, and in whatever pieces it comes."""
    assert read(sent, encoding, pieces=pieces) == TEXT


@pytest.mark.parametrize(("sent", "encoding"), [(TEXT, ""), (gzip.compress(TEXT, mtime=0), "gzip")])
def test_the_limit_is_exact(sent: bytes, encoding: str) -> None:
    """As many bytes as the limit are taken, and not one more."""
    assert read(sent, encoding, len(TEXT)) == TEXT
    with pytest.raises(SourceTooLarge, match="the response of http://source/x is larger than"):
        read(sent, encoding, len(TEXT) - 1)


@pytest.mark.parametrize(
    ("sent", "encoding", "reason"),
    [
        (gzip.compress(TEXT, mtime=0)[:-4], "gzip", "is truncated"),
        (gzip.compress(TEXT, mtime=0)[:5], "gzip", "is truncated"),
        (b"no gzip", "gzip", "cannot be decompressed"),
        (TEXT, "br", "an encoding that was not requested: 'br'"),
        (TEXT, "gzip, gzip", "an encoding that was not requested"),
    ],
)
def test_what_cannot_be_read_may_be_better_next_time(sent: bytes, encoding: str, reason: str) -> None:
    """The error names the address."""
    with pytest.raises(SourceUnavailable, match=rf"http://source/x.*{reason}"):
        read(sent, encoding)
