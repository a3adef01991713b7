"""Which encodings of a body a client accepts."""

from __future__ import annotations


def accepts_encoding(accept_encoding: str, name: str) -> bool:
    """Return whether an ``Accept-Encoding`` header allows the encoding ``name``; ``*`` stands for those it omits.

    >>> [accepts_encoding("br, gzip;q=0.8", name) for name in ("br", "gzip", "zstd")]
    [True, True, False]
    >>> [accepts_encoding("*, gzip;q=0", name) for name in ("br", "gzip")]
    [True, False]
    """
    offers = (offer.replace(" ", "").lower().partition(";q=") for offer in accept_encoding.split(","))
    accepted = {offered: not weight or weight.strip("0.") != "" for offered, _, weight in offers}
    return accepted.get(name, accepted.get("*", False))
