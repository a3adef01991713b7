"""Rules for redirects. Credentials must never be sent to another host than intended."""

from __future__ import annotations

import httpx

from chargeback.errors import SourceRejected

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEPING_METHOD = frozenset({307, 308})


def next_address(
    method: str, status: int, here: httpx.URL, location: str | None, *, authorized: bool, trusted_domain: str | None
) -> httpx.URL:
    """Return the next address.

    A redirect is followed on the same origin, and from ``http`` to ``https`` on the same host. Without credentials
    (``authorized`` is false), a GET may be redirected to any host with the same scheme. With credentials, another host
    is only allowed over https, and if both hosts are in ``trusted_domain``. A POST is only repeated if the status
    demands it.

    Raises:
        SourceRejected: the redirect must not be followed; the message names its host.
    """
    try:
        there = here.join(location or "")
    except (httpx.InvalidURL, ValueError):
        raise SourceRejected(f"HTTP {status}: redirected to an invalid address", status=status) from None
    if not location or there.scheme not in {"http", "https"} or there.userinfo:
        raise SourceRejected(f"HTTP {status}: redirected without a valid address", status=status)
    if method != "GET" and status not in _KEEPING_METHOD:
        raise SourceRejected(f"HTTP {status}: redirected to {_origin(there)}; configure that address", status=status)
    upgraded = here.scheme == "http" and there.scheme == "https" and here.host == there.host
    if _origin(here) == _origin(there) or upgraded:
        return there
    if here.scheme != there.scheme:
        raise SourceRejected(f"HTTP {status}: redirected from {here.scheme} to {_origin(there)}", status=status)
    if not authorized and method == "GET":
        return there
    if authorized and there.scheme == "https" and trusted_domain and _within(here, there, domain=trusted_domain):
        return there
    raise SourceRejected(
        f"HTTP {status}: redirected to {_origin(there)}, to which this request must not be sent", status=status
    )


def _within(*addresses: httpx.URL, domain: str) -> bool:
    return all(address.host == domain or address.host.endswith(f".{domain}") for address in addresses)


def _origin(address: httpx.URL) -> str:
    port = address.port or {"http": 80, "https": 443}.get(address.scheme)
    return f"{address.scheme}://{address.host}:{port}"
