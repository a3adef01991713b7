"""The bare server is the floor of a response."""

from __future__ import annotations

import pytest
from benchmarks.bare import bare_server
from benchmarks.load import put_load


@pytest.mark.usefixtures("process")
def test_it_answers_every_request() -> None:
    """Each request of a keep-alive client gets exactly one correct response."""
    with bare_server() as port:
        load = put_load(port, clients=2, seconds=0.1, path="/")
    assert load.answered > 0 == load.failed
