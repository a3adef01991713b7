"""The keys that models know."""

from __future__ import annotations

from chargeback.config.problems import model_at, walk
from chargeback.config.settings import FileSettings, StorageSettings, TenantSettings


def test_every_key_has_a_path() -> None:
    """Keys of nested models, and of models behind names of one's own, are walked."""
    paths = [path for path, _ in walk(FileSettings)]
    assert "api.request_timeout_seconds" in paths
    assert "tenants.<name>.storage.connection_string" in paths


def test_the_model_of_a_place() -> None:
    """The model behind a place is found through free keys."""
    assert model_at(FileSettings, ("tenants", "acme", "storage")) is StorageSettings
    assert model_at(FileSettings, ("tenants", "acme")) is TenantSettings
    assert model_at(TenantSettings, ("currency",)) is None
