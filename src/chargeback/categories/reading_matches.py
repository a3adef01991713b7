"""Reads the match of a rule: tests, patterns, and ``all``, ``any``, ``not``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from chargeback.categories.matching import COLUMNS_OF_SUBJECT, KINDS, All, AnyOf, Kind, Match, Not, Pattern, Test
from chargeback.categories.reading import Reader, shown
from chargeback.categories.regex import MAX_COMPILED_SIZE, compiled_size, mistake_in

MAX_DEPTH: Final = 10
MAX_LIST: Final = 10_000
MAX_REGEX: Final = 500
_MATCHES: Final = (*COLUMNS_OF_SUBJECT, "all", "any", "not")


def read_match(reader: Reader, document: object, path: str, depth: int = 1) -> Match | None:
    """Return the match in a mapping of one key, or None if something in it is wrong."""
    if depth > MAX_DEPTH:
        reader.problem(path, f"is nested more than {MAX_DEPTH} levels deep")
        return None
    match = reader.mapping(document, path, _MATCHES)
    if len(match) > 1:
        reader.problem(path, f"has {' and '.join(match)}; put them in a list below all, or any")
    if document == {}:
        reader.problem(path, f"should not be empty; it needs one of {', '.join(_MATCHES)}")
    found = [_one_match(reader, name, value, f"{path}.{name}", depth) for name, value in match.items()]
    return found[0] if len(found) == 1 else None


def _one_match(reader: Reader, name: str, value: object, path: str, depth: int) -> Match | None:
    if name == "not":
        inner = read_match(reader, value, path, depth + 1)
        return None if inner is None else Not(inner)
    if name in {"all", "any"}:
        return _combined(reader, name, value, path, depth)
    return _tag(reader, value, path) if name == "tag" else _test(reader, name, value, path)


def _combined(reader: Reader, name: str, value: object, path: str, depth: int) -> Match | None:
    listed = list(reader.items(value, path, 1000, "a list of matches"))
    if value in ([], ()):
        reader.problem(path, "should not be empty")
    matches = [read_match(reader, each, at, depth + 1) for each, at in listed]
    sound = tuple(match for match in matches if match is not None)
    if not matches or len(sound) < len(matches):
        return None
    return All(sound) if name == "all" else AnyOf(sound)


def _test(reader: Reader, subject: str, value: object, path: str) -> Match | None:
    pattern = read_pattern(reader, value, path)
    return None if pattern is None else Test(subject, pattern)


def _tag(reader: Reader, value: object, path: str) -> Match | None:
    tag = reader.mapping(value, path, ("key", "value"))
    if not isinstance(value, dict):
        return None
    if "key" not in tag:
        reader.problem(f"{path}.key", "this key is required")
    key = reader.text(tag["key"], f"{path}.key") if "key" in tag else None
    pattern = read_pattern(reader, tag["value"], f"{path}.value") if "value" in tag else None
    return None if key is None or ("value" in tag and pattern is None) else Test("tag", pattern, key)


def read_pattern(reader: Reader, value: object, path: str) -> Pattern | None:
    """Return the pattern in a text, a list of texts, or a mapping of one of exact, glob, prefix, regex, set."""
    alternatives: list[tuple[Kind, str] | None]
    if isinstance(value, dict) and "set" in value:
        return _of_set(reader, value, path)
    if isinstance(value, dict):
        kinds = reader.mapping(value, path, KINDS)
        if len(kinds) != 1:
            if len(kinds) > 1 or not value:
                reader.problem(path, f"should have one of {', '.join(KINDS)}")
            return None
        kind = next(each for each in KINDS if each in kinds)
        alternatives = [
            _alternative(reader, kind, text, at) for text, at in _texts(reader, kinds[kind], f"{path}.{kind}")
        ]
    else:
        alternatives = [_alternative(reader, "glob", text, at) for text, at in _texts(reader, value, path)]
    sound = tuple(dict.fromkeys(each for each in alternatives if each is not None))
    return Pattern(sound) if sound and None not in alternatives else None


def _of_set(reader: Reader, value: dict[str, Any], path: str) -> Pattern | None:
    """Return the pattern that is named."""
    named = reader.mapping(value, path, ("set",))
    name = reader.text(named["set"], f"{path}.set")
    if len(value) > 1 or name is None:
        return None
    if (found := reader.sets.get(name)) is None:
        known = f"; sets has {', '.join(sorted(reader.sets)[:10])}" if reader.sets else "; the document has no sets"
        reader.problem(f"{path}.set", f"unknown set {shown(name)}{reader.suggestion(name, reader.sets)}{known}")
        return None
    return replace(found, named=name)


def _texts(reader: Reader, value: object, path: str) -> Iterator[tuple[object, str]]:
    if isinstance(value, str):
        yield value, path
        return
    if value in ([], ()):
        reader.problem(path, "should not be empty")
    yield from reader.items(value, path, MAX_LIST, "a text or a list of texts; quote numbers")


def _alternative(reader: Reader, kind: Kind, value: object, path: str) -> tuple[Kind, str] | None:
    longest = MAX_REGEX if kind == "regex" else 2000
    text = reader.text(value, path, longest=longest, padded=True)
    if text is None:
        return None
    if kind == "glob" and not is_wild(text):
        return "exact", text
    return (kind, text) if kind != "regex" or _is_sound(reader, text, path) else None


def _is_sound(reader: Reader, regex: str, path: str) -> bool:
    """Return whether a regex has no mistake and, unless the document is stored, is small enough."""
    if not reader.is_stored:
        if wrong := too_large(regex):
            reader.problem(path, wrong)
            return False
        if not reader.allows_regex(compiled_size(regex), path):
            return False
    if mistake := mistake_in(regex):
        reader.problem(path, f"is not a regex of RE2: {mistake} in {shown(regex)}")
    return mistake is None


def too_large(regex: str) -> str | None:
    """Return what is wrong with a regex that is too large, or None if it is not."""
    if (size := compiled_size(regex)) <= MAX_COMPILED_SIZE:
        return None
    return (
        f"is too large a regex: with its repetitions unfolded it has about {size:,} parts, at most "
        f"{MAX_COMPILED_SIZE:,} are allowed; repeat less often, or use * or +: {shown(regex)}"
    )


def is_wild(text: str) -> bool:
    """Return whether a text without a kind is a glob."""
    return "*" in text or "?" in text
