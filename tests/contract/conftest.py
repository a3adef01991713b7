"""The service under test: real runs of the pipeline over a generated organisation, behind a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.contract.deployment import Deployment, deployed
from tests.contract.records import Client, Everything
from tests.contract.seeded import SEED, SEEDED


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Tenants ``acme``, ``scratch`` (whose tags tests may change), ``plain`` (no topics), ``wrong`` (invalid topics);
    each has a cost category, a budget, and two notes, of which the documented examples remove the first."""
    with deployed(tmp_path_factory.mktemp("contract")) as deployment:
        for tenant in deployment.configuration.tenants:
            deployment.categorise(tenant, SEEDED, SEED)
            deployment.budget(tenant, "all")
            for text in ("First", "Second"):
                deployment.note(tenant, text)
        yield deployment


@pytest.fixture(scope="session")
def client(deployment: Deployment) -> Iterator[Client]:
    """A client of the service in mode ``both``."""
    with Client(base_url=deployment.address, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def everything(client: Client) -> Everything:
    """All data of tenant ``acme``, read once, page by page: filters and sums are compared with it."""
    return Everything(client, "acme")


@pytest.fixture
def scratch(client: Client) -> Iterator[Client]:
    """The same client; the tags of tenant ``scratch`` are removed after the test."""
    yield client
    tags = client.all_items("/api/v1/tenants/scratch/tags")
    # A key may have several values, which are removed together.
    for place in {(tag["entity_type"], tag["entity_id"], tag["tag_key"]) for tag in tags}:
        assert client.delete(client.tag_path("scratch", *place)).status_code == 204


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """A folder for storage of one test."""
    folder = tmp_path / "storage"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def api_only(deployment: Deployment) -> Iterator[httpx.Client]:
    """The same tenants, served in mode ``api``."""
    with deployment.served(mode="api") as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client
