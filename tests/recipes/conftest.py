"""The organisation with which all recipes are tested."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from chargeback.cli.demo_story import tag_teams
from chargeback.demo.organisation import DemoSpec
from tests.contract.deployment import deployed
from tests.support.recipes import Place

TODAY = date(2026, 2, 10)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The demo's organisation, whose cost centres are its teams, and a second tenant that never ran."""
    folder = tmp_path_factory.mktemp("tenants")
    with deployed(folder, ("acme", "plain"), today=TODAY, lookbacks={}) as deployment:
        tag_teams(deployment.configuration.tenants["acme"], DemoSpec(TODAY).seed)
        rules = {"rules": [{"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}}]}
        deployment.categorise("acme", "cost_center", rules)
        yield Place(deployment, folder / "chargeback.yaml")


@pytest.fixture(autouse=True)
def _outside(process: None) -> None:
    """Declare that all recipes use other programs."""
