"""What the tests of this room share: a served organisation, and a tenant that has never run."""

from __future__ import annotations

from tests.support.deployments import deployment, organisation, server

__all__ = ["deployment", "organisation", "server"]
