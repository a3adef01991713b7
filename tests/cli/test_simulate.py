"""``chargeback simulate``, and policies with dates on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from chargeback.cli.options import BEYOND, CONFIGURATION, FAILED, MOVES, STALE
from tests.cli.conftest import TODAY, Demo, Run, Said, environment
from tests.support.clock import words_within

FIRST, LAST = TODAY - timedelta(days=7), TODAY - timedelta(days=6)
#: The base fee of clusters is shared by active identities, whatever their usage.
EVENLY = {"KAFKA_NUM_CKUS": {"portions": [{"share": "1", "try": ["even(active)", "unallocated"]}]}}


WORKFLOW = Path(__file__).parents[2] / "examples" / "ci" / "policies.yaml"
#: Replaces GitHub's command line: it keeps one comment in a file.
_GH = """#!/bin/bash
case "$*" in
  *"--paginate"*) test -f posted && echo 7 ;;
  *"PATCH"*"comments/7"*"body=@comment.md"*) cp comment.md posted; echo edited >> told ;;
  "pr comment"*) cp comment.md posted; echo created >> told ;;
  *) exit 1 ;;
esac
true
"""


@pytest.fixture
def simulate(chargeback: Run, calculated: Demo) -> Run:
    """Simulate policies on two calculated days."""

    def run(policies: object, *words: str, **more: str) -> Said:
        file = calculated.file.parent / "new.yaml"
        file.write_text(policies if isinstance(policies, str) else yaml.safe_dump(policies), encoding="utf-8")
        place = ["--config", str(calculated.file), "--tenant", "acme", "--policies", str(file)]
        return chargeback("simulate", *place, "--from", f"{FIRST}", "--to", f"{LAST}", *words, **more)

    return run


def files(folder: Path) -> dict[str, bytes]:
    """Return the contents of all stored files."""
    return {str(path): path.read_bytes() for path in (folder / "acme.facts").rglob("*") if path.is_file()}


def test_who_would_pay_what(simulate: Run, calculated: Demo) -> None:
    """Nothing is stored, differences sum to zero, and half of them is the moved amount."""
    before = files(calculated.file.parent)
    said = simulate(EVENLY, "--format", "json")
    assert said.returncode == MOVES, said.stderr
    assert files(calculated.file.parent) == before
    found = json.loads(said.stdout)
    assert (found["verdict"], found["left_out"], found["never_applied"]) == ("complete", [], [])
    assert [each["date"] for each in found["base"]["days"]] == [f"{FIRST}", f"{LAST}"]
    deltas = [Decimal(each["delta"]) for each in found["items"]]
    assert sum(deltas) == 0
    assert sum(map(abs, deltas)) / 2 == Decimal(found["moved"]) > 0
    assert deltas == sorted(deltas, key=abs, reverse=True)
    (policy,) = found["policies"]
    assert (policy["product_type"], policy["days"], len(policy["after"])) == ("KAFKA_NUM_CKUS", 2, 1)
    again = json.loads(simulate(EVENLY, "--format", "json").stdout)
    assert again == found, "the same is the same, to its digest"
    by_team = json.loads(simulate(EVENLY, "--format", "json", "--group-by", "tag:team").stdout)
    assert (by_team["billed"], by_team["group_by"]) == (found["billed"], ["tag:team"])


def test_what_is_the_same_moves_nothing(simulate: Run) -> None:
    """If nothing changes, the exit code is 0, and --only-if-changed prints nothing."""
    said = simulate({}, "--format", "json")
    assert (said.returncode, json.loads(said.stdout)["moved"]) == (0, "0.00"), said.stderr
    quiet = simulate({}, "--only-if-changed")
    assert (quiet.returncode, quiet.stdout) == (0, "")


def test_other_cost_categories(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """The output shows what would move between values of cost categories; unchanged categories are left out, and
    nothing is stored."""
    place = ["--config", str(calculated.file), "--tenant", "acme"]
    days = ["--from", f"{FIRST}", "--to", f"{LAST}"]
    present, tried = tmp_path / "present.yaml", tmp_path / "next.yaml"
    assert chargeback("categories", "export", *place, str(present)).returncode == 0
    stored = yaml.safe_load(present.read_text(encoding="utf-8"))["cost_categories"]
    nobody = {"rules": [], "default": "nobody"}
    tried.write_text(yaml.safe_dump({"cost_categories": {**stored, "tried": nobody}}), encoding="utf-8")
    quiet = chargeback("simulate", *place, *days, "--cost-categories", str(present), "--only-if-changed")
    assert (quiet.returncode, quiet.stdout) == (0, ""), quiet.stderr
    said = chargeback("simulate", *place, *days, "--cost-categories", str(tried), "--format", "json")
    assert said.returncode == MOVES, said.stderr
    found = json.loads(said.stdout)
    assert found["group_by"] == ["category:tried"]
    assert {each["dimensions"]["category:tried"]: each["after"] for each in found["items"]} == {
        "UNASSIGNED": "0.00",
        "nobody": found["billed"],
    }
    assert (found["by_cause"]["category"], found["policies"]) == (found["billed"], [])
    policies = tmp_path / "policies.yaml"
    policies.write_text(yaml.safe_dump(EVENLY), encoding="utf-8")
    both = chargeback(
        "simulate", *place, *days, "--cost-categories", str(tried), "--policies", str(policies), "--format", "markdown"
    )
    assert both.returncode == MOVES, both.stderr
    assert "cost categories" not in both.stdout, "identities are compared"
    listed = yaml.safe_load(chargeback("categories", "export", *place).stdout)
    assert listed["cost_categories"] == stored


def test_what_is_tried_has_to_be_given(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """Policies or categories must be given; a plan needs policies."""
    asked = ["simulate", "--config", str(calculated.file), "--tenant", "acme", "--from", f"{FIRST}", "--to", f"{LAST}"]
    said = chargeback(*asked)
    assert (said.returncode, "--cost-categories" in said.stderr) == (2, True)
    file = tmp_path / "categories.yaml"
    file.write_text("cost_categories: {}", encoding="utf-8")
    said = chargeback(*asked, "--cost-categories", str(file), "--plan", str(tmp_path / "plan.json"))
    assert (said.returncode, "--plan" in said.stderr) == (2, True)


def test_limits(simulate: Run) -> None:
    """The output names each exceeded limit, and the exit code is 3."""
    assert simulate(EVENLY, "--fail-if-moved", "100%", "--fail-if-any-moves", "1000000").returncode == MOVES
    said = simulate(EVENLY, "--fail-if-moved", "0%", "--fail-if-any-moves", "0.01", "--fail-if-unallocated-rises")
    assert said.returncode == BEYOND
    assert "beyond the limits" in said.stderr
    nobody = {"*": {"portions": [{"share": "1", "try": ["unallocated"]}]}, **EVENLY}
    nobody["KAFKA_NUM_CKUS"] = nobody["*"]
    assert simulate(nobody, "--fail-if-unallocated-rises").returncode == BEYOND


def test_a_comment_for_a_pull_request(simulate: Run) -> None:
    """The comment begins with a marker and has a table."""
    said = simulate({"allocation_policies": EVENLY}, "--format", "markdown", "--fail-if-moved", "0")
    lines = said.stdout.splitlines()
    assert lines[:2] == ["<!-- chargeback simulate -->", "### What this would move"]
    assert "| identity_id | before | after | change | percent |" in lines
    assert any(each.startswith("- **Beyond the limits:**") for each in lines)


def test_a_whole_configuration_is_tried(simulate: Run, calculated: Demo) -> None:
    """A whole configuration is accepted; its policies are simulated."""
    whole = yaml.safe_load(calculated.file.read_text(encoding="utf-8"))
    whole["tenants"]["acme"]["plugin_settings"]["allocation_policies"] = EVENLY
    assert simulate(whole).returncode == MOVES
    del whole["tenants"]["acme"]["plugin_settings"]["allocation_policies"]
    assert simulate(whole).returncode == 0


@pytest.mark.parametrize(
    ("policies", "words", "said"),
    [
        ("{", [], "new.yaml"),
        ("- ", [], "a version has `policies`"),
        ("text", [], "should be a mapping of product types to policies"),
        ({"A": {"portions": [{"share": "2", "try": ["owner"]}]}}, [], "allocation_policies.A.portions[0].share"),
        ({}, ["--group-by", "nothing"], "cannot be grouped by nothing"),
        ({}, ["--group-by", "category:nothing"], "nothing"),
        ({}, ["--fail-if-moved", "much"], "should be a share of the bill"),
        ({}, ["--format", "xml"], "should be one of table, json, markdown"),
    ],
)
def test_what_cannot_be_simulated(simulate: Run, policies: object, words: list[str], said: str) -> None:
    """The message says what is wrong and where; exit code 2."""
    found = simulate(policies, *words)
    assert (found.returncode, found.stdout) == (CONFIGURATION, "")
    assert said in " ".join(found.stderr.split())


def test_days_that_nobody_knows(chargeback: Run, calculated: Demo, tmp_path: Path) -> None:
    """Days without data exit with 1 and the reason."""
    (tmp_path / "new.yaml").write_text("{}", encoding="utf-8")
    words = ["--config", str(calculated.file), "--tenant", "acme", "--policies", str(tmp_path / "new.yaml")]
    said = chargeback("simulate", *words, "--from", "2020-01-01", "--to", "2020-01-02")
    assert said.returncode == FAILED
    assert "no day of the range can be simulated: nothing was billed" in said.stderr


def test_policies_with_dates_that_were_changed(chargeback: Run, calculated: Demo) -> None:
    """``check``, ``run`` and ``serve`` refuse changed policies with dates until the days have been recalculated."""

    def begins(day: date) -> None:
        whole = yaml.safe_load(calculated.file.read_text(encoding="utf-8"))
        version = {"effective_from": day, "reason": "The base fee is shared", "policies": EVENLY}
        whole["tenants"]["acme"]["plugin_settings"]["allocation_policies"] = [version]
        calculated.file.write_text(yaml.safe_dump(whole), encoding="utf-8")

    place = ["--config", str(calculated.file)]
    begins(LAST)
    for words in (["check"], ["run"], ["serve", "--mode", "api"]):
        said = chargeback(*words, *place)
        assert said.returncode != 0, words
        assert "1 day was calculated by other policies" in said.stderr, words
    again = ["--from", f"{LAST}", "--to", f"{LAST}", "--recalculate"]
    assert chargeback("run", *place, *again).returncode == CONFIGURATION
    done = chargeback("run", *place, *again, "--restate")
    assert done.returncode == 0, done.stderr
    assert chargeback("check", *place).returncode == 0
    begins(TODAY)
    assert "no version is in force on them any more" in chargeback("check", *place).stderr


def test_a_plan_is_applied_or_refused(chargeback: Run, simulate: Run, calculated: Demo) -> None:
    """A plan can be applied once, with a reason; when a day changes after the simulation, it is refused until another
    simulation."""
    place = ["--config", str(calculated.file), "--tenant", "acme"]
    plan = calculated.file.parent / "plan.json"
    until = ["--to", f"{TODAY}", "--plan", str(plan), "--format", "json"]

    def apply(begins: date = FIRST) -> Said:
        reason = ["--effective-from", f"{begins}", "--reason", "Everybody shares it"]
        return chargeback("policies", "apply", *place, "--plan", str(plan), *reason)

    tried = simulate(EVENLY, *until)
    assert json.loads(tried.stdout)["moved"] != "0.00"
    before = files(calculated.file.parent)
    done = apply()
    assert done.returncode == 0, done.stderr
    assert f"In force from {FIRST} on: Everybody shares it" in done.stdout
    assert files(calculated.file.parent) == before
    stale = apply()
    assert (stale.returncode, stale.stdout) == (STALE, "")
    assert f"{FIRST}: revision 1, now to be calculated" in stale.stderr
    assert chargeback("run", *place).returncode == 0
    shown = yaml.safe_load(chargeback("policies", "show", *place).stdout)["allocation_policies"]
    assert [each.get("effective_from") for each in shown if "reason" in each] == [f"{FIRST}"]
    assert chargeback("check", "--config", str(calculated.file)).returncode == 0
    unchanged = simulate({**EVENLY, "SUPPORT": {"portions": [{"share": "1", "try": ["even(active)"]}]}}, *until)
    assert unchanged.returncode in {0, MOVES}, unchanged.stderr
    coming = TODAY + timedelta(days=30)
    assert apply(coming).returncode == 0, "what was tried now, from a coming day on"
    assert chargeback("policies", "withdraw", *place, "--effective-from", f"{coming}").returncode == 0
    stays = chargeback("policies", "withdraw", *place, "--effective-from", f"{FIRST}")
    assert "has calculated" in stays.stderr
    plan.write_text("{}", encoding="utf-8")
    assert "asked: Field required" in apply().stderr


def test_the_workflow_keeps_one_comment_on_a_pull_request(calculated: Demo, process: None) -> None:
    """The steps of the workflow create one comment, edit it on later pushes, print nothing if no policy changes, and
    fail if too much moves."""
    folder = calculated.file.parent / "pull-request"
    folder.mkdir()
    (folder / "gh").write_text(_GH)
    (folder / "gh").chmod(0o755)
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    steps = {each["name"]: each["run"] for each in job["steps"] if "run" in each}

    def push(policies: object) -> list[int]:
        whole = yaml.safe_load(calculated.file.read_text(encoding="utf-8"))
        whole["tenants"]["acme"]["plugin_settings"]["allocation_policies"] = policies
        (folder / "chargeback.yaml").write_text(yaml.safe_dump(whole), encoding="utf-8")
        path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        known = environment(PATH=path, CONFIG=str(calculated.file), TENANT="acme", NUMBER="3", REPOSITORY="acme/bills")
        words = [*words_within(TODAY), "bash", "-e", "-c"]
        return [
            subprocess.run([*words, script], cwd=folder, env=known, timeout=120, check=False).returncode
            for script in steps.values()
        ]

    support = {"portions": [{"share": "1", "try": ["even(period)"]}]}
    assert push({}) == [0, 0, 0]
    assert not (folder / "posted").exists(), "nothing to say"
    assert push({"SUPPORT": support})[:2] == [0, 0]
    assert push({"*": support, "SUPPORT": support})[:2] == [0, 0]
    assert (folder / "told").read_text().split() == ["created", "edited"]
    assert (folder / "posted").read_text().startswith("<!-- chargeback simulate -->")
    nobody = {"portions": [{"share": "1", "try": ["unallocated"]}]}
    assert push({"KAFKA_NUM_CKUS": nobody}) == [0, 0, 1]
