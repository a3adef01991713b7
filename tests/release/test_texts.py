"""The files that accompany a release: the citation and the issue forms."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FORMS = [file for file in TEMPLATES if file.name != "config.yml"]


def test_the_citation_is_of_the_newest_release() -> None:
    """The licence is that of the package; version and date are those of the newest release in the changelog."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["license"] == PROJECT["license"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## \[(\d[^]]*)\] - (.+)$", changelog, re.MULTILINE)
    assert (citation["version"], citation["date-released"]) == releases[0]


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_forms_are_what_the_host_of_the_repository_reads(file: Path) -> None:
    """Each form has a name, a description, and fields of known types with a label and a unique id."""
    form = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in fields} <= {"textarea", "input", "dropdown", "checkboxes"}
    ids = [part["id"] for part in fields]
    assert len(ids) == len(set(ids)) == len([part for part in fields if part["attributes"]["label"]])
    assert all(part["attributes"]["options"] for part in fields if part["type"] == "dropdown")


#: How-to pages about a task rather than a role.
TASKS = {"policies"}


def test_the_readers_of_forms_are_those_of_the_how_to_pages() -> None:
    """The form for ideas offers the roles that have a page in the documentation."""
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "idea.yml").read_text(encoding="utf-8"))
    (roles,) = (part["attributes"]["options"] for part in form["body"] if part.get("id") == "who")
    pages = {file.stem.replace("-", " ") for file in (ROOT / "docs" / "how-to").glob("*.md")}
    assert set(roles) == pages - TASKS


def test_links_of_the_pull_request_template_lead_somewhere() -> None:
    """Links of the template are relative to its folder and lead to existing files."""
    template = ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md"
    targets = re.findall(r"\]\(([^)#]+)", template.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (template.parent / target).is_file()] == []
