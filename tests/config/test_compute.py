"""Where days are calculated: which settings fit together."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargeback.config import load_configuration
from chargeback.config.compute import LOCAL, ComputeSettings
from chargeback.errors import ConfigurationError

_TENANT = """
tenants:
  acme:
    ecosystem: confluent_cloud
    tenant_id: acme
    storage: {connection_string: "sqlite:///acme.db"}
    plugin_settings: {ccloud_api: {key: key, secret: secret}}
"""
_FILES = "tls_ca: ca.pem, tls_cert: cert.pem, tls_key: key.pem"


def _load(folder: Path, compute: str) -> ComputeSettings:
    file = folder / "chargeback.yaml"
    file.write_text(f"features: {{compute: {{{compute}}}}}{_TENANT}")
    return load_configuration(file).features.compute


def test_local_is_the_default(tmp_path: Path) -> None:
    """By default, the run itself calculates."""
    assert _load(tmp_path, "") == LOCAL
    assert _load(tmp_path, "type: local") == LOCAL


def test_files_start_at_the_configuration(tmp_path: Path) -> None:
    """Relative paths of certificates start at the folder of the configuration file."""
    loaded = _load(tmp_path, f"type: dask, address: 'tls://scheduler:8786', {_FILES}")
    assert loaded.tls_key == tmp_path / "key.pem"
    assert _load(tmp_path, "type: dask, workers: 3").workers == 3
    assert _load(tmp_path, "type: dask, address: 'tcp://127.0.0.1:8786'").tls_ca is None


@pytest.mark.parametrize(
    ("compute", "problem"),
    [
        ("workers: 3", "workers needs the type dask"),
        ("type: dask, workers: 0", "features.compute.workers"),
        ("type: dask, workers: true", "should be a whole number"),
        ("type: dask, address: 'dask:8786'", "such as tls://scheduler:8786"),
        ("type: dask, address: 'tls://dask'", "such as tls://scheduler:8786"),
        ("type: dask, address: 'tcp://scheduler:8786'", "should begin with tls://"),
        ("type: dask, address: 'tls://scheduler:8786'", "needs tls_ca, tls_cert and tls_key"),
        (f"type: dask, {_FILES}", "are for an address with tls://"),
        (f"type: dask, workers: 2, address: 'tls://scheduler:8786', {_FILES}", "the scheduler at address has its own"),
    ],
)
def test_what_does_not_fit_together_is_a_problem(tmp_path: Path, compute: str, problem: str) -> None:
    """Every problem says what to change."""
    with pytest.raises(ConfigurationError, match=problem):
        _load(tmp_path, compute)
