"""The host names under which the service accepts requests.

Anyone can register a name and make it resolve to any address, including the loopback. A web page could then read the
responses of the service, because the browser treats both as one site (DNS rebinding). Requests are therefore accepted
only for names that cannot be used that way and for those in the configuration.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from chargeback.settings import is_loopback

_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]*)?")

#: The entry of ``api.allowed_hosts`` that allows every name.
ANY = "*"


class AllowedHosts:
    """The hosts that a ``Host`` header may name, on any port.

    ``localhost`` and loopback addresses are always allowed. A service that listens on another address than the
    loopback also allows that address, every other IP address and every name without a dot: none of them can be
    registered by a stranger. ``names`` adds host names; ``*.example.com`` stands for all names below ``example.com``.
    """

    def __init__(self, names: Iterable[str] = (), listens_on: str = "127.0.0.1") -> None:
        entries = {name.lower().rstrip(".") for name in names}
        self._listens_on = listens_on.lower()
        self._is_local = is_loopback(listens_on)
        self._any = ANY in entries
        self._suffixes = tuple(name.removeprefix("*") for name in entries if name.startswith("*."))
        self._names = entries

    def allow(self, host: str) -> bool:
        """Return whether a request whose ``Host`` header is ``host`` is accepted."""
        name = host_name(host)
        if name is None:
            return False
        if self._any or name in self._names or is_loopback(name):
            return True
        if name.endswith(self._suffixes):
            return True
        return not self._is_local and (name == self._listens_on or "." not in name or _address(name) is not None)


def needs_names(listens_on: str, names: Iterable[str]) -> bool:
    """Return whether a service that listens on ``listens_on`` needs configured names.

    >>> needs_names("127.0.0.1", []), needs_names("0.0.0.0", []), needs_names("0.0.0.0", ["costs.example.com"])
    (False, True, False)
    """
    return not is_loopback(listens_on) and not list(names)


def host_name(host: str) -> str | None:
    """Return the name or address in a ``Host`` header, in lower case and without its port; None if it has none.

    >>> host_name("Example.COM:8080"), host_name("[::1]:8080"), host_name("a@b"), host_name("x:y")
    ('example.com', '::1', None, None)
    """
    match = _HOST.fullmatch(host.strip().lower())
    return match and (match["address"] or match["name"].removesuffix("."))


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
