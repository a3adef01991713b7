"""The bare server is the floor of an answer."""

from __future__ import annotations

import pytest
from benchmarks.bare import bare_server
from benchmarks.load import put_load


@pytest.mark.usefixtures("process")
def test_it_answers_every_request() -> None:
    """Keep-alive clients get one good answer for each request."""
    with bare_server() as port:
        load = put_load(port, clients=2, seconds=0.1, path="/")
    assert load.answered > 0 == load.failed
