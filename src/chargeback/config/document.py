"""The YAML file as plain values, with the line of each.

Numbers, booleans and null are those of YAML 1.2; ``no``, ``012``, ``1:30`` and dates are texts. A duplicate key in a
mapping is an error. References to the environment are resolved here, in each text separately, so that a secret can
neither break the syntax nor be read as a number. The scopes of roles are left as they are: their ``${name}`` stands for
a part of a group's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from chargeback.config.environment import interpolate
from chargeback.errors import ConfigProblem, ConfigurationError

#: The place of a value: keys and list positions from the root.
KeyPath = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"


#: More than any configuration needs. A larger document could exhaust the stack, the memory or the time.
MAX_DEPTH = 50
MAX_VALUES = 500_000
_MAX_NUMBER_LENGTH = 400


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of the YAML 1.2 core schema, and a limit on the depth of nesting."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a value and what is inside it."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"values are nested deeper than {MAX_DEPTH} levels", problem_mark=mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


_Loader.yaml_implicit_resolvers = {}
for _name, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(
        f"{_TAG}{_name}", re.compile(f"^(?:{_pattern})$"), [c if c != "\0" else "" for c in _first]
    )


@dataclass
class Document:
    """The contents of the file.

    ``lines`` maps each place to its line (from 1), ``taken`` to the variables used there, as (name, value).
    """

    values: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    taken: dict[KeyPath, tuple[tuple[str, str], ...]] = field(default_factory=dict, repr=False)
    problems: list[ConfigProblem] = field(default_factory=list)

    def at(self, key_path: KeyPath) -> Any:
        """Return the value at a place, or None if there is none."""
        value = self.values
        for step in key_path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def key_path_of(self, path: str, base: KeyPath) -> KeyPath:
        """Return the key path of ``path``, as :func:`format_key_path` writes it, below ``base``; an unknown part
        remains text."""
        key_path, rest = base, path
        while rest:
            here = self.at(key_path)
            names = sorted(here, key=len, reverse=True) if isinstance(here, Mapping) else ()
            position = re.match(r"\[(\d+)\]", rest)
            if isinstance(here, list) and position:
                key_path, rest = (*key_path, int(position[1])), rest[position.end() :]
            elif name := next((name for name in names if re.match(re.escape(name) + r"(?=[.\[]|$)", rest)), None):
                key_path, rest = (*key_path, name), rest[len(name) :]
            else:
                return (*key_path, rest)
            rest = rest.removeprefix(".")
        return key_path

    def problem(self, key_path: KeyPath, message: str) -> ConfigProblem:
        """Return a problem at a place, with the line of the place or of the nearest value that contains it."""
        nearest = next((key_path[:n] for n in range(len(key_path), -1, -1) if key_path[:n] in self.lines), None)
        suffix = f" (line {self.lines[nearest]})" if nearest else ""
        return ConfigProblem(format_key_path(key_path), message + suffix)


def format_key_path(key_path: KeyPath) -> str:
    """Return a key path as text.

    >>> format_key_path(("tenants", "acme", "flink", 0, "key"))
    'tenants.acme.flink[0].key'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key_path).removeprefix(".")


def _has_own_references(key_path: KeyPath) -> bool:
    """Return whether ``${…}`` at a place does not mean the environment."""
    match key_path:
        case ("access", "roles", int(), "scope", *_):
            return True
        case _:
            return False


def parse_document(text: str, environment: Mapping[str, str] | None, *, most: int = MAX_VALUES) -> Document:
    """Parse ``text``. Every error other than a syntax error is in the document's ``problems``. Without an
    ``environment``, ``${NAME}`` is text like any other. It may have at most ``most`` values.

    Raises:
        ConfigurationError: it is not YAML; the problem names line and column.
    """
    document = Document()
    try:
        loader = _Loader(text)  # refuses characters that YAML does not allow
        try:
            root = loader.get_single_node()
            if root is not None:
                document.values = _Builder(loader, document, environment, most).build(root, ())
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ConfigurationError([_syntax_problem(error, text)]) from None
    return document


def values_of(text: str) -> Any:
    """Return the values of a document in which ``${NAME}`` is text like any other.

    Raises:
        ConfigurationError: it is not YAML, or has what a configuration may not have; every mistake is named.
    """
    document = parse_document(text, None)
    if document.problems:
        raise ConfigurationError(document.problems)
    return document.values


def _harmless(quoted: str) -> bool:
    """Return whether the quoted text is a single character, or a name of the parser's own (``<stream end>``)."""
    return len(quoted) <= 1 or re.fullmatch("<[a-z ]+>", quoted) is not None


def _syntax_problem(error: yaml.YAMLError, text: str) -> ConfigProblem:
    """Return the syntax error. Quotes from the file are left out, unless they are a single character: they may be
    secret."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return ConfigProblem("", "not YAML: it contains a character that is not allowed")
    mark = error.problem_mark or error.context_mark
    what = (error.problem or error.context or "it cannot be read").split("\n")[0]
    what = re.sub(r" ?'([^']*)'", lambda quoted: quoted[0] if _harmless(quoted[1]) else "", what)
    if mark is None:
        return ConfigProblem("", f"not YAML: {what}")
    line = text.splitlines()[mark.line] if mark.line < len(text.splitlines()) else ""
    hint = ""
    if "alias" in what:
        hint = "; quote a string that begins with *"
    elif "${" in line:
        hint = '; inside [ ] or { } write "${NAME}" in quotes'
    return ConfigProblem(f"line {mark.line + 1}, column {mark.column + 1}", f"not YAML: {what}{hint}")


class _Builder:
    """Builds plain values from YAML nodes and collects their problems."""

    def __init__(self, loader: _Loader, document: Document, environment: Mapping[str, str] | None, most: int) -> None:
        self._loader = loader
        self._document = document
        self._environment = environment
        self._most = most
        self._open: list[int] = []
        self._merged: dict[int, dict[str, tuple[yaml.Node, yaml.Node]]] = {}
        self._built = 0

    def build(self, node: yaml.Node, key_path: KeyPath) -> Any:
        self._built += 1
        if self._built > self._most:
            raise yaml.MarkedYAMLError(
                problem=f"the file expands to more than {self._most:,} values; use fewer aliases of anchors (&)",
                problem_mark=node.start_mark,
            )
        self._document.lines.setdefault(key_path, node.start_mark.line + 1)
        if id(node) in self._open:
            return self._add_problem(key_path, "an alias (*) must not be inside its own anchor")
        self._open.append(id(node))
        try:
            if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
                return self._mapping(node, key_path)
            if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
                return [self.build(each, (*key_path, n)) for n, each in enumerate(node.value)]
            if isinstance(node, yaml.ScalarNode):
                return self._scalar(node, key_path)
        finally:
            self._open.pop()
        return self._add_problem(key_path, "YAML tags (!) are not supported; quote a string that begins with !")

    def _mapping(self, node: yaml.MappingNode, key_path: KeyPath) -> dict[str, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name in seen:
                self._document.problems.append(
                    ConfigProblem(
                        format_key_path((*key_path, name)), f"this key is a duplicate (line {key.start_mark.line + 1})"
                    )
                )
            elif name is not None:
                seen.add(name)
        built: dict[str, Any] = {}
        for name, (key, value) in self._members(node, key_path).items():
            self._document.lines[(*key_path, name)] = key.start_mark.line + 1
            built[name] = self.build(value, (*key_path, name))
        return built

    def _members(self, node: yaml.MappingNode, key_path: KeyPath) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return key and value of each name of a mapping, including merged ones (``<<``); the mapping's own take
        precedence."""
        if id(node) in self._merged:
            return self._merged[id(node)]
        self._merged[id(node)] = {}  # a mapping that merges itself gains nothing
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        own: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for other in reversed(value.value) if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(other, yaml.MappingNode):
                        merged |= self._members(other, key_path)
                    else:
                        self._add_problem(key_path, "<< requires a mapping or a list of mappings")
            elif isinstance(key, yaml.ScalarNode):
                own[self._storable(key.value, key_path)] = (key, value)
            else:
                self._add_problem(key_path, 'a key must be a string; quote "${NAME}" and similar keys')
        self._merged[id(node)] = merged | own
        return self._merged[id(node)]

    def _storable(self, text: str, key_path: KeyPath) -> str:
        """Return the text without characters that a path, database or log cannot hold; report them as a problem."""
        clean = text.replace("\0", "").encode(errors="replace").decode()
        if clean != text:
            self._add_problem(key_path, "must be UTF-8 text without the character NUL")
        return clean

    def _scalar(self, node: yaml.ScalarNode, key_path: KeyPath) -> Any:
        if node.tag == f"{_TAG}str" and (self._environment is None or _has_own_references(key_path)):
            return self._storable(node.value, key_path)
        if node.tag == f"{_TAG}str":
            result = interpolate(node.value, self._environment or {})
            if result.taken:
                self._document.taken[key_path] = result.taken
            for problem in result.problems:
                self._add_problem(key_path, problem)
            text = self._storable(result.text, key_path)
            # An unquoted reference to an empty value is like a key without a value.
            return None if not text and node.value and node.style is None else text
        if node.tag in {f"{_TAG}{kind}" for kind in ("bool", "int", "float", "null")}:
            if len(node.value) > _MAX_NUMBER_LENGTH:
                return self._add_problem(key_path, f"a number has at most {_MAX_NUMBER_LENGTH} digits")
            return self._loader.construct_object(node)
        return self._add_problem(key_path, "YAML tags (!) are not supported; quote a string that begins with !")

    def _add_problem(self, key_path: KeyPath, message: str) -> None:
        self._document.problems.append(self._document.problem(key_path, message))
