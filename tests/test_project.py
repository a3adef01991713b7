"""The project's own files."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def names(requirements: list[str]) -> set[str]:
    """The packages of a list of requirements."""
    return {re.split(r"[\[<>=;~! ]", requirement, maxsplit=1)[0] for requirement in requirements}


def required(file: str) -> list[str]:
    """The requirements of a file in requirements/."""
    lines = (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def listed(heading: str) -> dict[str, str]:
    """The packages of a table in CONTRIBUTING.md with their licences."""
    section = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"### {heading}")[2].partition("\n### ")[0]
    )
    return dict(re.findall(r"^\| `([^`]+)` \| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE))


#: What the locks of tools are made of.
NEEDED = {f"{tool}.lock": required(f"{tool}.in") for tool in ("docs", "packages")}


@pytest.mark.parametrize(
    ("heading", "requirements"),
    [
        ("At run time", PROJECT["project"]["dependencies"]),
        ("For development", PROJECT["dependency-groups"]["dev"]),
        ("Of the documentation's site, when it is built", required("docs.in")),
        ("Of the packages, when they are built", required("packages.in")),
    ],
)
def test_every_dependency_has_a_reason(heading: str, requirements: list[str]) -> None:
    """Each dependency has a line with its reason and licence, and no line is left of one that is gone."""
    assert listed(heading).keys() == names(requirements)


@pytest.mark.parametrize("lock", ["runtime.lock", "dev.lock", "docs.lock", "packages.lock"])
def test_dependencies_are_locked_with_hashes(lock: str) -> None:
    """Every package that the project names is pinned, and every pinned package has hashes."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    pinned = re.findall(r"^([a-z0-9-]+)==[^\n]*\\\n    --hash=sha256:", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[a-z0-9-]+==", text, re.MULTILINE))
    wanted = names(NEEDED.get(lock, PROJECT["project"]["dependencies"]))
    if lock == "dev.lock":
        wanted |= names(PROJECT["dependency-groups"]["dev"])
    assert wanted - set(pinned) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that exists, and a heading that it has."""
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", page.read_text(encoding="utf-8")):
        file, _, heading = target.partition("#")
        other = (page.parent / file) if file else page
        assert other.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^a-z0-9_ -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_picture_is_shown() -> None:
    """The page about the browser page shows or names every picture, and none is too large to load."""
    shown = set(re.findall(r"\(images/([^)]+)\)", (ROOT / "docs" / "page.md").read_text(encoding="utf-8")))
    kept = {file.name: file.stat().st_size for file in (ROOT / "docs" / "images").iterdir()}
    assert kept.keys() == shown
    assert max(kept.values()) < 300_000


def test_yaml_in_the_pages_is_yaml() -> None:
    """Every YAML example of the documentation can be read."""
    for page in PAGES:
        for example in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            assert yaml.safe_load(example)


def test_decisions_are_numbered() -> None:
    """Decisions are numbered without a gap, and their title carries the number."""
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    for number, record in enumerate(records, start=1):
        assert record.name.startswith(f"{number:04d}-")
        assert record.read_text(encoding="utf-8").startswith(f"# {number}. ")


def test_the_changelog_knows_this_version() -> None:
    """The version of the package has a section in the changelog."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{PROJECT['project']['version']}]" in changelog
    assert "## [Unreleased]" in changelog


def test_make_names_its_targets() -> None:
    """The commands that the README tells people to type are targets of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in set(re.findall(r"^\$ make (\w+)", readme, re.MULTILINE)):
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), target


def test_sql_on_the_control_database_has_one_home() -> None:
    """Outside of `store/control` nobody makes a statement: of SQLAlchemy only types and addresses are known."""
    known = {"Connection", "RowMapping", "URL", "make_url", "ArgumentError"}
    for file in (ROOT / "src").rglob("*.py"):
        if file.is_relative_to(ROOT / "src" / "chargeback" / "store" / "control"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy"):
                assert {alias.name for alias in node.names} <= known, file
            elif isinstance(node, ast.Import):
                assert not [alias.name for alias in node.names if alias.name.startswith("sqlalchemy")], file


def test_the_table_of_packages_lists_the_layers() -> None:
    """Every part of the package has a line, in the order in which the layers are enforced, and no line is left of one
    that is gone."""
    (contract, *_) = PROJECT["tool"]["importlinter"]["contracts"]
    layers = [room for layer in contract["layers"] for room in re.findall(r"\w+", layer) if room != "__main__"]
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = contributing.partition("## Packages")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == layers
    parts = {file.stem for file in (ROOT / "src" / "chargeback").iterdir() if file.suffix == ".py" or file.is_dir()}
    assert parts - {"__init__", "__main__", "__pycache__"} == set(layers)
