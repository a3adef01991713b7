"""What a client refuses it does not get."""

from __future__ import annotations

import pytest

from chargeback.page import accepts_encoding


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("br, GZIP ; q=0.5", True),
        ("gzip;q=1.0", True),
        ("*", True),
        ("*;q=0", False),
        ("gzip;q=0.000, *", False),
        ("gzip, *;q=0", True),
        ("", False),
        ("br", False),
        ("not-gzip", False),
    ],
)
def test_who_takes_gzip(header: str, accepted: bool) -> None:
    """Names in any case, with weights; ``*`` stands for what is not named, and the weight 0 refuses."""
    assert accepts_encoding(header, "gzip") is accepted
