"""Where a redirect may lead."""

from __future__ import annotations

import httpx
import pytest

from chargeback.errors import SourceRejected
from chargeback.sources.http import next_address

HERE = "https://api.confluent.cloud/a"


def follow(here: str, location: str | None, *, method: str = "GET", status: int = 307, authorized: bool = True) -> str:
    """The next address for a client that trusts confluent.cloud."""
    found = next_address(
        method, status, httpx.URL(here), location, authorized=authorized, trusted_domain="confluent.cloud"
    )
    return str(found)


@pytest.mark.parametrize(
    ("here", "location", "there"),
    [
        (HERE, "/b?x=1", "https://api.confluent.cloud/b?x=1"),
        (HERE, "https://api.confluent.cloud:443/b", "https://api.confluent.cloud/b"),
        (HERE, "https://flink.us-east-1.aws.confluent.cloud/b", "https://flink.us-east-1.aws.confluent.cloud/b"),
        ("http://metrics:9090/a", "https://metrics/a", "https://metrics/a"),
    ],
)
def test_followed_with_credentials(here: str, location: str, there: str) -> None:
    """The same origin, https of the same host, and the provider's own domain may be given the credentials."""
    assert follow(here, location) == there


@pytest.mark.parametrize(
    ("here", "location"),
    [
        (HERE, "https://evil.example/b"),
        (HERE, "https://confluent.cloud.evil.example/b"),
        (HERE, "https://evilconfluent.cloud/b"),
        (HERE, "http://api.confluent.cloud/b"),
        (HERE, "https://user:pw@api.confluent.cloud/b"),
        (HERE, "ftp://api.confluent.cloud/b"),
        (HERE, "https://[bad/b"),
        (HERE, None),
        ("https://metrics.corp/a", "https://flink.confluent.cloud/b"),
        ("http://127.0.0.1:1/a", "http://127.0.0.1:2/a"),
    ],
)
def test_not_followed_with_credentials(here: str, location: str | None) -> None:
    """Another host, a downgrade or an odd address never sees the credentials."""
    with pytest.raises(SourceRejected):
        follow(here, location)


def test_without_credentials_another_host_may_answer() -> None:
    """There is nothing to give away in an open GET."""
    assert follow("http://a/x", "http://b/x", authorized=False) == "http://b/x"


@pytest.mark.parametrize(("status", "location"), [(302, "/b"), (303, "/b"), (307, "http://other/b")])
def test_a_post_is_repeated_only_where_it_is_meant_for(status: int, location: str) -> None:
    """A POST follows 307 and 308 on the same origin only."""
    with pytest.raises(SourceRejected):
        follow("http://metrics/a", location, method="POST", status=status, authorized=False)
    assert follow("http://metrics/a", "/b", method="POST", status=308) == "http://metrics/b"
