"""The project's own files."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from chargeback import __version__, how_to_install

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


def test_unreleased_code_has_a_version_of_its_own() -> None:
    """With unreleased changes the version is a development version of the next release, newer than every release of the
    changelog; otherwise it is the newest release."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = changelog.partition("## [Unreleased]\n")[2].partition("\n## [")[0]
    newest = max(Version(each) for each in re.findall(r"^## \[(\d[^]]*)\]", changelog, re.MULTILINE))
    present = Version(__version__)
    if unreleased.strip():
        assert present.is_devrelease and present > newest
        assert f"To be {present.base_version}" in unreleased
    else:
        assert present == newest


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("pipx_metadata.json", "`pipx install --force '.[mcp]'`"),
        ("uv-receipt.toml", "`uv tool install --force '.[mcp]'`"),
        ("pyvenv.cfg", "`pip install -e '.[mcp]'`"),  # these tests run from the checkout itself
    ],
)
def test_an_extra_is_installed_as_the_command_was(file: str, command: str, tmp_path: Path) -> None:
    """What made the environment installs the extra, from a checkout."""
    (tmp_path / file).touch()
    assert how_to_install("mcp", tmp_path) == f"{command} in a checkout of chargeback"


def test_nothing_is_installed_by_name() -> None:
    """No page, example or message says to install the package by its name: nothing is published, and a package of this
    name on an index would be somebody else's."""
    files = [*PAGES, *ROOT.glob("examples/**/*.*"), *ROOT.glob("deploy/**/*.*"), *ROOT.glob("src/chargeback/**/*.py")]
    for file in files:
        if file.is_file() and file.name not in {"releasing.md", "CHANGELOG.md"}:
            text = file.read_text(encoding="utf-8")
            assert not re.findall(r"pipx? install '?chargeback(?!-|\[[a-z,]+\] @ file:)|chargeback\[\w+\]", text), file


def test_the_extras_are_documented() -> None:
    """Every extra of the package has a line on the page about installation, and every line is an extra."""
    section = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("## Extras")[2].partition("\n## ")[0]
    table = section.partition("In a checkout")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == sorted(PROJECT["project"]["optional-dependencies"])


def test_the_installed_version_is_that_of_the_project() -> None:
    """The installed package has the version of its source; after a change of it, `make setup` installs it again."""
    assert version("chargeback") == __version__


@pytest.mark.usefixtures("process")
def test_secrets_of_a_checkout_are_ignored_by_git() -> None:
    """Files that the README and the pages create in a checkout may contain keys, and cannot be committed by mistake."""
    written = ["chargeback.yaml", "etc/chargeback.yaml", ".env", "data/acme.db", "demo-data/small"]
    said = subprocess.run(["git", "check-ignore", *written], cwd=ROOT, capture_output=True, text=True, check=False)
    assert said.stdout.split() == written


def test_commands_of_the_pages_run_on_macos() -> None:
    """No page uses an option of commands that only GNU's have, such as a relative date."""
    gnu = re.compile(r"\bdate (-u )?-d |\bsed -i |\breadlink -f |\bsha256sum |\bgrep -P ")
    assert [page.name for page in PAGES if gnu.search(page.read_text(encoding="utf-8"))] == []


def test_make_names_its_targets() -> None:
    """The commands that the README tells people to type are targets of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in set(re.findall(r"^\$ make (\w+)", readme, re.MULTILINE)):
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), target


def test_sql_on_the_control_database_has_one_home() -> None:
    """Outside of `store/control` no module makes a statement: of SQLAlchemy only types and addresses are used."""
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
