"""Print the shape of the code as a table: its size, the path of two requests, and how modules depend on each other.

``python -m tests.shape --write`` also writes the table into ``docs/architecture.md``.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import httpx

from chargeback.store.control.tags import TagWrite, write_many
from tests.support.clock import TODAY
from tests.support.facts import TENANT_ID, Share, days_from, line, tenant_store, write_lines, write_shares
from tests.support.serving import client_of, services_for

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src"
PAGE: Final = ROOT / "docs" / "architecture.md"
MARKS: Final = ("<!-- shape -->", "<!-- /shape -->")
TENANT: Final = "/api/v1/tenants/acme"
#: The measured requests, and requests that the service has processed before, so that its caches are filled.
REQUESTS: Final = (f"{TENANT}/chargebacks/aggregate?group_by=tag:team", f"{TENANT}/costs")
_BEFORE: Final = (f"{REQUESTS[0]}&period=month", f"{REQUESTS[1]}?period=month")
_QUERIES: Final = "chargeback.store.queries"
_FEW_LINES: Final = 60
#: The modules that list others: the routes, and the commands. So do the faces of packages.
_LISTS: Final = frozenset({"chargeback.api.app", "chargeback.cli.main"})

Graph = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class Module:
    """One file of the code: its dotted name and its text."""

    name: str
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Return the nodes of the syntax tree."""
        return list(ast.walk(ast.parse(self.text)))

    def imported(self, known: Collection[str]) -> set[str]:
        """Return which of the ``known`` modules it imports.

        >>> sorted(Module("a.b", "import a.c\\nfrom a import d, thing").imported({"a", "a.c", "a.d"}))
        ['a', 'a.c', 'a.d']
        """
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= inner if inner <= set(known) else inner | {node.module}
        return found & set(known) - {self.name}


def modules() -> list[Module]:
    """Return the modules of the code."""
    files = {file: file.relative_to(SOURCE).with_suffix("").parts for file in sorted(SOURCE.rglob("*.py"))}
    return [Module(".".join(p).removesuffix(".__init__"), f.read_text(encoding="utf-8")) for f, p in files.items()]


def reachable(graph: Graph) -> dict[str, set[str]]:
    """Return which modules each one imports, directly or not.

    >>> {name: sorted(found) for name, found in reachable({"a": ["b"], "b": ["a", "c"], "c": []}).items()}
    {'a': ['a', 'b', 'c'], 'b': ['a', 'b', 'c'], 'c': []}
    """
    found = {name: set(imported) for name, imported in graph.items()}
    for middle in graph:
        for name in graph:
            if middle in found[name]:
                found[name] |= found[middle]
    return found


def circles(graph: Graph) -> int:
    """Return the number of groups of modules that import each other, directly or not.

    >>> circles({"a": ["b"], "b": ["a", "c"], "c": [], "d": ["e"], "e": ["d"]})
    2
    """
    below = reachable(graph)
    return len(
        {frozenset(each for each in below[name] if name in below[each]) for name in graph if name in below[name]}
    )


def longest_chain(graph: Graph) -> int:
    """Return the number of modules in the longest chain of imports; a circle counts as one module.

    >>> longest_chain({"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": []})
    3
    """
    below = reachable(graph)

    @cache
    def _height(name: str) -> int:
        return 1 + max((_height(each) for each in below[name] if name not in below[each]), default=0)

    return max(map(_height, graph), default=0)


def imported_once(graph: Graph) -> tuple[int, int]:
    """Return how many modules exactly one other imports, and how many of these are entries of a list: routes, commands,
    and the parts of a package that its face imports.

    >>> imported_once({"a": ["a.b", "c"], "a.b": ["d"], "c": [], "d": ["c"]})
    (2, 1)
    """
    importers: dict[str, list[str]] = {}
    for name, imported in graph.items():
        for each in imported:
            importers.setdefault(each, []).append(name)
    alone = {name: by[0] for name, by in importers.items() if len(by) == 1}
    return len(alone), sum(by in _LISTS or name.startswith(f"{by}.") for name, by in alone.items())


def private_functions(found: Iterable[Module]) -> tuple[int, int, int]:
    """Return how many functions there are, how many are private, and how many of these are used in one place.

    >>> private_functions([Module("m", "def _a(): _b()\\ndef _b(): pass\\ndef c(): _a(); _a()")])
    (3, 2, 1)
    """
    every = private = once = 0
    for module in found:
        names = [node.name for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        used = Counter(node.id for node in module.nodes if isinstance(node, ast.Name))
        used += Counter(node.attr for node in module.nodes if isinstance(node, ast.Attribute))
        own = [name for name in names if name.startswith("_") and not name.endswith("__")]
        every, private = every + len(names), private + len(own)
        once += sum(used[name] == 1 for name in own)
    return every, private, once


def import_share(found: Iterable[Module]) -> float:
    """Return the share of imports among the lines of code: those that are not blank, comments or docstrings.

    >>> import_share([Module("m", 'import a\\n\\n# comment\\nb = 1\\ndef f():\\n    "Text."\\n    return a\\n')])
    0.25
    """
    imports = code = 0
    for module in found:
        left_out: set[int] = set()
        for node in module.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                imports += (node.end_lineno or node.lineno) - node.lineno + 1
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        texts = [text.strip() for text in module.text.splitlines()]
        code += sum(bool(t) and t[0] != "#" and number not in left_out for number, t in enumerate(texts, start=1))
    return imports / code


@dataclass
class Way:
    """The functions that a request calls, in all threads, and the depth of the calls."""

    functions: set[CodeType] = field(default_factory=set)
    depth: int = 0

    def note(self, frame: FrameType) -> None:
        """Record a call of a function of the code."""
        depth = 0
        above: FrameType | None = frame
        while above is not None:
            depth += above.f_code.co_filename.startswith(str(SOURCE))
            above = above.f_back
        if frame.f_code.co_filename.startswith(str(SOURCE)):
            self.functions.add(frame.f_code)
            self.depth = max(self.depth, depth)

    def measure(self) -> str:
        """Return the number of files and functions, the depth, and the number of changes to the files in commits."""
        files = {str(Path(each.co_filename).relative_to(ROOT)) for each in self.functions}
        command = ["git", "log", "--format=", "--name-only", "--", "src"]
        changed = Counter(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
        changes = sum(changed[file] for file in files)
        return f"{len(files)} / {len(self.functions)} / {self.depth} / {changes}"


def ways() -> dict[str, Way]:
    """Return the path of each request through a service that has processed others before."""
    found: dict[str, Way] = {}
    present: list[Way] = []

    def _note(frame: FrameType, event: str, _argument: Any) -> None:
        if present and event == "call":
            present[0].note(frame)

    threading.setprofile(_note)
    try:
        with _service() as client:
            for request in (*_BEFORE, *REQUESTS):
                present[:] = [found.setdefault(request, Way())]
                client.get(request).raise_for_status()
                present.clear()
    finally:
        threading.setprofile(None)
    return {request: found[request] for request in REQUESTS}


@contextmanager
def _service() -> Iterator[httpx.Client]:
    with tempfile.TemporaryDirectory() as folder, tenant_store(Path(folder)) as store:
        days = days_from(TODAY.replace(day=1), 20)
        write_shares(store.facts, [Share(day, f"sa-{n}", "1.25", portion=n) for day in days for n in range(4)])
        write_lines(store.facts, [line(day, "5") for day in days])
        with store.control.write() as connection:
            tags = [TagWrite("identity", f"sa-{number}", "team", "payments") for number in range(3)]
            write_many(connection, TENANT_ID, tags, created_by="test", override=False)
        with client_of(services_for(store)) as client:
            yield client


def measures() -> Iterator[tuple[str, str]]:
    """Yield each measure and its value."""
    found = modules()
    graph = {each.name: each.imported({module.name for module in found}) for each in found}
    inner = {name: {each for each in graph[name] if each.startswith(_QUERIES)} for name in graph if _QUERIES in name}
    every, private, once = private_functions(found)
    classes = [{node.name for node in each.nodes if isinstance(node, ast.ClassDef)} for each in found]
    places = Counter(name for each in classes for name in each)
    lines = [each.text.count("\n") for each in found]
    small = sum(count < _FEW_LINES for count in lines)
    yield "lines of Python in `src` / files", f"{sum(lines):,} / {len(found)}"
    for request, way in ways().items():
        shown = request.replace(TENANT, "GET …")
        yield f"`{shown}`: own files / functions / depth / changes of these files", way.measure()
    yield "private functions / used once", f"{private / every:.0%} / {once:,}"
    yield "import lines, of code lines", f"{import_share(found):.1%}"
    yield "class names that several modules define", str(sum(count > 1 for count in places.values()))
    alone, listed = imported_once(graph)
    yield (
        "modules that exactly one other imports / of these routes, commands, parts of packages",
        f"{alone} / {listed}",
    )
    yield f"files under {_FEW_LINES} lines", f"{small} ({small / len(found):.0%})"
    chain = f"{len(inner)} / {longest_chain(inner)} / {circles(inner)}"
    yield "`store/queries`: files / longest chain of imports / circles", chain


def main() -> None:
    """Print the table; with ``--write``, also write it between the markers on the page."""
    table = "\n".join(["| measure | now |", "|---|---|", *(f"| {name} | {value} |" for name, value in measures())])
    print(table)
    if "--write" in sys.argv[1:]:
        start, end = MARKS
        before, rest = PAGE.read_text(encoding="utf-8").split(start)
        PAGE.write_text(f"{before}{start}\n\n{table}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
