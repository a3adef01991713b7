"""``chargeback init``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Run

VARIABLES = {
    "CONFLUENT_CLOUD_API_KEY": "KEY",
    "CONFLUENT_CLOUD_API_SECRET": "secret",
    "METRICS_URL": "http://localhost:9090",
}


def test_the_first_configuration_is_valid(chargeback: Run) -> None:
    """The written configuration is valid as soon as its variables are set."""
    assert chargeback("init").returncode == 0
    said = chargeback("check", "--config", "chargeback.yaml", **VARIABLES)
    assert (said.returncode, said.stderr) == (0, "")
    assert "main" in said.stdout


def test_a_first_configuration_for_files_in_focus(chargeback: Run) -> None:
    """It is valid once the address of the metrics is set."""
    assert chargeback("init", "--ecosystem", "focus").returncode == 0
    said = chargeback("check", "--config", "chargeback.yaml", METRICS_URL="http://localhost:9090")
    assert (said.returncode, said.stderr) == (0, "")
    assert "focus" in said.stdout


def test_the_container_s_variables_move_it(chargeback: Run) -> None:
    """The variables of the container image set the data folder and the listen address, for which anonymous access must
    then be allowed explicitly."""
    chargeback("init")
    moved = {"CHARGEBACK_HOST": "0.0.0.0", "CHARGEBACK_DATA": "/var/lib/chargeback"}
    refused = chargeback("check", "--config", "chargeback.yaml", **VARIABLES, **moved)
    assert refused.returncode == 2
    assert "access.allow_anonymous: true" in refused.stderr
    moved["CHARGEBACK_ALLOW_ANONYMOUS"] = "true"
    said = chargeback("check", "--config", "chargeback.yaml", **VARIABLES, **moved)
    assert "sqlite /var/lib/chargeback/main.db" in said.stdout, said.stderr


def test_missing_variables_are_named(chargeback: Run) -> None:
    """`check` names each missing variable once."""
    chargeback("init", "--path", "sub/my.yaml")
    said = chargeback("check", "--config", "sub/my.yaml")
    assert said.returncode == 2
    assert all(said.stderr.count(f"environment variable {name} is not set") == 1 for name in VARIABLES)


def test_a_file_is_not_replaced_by_accident(chargeback: Run, tmp_path: Path) -> None:
    """An existing file is kept unless --force is given."""
    file = tmp_path / "chargeback.yaml"
    file.write_text("mine")
    refused = chargeback("init")
    assert (refused.returncode, file.read_text()) == (1, "mine")
    assert "--force" in refused.stderr
    assert chargeback("init", "--force").returncode == 0
    assert "tenants:" in file.read_text()
