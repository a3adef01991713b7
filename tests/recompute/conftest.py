"""Shared fixtures: a served organisation, and a tenant that has never run."""

from __future__ import annotations

from tests.support.deployments import calculated, deployment, organisation, prepared, server

__all__ = ["calculated", "deployment", "organisation", "prepared", "server"]
