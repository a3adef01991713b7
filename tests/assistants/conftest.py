"""A generated organisation and an assistant, over both transports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import httpx
import pytest

from chargeback.access.caller import Right, rights_of
from chargeback.access.scope import RowScope
from chargeback.api.app_factory import create_app_from
from chargeback.api.authentication import authenticate_tokens
from chargeback.assistants.server import add_mcp
from chargeback.config.settings import McpSettings
from chargeback.store.control.access_tokens import TokenWrite, create_token, new_token
from chargeback.store.tenant import open_store
from tests.cli.conftest import environment
from tests.contract.deployment import Deployment, deployed
from tests.contract.records import Client
from tests.contract.seeded import SEED, SEEDED
from tests.support.assistants import Assistant
from tests.support.serving import served


@dataclass(frozen=True)
class Organisation:
    """A calculated tenant, and the address of a service that requires tokens, for MCP as well."""

    deployment: Deployment
    address: str

    def token(self, name: str, scope: dict[str, list[str]] | None = None) -> str:
        """Create a token that may read, within a scope if given."""
        write = TokenWrite(name, rights_of([Right.READ]), None if scope is None else RowScope.of(scope))
        now = self.deployment.clock()
        tenant = self.deployment.configuration.tenants["acme"]
        with closing(open_store(tenant)) as store, store.control.write() as connection:
            token = new_token("acme")
            assert create_token(connection, token, write, who="test", now=now) is not None
        return token

    def assistant(self, transport: str, token: str) -> Assistant:
        """Return an assistant with a token, over ``http`` or ``stdio``."""
        if transport == "http":
            return Assistant.over_http(self.address, {"Authorization": f"Bearer {token}"})
        return Assistant.over_stdio(self.deployment.configuration.path, environment(CHARGEBACK_TOKEN=token))


@pytest.fixture(scope="session")
def organisation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """Tenant acme of the demo, with a cost category."""
    with deployed(tmp_path_factory.mktemp("assistants"), ("acme",)) as deployment:
        deployment.categorise("acme", SEEDED, SEED)
        app = create_app_from(deployment.configuration, "api", None, deployment.clock)
        app.state.services = replace(app.state.services, authenticate=authenticate_tokens())
        add_mcp(app, McpSettings(enabled=True))
        with served(app) as address:
            yield Organisation(deployment, address)


@pytest.fixture(scope="session")
def rest(organisation: Organisation) -> Iterator[Client]:
    """A client of the API with full access."""
    with Client(base_url=organisation.deployment.address, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def whole(organisation: Organisation) -> str:
    """A token without a scope."""
    return organisation.token("whole")


@pytest.fixture
def http(organisation: Organisation, whole: str) -> Iterator[httpx.Client]:
    """A plain HTTP client of the MCP service."""
    with httpx.Client(
        base_url=organisation.address, headers={"Authorization": f"Bearer {whole}"}, timeout=60
    ) as client:
        yield client
