"""``chargeback access``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.config.conftest import CLOUD

CONFIG = f"""\
access:
  mode: proxy
  proxy: {{trusted: [10.0.3.7]}}
  roles:
    - {{groups: [platform], allow: [admin], tenants: [globex]}}
    - {{groups: ["team-(?P<team>.+)"], allow: [tag], scope: {{"category:cost_center": "${{team}}"}}}}
    - {{users: [".*@example[.]com"], allow: [read]}}
tenants:
  acme:
    ecosystem: confluent_cloud
    tenant_id: acme
    storage: {{connection_string: "sqlite:///acme.db"}}
    plugin_settings: {{{CLOUD}}}
  globex:
    ecosystem: confluent_cloud
    tenant_id: globex
    storage: {{connection_string: "sqlite:///globex.db"}}
    plugin_settings: {{{CLOUD}}}
"""

ANN = """\
ann@example.com, in team-b, team-a, platform
tenant acme: read, tag
  decided by access.roles[1], the first role that fits
  rows with category:cost_center: a, b
  also fits, without effect: access.roles[2]
tenant globex: admin, close, export, read, run, tag
  decided by access.roles[0], the first role that fits
  all rows
  also fits, without effect: access.roles[1], access.roles[2]
"""
BOB = """\
bob, in no group
tenant acme: nothing; no role fits
tenant globex: nothing; no role fits
"""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--user", "ann@example.com", "--groups", "team-b, team-a", "--groups", "platform"), ANN),
        (("--user", "bob"), BOB),
        (("--user", "bob", "--tenant", "acme"), "".join(BOB.splitlines(keepends=True)[:2])),
    ],
)
def test_what_somebody_may_do(chargeback: Run, tmp_path: Path, words: tuple[str, ...], shown: str) -> None:
    """The output has, for each tenant, the role that applies, its rights and rows, and matching roles without
    effect."""
    (tmp_path / "chargeback.yaml").write_text(CONFIG)
    said = chargeback("access", "explain", *words)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == shown


def test_nobody_is_told_apart(chargeback: Run, tmp_path: Path) -> None:
    """Without an access mode, there is nothing to explain about a user."""
    (tmp_path / "chargeback.yaml").write_text(CONFIG.replace("mode: proxy", "mode: none"))
    said = chargeback("access", "explain", "--user", "ann")
    assert said.returncode == 0
    assert said.stdout == "access.mode is none: everybody who reaches the service may see and change everything.\n"


def test_a_tenant_that_is_not_there(chargeback: Run, tmp_path: Path) -> None:
    """An unknown tenant is an error that lists the known ones."""
    (tmp_path / "chargeback.yaml").write_text(CONFIG)
    said = chargeback("access", "explain", "--user", "ann", "--tenant", "acne")
    assert said.returncode == 2
    assert "there is no tenant acne; there are acme, globex" in said.stderr
