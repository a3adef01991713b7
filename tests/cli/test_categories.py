"""``chargeback categories``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
import yaml

from chargeback.store.control import cost_categories as store
from chargeback.store.control.cost_categories import CategoryVersion
from chargeback.store.tenant import TenantStore
from tests.cli.conftest import Run, Said
from tests.support.facts import TENANT_ID

FILE = """\
cost_categories:   # by cost centre
  cost_center:
    values:
      payments: {name: Payments, parent: retail}
      retail:
    rules:
      - {id: reorg-42, match: {identity: [sa-abc]}, assign: payments, valid_from: 2026-03-01}
      - {match: {tag: {key: team}}, assign: {from_tag: team}}
  team:
    rules:
      - {match: {resource: lkc-1}, split: {a: "60", b: 40}}
"""
SHARED = """\
    share:
      - {from: a, to: "*", by: usage(bytes_in)}
"""
COST_TYPE = """{
  name: A, product_category: a, rate: "1", cost_quantity: {type: fixed, count: 1}, allocation_strategy: even_split}"""
CONFIG = f"""\
tenants:
  acme:
    ecosystem: generic_metrics_only
    tenant_id: {TENANT_ID}
    lookback_days: 30
    cutoff_days: 5
    storage: {{connection_string: "sqlite:///acme.db"}}
    plugin_settings:
      cluster_id: c1
      metrics: {{type: prometheus, url: "http://127.0.0.1:9"}}
      identity_source: {{source: static, static_identities: [{{identity_id: alice}}]}}
      cost_types: [{COST_TYPE}]
"""


@pytest.fixture
def tenant(tmp_path: Path) -> TenantStore:
    """The storage of tenant acme, set up but empty, and its configuration."""
    (tmp_path / "chargeback.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "categories.yaml").write_text(FILE, encoding="utf-8")
    opened = TenantStore.open(
        tenant_name="acme",
        tenant_id=TENANT_ID,
        ecosystem="generic_metrics_only",
        connection_string=f"sqlite:///{tmp_path}/acme.db",
        facts=tmp_path / "acme.facts",
    )
    opened.prepare()
    return opened


def versions(tenant: TenantStore) -> list[CategoryVersion]:
    """Return the stored versions."""
    with closing(tenant), tenant.control.read() as connection:
        return store.list_categories(connection)


def said(found: Said, code: int) -> list[str]:
    """Check the exit code of a command and return the lines that it printed."""
    assert found.returncode == code, found.stdout + found.stderr
    return found.stdout.splitlines()


def test_a_file_in_version_control(chargeback: Run, tenant: TenantStore, tmp_path: Path) -> None:
    """A file is compared, tried, applied, changed and exported; applying it again makes no version."""
    words = ("categories.yaml", "--tenant", "acme")
    new = [
        "cost_center: would be created as version 1",
        '  + rule reorg-42: {"match": {"identity": ["sa-abc"]}, "assign": "payments", "valid_from": "2026-03-01"}',
        '  + rule: {"match": {"tag": {"key": "team"}}, "assign": {"from_tag": "team"}}',
        "  + value payments",
        "  + value retail",
        "team: would be created as version 1",
        '  + rule: {"match": {"resource": ["lkc-1"]}, "split": {"a": "60", "b": "40"}}',
    ]
    assert said(chargeback("categories", "diff", *words), 1) == new
    assert said(chargeback("categories", "apply", *words, "--dry-run"), 0) == new
    blank = chargeback("categories", "apply", *words, "--reason", " ")
    assert (blank.returncode, "should not be blank" in blank.stderr) == (2, True)
    assert versions(tenant) == []
    done = said(chargeback("categories", "apply", *words, "--reason", "CHG-1"), 0)
    assert done == [line.replace("would be ", "") for line in new]
    assert [(each.key, each.version, each.who, each.reason) for each in versions(tenant)] == [
        ("cost_center", 1, "command line", "CHG-1"),
        ("team", 1, "command line", "CHG-1"),
    ]
    same = ["cost_center: unchanged, version 1", "team: unchanged, version 1"]
    assert said(chargeback("categories", "diff", *words), 0) == same
    changed = yaml.safe_load(FILE.replace("2026-03-01", '"2026-04-01"'))
    del changed["cost_categories"]["team"]
    changed["cost_categories"]["cost_center"]["rules"].reverse()
    changed["cost_categories"]["cost_center"] |= {"default": "retail", "share": []}
    (tmp_path / "categories.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
    assert said(chargeback("categories", "diff", *words), 1) == [
        "cost_center: would be changed to version 2",
        '  ~ rule reorg-42: {"match": {"identity": ["sa-abc"]}, "assign": "payments", "valid_from": "2026-04-01"}',
        "  ~ the order of the rules",
        "  ~ default: UNASSIGNED → retail",
        "note: not in the file, and left alone: team",
    ]
    said(chargeback("categories", "apply", *words), 0)
    assert [(each.key, each.version) for each in versions(tenant)] == [("cost_center", 2), ("team", 1)]
    whole = chargeback("categories", "export", "--tenant", "acme").stdout
    assert list(yaml.safe_load(whole)["cost_categories"]) == ["cost_center", "team"]
    (tmp_path / "whole.yaml").write_text(whole, encoding="utf-8")
    assert said(chargeback("categories", "diff", "whole.yaml", "--tenant", "acme"), 0)[1:] == same[1:]


def test_every_problem_of_a_file_is_told(chargeback: Run, tenant: TenantStore, tmp_path: Path) -> None:
    """Problems of all categories are reported with path and line; nothing is written."""
    text = FILE.replace("assign: payments", "assign: paymnts").replace("b: 40", 'b: "50"')
    (tmp_path / "categories.yaml").write_text(text + "other: 1\n", encoding="utf-8")
    found = chargeback("categories", "apply", "categories.yaml", "--tenant", "acme")
    assert said(found, 2) == []
    assert found.stderr.splitlines() == [
        "error: categories.yaml: other: unknown key (line 12)",
        "error: categories.yaml: cost_categories.cost_center.rules[0].assign: unknown value 'paymnts'; did you mean "
        "payments?; values has payments, retail (line 7)",
        "error: categories.yaml: cost_categories.team.rules[0].split: 60 + 50 = 110; they must sum to 100 (line 11)",
    ]
    (tmp_path / "categories.yaml").write_text(FILE + SHARED, encoding="utf-8")
    found = chargeback("categories", "diff", "categories.yaml", "--tenant", "acme")
    assert said(found, 2) == []
    assert found.stderr.splitlines() == [
        "error: categories.yaml: cost_categories.team.share[0].by: unknown measure bytes_in; nothing was measured yet "
        "(line 13)"
    ]
    assert versions(tenant) == []
    for content, problem in (
        (b"\xff", "is not UTF-8: invalid start byte at byte 0"),
        (b"a: [", "line 1, column 5: not YAML: expected the node content, but found '<stream end>'"),
        (b"", "cost_categories: this key is required, with a mapping of categories"),
    ):
        (tmp_path / "categories.yaml").write_bytes(content)
        found = chargeback("categories", "diff", "categories.yaml", "--tenant", "acme")
        assert (said(found, 2), found.stderr) == ([], f"error: categories.yaml: {problem}\n")


def test_export_to_a_file(chargeback: Run, tenant: TenantStore, tmp_path: Path) -> None:
    """An existing file is replaced only with --force, because its comments would be lost."""
    said(chargeback("categories", "apply", "categories.yaml", "-t", "acme"), 0)
    words = ("categories", "export", "--tenant", "acme", "categories.yaml", "--key", "team")
    refused = chargeback(*words)
    assert (refused.returncode, refused.stderr) == (
        1,
        "error: categories.yaml exists; --force replaces it, with all comments in it\n",
    )
    said(chargeback(*words, "--force"), 0)
    assert (tmp_path / "categories.yaml").read_text(encoding="utf-8") == (
        "cost_categories:\n"
        "  team:\n"
        "    default: UNASSIGNED\n"
        "    rules:\n"
        "    - match:\n"
        "        resource:\n"
        "        - lkc-1\n"
        "      split:\n"
        "        a: '60'\n"
        "        b: '40'\n"
    )
    missing = chargeback(*words[:-1], "none")
    assert (missing.returncode, missing.stderr) == (1, "error: tenant acme: there is no cost category none\n")


def test_imports_replace_what_they_brought(chargeback: Run, tenant: TenantStore, tmp_path: Path) -> None:
    """An import replaces only the rules of the previous import, in their place; their ids name the source."""
    said(chargeback("categories", "apply", "categories.yaml", "-t", "acme"), 0)
    head = "entity_type,entity_id,value,percent,valid_from,valid_to\n"
    file = tmp_path / "finance.csv"
    words = ("categories", "import", "csv", "finance.csv", "--key", "cost_center", "-t", "acme")
    file.write_text(head + "topic,orders,retail,,,\ntopic,refunds,payments,,,\ntopic,carts,retail,,,\n")
    first = [
        '  + rule csv:topic:retail: {"match": {"topic": ["orders", "carts"]}, "assign": "retail"}',
        '  + rule csv:topic:payments: {"match": {"topic": ["refunds"]}, "assign": "payments"}',
    ]
    would = ["cost_center: would be changed to version 2", *first]
    assert said(chargeback(*words, "--dry-run"), 0) == would
    assert said(chargeback(*words), 0) == [would[0].replace("would be ", ""), *first]
    assert said(chargeback(*words), 0) == ["cost_center: unchanged, version 2"]
    file.write_text(head + "topic,orders,treasury,,,\n")
    assert said(chargeback(*words), 0) == [
        "cost_center: changed to version 3",
        '  - rule csv:topic:retail: {"match": {"topic": ["orders", "carts"]}, "assign": "retail"}',
        '  - rule csv:topic:payments: {"match": {"topic": ["refunds"]}, "assign": "payments"}',
        '  + rule csv:topic:treasury: {"match": {"topic": ["orders"]}, "assign": "treasury"}',
        "  + value treasury",
    ]
    assert [each.reason for each in versions(tenant) if each.key == "cost_center"] == ["import from csv"]
    file.write_text(head + "topic,orders,${a},60,,\nuser,x,,,,\n")
    found = chargeback(*words)
    assert (found.returncode, found.stderr.splitlines()) == (
        2,
        [
            "error: finance.csv: line 3: entity_type should be identity, resource or topic, not 'user'",
            "error: finance.csv: line 3: value should not be empty",
        ],
    )
    file.write_text(head)
    nothing = chargeback(*words)
    assert (said(nothing, 1), nothing.stderr) == (
        [],
        "error: finance.csv: csv found nothing in it, so nothing was changed\n",
    )
    unknown = chargeback(*words[:2], "nowhere", *words[3:])
    assert (unknown.returncode, unknown.stderr.splitlines()[0]) == (
        2,
        "error: the source nowhere is not installed; there are backstage, csv, strimzi",
    )


def test_a_tenant_that_is_not_set_up(chargeback: Run, tenant: TenantStore, tmp_path: Path) -> None:
    """Without storage, the message says what to do and nothing is created."""
    (tmp_path / "acme.db").unlink()
    found = chargeback("categories", "apply", "categories.yaml", "--tenant", "acme")
    assert (found.returncode, found.stderr) == (
        1,
        "error: tenant acme: its storage is not set up yet; `chargeback db upgrade` does it\n",
    )
    assert not (tmp_path / "acme.db").exists()
