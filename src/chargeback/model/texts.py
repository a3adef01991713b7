"""Cleans texts from outside: both databases, Arrow and JSON accept what these functions return.

A provider may cut a name in the middle of an emoji, send a NUL, or an id longer than a column. None of these may stop a
run, and the result must be the same on SQLite (which accepts almost anything) and on PostgreSQL (which does not).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

#: The most characters of an id of a resource, an identity or a grant.
MAX_ID_LENGTH: Final = 255
#: The most characters of a resource type or an identity type.
MAX_TYPE_LENGTH: Final = 64
#: The most characters of a topic's name: what Kafka allows. The id of a topic consists of it and its cluster's id.
MAX_TOPIC_LENGTH: Final = 249
#: The most characters of a name, a description or any other free text.
MAX_TEXT_LENGTH: Final = 2000

#: A text that is not blank: spaces of every width, and characters without a width, cannot.
VISIBLE: Final = r"^[^\u0000]*[^\u0000\s\u200b-\u200f\u2060\ufeff][^\u0000]*$"

#: The same of one line: control characters, line breaks among them, and separators of lines are no part of it.
LINE: Final = VISIBLE.replace(r"\u0000", r"\u0000-\u001f\u007f-\u009f\u2028\u2029")

_HASH_DIGITS: Final = 16
_ESCAPED: Final = ("\\\\", "\\,")
_PIECES = re.compile(r"\\[\\,]|[^\\,]+|[\\,]")
_SPACES = re.compile("[\t\n\r]")
_NUL = re.compile("\0")
#: Other control characters are never part of a name; they separate the parts of keys here, and control terminals.
_UNSTORABLE = re.compile("[\x01-\x1f\x7f-\x9f\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL_CHARACTERS: Final = r"[\x00-\x1f\x7f-\x{9f}]"

_Json = TypeVar("_Json")


def separated_values(texts: Iterable[str]) -> frozenset[str]:
    """Return the values in some texts, which commas separate. In a value, ``\\,`` is a comma and ``\\\\`` a backslash;
    any other backslash is itself.

    >>> sorted(separated_values(["payments,orders", "Design\\\\, Print"]))
    ['Design, Print', 'orders', 'payments']
    """
    found: set[str] = set()
    for text in texts:
        value = ""
        for piece in _PIECES.findall(text):
            if piece == ",":
                found.add(value)
                value = ""
            else:
                value += piece[1:] if piece in _ESCAPED else piece
        found.add(value)
    return frozenset(found)


def is_visible(text: str) -> bool:
    """Return whether something can be seen of a text.

    >>> is_visible("CHG-42"), is_visible(" \\t\\u200b"), is_visible("")
    (True, False, False)
    """
    return re.fullmatch(VISIBLE, text, re.DOTALL) is not None


def is_line(text: str) -> bool:
    """Return whether a text is one line with a visible character.

    >>> is_line("Load test"), is_line("Load\\ntest"), is_line("\\x1b[1m"), is_line("\\u2028"), is_line(" ")
    (True, False, False, False, False)
    """
    return re.fullmatch(LINE, text) is not None


def clean_text(text: str) -> str:
    """Return ``text`` without characters that cannot be stored.

    NUL is dropped; tab and line breaks become spaces; every other control character and every lone surrogate becomes
    U+FFFD, the replacement character.

    >>> ascii(clean_text("caf\\ud83d\\0\\x1b!"))
    "'caf\\\\ufffd\\\\ufffd!'"
    """
    if text.isprintable():
        return text
    return _UNSTORABLE.sub("\ufffd", _NUL.sub("", _SPACES.sub(" ", text)))


def clean_id(text: str, longest: int = MAX_ID_LENGTH) -> str:
    """Return an id that is clean and has at most ``longest`` characters.

    A longer one is cut and ends in ``~`` and a hash of the whole id, so that two long ids remain distinct and an id is
    the same in every run.

    >>> clean_id("x" * 300)[-20:]
    'xxx~12b539c1cad94615'
    """
    text = clean_text(text)
    if len(text) <= longest:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=_HASH_DIGITS // 2).hexdigest()
    return f"{text[: longest - _HASH_DIGITS - 1]}~{digest}"


def clean_column(column: pa.ChunkedArray, longest: int) -> pa.ChunkedArray:
    """Return a column of ids, each cleaned as by :func:`clean_id`; the column itself if nothing changes."""
    odd = pc.or_(pc.match_substring_regex(column, _CONTROL_CHARACTERS), pc.greater(pc.utf8_length(column), longest))
    if not pc.any(odd).as_py():
        return column
    cleaned = [None if text is None else clean_id(text, longest) for text in column.to_pylist()]
    return pa.chunked_array([pa.array(cleaned, pa.string())])


def replace_surrogates(document: _Json) -> _Json:
    """Return a JSON document with every lone surrogate in its texts, including keys, replaced by U+FFFD."""
    replaced: Any = document
    if isinstance(document, str):
        replaced = _SURROGATE.sub("\ufffd", document)
    elif isinstance(document, list):
        replaced = [replace_surrogates(each) for each in document]
    elif isinstance(document, dict):
        replaced = {replace_surrogates(key): replace_surrogates(value) for key, value in document.items()}
    result: _Json = replaced
    return result
