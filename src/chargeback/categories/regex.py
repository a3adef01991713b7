r"""Regexes of users, in RE2's syntax: what they capture, and where a wrong one is wrong.

Arrow's functions do not show RE2's parser, so the little that is needed of a regex is read here: its parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

#: An escape, a quotation, a character class, or a parenthesis with the beginning of its meaning.
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*(?:\]|\Z)|\(\??|\)",
    re.DOTALL,
)


@lru_cache(maxsize=4096)
def compiled_groups(regex: str) -> frozenset[str]:
    """Return the names of the groups of a valid regex.

    >>> sorted(compiled_groups("^(?P<team>[a-z]+)-(prod|dev)$"))
    ['team']
    """
    kind = pc.extract_regex(pa.array([], pa.string()), pattern=without_unnamed_groups(regex)).type
    return frozenset(field.name for field in kind)


def without_unnamed_groups(regex: str) -> str:
    """Return an equal regex whose groups without a name do not capture.

    >>> without_unnamed_groups(r"(a|[(])(?P<x>\\()")
    '(?:a|[(])(?P<x>\\\\()'
    """
    return _TOKEN.sub(lambda token: "(?:" if token[0] == "(" else token[0], regex)


def mistake_in(regex: str) -> str | None:
    """Return why RE2 refuses a regex and at which position (from 1), or None if it accepts it.

    >>> mistake_in("^(a|b"), mistake_in("ab(?=x)")
    ('missing ) at position 2', 'invalid perl operator at position 3: (?=')
    """
    try:
        pc.match_substring_regex(pa.array([""], pa.string()), regex)
        pc.extract_regex(pa.array([""], pa.string()), pattern=without_unnamed_groups(regex))
    except pa.ArrowInvalid as error:
        return _with_position(str(error).removeprefix("Invalid regular expression: "), regex)
    if any(token[0] == r"\C" for token in _TOKEN.finditer(regex)):
        return rf"\C, a single byte, cannot be used (position {regex.index(chr(92) + 'C') + 1})"
    return None


def _with_position(message: str, regex: str) -> str:
    what, _, fragment = message.partition(": ")
    unbalanced = list(_unbalanced(regex))
    if fragment == regex and what in {"missing )", "unexpected )"} and unbalanced:
        return f"{what} at position {unbalanced[0] + 1}"
    if what.startswith("trailing"):
        return f"{what} at position {len(regex)}"
    position = regex.find(fragment)
    return f"{what} at position {position + 1}: {fragment}" if fragment and position >= 0 else message


def _unbalanced(regex: str) -> Iterator[int]:
    """Yield the positions of closing parentheses that close nothing, then of opening ones that are not closed."""
    opened: list[int] = []
    for token in _TOKEN.finditer(regex):
        if token[0].startswith("("):
            opened.append(token.start())
        elif token[0] == ")" and not opened:
            yield token.start()
        elif token[0] == ")":
            opened.pop()
    yield from opened
