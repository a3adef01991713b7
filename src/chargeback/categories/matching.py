"""What a rule matches: a tree of tests, and which texts match a test's pattern.

Patterns are tested on whole columns of distinct texts by RE2 (through Arrow), whose time grows linearly with the text:
users write these patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from chargeback.categories.regex import compiled_groups, without_unnamed_groups

Kind = Literal["exact", "glob", "prefix", "regex"]
KINDS: Final[tuple[Kind, ...]] = ("exact", "glob", "prefix", "regex")

#: What a test looks at, and the columns of a row in which it finds that.
COLUMNS_OF_SUBJECT: Final = {
    "identity": ("identity_id",),
    "resource": ("resource_id",),
    "cluster": ("resource_id",),
    "environment": ("environment_id",),
    "topic": ("topic_name",),
    "product_type": ("product_type",),
    "product_category": ("product_category",),
    "tag": ("identity_id", "resource_id"),
    "display_name": ("identity_id", "resource_id"),
}


@dataclass(frozen=True)
class Pattern:
    """Matches a text that at least one of its alternatives, (kind, text), matches; those of a set, if it is ``named``
    so."""

    alternatives: tuple[tuple[Kind, str], ...]
    named: str | None = None

    def of_kind(self, kind: Kind) -> list[str]:
        """Return the texts of the alternatives of one kind."""
        return [text for each, text in self.alternatives if each == kind]

    @cached_property
    def groups(self) -> frozenset[str]:
        """The names of the groups that its regexes capture."""
        return frozenset(name for regex in self.of_kind("regex") for name in compiled_groups(regex))


@dataclass(frozen=True)
class Test:
    """Holds if one of the texts of its subject matches the pattern; without a pattern, if there is one.

    ``tag`` is the tag's key where the subject is ``tag``.
    """

    __test__ = False  # for pytest

    subject: str
    pattern: Pattern | None
    tag: str | None = None


@dataclass(frozen=True)
class All:
    """Holds if every one of its matches holds."""

    matches: tuple[Match, ...]


@dataclass(frozen=True)
class AnyOf:
    """Holds if at least one of its matches holds."""

    matches: tuple[Match, ...]


@dataclass(frozen=True)
class Not:
    """Holds if its match does not hold."""

    match: Match


Match: TypeAlias = Test | All | AnyOf | Not


def children(match: Match) -> tuple[Match, ...]:
    """Return the matches directly below one."""
    if isinstance(match, Test):
        return ()
    return (match.match,) if isinstance(match, Not) else match.matches


def tests_of(match: Match) -> Iterator[Test]:
    """Yield every test of a tree, in the order of the document."""
    if isinstance(match, Test):
        yield match
    for child in children(match):
        yield from tests_of(child)


def capturing_tests(match: Match) -> Iterator[Test]:
    """Yield the tests whose captures a template can use: those that are not below ``not``."""
    if isinstance(match, Test):
        yield match
    elif not isinstance(match, Not):
        for child in children(match):
            yield from capturing_tests(child)


def matching_texts(pattern: Pattern | None, texts: Texts) -> set[str]:
    """Return those of the texts that match; all of them if there is no pattern."""
    if pattern is None:
        return set(texts.known)
    found = {text for text in pattern.of_kind("exact") if text in texts.known}
    for kind, text in pattern.alternatives:
        if kind != "exact":
            found.update(texts.column.filter(_test(kind, text, texts.column)).to_pylist())
    return found


class Texts:
    """Distinct texts: as a set, and as an Arrow array."""

    def __init__(self, texts: set[str]) -> None:
        self.known = texts
        self.column: pa.Array = pa.array(sorted(texts), pa.string())


def captures(pattern: Pattern, texts: Texts) -> dict[str, dict[str, str]]:
    """Return what the named groups of the pattern's regexes capture in each text: {text: {group: capture}}.

    If a name captures more than once, the first capture that is not empty counts. Empty captures are left out.
    """
    found: dict[str, dict[str, str]] = {}
    for regex in pattern.of_kind("regex"):
        if not compiled_groups(regex):
            continue
        captured = pc.extract_regex(texts.column, pattern=without_unnamed_groups(regex))
        kept = captured.is_valid()
        matched, captured = texts.column.filter(kept).to_pylist(), captured.filter(kept)
        for place, field in enumerate(captured.type):
            for text, capture in zip(matched, captured.field(place).to_pylist(), strict=True):
                if capture:
                    found.setdefault(text, {}).setdefault(field.name, capture)
    return found


#: Globs with stars at their ends only, and the faster functions that mean the same.
_SIMPLE_GLOB = re.compile(r"(\*?)([^*?]+)(\*?)")
_FASTER = {("", "*"): pc.starts_with, ("*", ""): pc.ends_with, ("*", "*"): pc.match_substring}


def _test(kind: Kind, text: str, column: pa.Array) -> pa.Array:
    if kind == "prefix":
        return pc.starts_with(column, text)
    if kind == "regex":
        return pc.match_substring_regex(column, text)
    if (simple := _SIMPLE_GLOB.fullmatch(text)) is None:
        return pc.match_substring_regex(column, glob_regex(text))
    start, middle, end = simple.groups()
    return _FASTER[start, end](column, middle)


def glob_regex(glob: str) -> str:
    """Return the RE2 regex of a glob, in which ``*`` stands for any characters and ``?`` for one.

    >>> glob_regex("pay.*")
    '(?s)\\\\Apay\\\\..*\\\\z'
    """
    wild = {"*": ".*", "?": "."}
    return r"(?s)\A" + "".join(wild.get(each) or _literal(each) for each in glob) + r"\z"


def _literal(character: str) -> str:
    return character if character.isalnum() or character in "_ " or ord(character) > 127 else "\\" + character
