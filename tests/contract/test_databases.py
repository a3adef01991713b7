"""Both kinds of control databases give the same responses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contract.deployment import deployed
from tests.contract.documentation import Asker
from tests.contract.examples import EXAMPLES
from tests.contract.records import Client
from tests.contract.seeded import SEED, SEEDED
from tests.support.clock import FixedClock
from tests.support.databases import KINDS

#: Random ids, digests of content with timestamps, and timestamps.
_VARIES = re.compile(r'"(?:[0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f-]{36}|cbt_\w+)"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z')


def answers(folder: Path, kind: str) -> list[tuple[str, int, str]]:
    """Send every documented example, including writes, to a new service with that kind of database; return the
    responses."""
    folder.mkdir()
    with (
        deployed(folder, ("acme",), kind=kind, clock=FixedClock()) as deployment,
        Client(base_url=deployment.address, timeout=60) as client,
    ):
        deployment.categorise("acme", SEEDED, SEED)
        asker = Asker(client, "acme")
        found = []
        for example in EXAMPLES:
            response = asker.ask(example)
            found.append((example.command, response.status_code, _VARIES.sub("…", response.text)))
        return found


@pytest.mark.drill
def test_the_answers_do_not_depend_on_the_database(tmp_path: Path, postgresql: str) -> None:
    """Every documented request, in order, gets the same response with SQLite and PostgreSQL."""
    expected, found = (answers(tmp_path / kind, kind) for kind in KINDS)
    assert [each for each in zip(expected, found, strict=True) if each[0] != each[1]] == []
