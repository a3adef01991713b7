"""The how-to pages: their commands run, in order, against the demo that they start."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from chargeback import __version__
from tests.cli.conftest import environment
from tests.support.processes import eventually, free_port

pytestmark = pytest.mark.usefixtures("process")

DOCS = Path(__file__).parents[1] / "docs"
START = DOCS / "start.md"
#: This page has its own demo, with closed months.
FINANCE = DOCS / "how-to" / "finance.md"
#: The pages in order: the first one leaves a policy, which does not affect the others.
PAGES = (START, *sorted(set((DOCS / "how-to").glob("*.md")) - {FINANCE}))
_STEP = re.compile(
    r"```console\n(?P<commands>.*?)```(?:\n+```json\n(?P<answer>.*?)```)?|```python\n(?P<python>.*?)```", re.DOTALL
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Command:
    """A command on a page, and the output that the page shows below it."""

    text: str
    shown: list[str]


def commands(block: str) -> Iterator[Command]:
    """Yield the commands of a block; a command with a here-document extends to its end."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        end = lines.index("END") + 1 if "<<'END'" in lines[0] else 1
        yield Command("\n".join(lines[:end]), lines[end:])


def pattern(text: str) -> str:
    """Return a text without the parts that differ from day to day: numbers, dates, ids."""
    return " ".join(_NUMBER.sub("0", re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b", "0", text)).split())


def is_like(answer: Any, shown: Any) -> bool:
    """Return whether a response has everything that is shown, with other numbers: each shown item of a list matches one
    of the response."""
    if isinstance(shown, dict):
        return isinstance(answer, dict) and all(name in answer and is_like(answer[name], shown[name]) for name in shown)
    if isinstance(shown, list):
        return isinstance(answer, list) and all(any(is_like(each, item) for each in answer) for item in shown)
    if isinstance(shown, str) and isinstance(answer, str):
        return pattern(answer.removeprefix("-")) == pattern(shown.removeprefix("-"))
    return isinstance(answer, type(shown))


class Terminal:
    """A shell in the folder of the demo, which is served on a separate port."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.variables: dict[str, str] = {}

    def here(self, text: str) -> str:
        """Return a text of a page with the address of this demo."""
        return text.replace("127.0.0.1:8080", f"127.0.0.1:{self.port}")

    def run(self, command: Command) -> str:
        """Run a command, and compare its output with the page; return its standard output."""
        if found := re.fullmatch(r"(\w+)=(\$\(.*\))", command.text):
            self.variables[found[1]] = self._said(self.here(f"echo {found[2]}")).stdout.strip()
            return ""
        done = self._said(self.here(command.text))
        expected = 2 if any(line.startswith("error:") for line in command.shown) else 0
        assert done.returncode == expected, (command.text, done.stdout, done.stderr)
        printed = {pattern(line) for line in (done.stdout + done.stderr).splitlines()}
        for line in command.shown:
            assert _folders(pattern(line)) in {_folders(each) for each in printed}, (command.text, line, printed)
        return done.stdout

    def wait_until_idle(self) -> None:
        """Wait for the end of the service's first run."""
        address = f"http://127.0.0.1:{self.port}/api/v1/tenants/acme/pipeline/status"
        eventually(lambda: httpx.get(address, timeout=60).json()["is_running"] is False, seconds=240)

    def _said(self, text: str) -> subprocess.CompletedProcess[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder,
            env=environment(PATH=path, **self.variables),
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )


def _folders(line: str) -> str:
    """Return a line without the folders of paths, which depend on the reader."""
    return re.sub(r"/\S*/", "", line)


@contextmanager
def demo(folder: Path, page: Path) -> Iterator[Terminal]:
    """Start the demo as on a page, on a separate port."""
    (found,) = re.findall(r"^\$ make demo SIZE=(\w+) DAYS=(\d+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    port = free_port()
    with (folder / "log").open("wb") as log:
        words = ["demo", "--size", found[0], "--days", found[1], "--port", str(port)]
        process = subprocess.Popen(
            [sys.executable, "-m", "chargeback", *words], cwd=folder, env=environment(), stdout=log, stderr=log
        )
    try:
        terminal = Terminal(folder, port)
        eventually(
            lambda: process.poll() is not None or "/ui/ in a browser" in (folder / "log").read_text(), seconds=240
        )
        assert process.poll() is None, (folder / "log").read_text()
        terminal.wait_until_idle()
        yield terminal
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("pages", [PAGES, (FINANCE,)], ids=["start", "finance"])
def test_what_the_pages_tell_readers_to_type(tmp_path: Path, pages: tuple[Path, ...]) -> None:
    """Every command succeeds with the shown output, apart from numbers; every response has the shown content."""
    with demo(tmp_path, pages[0]) as terminal:
        for page in pages:
            follow(page, terminal)


def follow(page: Path, terminal: Terminal) -> None:
    """Execute the commands of a page."""
    for step in _STEP.finditer(page.read_text(encoding="utf-8")):
        if step["python"]:
            words = [sys.executable, "-c", step["python"]]
            done = subprocess.run(words, cwd=terminal.folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0 and done.stdout, done.stderr
            continue
        said = ""
        for command in commands(step["commands"]):
            if not command.text.startswith(("make ", "export PATH")):
                said = terminal.run(command)
        if step["answer"]:
            answer, shown = json.loads(said), json.loads(step["answer"])
            assert is_like(answer, shown), (page.name, step["commands"], answer)


def test_completion_is_offered_as_documented(tmp_path: Path) -> None:
    """The variable in docs/install.md prints the lines for bash, whatever shell runs the command."""
    (line,) = re.findall(r"`(_CHARGEBACK_COMPLETE=\w+ chargeback)`", (DOCS / "install.md").read_text(encoding="utf-8"))
    said = Terminal(tmp_path, 0).run(Command(line, []))
    assert "complete -o default -F _chargeback_completion chargeback" in said


def test_the_pages_show_this_version() -> None:
    """Pages show the version that is installed."""
    for page in (START, DOCS / "install.md"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"^\$ chargeback --version\n(.+)$", text, re.MULTILINE) == [__version__]
    assert shutil.which("bash")
