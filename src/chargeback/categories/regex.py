r"""Regexes of users, in RE2's syntax: what they capture, and where a wrong one is wrong.

Arrow's functions do not show RE2's parser, so the little that is needed of a regex is read here: its parentheses, and
how large it becomes when it is compiled. RE2 unfolds repetitions: ``a{1,1000}`` is a thousand times ``a``. Its time
grows with that size, and from about 1,500 parts on, a thousand names take minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

#: An escape, a quotation, a character class, or a parenthesis with the beginning of its meaning.
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*(?:\]|\Z)|\(\??|\)",
    re.DOTALL,
)

#: The parts of a regex that have a size, and what repeats them.
_PART = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)|(?P<property>\\[pP](?:\{[^}]*\}|.))|(?P<escape>\\(?:x\{[^}]*\}|.))"
    r"|(?P<set>\[\^?\]?(?:\[:\^?\w+:\]|\\[pP]\{[^}]*\}|\\.|[^\]\\])*(?:\]|\Z))"
    r"|(?P<open>\((?:\?(?:P?<\w*>|[a-zA-Z-]*:)?)?)|(?P<close>\))"
    r"|\{(?P<least>[0-9]+)(?P<comma>,?)(?P<most>[0-9]*)\}|(?P<repeat>[*+?])|(?P<sign>.)",
    re.DOTALL,
)
_PROPERTY = re.compile(r"\\[pP]")

#: The largest compiled size of a regex. It allows ``[a-z0-9-]{1,255}``, ``[^-]{1,255}`` and
#: ``.{1,255}``.
MAX_COMPILED_SIZE: Final = 1_300
#: About how many parts represent a Unicode property, and a character that can have several bytes.
_PROPERTY_SIZE: Final = 100
_WIDE_SIZE: Final = 4


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


@lru_cache(maxsize=4096)
def compiled_size(regex: str) -> int:
    """Return about how many parts a regex has when its repetitions are unfolded.

    >>> compiled_size("team-[a-z]+"), compiled_size("(ab){3}"), compiled_size("(a{1,10}){1,10}")
    (7, 6, 199)
    """
    totals, lasts = [0], [0]
    for part in _PART.finditer(regex):
        if part["open"]:
            totals.append(0)
            lasts.append(0)
            continue
        if part["close"]:
            size = 0
            if len(totals) > 1:
                size = totals.pop()
                lasts.pop()
        elif part["repeat"] or part["least"]:
            size = _repeated(part, lasts[-1])
            totals[-1] -= lasts[-1]
        else:
            size = _size(part)
        totals[-1] += size
        lasts[-1] = size
    return sum(totals)


def _repeated(part: re.Match[str], size: int) -> int:
    """Return the size of what is repeated: each copy that may be missing is a part more."""
    if part["repeat"]:
        return size + 1
    least = int(part["least"])
    most = int(part["most"]) if part["most"] else least + bool(part["comma"])
    return max(most, 1) * size + max(most - least, 0)


def _size(part: re.Match[str]) -> int:
    if part["quoted"] is not None:
        return len(part["quoted"].encode())
    if part["property"]:
        return _PROPERTY_SIZE
    if part["set"]:
        within: str = part["set"]
        wide = sum(not sign.isascii() for sign in within)
        least = _WIDE_SIZE if within[1:2] == "^" else 1
        return least + _WIDE_SIZE * wide + _PROPERTY_SIZE * len(_PROPERTY.findall(within))
    sign: str = part["escape"] or part["sign"]
    return _WIDE_SIZE if sign == "." or sign in {r"\W", r"\D", r"\S"} or not sign.isascii() else 1


@lru_cache(maxsize=4096)
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
