"""The socket to serve on."""

from __future__ import annotations

import pytest

from chargeback.cli.http_server import listen
from chargeback.errors import ListenError


def test_a_free_port() -> None:
    """Port 0 gives any free one, on IPv4 as on a name."""
    for host in ("127.0.0.1", "localhost"):
        with listen(host, 0) as socket:
            assert socket.getsockname()[1] > 0


def test_a_taken_port() -> None:
    """A taken port says what to change."""
    with listen("127.0.0.1", 0) as socket, pytest.raises(ListenError, match="choose another port"):
        listen("127.0.0.1", socket.getsockname()[1])


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_of_somebody_else(host: str) -> None:
    """An address that is not this machine's names the setting."""
    with pytest.raises(ListenError, match=r"api\.host should be an address of this machine"):
        listen(host, 0)
