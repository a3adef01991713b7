"""The host names that the service accepts."""

from __future__ import annotations

import pytest

from chargeback.api.guard import AllowedHosts

REBOUND = ["attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example", "xlocalhost.example"]


@pytest.mark.parametrize("listens_on", ["127.0.0.1", "localhost", "::1"])
def test_on_the_loopback(listens_on: str) -> None:
    """By default, only names and addresses of this machine are accepted, with any port."""
    hosts = AllowedHosts(listens_on=listens_on)
    for host in ("localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:9", "127.9.9.9", "[::1]", "[::1]:80"):
        assert hosts.allow(host), host
    for host in (*REBOUND, "10.0.0.7:8080", "chargeback", "costs.example.com"):
        assert not hosts.allow(host), host


@pytest.mark.parametrize("listens_on", ["0.0.0.0", "::", "10.0.0.7", "costs.internal"])
def test_elsewhere(listens_on: str) -> None:
    """Elsewhere, IP addresses and names without a dot, which cannot be registered, are accepted too."""
    hosts = AllowedHosts(listens_on=listens_on)
    for host in ("localhost:8080", "10.0.0.7:8080", "[fd00::1]:8080", "api-1:8080", "chargeback"):
        assert hosts.allow(host), host
    assert not any(hosts.allow(host) for host in REBOUND)
    assert hosts.allow("costs.internal") == (listens_on == "costs.internal")


def test_configured_names() -> None:
    """Listed names, names below a listed domain, or all names are accepted in addition to the defaults."""
    hosts = AllowedHosts(["Costs.example.com", "*.finance.example"])
    for host in ("costs.example.com:443", "COSTS.EXAMPLE.COM.", "a.b.finance.example", "localhost"):
        assert hosts.allow(host), host
    for host in ("finance.example", "xfinance.example", "example.com", "x.costs.example.com"):
        assert not hosts.allow(host), host
    assert all(AllowedHosts(["*"]).allow(host) for host in REBOUND)


@pytest.mark.parametrize("host", ["", "a b", "a@localhost", "localhost:x", "[::1", "localhost/", "localhost,evil", "ſ"])
def test_what_is_no_host(host: str) -> None:
    """An invalid host is refused even if every host is allowed."""
    assert not AllowedHosts(["*"], "0.0.0.0").allow(host)
